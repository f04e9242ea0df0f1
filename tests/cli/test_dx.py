"""`brctl dx` at a terminal asks for the look that may settle its lead, and for no other."""

import os
import pty
from dataclasses import replace
from pathlib import Path

import pytest

from brctl.cli.main import run
from brctl.engine.application.diagnose import DiagnosisScope
from brctl.engine.controller.clock import now
from brctl.engine.job.diagnose import Diagnosis
from brctl.model.fault import FaultClass
from brctl.model.sweeps.sweep import Sweep
from brctl.model.verdict import Alternative
from tests.fakes.fix_site import write_fix_site
from tests.fakes.run_context import example_verdict

CALM = replace(example_verdict(), fault=FaultClass.NO_FAULT, suspects=(), probability=0.6)


@pytest.mark.parametrize(
    ("lead", "key", "levels"),
    [
        (FaultClass.NETWORK_LINK, "y", [1, 2]),
        (FaultClass.NETWORK_LINK, "\n", [1]),
        (FaultClass.NODE_FAILURE, "y", [1]),
    ],
)
def test_a_lead_that_the_next_level_may_settle_is_asked_about(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    lead: FaultClass,
    key: str,
    levels: list[int],
) -> None:
    """No check of level 2 speaks of a dead node; a slow path is what pairs are tested for."""
    asked: list[int] = []

    async def look(_i: object, _c: object, scope: DiagnosisScope, *, level: int = 1,
                   heavy: tuple[str, ...] = (), beside_job: bool = False) -> Diagnosis:  # fmt: skip
        assert heavy == (("fabric.pairs",) if level > 1 else ())
        asked.append(level)
        found = replace(CALM, alternatives=(Alternative(lead, (), 0.33),))
        return Diagnosis(Sweep("S-1", level, scope.nodes, now(), 1.0, ()), None, (found,))

    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("BRCTL_CONFIG", str(write_fix_site(tmp_path)))
    monkeypatch.setattr("brctl.cli.commands.dx.look", look)
    keys, terminal = pty.openpty()
    with os.fdopen(terminal) as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        os.write(keys, key.encode())
        assert run(["dx"]) == 0
    os.close(keys)
    assert asked == levels
    printed = capsys.readouterr()
    assert ("Look now? [y/N]: " in printed.err) is (lead is FaultClass.NETWORK_LINK)
    assert f"leads:  {lead.value}" in printed.out
