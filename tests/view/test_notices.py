"""What leaves the site: golden bodies, limits of the receivers, and nothing secret in any of it."""

import json
import unicodedata
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brctl import __version__
from brctl.library.playbooks import load_playbook
from brctl.library.shipped import shipped_dir
from brctl.model.evidence import Evidence, Role, Subject, Weight
from brctl.model.fault import FaultClass
from brctl.model.notice import KEY_LIMIT, dedup_key
from brctl.model.runs.result import RunState
from brctl.model.verdict import Suspect
from brctl.playbook.run import Run
from brctl.playbook.run_record import StepRecord, blank_record
from brctl.playbook.steps import StepState
from brctl.view.notices.contents import Notice, RunFacts
from brctl.view.notices.notice import verdict_notice
from brctl.view.notices.sinks import KINDS, rendered
from brctl.view.notices.slack import slack_message, slack_thread
from tests.fakes.run_context import NOON, example_verdict

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "notify"
SECRETS = (
    "hf_abcdefghijklmnopqrstuvwx",
    "xoxb-1234567890-abcdef",
    "AKIAABCDEFGHIJKLMNOP",
    "glpat-abcdefghijklmnop1234",
)


def line(text: str) -> Evidence:
    return Evidence(
        "kernel.xid", Subject("n3"), Weight.CONVICTS, FaultClass.GPU_LOST, Role.ROOT, "dmesg", text
    )


def example(title: str = "a GPU fell off the bus") -> Notice:
    verdict = replace(
        example_verdict(),
        title=title,
        suspects=(Suspect("n3", ("gpu:index-5",), (2,)),),
        evidence=(line("NVRM: Xid (PCI:0000:9b:00): 79, GPU has fallen off the bus."),),
        cost_if_wrong="one standby and the time of a restart",
    )
    return verdict_notice(verdict, "prod-a", NOON, runbook="https://wiki.example.com/rb/swap")


@pytest.mark.parametrize("kind", KINDS)
def test_bodies_are_what_they_were(kind: str) -> None:
    """A contract with other people's systems: a change must be read in a diff."""
    text = json.dumps(rendered(example(), kind), indent=1, ensure_ascii=False)
    text = text.replace(f'"brctl": "{__version__}"', '"brctl": "VERSION"')
    assert text + "\n" == (GOLDEN / f"{kind}.json").read_text()


def texts(value: Any) -> Iterator[str]:
    """Every text of a document, keys too."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from texts(key)
            yield from texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from texts(item)


def everything(notice: Notice) -> list[Any]:
    """Every body this notice can become."""
    bodies = [rendered(notice, kind) for kind in KINDS]
    return [*bodies, slack_message(notice, "c", None)[1], slack_thread(notice, "c", "1.0")]


hostile = st.text(
    st.one_of(st.characters(), st.sampled_from("\x00\x1b\x7f\u202e\u200b\n\r<>&`*")), max_size=80
)


def hostile_run(reported: str) -> RunFacts:
    """A run of which every text is hostile."""
    playbook = load_playbook(shipped_dir("playbooks") / "swap-and-resume.yaml")
    playbook = replace(playbook, name=reported, title=reported)
    record = blank_record(playbook)
    record.steps[record.step_ids[0]] = StepRecord(StepState.DONE, attempts=1, say=reported)
    run = Run(
        name="R-0001", run_dir=Path(), playbook=playbook, record=record, events=(), damage=(),
        alive=False, by=reported, verdict_id="V-1", verdict={}, job=reported, nodes=(reported,),
    )  # fmt: skip
    return RunFacts("prod-a", run, None, (RunState.NEEDS_HUMAN, reported))


@settings(max_examples=40)
@given(hostile, hostile, st.sampled_from(SECRETS))
def test_no_control_character_and_no_secret_passes(title: str, said: str, secret: str) -> None:
    """Log lines and titles come from nodes; they reach pagers, chat rooms, other people's logs."""
    reported = f"{said} {secret} password={secret} {title}"
    verdict = replace(
        example_verdict(),
        title=f"{title} {secret}",
        suspects=(Suspect("n3", (reported,)),),
        evidence=(line(reported),),
        cost_if_wrong=reported,
        job=f"job {secret} {title}",
    )
    base = verdict_notice(verdict, "prod-a", NOON, runbook=reported)
    for body in everything(
        replace(base, run=hostile_run(reported), needs=reported, do=reported, why=reported)
    ):
        for text in texts(body):
            assert secret not in text
            bad = [c for c in text.replace("\n", "") if unicodedata.category(c) == "Cc"]
            assert bad == []
            assert "\u202e" not in text
            assert "<!channel>" not in text


@settings(max_examples=20)
@given(st.text(min_size=200, max_size=3000), st.integers(1, 400))
def test_no_body_is_larger_than_its_receiver_takes(title: str, nodes: int) -> None:
    """Slack and PagerDuty refuse a whole message for one long field."""
    names = tuple(Suspect(f"gpu{n:04d}-{title[:20]}") for n in range(nodes))
    verdict = replace(example_verdict(), title=title, suspects=names, cost_if_wrong=title)
    notice = verdict_notice(verdict, "prod-a", NOON, runbook=title)
    page, chat = rendered(notice, "pagerduty"), rendered(notice, "slack")
    assert isinstance(page, dict)
    assert isinstance(chat, dict)
    assert len(page["payload"]["summary"]) <= 1024
    assert len(page["dedup_key"]) <= KEY_LIMIT
    assert len(json.dumps(page)) < 512_000
    assert len(chat["blocks"]) <= 6
    assert len(chat["blocks"][0]["text"]["text"]) <= 150
    assert all(len(block["text"]["text"]) <= 3000 for block in chat["blocks"])
    assert len(json.dumps(chat)) < 13_200 * 2


def test_nobody_is_mentioned_by_what_a_node_said() -> None:
    text = json.dumps(rendered(example("<!channel> <@U1> `x` *y*"), "slack"))
    assert "<!" not in text
    assert "<@" not in text


@given(st.text(max_size=400), st.text(max_size=400))
def test_a_key_is_stable_and_fits(subject: str, fault: str) -> None:
    """Two long subjects that differ only at their ends keep two keys."""
    key = dedup_key("prod-a", subject, fault)
    assert len(key) <= KEY_LIMIT
    assert key == dedup_key("prod-a", subject, fault)
    assert key != dedup_key("prod-a", subject + "x", fault)
