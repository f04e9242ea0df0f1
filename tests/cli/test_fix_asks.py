"""What `brctl fix` shows and asks at a terminal, before and after a run."""

import os
import pty
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TextIO

import pytest

from brctl.cli.main import run
from brctl.cli.running import Consent
from brctl.engine.application.diagnose import DiagnosisScope
from brctl.engine.controller.clock import now
from brctl.engine.incidents import verdict_store
from brctl.engine.incidents.verdict_store import StoredVerdict, VerdictState
from brctl.engine.job.diagnose import Diagnosis
from brctl.engine.runs.plan import Prepared
from brctl.engine.runs.read_run import read_run
from brctl.engine.runs.run_files import PLAYBOOK, RunInputs, RunRequest, save_inputs, save_request
from brctl.journal.store import Journal, new_run
from brctl.library.config import Settings, load_settings
from brctl.model.errors import CancelledError, UnavailableError
from brctl.model.exit_codes import ExitCode
from brctl.model.fault import Action, FaultClass
from brctl.model.runs.event import EventType
from brctl.model.runs.playbook import Json, Playbook
from brctl.model.runs.result import RunState
from brctl.model.sweeps.sweep import Sweep
from brctl.model.verdict import Suspect, Verdict
from brctl.playbook.run import Run
from tests.fakes.fix_site import keep, write_fix_site


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Three nodes with a job on them, and a standby."""
    config = write_fix_site(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("BRCTL_CONFIG", str(config))
    return load_settings({"HOME": str(tmp_path)}, config=config)


@contextmanager
def terminal_with(typed: str) -> Iterator[TextIO]:
    """Somebody's terminal, with the keys they press."""
    ours, theirs = pty.openpty()
    try:
        os.write(ours, typed.encode())
        with os.fdopen(theirs) as stdin:
            yield stdin
    finally:
        os.close(ours)


@pytest.mark.parametrize(("typed", "started"), [("\n", 0), ("n", 0), ("\x04", 0), ("y", 1)])
def test_on_a_terminal_the_plan_is_shown_and_y_asked_where_no_gate_asks(
    site: Settings,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    typed: str,
    started: int,
) -> None:
    """A sure verdict needs nobody's approval; ranks do not end before somebody saw the plan."""
    keep(site)
    begun: list[str] = []

    async def start(
        _context: object, _settings: object, prepared: Prepared, *_: object, **__: object
    ) -> Path:
        begun.append(prepared.plan.playbook)
        raise UnavailableError("started")

    monkeypatch.setattr("brctl.cli.running.start_planned", start)
    with terminal_with(typed) as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        assert run(["fix"]) == (69 if started else ExitCode.CANCELLED)
    printed = capsys.readouterr().err
    assert "start it? [y/N]: " in printed
    assert "guards" in printed
    assert len(begun) == started


def test_who_will_be_asked_for_words_sees_the_cost_before_anything_changes(
    site: Settings, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Less sure, a gate asks for words: minutes, steps lost and standbys left stand above it."""
    verdict = replace(keep(site), probability=0.8)
    verdict_store.save(site.state_dir, StoredVerdict(verdict, VerdictState.OPEN))

    async def start(*_: object, **__: object) -> Path:
        raise UnavailableError("started")

    monkeypatch.setattr("brctl.cli.running.start_planned", start)
    with terminal_with("") as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        assert run(["fix"]) == 69
    printed = capsys.readouterr().err
    assert "[y/N]" not in printed
    assert all(f"\n{word}" in printed for word in ("time    at most", "lost    ", "standby "))


@pytest.mark.parametrize(
    ("flags", "acts", "runs"), [([], True, 2), ([], False, 1), (["-y"], True, 1)]
)
def test_a_fix_that_did_not_help_looks_again_and_asks_for_the_next(
    site: Settings,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    flags: list[str],
    acts: bool,
    runs: int,
) -> None:
    """Nobody types `dx` and `fix` anew; what names no playbook is left to the person.

    Whoever agreed on the command line may be a program at a pseudo-terminal, and is asked nothing.
    """
    again = replace(keep(site), id="V-2", playbook="swap-and-resume" if acts else "")
    ended = iter((RunState.NEEDS_HUMAN, RunState.OK))
    fixed: list[str] = []

    async def play(_i: object, _s: object, playbook: Playbook, _v: object, verdict: Verdict,
                   _c: object) -> Run:  # fmt: skip
        fixed.append(verdict.id)
        return proved(site, playbook, next(ended))

    async def look(_i: object, _c: object, scope: DiagnosisScope) -> Diagnosis:
        verdict_store.save(site.state_dir, StoredVerdict(again, VerdictState.OPEN))
        return Diagnosis(Sweep("S-1", 1, scope.nodes, now(), 1.0, ()), None, (again,))

    monkeypatch.setattr("brctl.cli.commands.fix.run_playbook", play)
    monkeypatch.setattr("brctl.cli.commands.fix.look", look)
    with terminal_with("") as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        assert run(["fix", *flags]) == (ExitCode.OK if runs > 1 else ExitCode.NEEDS_HUMAN)
    assert fixed == ["V-1", "V-2"][:runs]
    assert ("did not help; looking again" in capsys.readouterr().err) is (not flags)


@pytest.mark.parametrize(
    ("typed", "node", "answers", "code"),
    [
        ("a", "n3", [True, True], ExitCode.OK),
        ("yn", "n3", [True, False], ExitCode.NEEDS_HUMAN),
        ("an", "n2", [True, False], ExitCode.NEEDS_HUMAN),
        ("n", "n3", [False], ExitCode.CANCELLED),
    ],
)
def test_a_is_yes_to_what_follows_for_the_same_fault_on_the_same_node_only(
    site: Settings,
    monkeypatch: pytest.MonkeyPatch,
    typed: str,
    node: str,
    answers: list[bool],
    code: ExitCode,
) -> None:
    """A restart that may not hold is agreed to once, and the swap it leads to with it."""
    first = replace(
        keep(site), fault=FaultClass.HANG_MISMATCH, probability=0.94, action=Action.RESTART
    )
    verdict_store.save(site.state_dir, StoredVerdict(first, VerdictState.OPEN))
    again = replace(first, id="V-2", suspects=(Suspect(node, (), ()),), playbook="swap-and-resume")
    given: list[bool] = []

    async def play(_i: object, _s: object, playbook: Playbook, _v: object, _w: object,
                   consent: Consent) -> Run:  # fmt: skip
        # A terminal forgets what was typed ahead of the next question.
        os.write(ours, typed[len(given) : len(given) + 1].encode())
        given.append(consent.ask("start it?"))
        if not given[-1]:
            raise CancelledError("nothing was changed")
        return proved(site, playbook, RunState.OK if len(given) == 2 else RunState.NEEDS_HUMAN)

    async def look(_i: object, _c: object, scope: DiagnosisScope) -> Diagnosis:
        verdict_store.save(site.state_dir, StoredVerdict(again, VerdictState.OPEN))
        return Diagnosis(Sweep("S-1", 1, scope.nodes, now(), 1.0, ()), None, (again,))

    monkeypatch.setattr("brctl.cli.commands.fix.run_playbook", play)
    monkeypatch.setattr("brctl.cli.commands.fix.look", look)
    ours, theirs = pty.openpty()
    with os.fdopen(theirs) as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        assert run(["fix"]) == code
    os.close(ours)
    assert given == answers


def proved(site: Settings, playbook: Playbook, end: RunState) -> Run:
    """A run that did everything; training came back, or did not."""
    run_dir = new_run(site.state_dir)
    (run_dir / PLAYBOOK).write_bytes(playbook.text)
    save_inputs(run_dir, RunInputs({}, {}, "V-1", {"name": "demo"}))
    save_request(run_dir, RunRequest(by="ann"))
    journal = Journal(run_dir)
    journal.append(EventType.RUN_STARTED, now(), {"by": "ann"})
    journal.append(EventType.STEP_INTENT, now(), {"step": "prove", "arguments": {}})
    result: dict[str, Json] = {"step": "prove", "ok": end is RunState.OK, "final": True}
    journal.append(EventType.STEP_RESULT, now(), result)
    journal.append(EventType.END, now(), {"result": end, "exit_code": end.exit_code})
    return read_run(run_dir)


@pytest.mark.parametrize("agreed", [["-y"], ["--confirm", "swap 1"], ["--no-input"]])
def test_who_agreed_on_the_command_line_is_not_asked_again(
    site: Settings,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    agreed: list[str],
) -> None:
    """Nor is a script, whose verdict is sure enough for nobody to be asked."""
    keep(site)

    async def start(*_: object, **__: object) -> Path:
        raise UnavailableError("started")

    monkeypatch.setattr("brctl.cli.running.start_planned", start)
    with terminal_with("n") as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        assert run(["fix", *agreed]) == 69
    assert "[y/N]" not in capsys.readouterr().err
