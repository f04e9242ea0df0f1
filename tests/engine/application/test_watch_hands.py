"""What a watcher takes from the rest of brctl before it decides."""

import asyncio
import json
import signal
import subprocess
from datetime import timedelta
from pathlib import Path

import pytest

from brctl.engine.application.watching import waiting_fix
from brctl.engine.application.watching.hands import WatchHands, dismissed_at, paged
from brctl.engine.application.watching.waiting_fix import WAITING, WaitingFix
from brctl.engine.controller.wiring import open_controller
from brctl.engine.incidents.verdict_store import StoredVerdict, VerdictState
from brctl.library.config import load_settings
from brctl.notify.notifier import Delivery, DeliveryState
from tests.fakes.fix_site import write_fix_site
from tests.fakes.nodes import NOW
from tests.fakes.watching import a_verdict
from tests.timeouts import TIMEOUT_S


def test_a_node_is_left_alone_from_when_a_person_dismissed_an_old_verdict() -> None:
    """Decided on days ago, dismissed just now: the quiet time begins now."""
    verdict = a_verdict("V-1", ("n1",), "llm")
    later = NOW + timedelta(days=3)
    stored = StoredVerdict(verdict, VerdictState.DISMISSED, by="kim", at=later)
    assert dismissed_at([stored], later - timedelta(hours=1)) == {"n1": later}


def test_verdicts_nobody_dismissed_keep_no_watcher_away() -> None:
    verdict = a_verdict("V-1", ("n1",), "llm")
    stored = StoredVerdict(verdict, VerdictState.CONFIRMED, by="kim", at=NOW)
    assert dismissed_at([stored], NOW - timedelta(hours=1)) == {}


@pytest.mark.parametrize(
    ("states", "told"),
    [
        ((), False),
        ((DeliveryState.FAILED, DeliveryState.FAILED), False),
        ((DeliveryState.UNASKED,), False),
        ((DeliveryState.FAILED, DeliveryState.SENT), True),
        ((DeliveryState.KNOWN,), True),
    ],
)
def test_people_are_told_where_a_sink_took_the_page(
    states: tuple[DeliveryState, ...], told: bool
) -> None:
    deliveries = [Delivery(f"sink{n}", state, "why") for n, state in enumerate(states)]
    attempt = paged("brctl fix V-1", deliveries)
    assert attempt.done is told
    assert all(f"{d.sink} {d.state} (why)" in attempt.text for d in deliveries)


def test_a_program_that_cannot_be_started_is_no_started_fix(tmp_path: Path) -> None:
    attempt = asyncio.run(WaitingFix([str(tmp_path / "absent")]).run(["fix"]))
    assert not attempt.done
    assert attempt.text.startswith("cannot be started:")


async def test_a_program_that_waits_is_given_its_words_and_told_from_one_that_refuses() -> None:
    """It is started before there is a verdict; how it ends says whether there is a run."""
    exits_with_its_word = ("/bin/sh", "-c", 'read -r line; echo "heard $line" >&2; exit 5')
    waiting = WaitingFix(exits_with_its_word)
    await waiting.prepare()
    attempt = await waiting.run(["fix", "V-1"])
    assert not attempt.done
    assert attempt.text.startswith('exit 5: heard ["fix", "V-1"]')


async def test_a_fix_is_planned_once_by_itself(tmp_path: Path) -> None:
    """Its words are the verdict and the leader's token; the watcher asks no node for a plan."""
    settings = load_settings({"HOME": str(tmp_path)}, config=write_fix_site(tmp_path))
    echo = WaitingFix(("/bin/sh", "-c", 'read -r line; echo "$line" >&2'))
    async with open_controller(settings) as controller:
        hands = WatchHands(lambda: controller, print, echo, may_act=True)
        attempt = await hands.start_fix(a_verdict("V-1", ("n1",), "llm"), 7)
    assert attempt.done
    started = json.loads(attempt.text.partition("exit 0: ")[2].removesuffix(" | "))
    assert started[started.index("fix") :] == ["fix", "V-1", "--detach", "--watch-token", "7"]


async def test_a_program_that_died_while_it_waited_is_started_anew() -> None:
    """A verdict is not lost with it, and nobody needs it who never gives it a word."""
    waiting = WaitingFix(("/bin/sh", "-c", "read -r line || exit 9; exit 0"))
    await waiting.prepare()
    await waiting.close()
    assert (await waiting.run(["fix", "V-1"])).done


async def test_two_diagnoses_that_begin_at_once_prepare_one_program(tmp_path: Path) -> None:
    """The other would wait for words until the watcher ends."""
    started = tmp_path / "started"
    waiting = WaitingFix(("/bin/sh", "-c", f"echo one >>'{started}'; read -r line"))
    await asyncio.gather(waiting.prepare(), waiting.prepare())
    assert (await waiting.run(["fix"])).done
    await waiting.close()
    assert started.read_text() == "one\n"


async def test_a_program_that_does_not_end_with_its_stdin_is_killed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(waiting_fix, "ENDS_S", 0.01)
    waiting = WaitingFix(("/bin/sleep", "3600"))
    await waiting.prepare()
    process = waiting._process
    await waiting.close()
    assert process is not None
    assert await process.wait() == -signal.SIGKILL


def test_a_brctl_that_waits_ends_without_a_word() -> None:
    """Its watcher was killed: stdin ends, nothing is done."""
    ended = subprocess.run(
        [*WAITING], stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT_S, check=False
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")


def test_a_brctl_that_waits_runs_the_words_it_is_given(tmp_path: Path) -> None:
    """As if they had been typed: a config that is not there is refused in the same words."""
    words = json.dumps(["--config", str(tmp_path / "absent.yaml"), "fix", "V-1"])
    ended = subprocess.run(
        [*WAITING], input=words + "\n", capture_output=True, text=True, timeout=TIMEOUT_S,
        check=False,
    )  # fmt: skip
    assert ended.returncode != 0
    assert "absent.yaml" in ended.stderr
