"""A run and its notifier: told in order, and never disturbed by whoever is told."""

import asyncio
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from brctl.engine.incidents.notify_runs import notify_lost, notify_progress, notify_verdicts
from brctl.engine.runs.plan import prepare
from brctl.engine.runs.remediate import create_run
from brctl.engine.runs.run_files import RunRequest
from brctl.journal.store import Journal, read_journal
from brctl.library.notify_settings import NotifySettings, Sink
from brctl.library.playbooks import load_playbook
from brctl.library.shipped import shipped_dir
from brctl.model.exit_codes import ExitCode
from brctl.model.notice import NoticeEvent
from brctl.model.runs.event import EventType
from tests.fakes.http_sink import CLOSE, HANG, HttpSink, Reply, http_sink
from tests.fakes.run_context import NOON, FakeContext, example_verdict, fake_context
from tests.fakes.run_here import carry
from tests.timeouts import TIMEOUT_S

SWAP = load_playbook(shipped_dir("playbooks") / "swap-and-resume.yaml")
ALL = frozenset(NoticeEvent)


@pytest.fixture
def server() -> Iterator[HttpSink]:
    with http_sink() as sink:
        yield sink


def settings(folder: Path, server: HttpSink, deadline_s: float = TIMEOUT_S) -> NotifySettings:
    key = folder / "key"
    key.write_text("routing-key")
    key.chmod(0o600)
    sinks = (Sink("pagerduty", ALL, server.url, key), Sink("webhook", ALL, server.url))
    return NotifySettings(sinks, deadline_s)


def swap(context: FakeContext) -> tuple[ExitCode, Path]:
    prepared = asyncio.run(prepare(context, SWAP, example_verdict()))
    run_dir = create_run(context, prepared, RunRequest(by="oncall"))
    return carry(context, run_dir), run_dir


def pages(server: HttpSink) -> list[str]:
    return [b["event_action"] for b in server.bodies if "event_action" in b]


def story(server: HttpSink) -> list[tuple[str, str]]:
    found = [b["notification"] for b in server.bodies if "notification" in b]
    return [(n["event"], n["state"]) for n in found]


def told_verdict(context: FakeContext) -> None:
    asyncio.run(notify_verdicts(context.notifier, "fake", [example_verdict()], NOON))


def test_a_fault_is_paged_taken_in_hand_and_closed_by_the_run(
    tmp_path: Path, server: HttpSink
) -> None:
    """Trigger, acknowledge, resolve: one key from the verdict to the first new step."""
    context = fake_context(tmp_path, notify=settings(tmp_path, server))
    told_verdict(context)
    assert swap(context)[0] is ExitCode.OK
    assert pages(server) == ["trigger", "acknowledge", "resolve"]
    assert len({b["dedup_key"] for b in server.bodies if "dedup_key" in b}) == 1
    assert story(server) == [
        ("verdict.high", "firing"),
        ("run.started", "acknowledged"),
        ("training.advanced", "resolved"),
    ]


def test_a_run_that_waits_asks_for_its_approval_on_the_page(
    tmp_path: Path, server: HttpSink
) -> None:
    context = fake_context(tmp_path, notify=settings(tmp_path, server))
    unsure = replace(example_verdict(), probability=0.7)
    context.verdicts.known = unsure
    prepared = asyncio.run(prepare(context, SWAP, unsure))
    run_dir = create_run(context, prepared, RunRequest(by="oncall"))

    assert carry(context, run_dir) is ExitCode.WAITING
    (page,) = [b for b in server.bodies if b.get("event_action") == "trigger"]
    details = page["payload"]["custom_details"]
    assert details["do"] == "brctl play approve R-0001"
    assert "swap 1" in details["needs"]


def test_a_run_that_leaves_changes_pages_again(tmp_path: Path, server: HttpSink) -> None:
    """Its start had acknowledged the page, and a trigger alone would wake nobody."""
    context = fake_context(tmp_path, notify=settings(tmp_path, server), checkpoints=_rotten())
    told_verdict(context)
    code, _ = swap(context)
    assert code is ExitCode.NEEDS_HUMAN
    assert pages(server) == ["trigger", "acknowledge", "resolve", "trigger"]
    assert story(server)[-1] == ("run.needs_human", "firing")


def _rotten() -> Any:
    """Whole at the first look, damaged once the job was stopped: the way back is gone."""
    observations = iter(range(1000))
    return lambda: [(38, next(observations) < 2)]


class _Ending:
    """What must be the same with and without a notifier."""

    def __init__(self, context: FakeContext) -> None:
        self.code, run_dir = swap(context)
        recording = read_journal(run_dir)
        hook = EventType.HOOK_RESULT
        kept = [
            (e.type, e.fields.get("step"), e.type is hook or e.fields.get("ok"))
            for e in recording.events
        ]
        self.chat = [e.fields for e in recording.events if e.fields.get("uses") == "notify.chat"]
        self.journal, self.damage, self.ended = kept, recording.damage, recording.ended
        world = context.world.read()
        self.world = {key: world[key] for key in ("cordons", "nodes", "ranks", "effects")}


@pytest.mark.parametrize("manner", [HANG, CLOSE, "500"])
def test_a_dead_notifier_changes_nothing_but_some_seconds(
    tmp_path: Path, server: HttpSink, manner: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """Same exit code, same journal, same world; the failures are counted and said."""
    for name in ("without", "with"):
        (tmp_path / name).mkdir()
    plain = _Ending(fake_context(tmp_path / "without"))
    server.always = Reply(500) if manner == "500" else Reply(manner=manner)
    context = fake_context(tmp_path / "with", notify=settings(tmp_path, server, 1.0))
    started = time.monotonic()
    dead = _Ending(context)
    assert time.monotonic() - started < TIMEOUT_S
    assert [h["ok"] for h in plain.chat] == [True]
    assert [h["ok"] for h in dead.chat] == [False]
    del plain.chat, dead.chat
    assert vars(dead) == vars(plain)
    assert dead.ended
    assert context.notifier.ledger.failures()["webhook"].count >= 2
    assert "warning: webhook was not told" in capfd.readouterr().err


async def test_a_run_whose_process_died_is_told_by_the_next_sweep_once(
    tmp_path: Path, server: HttpSink
) -> None:
    """Nobody else would: the process that tells how a run ends is gone."""
    context = fake_context(tmp_path, notify=settings(tmp_path, server))
    prepared = await prepare(context, SWAP, example_verdict())
    run_dir = create_run(context, prepared, RunRequest(by="oncall"))
    await notify_lost(context, context.state_dir, print)
    assert server.requests == []
    journal = Journal(run_dir)
    journal.append(EventType.RUN_STARTED, NOON, {"by": "oncall"})
    journal.close()
    for _ in range(2):
        await notify_lost(context, context.state_dir, print)
    assert pages(server) == ["trigger"]
    assert story(server) == [("run.needs_human", "firing")]
    assert "its process died" in str(server.bodies[0])


async def test_a_torn_run_is_named_and_the_next_one_is_told(
    tmp_path: Path, server: HttpSink, capsys: pytest.CaptureFixture[str]
) -> None:
    """What lies in one folder keeps nobody from hearing of another run that died."""
    context = fake_context(tmp_path, notify=settings(tmp_path, server))
    prepared = await prepare(context, SWAP, example_verdict())
    for number in range(3):
        run_dir = create_run(context, prepared, RunRequest(by="oncall"))
        journal = Journal(run_dir)
        journal.append(EventType.RUN_STARTED, NOON, {"by": "oncall"})
        journal.close()
        if number == 0:
            (run_dir / "inputs.json").write_text('{"inputs')
        if number == 1:
            (run_dir / "events.ndjson").unlink()
            (run_dir / "events.ndjson").mkdir()
    await notify_lost(context, context.state_dir, print)
    assert [b["run"]["id"] for b in server.bodies if "notification" in b] == ["R-0003"]
    actual = capsys.readouterr().out
    assert "run R-0001 cannot be read" in actual
    assert "R-0002" in actual


async def test_a_job_that_advances_closes_every_page_of_its_own(
    tmp_path: Path, server: HttpSink
) -> None:
    """Also when a person repaired it by hand; other jobs' pages stay."""
    context = fake_context(tmp_path, notify=settings(tmp_path, server))
    other = replace(example_verdict(), job="other")
    await notify_verdicts(context.notifier, "fake", [example_verdict(), other], NOON)
    status = replace(await context.jobs.progress(await context.jobs.get("demo")), stalled=False)
    await notify_progress(context.notifier, "fake", status, NOON, print)
    assert context.notifier.ledger.open_keys("brctl/fake/") == ("brctl/fake/other/gpu-lost",)


async def test_a_crowd_of_verdicts_is_told_as_one(tmp_path: Path, server: HttpSink) -> None:
    """A switch that dies must not send four hundred pages."""
    context = fake_context(tmp_path, notify=settings(tmp_path, server))
    many = [replace(example_verdict(), id=f"V-{n}", job=f"job{n}") for n in range(40)]
    await notify_verdicts(context.notifier, "fake", many, NOON)
    assert len(pages(server)) == 11
    assert any("30 more sure verdicts" in str(body) for body in server.bodies[-2:])
