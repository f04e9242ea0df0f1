"""`brctl dx` at a terminal asks for the look that may settle its lead, and for no other."""

import json
import os
import pty
from dataclasses import replace
from errno import ENAMETOOLONG, ENOSPC
from pathlib import Path

import pytest

from brctl.cli.main import run
from brctl.engine.application.diagnose import DiagnosisScope
from brctl.engine.controller.clock import now
from brctl.engine.job.diagnose import Diagnosis
from brctl.model.errors import UsageError
from brctl.model.fault import FaultClass
from brctl.model.sweeps.sweep import Sweep
from brctl.model.verdict import Alternative
from brctl.view.notices.page import Page
from brctl.view.recorded.replay import record_page
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


@pytest.fixture
def looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A site where each look finds nothing; how many there were."""
    done: list[str] = []

    async def look(_i: object, _c: object, scope: DiagnosisScope, **_: object) -> Diagnosis:
        done.append("S-1")
        return Diagnosis(Sweep("S-1", 1, scope.nodes, now(), 1.0, ()), None, (CALM,))

    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("BRCTL_CONFIG", str(write_fix_site(tmp_path)))
    monkeypatch.setattr("brctl.cli.commands.dx.look", look)
    return done


@pytest.mark.parametrize(
    "words",
    [
        ("dx", "--record"),
        ("incident", "record", "V-1", "--out"),
        ("incident", "redact", "x.brctl.tar.zst", "--out"),
        ("incident", "import", "logs", "--out"),
    ],
)
def test_a_file_that_cannot_be_there_is_refused_before_the_work_for_it(
    tmp_path: Path, looks: list[str], capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    assert run([*words, str(tmp_path / "none" / "x")]) == 64
    said = capsys.readouterr().err
    assert f"{words[-1]} {tmp_path}/none/x: no folder {tmp_path}/none" in said
    assert f"try:   mkdir -p {tmp_path}/none" in said
    assert run([*words, str(tmp_path)]) == 64
    assert "a folder; name a file in it" in capsys.readouterr().err
    assert looks == []


@pytest.mark.parametrize(
    ("trouble", "code", "said"),
    [
        (OSError(ENOSPC, "No space left on device"), 69, "cannot be written: No space left"),
        (OSError(ENAMETOOLONG, "File name too long"), 69, "cannot be written: File name too long"),
        (UsageError("nothing of it is recorded"), 64, "error: nothing of it is recorded"),
    ],
)
def test_the_verdict_is_told_though_its_recording_cannot_be_written(
    tmp_path: Path,
    looks: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    trouble: Exception,
    code: int,
    said: str,
) -> None:
    def record_looks(*_: object) -> Page:
        raise trouble

    monkeypatch.setattr("brctl.engine.application.incident_files.record_looks", record_looks)
    assert run(["dx", "--record", str(tmp_path / "x"), "--json"]) == code
    printed = capsys.readouterr()
    document = json.loads(printed.out)
    assert document["verdicts"][0]["class"] == "no-fault"
    assert document["errors"][0]["message"] in printed.err
    assert said in printed.err
    assert looks == ["S-1"]


def test_what_is_not_in_a_recording_is_told_beside_the_verdict(
    tmp_path: Path,
    looks: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    written = record_page("x", 1, "0" * 64, looks, {}, ("journals: for the size of the file",))
    monkeypatch.setattr("brctl.engine.application.incident_files.record_looks", lambda *_: written)
    assert run(["dx", "--record", str(tmp_path / "x")]) == 0
    assert "left out: journals: for the size of the file" in capsys.readouterr().err
