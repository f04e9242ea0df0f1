"""The ticket system of a site: a URL or a program; the same key never opens two tickets."""

import json
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from brctl.library.notify_settings import TicketProgram
from brctl.library.trusted_files import why_untrusted
from brctl.model.errors import ConfigError
from brctl.notify.hook_programs import run_program
from brctl.notify.http import DeliveryError, Post, deliver
from brctl.notify.ledger import DeliveryLedger
from brctl.notify.sinks import JSON, bearer, encode, signed
from brctl.view.notices.page import Json

NAME_LIMIT = 100
_CLAIM = "ticket"


class Tickets:
    """Opens and withdraws; what was opened is remembered on disk."""

    def __init__(
        self,
        ticket_program: TicketProgram,
        ledger: DeliveryLedger,
        deadline_s: float,
        now: Callable[[], datetime],
    ) -> None:
        self._ticket_program = ticket_program
        self._ledger = ledger
        self._deadline_s = deadline_s
        self._now = now

    @property
    def configured(self) -> bool:
        """Whether there is a ticket system at all."""
        return bool(self._ticket_program.url or self._ticket_program.command)

    def find(self, key: str) -> tuple[str, str] | None:
        """The ticket this key has opened, and the run that did.

        Raises:
            DeliveryError: Nobody can tell.
        """
        with _remembering():
            return self._ledger.ticket(key, self._now())

    def open(self, key: str, run: str, body: Json) -> str:
        """Open a ticket, once; returns its name.

        Raises:
            DeliveryError: The ticket system refused it, or another process is opening it.
        """
        hold_s = self._deadline_s + 1
        with _remembering():
            claimed, _ = self._ledger.claim(key, _CLAIM, "open", self._now(), hold_s)
            if not claimed:
                raise DeliveryError("another process is opening this ticket", passing=True)
            try:
                ticket = _name(self._send("open", key, {"request": body}))
                self._ledger.keep_ticket(key, ticket, run, self._now())
            finally:
                self._ledger.release(key, _CLAIM, "open")
        return ticket

    def withdraw(self, key: str, ticket: str) -> None:
        """Take a ticket back.

        Raises:
            DeliveryError: The ticket system refused it.
        """
        self._send("withdraw", key, {"ticket": ticket})
        with _remembering():
            self._ledger.forget_ticket(key)

    def _send(self, action: str, key: str, more: dict[str, Json]) -> bytes:
        ticket_program, deadline = self._ticket_program, time.monotonic() + self._deadline_s
        raw = encode({"action": action, "idempotency_key": key, **more})
        if ticket_program.command:
            problem = why_untrusted(Path(ticket_program.command[0]))
            if problem:
                raise DeliveryError(f"{ticket_program.command[0]}: refused: {problem}")
            return run_program((*ticket_program.command, action), raw, deadline)
        try:
            headers = {**JSON, **bearer(ticket_program.token_file), "Idempotency-Key": _header(key)}
            post = signed(
                Post(ticket_program.url, raw, headers, ticket_program.ca_file),
                ticket_program.key_file,
            )
        except ConfigError as exc:
            raise DeliveryError(str(exc)) from exc
        return deliver(post, deadline).body


@contextmanager
def _remembering() -> Iterator[None]:
    """Without a memory the next run would open a second ticket, so that is a failure."""
    try:
        yield
    except (sqlite3.Error, OSError) as exc:
        raise DeliveryError(f"tickets cannot be remembered: {exc}") from exc


def _header(text: str) -> str:
    """A key as a header's value: what HTTP cannot carry is written as JSON would."""
    return json.dumps(text)[1:-1][:255]


def _name(answer: bytes) -> str:
    """The name of a new ticket: `{"ticket": ...}`, or its first line."""
    text = answer.decode("utf-8", "replace").strip()
    try:
        reply = json.loads(text)
        name = (
            str(reply.get("ticket") or reply.get("id") or "") if isinstance(reply, dict) else text
        )
    except (ValueError, RecursionError):
        name = text.partition("\n")[0].strip()
    if not name or not name.isprintable() or len(name) > NAME_LIMIT:
        raise DeliveryError(
            'the ticket system gave the ticket no name: answer with {"ticket": NAME}'
        )
    return name
