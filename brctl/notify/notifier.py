"""Tell every sink that wants to know, at once, within one deadline, and never raise.

A notifier is beside the work, never in it: whatever a sink does, `notify` returns in time, and what
could not be told is counted and said.
"""

import asyncio
import sqlite3
import threading
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path

from brctl.library.notify_settings import NotifySettings, Sink
from brctl.model.errors import ConfigError
from brctl.model.notice import Memory, NoticeState
from brctl.notify.http import DeliveryError, HttpResponse, Post, deliver
from brctl.notify.ledger import DeliveryLedger
from brctl.notify.sinks import DELIVER
from brctl.notify.tickets import Tickets
from brctl.view.notices.contents import Notice
from brctl.view.notices.text import clean
from brctl.view.text import printable

PAGING = frozenset({"pagerduty", "alertmanager", "webhook", "hooks"})
CHAT = frozenset({"slack", "webhook", "hooks"})
AGAIN = timedelta(hours=24)
"""A fault that is still there after this long is told again, in case somebody closed it."""

SLACK_S = 1.0
"""How much longer than its deadline a sink's thread is waited for."""


class DeliveryState(StrEnum):
    """What became of a notice at one sink."""

    SENT = "sent"
    KNOWN = "already told"
    UNASKED = "not asked for"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Delivery:
    """One sink's answer."""

    sink: str
    state: DeliveryState
    why: str = ""


class Notifier:
    """The sinks of one context.

    Args:
        settings: Who is told what.
        state_dir: Where the memory lies.
        now: The clock.
    """

    def __init__(
        self, settings: NotifySettings, state_dir: Path, now: Callable[[], datetime]
    ) -> None:
        self.settings = settings
        self.ledger = DeliveryLedger(state_dir)
        self.tickets = Tickets(settings.ticket, self.ledger, settings.deadline_s, now)
        self._now = now

    @property
    def configured(self) -> bool:
        """Whether anybody is told anything."""
        return bool(self.settings.sinks)

    async def notify_async(
        self, notice: Notice, only: Collection[str] | None = None
    ) -> tuple[Delivery, ...]:
        """As `notify`, beside a running event loop."""
        return await asyncio.to_thread(self.notify, notice, only)

    def notify(self, notice: Notice, only: Collection[str] | None = None) -> tuple[Delivery, ...]:
        """Tell all sinks, or those of some kinds, each in a thread of its own.

        A name server that hangs cannot be interrupted; its thread is left behind, and dies with
        the process.
        """
        deadline = time.monotonic() + self.settings.deadline_s
        sinks = [s for s in self.settings.sinks if only is None or s.kind in only]
        requested = only is not None
        found: dict[str, Delivery] = {}
        threads = []
        for sink in sinks:
            work = threading.Thread(
                target=self._notify_one,
                args=(sink, notice, deadline, found, requested),
                daemon=True,
            )
            work.start()
            threads.append(work)
        for work in threads:
            work.join(max(deadline + SLACK_S - time.monotonic(), 0.0))
        return tuple(found.get(sink.kind) or self._late(sink) for sink in sinks)

    def _late(self, sink: Sink) -> Delivery:
        return self._failed(sink, f"no answer in {self.settings.deadline_s:g} s")

    def _notify_one(
        self,
        sink: Sink,
        notice: Notice,
        deadline: float,
        found: dict[str, Delivery],
        requested: bool,
    ) -> None:
        try:
            found[sink.kind] = self._deliver(sink, notice, deadline, requested=requested)
        except ConfigError as exc:
            # Our own sentence; taken for the name of a secret, a path would lose its half.
            found[sink.kind] = self._failed(sink, printable(str(exc), 300))
        except DeliveryError as exc:
            found[sink.kind] = self._failed(sink, clean(str(exc), 300))
        except Exception as exc:  # noqa: BLE001 - a bug in a notifier must not end a run
            found[sink.kind] = self._failed(sink, clean(f"{type(exc).__name__}: {exc}", 300))

    def _deliver(self, sink: Sink, notice: Notice, deadline: float, *, requested: bool) -> Delivery:
        claimed, memory = self._claim(sink, notice)
        if not claimed:
            return Delivery(sink.kind, DeliveryState.KNOWN, "another process is sending it")
        try:
            if self._is_repeat(sink, notice, memory):
                return Delivery(sink.kind, DeliveryState.KNOWN)
            if not requested and not _is_wanted(sink, notice, memory):
                return Delivery(sink.kind, DeliveryState.UNASKED)
            return self._send(sink, notice, memory, deadline)
        finally:
            with suppress(sqlite3.Error, OSError):
                self.ledger.release(notice.key, _name(sink, notice), notice.mark)

    def _send(self, sink: Sink, notice: Notice, memory: Memory | None, deadline: float) -> Delivery:
        def send(post: Post) -> HttpResponse:
            return deliver(post, deadline)

        try:
            ref = DELIVER[sink.kind](sink, notice, memory, send, deadline)
        except DeliveryError as exc:
            if exc.ref is not None:
                self._keep(sink, notice, memory, exc.ref)
            raise
        if ref is None:
            return Delivery(sink.kind, DeliveryState.UNASKED)
        self._keep(sink, notice, memory, ref)
        return Delivery(sink.kind, DeliveryState.SENT)

    def _keep(
        self, sink: Sink, notice: Notice, before: Memory | None, ref: Mapping[str, str]
    ) -> None:
        """Remember it; the sink was told, so being unable to only costs a repeat."""
        nothing = Memory(NoticeState.RESOLVED, (), notice.at)
        after = (before or nothing).after(notice.state, notice.mark, notice.at, ref)
        with suppress(sqlite3.Error, OSError):
            self.ledger.keep(notice.key, _name(sink, notice), after)

    def _claim(self, sink: Sink, notice: Notice) -> tuple[bool, Memory | None]:
        """Whether we may tell, and what was told before; without a memory everything is told."""
        hold_s = self.settings.deadline_s + SLACK_S
        try:
            return self.ledger.claim(
                notice.key, _name(sink, notice), notice.mark, self._now(), hold_s
            )
        except (sqlite3.Error, OSError):
            return True, None

    def _is_repeat(self, sink: Sink, notice: Notice, memory: Memory | None) -> bool:
        """Alertmanager wants repeats: an alert that nobody repeats ends by itself."""
        if memory is None or notice.fresh or notice.mark not in memory.marks:
            return False
        if notice.state is NoticeState.FIRING:
            return memory.is_open and sink.kind != "alertmanager" and notice.at - memory.at < AGAIN
        return True

    def _failed(self, sink: Sink, detail: str) -> Delivery:
        try:
            self.ledger.count_failure(sink.kind, detail, self._now())
        except (sqlite3.Error, OSError) as exc:
            detail += f" (and it could not be counted: {exc})"
        return Delivery(sink.kind, DeliveryState.FAILED, detail)


def _name(sink: Sink, notice: Notice) -> str:
    """Whose memory it is: another channel than the usual one has not been told yet."""
    elsewhere = sink.token_file is not None and notice.channel not in ("", sink.channel)
    return f"{sink.kind}:{notice.channel}" if elsewhere and sink.kind == "slack" else sink.kind


def _is_wanted(sink: Sink, notice: Notice, memory: Memory | None) -> bool:
    """`when` says what opens something; what moves or closes what is open always follows."""
    follows = notice.state in (NoticeState.ACKNOWLEDGED, NoticeState.RESOLVED)
    return notice.event in sink.when or (follows and memory is not None and memory.is_open)
