"""A drain that waits for somebody's work says for whose."""

from pathlib import Path

from brctl.engine.runs.run_files import RunRequest
from brctl.journal.store import read_journal
from brctl.library.playbooks import load_playbook
from brctl.library.shipped import shipped_dir
from brctl.model.exit_codes import ExitCode
from brctl.model.runs.event import EventType
from tests.engine.runs.test_remediate import start
from tests.fakes.run_context import fake_context

DRAIN = load_playbook(shipped_dir("playbooks") / "drain.yaml")


def test_a_drain_names_who_does_not_go_while_it_waits(tmp_path: Path) -> None:
    """While there is time to do something about it, and once, not at every look."""
    context = fake_context(tmp_path)
    with context.world.change() as data:
        data["guests"] = {"s2": "runs train/x"}
    request = RunRequest(by="oncall", typed="drain 1")
    run_dir, code = start(context, DRAIN, request, nodes=["s2"], reason="fan")
    assert code is ExitCode.OK
    notes = [e for e in read_journal(run_dir).events if e.type is EventType.NOTE]
    assert [e.fields["text"] for e in notes] == ["waits for s2: pod x is ending"]
