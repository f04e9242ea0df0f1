"""Incidents on disk: one time line of a verdict, its runs, its hooks, and what people noted."""

import asyncio
import json
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from brctl.engine.incidents.timeline import find_incident, load_incidents, pick_incident
from brctl.engine.incidents.verdict_store import save_new
from brctl.engine.runs.plan import prepare
from brctl.engine.runs.remediate import create_run
from brctl.engine.runs.run_files import RunRequest
from brctl.journal.incident_notes import add_note
from brctl.journal.store import read_journal
from brctl.library.playbooks import load_playbook
from brctl.library.shipped import shipped_dir
from brctl.model.errors import UsageError
from brctl.model.exit_codes import ExitCode
from brctl.model.fault import FaultClass
from brctl.model.runs.event import EventType
from brctl.view.incident import incident_page, markdown
from brctl.view.incident_html import incident_html
from tests.fakes.run_context import NOON, FakeContext, example_verdict, fake_context
from tests.fakes.run_here import carry


class MarkupOf(HTMLParser):
    """What a browser would see in a page: elements, attributes, text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text += data


def swapped(folder: Path) -> tuple[FakeContext, Path]:
    context = fake_context(folder)
    save_new(context.state_dir, example_verdict())
    playbook = load_playbook(shipped_dir("playbooks") / "swap-and-resume.yaml")
    prepared = asyncio.run(prepare(context, playbook, example_verdict()))
    run_dir = create_run(context, prepared, RunRequest(by="oncall"))

    assert carry(context, run_dir) is ExitCode.OK
    return context, run_dir


def test_a_site_without_notifiers_is_told_so_and_its_runs_are_what_they_were(
    tmp_path: Path,
) -> None:
    """The shipped playbooks tell people; where nobody is configured, they say that."""
    _, run_dir = swapped(tmp_path)
    hooks = [e.fields for e in read_journal(run_dir).events if e.type is EventType.HOOK_RESULT]
    assert [(h["uses"], h["ok"]) for h in hooks] == [
        ("incident.timeline", True),
        ("notify.chat", True),
    ]
    assert hooks[1]["say"] == "no notifier configured"


def test_the_time_line_goes_from_the_verdict_to_the_recovery(tmp_path: Path) -> None:
    context, run_dir = swapped(tmp_path)
    add_note(context.state_dir, "V-1", (context.clock.now(), "ann", "second Xid 79 this month"))
    (incident,) = load_incidents(context.state_dir)
    kinds = [moment.kind for moment in incident.moments]
    assert kinds[:2] == ["diagnosed", "run"]
    assert {"changed", "recovered", "note"} <= set(kinds)
    assert (incident.runs, incident.state) == (("R-0001",), "acted-on")
    text = (run_dir / "incident.md").read_text()
    assert text.startswith("# Incident V-1: a GPU fell off the bus")
    assert "second Xid 79 this month" in markdown(incident, NOON)
    body = incident_page(incident).body["incident"]
    assert json.loads(json.dumps(body))["suspects"] == {"nodes": ["n3"], "folded": "n3"}


def test_a_note_with_a_secret_or_markup_leaves_without_them(tmp_path: Path) -> None:
    """An export is pasted into documents that many people read."""
    context = fake_context(tmp_path)
    save_new(context.state_dir, example_verdict())
    add_note(context.state_dir, "V-1", (NOON, "ann", "token=abcdef123 <b>x</b> | \x1b[31m"))
    (incident,) = load_incidents(context.state_dir)
    for text in (markdown(incident, NOON), str(incident_page(incident).body)):
        assert "abcdef123" not in text
        assert "\x1b" not in text
    assert "\\<b\\>" in markdown(incident, NOON)


def test_an_unknown_incident_names_the_nearest(tmp_path: Path) -> None:
    context = fake_context(tmp_path)
    save_new(context.state_dir, example_verdict())
    found = load_incidents(context.state_dir)
    assert pick_incident(found, None).id == pick_incident(found, "v-1").id == "V-1"
    with pytest.raises(UsageError, match="did you mean 'V-1'"):
        pick_incident(found, "V-2")


def test_a_look_that_found_no_cause_is_no_incident_until_somebody_notes_it(tmp_path: Path) -> None:
    """`dx` of a healthy or an unclear job filled the list that people read after a night."""
    context = fake_context(tmp_path)
    verdict = example_verdict()
    save_new(context.state_dir, replace(verdict, id="V-N", fault=FaultClass.NO_FAULT, job="a"))
    save_new(context.state_dir, replace(verdict, id="V-U", fault=FaultClass.UNKNOWN, job="b"))
    assert load_incidents(context.state_dir) == []
    assert find_incident(context.state_dir, "V-U").id == "V-U"
    add_note(context.state_dir, "V-U", (NOON, "ann", "the switch was rebooted then"))
    assert [incident.id for incident in load_incidents(context.state_dir)] == ["V-U"]


def test_the_page_to_send_holds_no_secret_no_script_and_fetches_nothing(tmp_path: Path) -> None:
    """It is opened in a browser, and every text in it came from a node or a stranger."""
    context, _ = swapped(tmp_path)
    hostile = 'token=abcdef123 <script>alert(1)</script><img src=//x/y onerror="a()"> \x1b[31m'
    add_note(context.state_dir, "V-1", (context.clock.now(), "ann", hostile))
    (incident,) = load_incidents(context.state_dir)
    text = incident_html(incident, NOON)
    page = MarkupOf(text)
    assert page.names <= {
        "html", "head", "meta", "title", "style", "body", "h1", "h2", "table", "tr", "th", "td",
        "svg", "line", "text", "circle",
    }  # fmt: skip
    assert not page.attributes & {"src", "href", "onerror", "onload", "style"}
    assert "alert(1)" in page.text
    assert "abcdef123" not in text
    assert "\x1b" not in text
    assert "default-src 'none'" in text
    assert text.count("<circle") == len(incident.moments)
