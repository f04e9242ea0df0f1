"""What a person does by hand: which standby comes in, what is given back though it is broken."""

from pathlib import Path

import pytest

from brctl.cli.main import run
from brctl.engine.application.runs import all_playbooks
from brctl.engine.controller.clock import now
from brctl.engine.incidents import verdict_store
from brctl.engine.incidents.verdict_store import StoredVerdict, VerdictState
from brctl.engine.runs.plan import prepare
from brctl.engine.sweeps.sweep_store import save
from brctl.library.config import Settings
from brctl.model.runs.playbook import Json
from brctl.model.sweeps.sweep import Health, Sweep
from tests.cli.test_fix import site
from tests.fakes.run_context import example_verdict, fake_context
from tests.sweep.healths import node

__all__ = ["site"]


async def test_a_swap_takes_the_standby_that_was_named(tmp_path: Path) -> None:
    """Somebody knows why it must be this one; s1 would come first."""
    context = fake_context(tmp_path)
    playbook = all_playbooks(())["swap-and-resume"]
    for wanted in ("s1", "s2"):
        values: dict[str, Json] = {"suspects": ["n3"], "job": "demo", "standbys": [wanted]}
        prepared = await prepare(context, playbook, None, values)
        shown = [(c.subject, c.what) for step in prepared.plan.steps for c in step.changes]
        assert (wanted, "standby -> reserved") in shown


@pytest.mark.parametrize(
    ("standbys", "words"),
    [("n2", "n2 cannot take a place"), ("s9", "not in the inventory"), ("@standby!s1", "matched")],
)
def test_a_standby_that_cannot_come_in_is_said_before_anything_is_planned(
    site: Settings, capsys: pytest.CaptureFixture[str], standbys: str, words: str
) -> None:
    """It was found out after the suspect had been cordoned."""
    assert run(["swap", "n3", "-m", "fan", "--with", standbys, "-n"]) == 64
    assert words in capsys.readouterr().err
    assert run(["swap", "n[2-3]", "-m", "fan", "--with", "s1", "-n"]) == 64
    assert "1 for 2 nodes" in capsys.readouterr().err


def test_giving_back_a_node_says_what_stands_against_it(
    site: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    """The verdict is open, the newest sweep saw the fault, and it is still the person's choice."""
    verdict = StoredVerdict(example_verdict(now()), VerdictState.OPEN)
    verdict_store.save(site.state_dir, verdict)
    broken = (node("n3", Health.CRITICAL),)
    save(site.state_dir, Sweep("S-20260101T000000", 1, ("gpu.ecc",), now(), 1.0, broken))
    assert run(["uncordon", "n3", "-n"]) == 0
    warned = capsys.readouterr().err
    assert "warning: V-1 " in warned
    assert "warning: n3 crit gpu.ecc" in warned


def test_a_node_that_no_sweep_has_seen_is_given_back_with_a_word_about_it(
    site: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["uncordon", "n3", "-n"]) == 0
    assert "no sweep has seen n3; --check looks first" in capsys.readouterr().err


def test_a_look_before_giving_back_refuses_while_a_fault_stands(
    site: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    """With --check nothing changes while anything speaks against the node."""
    verdict = StoredVerdict(example_verdict(now()), VerdictState.OPEN)
    verdict_store.save(site.state_dir, verdict)
    assert run(["uncordon", "n3", "--check"]) == 5
    assert "Nothing changed" in capsys.readouterr().err
    assert not (site.state_dir / "runs").exists()
