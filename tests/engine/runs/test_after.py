"""`after: failure|always`: steps that follow a failure, once, and never change what had failed."""

import asyncio
from pathlib import Path

import pytest

from brctl.engine.runs.plan import prepare
from brctl.engine.runs.read_run import read_run
from brctl.engine.runs.remediate import create_run
from brctl.engine.runs.run_files import RunRequest, save_request
from brctl.journal.store import read_journal
from brctl.library.playbooks import read_playbook
from brctl.model.exit_codes import ExitCode
from brctl.playbook.steps import StepState
from tests.fakes.run_context import FakeContext, fake_context
from tests.fakes.run_here import carry

TICKET = """\
apiVersion: brctl.dev/v1
kind: Playbook
metadata: {name: ticket, title: A ticket for what failed, risk: low}
inputs:
  nodes: {type: nodeset, default: n1}
defaults: {on_failure: rollback}
steps:
  - id: cordon
    uses: node.cordon
    with: {nodes: $(inputs.nodes), reason: test}
    safety: reversible
    undo: auto
  - id: checks
    uses: check.run
    with: {nodes: $(inputs.nodes)}
    safety: read
  - id: ticket
    run: echo "$STEP" >>"$FILE"
    env: {STEP: $(failed.step), FILE: %s/tickets}
    when: failed.step in ["checks"]
    after: failure
    safety: read
  - id: tidy
    run: echo tidy >>"$FILE"
    env: {FILE: %s/tickets}
    after: always
    safety: read
"""


def start(folder: Path, *, faulty: bool, text: str = TICKET) -> tuple[FakeContext, Path, ExitCode]:
    context = fake_context(folder)
    with context.world.change() as data:
        data["sick"] = ["n1"] if faulty else []
    playbook = read_playbook(text.replace("%s", str(folder)).encode(), "ticket.yaml")
    run_dir = create_run(
        context, asyncio.run(prepare(context, playbook)), RunRequest("ann", yes=True)
    )
    return context, run_dir, carry(context, run_dir)


def tickets(folder: Path) -> list[str]:
    path = folder / "tickets"
    return path.read_text().split() if path.exists() else []


def test_without_a_failure_only_what_always_runs_does(tmp_path: Path) -> None:
    """No ticket; tidy in its place."""
    _, run_dir, code = start(tmp_path, faulty=False)
    assert (code, tickets(tmp_path)) == (ExitCode.OK, ["tidy"])
    assert read_run(run_dir).record.steps["ticket"].state is StepState.SKIPPED


def test_after_a_failure_the_changes_go_back_and_the_ticket_is_opened(tmp_path: Path) -> None:
    """The run still ends as rolled back, because of what failed first."""
    context, run_dir, code = start(tmp_path, faulty=True)
    assert (code, tickets(tmp_path)) == (ExitCode.ROLLED_BACK, ["checks", "tidy"])
    assert context.world.read()["cordons"] == {}
    assert read_run(run_dir).record.failed_step == "checks"


def test_a_ticket_that_cannot_be_opened_needs_a_human(tmp_path: Path) -> None:
    """Everything was undone, but somebody must know that no ticket exists."""
    text = TICKET.replace('echo "$STEP" >>"$FILE"', "echo no >&2; exit 1")
    _, run_dir, code = start(tmp_path, faulty=True, text=text)
    assert code is ExitCode.NEEDS_HUMAN
    record = read_run(run_dir).record
    assert (record.failed_step, tickets(tmp_path)) == ("checks", [])
    assert "ticket: exit status 1" in str(read_journal(run_dir).events[-1].fields["why"])


@pytest.mark.parametrize("mark", [b'"then":"rollback"', b"undo.intent", b"undo.result"])
def test_cut_off_while_rolling_back_it_still_opens_the_one_ticket(
    mark: bytes, tmp_path: Path
) -> None:
    """Whatever the moment, after resume there is exactly one."""
    context, run_dir, _ = start(tmp_path, faulty=True)
    path = run_dir / "events.ndjson"
    lines = path.read_bytes().splitlines(keepends=True)
    last = next(number for number, line in enumerate(lines) if mark in line)
    path.write_bytes(b"".join(lines[: last + 1]))
    (tmp_path / "tickets").unlink()
    assert carry(context, run_dir) is ExitCode.ROLLED_BACK
    assert carry(context, run_dir) is ExitCode.ROLLED_BACK
    assert tickets(tmp_path) == ["checks", "tidy"]


def test_a_person_who_takes_a_run_back_opens_no_ticket(tmp_path: Path) -> None:
    """Nothing failed; somebody changed their mind."""
    context, run_dir, _ = start(tmp_path, faulty=False)
    save_request(run_dir, RunRequest("ann", undo=True))
    assert carry(context, run_dir) is ExitCode.ROLLED_BACK
    assert tickets(tmp_path) == ["tidy"]


def test_a_failure_that_leaves_things_as_they_are_has_its_ticket_too(tmp_path: Path) -> None:
    """`escalate`: exit 8, the cordon stays, and a resumed run that fails again opens no second."""
    text = TICKET.replace("on_failure: rollback", "on_failure: escalate")
    context, run_dir, code = start(tmp_path, faulty=True, text=text)
    assert code is ExitCode.NEEDS_HUMAN
    assert set(context.world.read()["cordons"]) == {"n1"}
    assert carry(context, run_dir) is ExitCode.NEEDS_HUMAN
    assert tickets(tmp_path) == ["checks", "tidy"]
    with context.world.change() as data:
        data["sick"] = []
    assert carry(context, run_dir) is ExitCode.OK
