"""The helper of one machine: checksums, backups, disks; so that the trainer does none of it.

Started by the first rank of a machine as `python -m brctl.training.checkpoints.helper`, told what
to do by lines of JSON on stdin, answers on stdout, ends when that rank has ended. Needs no torch.
"""

import json
import os
import queue
import select
import socket
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TextIO, cast

from brctl.training.checkpoints.copies import MachineCopies
from brctl.training.checkpoints.directory import SlotDirectory
from brctl.training.checkpoints.keeper import Keeper, fetch_copy
from brctl.training.checkpoints.restore import Saved, Tier
from brctl.training.checkpoints.sender import CONNECT_TIMEOUT_S, Sender
from brctl.training.checkpoints.slots import DamagedSlotError, Slot, SlotState
from brctl.training.checkpoints.spec import Address, HeldCopies, HelperSpec
from brctl.training.checkpoints.wire import Connection, PeerError, read_key

LOOK_EVERY_S = 0.25
_NICENESS = 10


class Helper:
    """One machine's helper."""

    def __init__(self, spec: HelperSpec) -> None:
        self._spec = spec
        self._directory = SlotDirectory(spec.directory)
        self._key = read_key(self._directory.key)
        self._copies = MachineCopies(spec)
        self._senders: list[Sender] = []
        self._for_disk: queue.Queue[Slot] = queue.Queue(
            maxsize=2 * (len(spec.own) + len(spec.keeps))
        )
        self._written: dict[int, Saved] = {}

    def open(self) -> dict[str, object]:
        """Listen, take stock and say both."""
        listener = socket.create_server((self._spec.host, self._spec.port), backlog=128)
        address = (self._spec.host, listener.getsockname()[1])
        inventory = self._copies.inspect_copies(address) if self._spec.verifies else None
        Keeper(self._copies, self._key, listener).start()
        return (inventory or HeldCopies((), (), (), address)).to_json()

    def answer(self, command: Mapping[str, object]) -> dict[str, object]:
        """Do what the first rank asks for before the first step."""
        try:
            self._copies.open_files()
            if command["do"] == "fetch":
                self._fetch(command)
            elif command["do"] == "begin":
                resume = cast("list[int] | None", command["resume"])
                self._copies.keep_only(Saved(*resume) if resume else None)
            else:
                self._join(cast("Mapping[str, list[object]]", command["addresses"]))
        except (DamagedSlotError, PeerError, OSError) as exc:
            return {"done": False, "reason": str(exc)}
        return {"done": True}

    def look(self) -> None:
        """Take up what is new: own copies without checksums, and steps for the disk."""
        for rank, file in self._copies.own.items():
            for slot, header in file.whole():
                if slot.state is SlotState.COPIED:
                    slot.add_checksums()
                if self._spec.own[rank] == self._spec.machine:
                    file.backed_up = max(file.backed_up, header.step)
        for sender in self._senders:
            sender.wake()
        if self._copies.disk is not None:
            self._queue_for_disk()

    def _fetch(self, command: Mapping[str, object]) -> None:
        rank, attempt, step = (cast("int", command[name]) for name in ("rank", "attempt", "step"))
        saved, tier = Saved(attempt, step), Tier(command["tier"])
        host, port = cast("tuple[str, int]", command["from"])
        connection = Connection.connect((host, port), self._key, CONNECT_TIMEOUT_S)
        try:
            fetch_copy(connection, self._copies.own[rank], rank, saved, tier)
        finally:
            connection.close()

    def _join(self, addresses: Mapping[str, list[object]]) -> None:
        """From now on copies come."""
        for machine in sorted(set(self._spec.own.values()) - {self._spec.machine}):
            files = {r: self._copies.own[r] for r, m in self._spec.own.items() if m == machine}
            host, port = cast("Address", tuple(addresses[str(machine)]))
            self._senders.append(Sender((host, port), files, self._key))
        for sender in self._senders:
            sender.start()
        if self._copies.disk is not None:
            threading.Thread(target=self._write_to_disk, name="disk", daemon=True).start()

    def _queue_for_disk(self) -> None:
        """Copies of other machines too: then the disks survive what memory survives."""
        for rank, file in (*self._copies.own.items(), *self._copies.kept.items()):
            for slot, header in file.whole():
                due = header.step % self._spec.disk_every == 0 and slot.state is SlotState.CHECKED
                if due and self._written.get(rank) != header.saved:
                    with suppress(queue.Full):
                        self._for_disk.put_nowait(slot)
                        self._written[rank] = header.saved

    def _write_to_disk(self) -> None:
        disk = self._copies.disk
        while disk is not None:
            slot = self._for_disk.get()
            try:
                disk.write(slot)
                # Once for all ranks of a step: a file server lists thousands of names for it.
                if self._for_disk.empty():
                    disk.remove_old((*self._spec.own, *self._spec.keeps))
            except (OSError, DamagedSlotError) as exc:
                sys.stderr.write(f"brctl: a step is not written to disk: {exc}\n")


def run(lines: TextIO, answers: TextIO) -> None:
    """Serve until the rank that started this has ended."""
    spec = HelperSpec.from_line(lines.readline())
    SlotDirectory(spec.directory).take_lock()
    helper = Helper(spec)
    _write(answers, helper.open())
    wakeup_pipe = os.open(SlotDirectory(spec.directory).wakeup_pipe, os.O_RDWR | os.O_NONBLOCK)
    for event in _events(lines, wakeup_pipe, os.getppid()):
        if event:
            _write(answers, helper.answer(json.loads(event)))
        helper.look()


def _events(lines: TextIO, wakeup_pipe: int, parent: int) -> Iterator[str]:
    """Lines of the first rank, and "" whenever there may be a new copy; ends with that rank."""
    while os.getppid() == parent:
        ready, _, _ = select.select([lines.fileno(), wakeup_pipe], [], [], LOOK_EVERY_S)
        if wakeup_pipe in ready:
            os.read(wakeup_pipe, 4096)
        line = lines.readline() if lines.fileno() in ready else None
        if line == "":
            return
        yield line or ""


def _write(answers: TextIO, answer: Mapping[str, object]) -> None:
    answers.write(json.dumps(answer) + "\n")
    answers.flush()


def main() -> None:
    """Give way to the trainer and serve."""
    os.nice(_NICENESS)
    os.chdir("/")
    try:
        run(sys.stdin, sys.stdout)
    except (OSError, ValueError) as exc:
        sys.stderr.write(f"brctl: the checkpoint helper ends: {exc}\n")
        sys.exit(1)


if __name__ == "__main__":
    main()
