"""The helper as a server: keeps copies that other machines offer, and hands out what it has."""

import socket
import sys
import threading
import time

from brctl.training.checkpoints.copies import MachineCopies
from brctl.training.checkpoints.restore import Saved, Tier
from brctl.training.checkpoints.slots import (
    DamagedSlotError,
    Header,
    Slot,
    SlotFile,
    SlotState,
    block_count,
    parse_header,
)
from brctl.training.checkpoints.wire import Connection, Frame, PeerError

PROOF_TIMEOUT_S, IDLE_TIMEOUT_S = 5.0, 3600.0
_CONNECTIONS = 256
_PAUSE_S = 0.5


class Keeper:
    """Answers other helpers, a thread a connection."""

    def __init__(self, copies: MachineCopies, key: bytes, listener: socket.socket) -> None:
        self._copies = copies
        self._key = key
        self._listener = listener
        self._free = threading.BoundedSemaphore(_CONNECTIONS)
        self._writing = threading.Lock()

    def start(self) -> None:
        threading.Thread(target=self._accept, name="keeper", daemon=True).start()

    def _accept(self) -> None:
        while self._listener.fileno() >= 0:
            try:
                link, address = self._listener.accept()
            except OSError as exc:
                sys.stderr.write(f"brctl: helper: a connection is not accepted: {exc}\n")
                time.sleep(_PAUSE_S)
                continue
            if self._free.acquire(blocking=False):
                threading.Thread(target=self._serve, args=(link, address[0]), daemon=True).start()
            else:
                link.close()

    def _serve(self, link: socket.socket, host: str) -> None:
        try:
            connection = Connection.accept(link, self._key, PROOF_TIMEOUT_S)
            link.settimeout(IDLE_TIMEOUT_S)
            while True:
                self._answer(connection, connection.receive())
        except PeerError as exc:
            if "was closed" not in str(exc):
                sys.stderr.write(f"brctl: helper: connection from {host}: {exc}\n")
        finally:
            link.close()
            self._free.release()

    def _answer(self, connection: Connection, frame: Frame) -> None:
        try:
            if frame.get("do") == "offer":
                self._store(connection, frame)
            elif frame.get("do") == "fetch":
                self._give(connection, frame)
            else:
                raise PeerError("a request that nobody makes")
        except (DamagedSlotError, OSError) as exc:
            connection.send({"answer": "refused", "reason": str(exc)[:200]})

    def _store(self, connection: Connection, frame: Frame) -> None:
        rank = frame.get("rank")
        file = self._copies.kept.get(rank) if isinstance(rank, int) else None
        if file is None:
            raise DamagedSlotError(f"copies of rank {rank!r} are not kept here")
        text = _header_text(frame)
        header = parse_header(text, file.capacity)
        self._copies.check(header)
        if header.rank != rank:
            raise DamagedSlotError(f"a copy of rank {header.rank}, offered as rank {rank}")
        if file.find(header.saved) is not None:
            connection.send({"answer": "kept"})
            return
        with self._writing:
            slot = file.oldest()
            slot.state = SlotState.EMPTY
        connection.send({"answer": "send"})
        receive_copy(connection, slot, header, text)
        connection.send({"answer": "kept"})

    def _give(self, connection: Connection, frame: Frame) -> None:
        rank, attempt, step, tier = (
            frame.get(name) for name in ("rank", "attempt", "step", "tier")
        )
        if not (isinstance(rank, int) and isinstance(attempt, int) and isinstance(step, int)):
            raise PeerError("a fetch without rank, attempt and step")
        slot = self._copies.find(rank, Saved(attempt, step), Tier(tier))
        connection.send({"answer": "slot", "header": slot.header_text().decode()})
        send_copy(connection, slot)


def send_copy(connection: Connection, slot: Slot) -> None:
    """Send checksums and payload of a CHECKED slot.

    Raises:
        DamagedSlotError: It has no checksums.
        PeerError: The other end is gone.
    """
    connection.send_bytes(memoryview(slot.checksums()))
    connection.send_bytes(slot.payload[: slot.header().payload_bytes])


def receive_copy(connection: Connection, slot: Slot, header: Header, text: bytes) -> None:
    """Receive what `send_copy` sends into a slot, which is CHECKED after it.

    Raises:
        DamagedSlotError: What arrived is not what was sent; the slot is empty then.
        PeerError: The other end is gone; the slot says that it was being written.
    """
    slot.state = SlotState.WRITING
    sums = bytearray(4 * block_count(header.payload_bytes))
    connection.receive_into(memoryview(sums))
    connection.receive_into(slot.payload[: header.payload_bytes])
    slot.write_header_text(text)
    slot.write_checksums(bytes(sums))
    try:
        slot.verify()
    except DamagedSlotError:
        slot.state = SlotState.EMPTY
        raise
    slot.state = SlotState.CHECKED


def fetch_copy(connection: Connection, file: SlotFile, rank: int, saved: Saved, tier: Tier) -> None:
    """Get one rank's copy from another helper into the slot that is worth least.

    Raises:
        DamagedSlotError: It has none, or what came is damaged or another one.
        PeerError: It is gone.
    """
    connection.send(
        {
            "do": "fetch",
            "rank": rank,
            "attempt": saved.attempt,
            "step": saved.step,
            "tier": tier.value,
        }
    )
    frame = connection.receive()
    if frame.get("answer") != "slot":
        raise DamagedSlotError(str(frame.get("reason", "no answer"))[:200])
    text = _header_text(frame)
    header = parse_header(text, file.capacity)
    if header.rank != rank or header.saved != saved:
        raise DamagedSlotError(f"rank {header.rank} step {header.step}, not what was asked for")
    receive_copy(connection, file.oldest(), header, text)


def _header_text(frame: Frame) -> bytes:
    text = frame.get("header")
    if not isinstance(text, str):
        raise DamagedSlotError("no header of a slot")
    return text.encode()
