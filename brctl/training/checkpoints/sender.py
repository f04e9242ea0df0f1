"""The helper as a client: brings each rank's newest copy to the machine that keeps it."""

import sys
import threading
from collections.abc import Mapping

from brctl.training.checkpoints.keeper import send_copy
from brctl.training.checkpoints.slots import DamagedSlotError, Slot, SlotFile, SlotState
from brctl.training.checkpoints.spec import Address
from brctl.training.checkpoints.wire import Connection, PeerError

CONNECT_TIMEOUT_S, ANSWER_TIMEOUT_S = 5.0, 60.0
_TRY_AGAIN_S = 0.5


class Sender:
    """One other machine, and the ranks whose copies go there."""

    def __init__(self, address: Address, files: Mapping[int, SlotFile], key: bytes) -> None:
        self._address = address
        self._files = files
        self._key = key
        self._wake = threading.Event()
        self._connection: Connection | None = None
        self._problem = ""

    def start(self) -> None:
        threading.Thread(target=self._run, name="sender", daemon=True).start()

    def wake(self) -> None:
        """There may be a new copy."""
        self._wake.set()

    def _run(self) -> None:
        while True:
            self._wake.wait(_TRY_AGAIN_S)
            self._wake.clear()
            self.bring_newest()

    def bring_newest(self) -> None:
        """Bring each rank's newest copy, if the machine does not have it yet and answers."""
        try:
            for rank, file in self._files.items():
                self._bring_newest(rank, file)
            self._report("")
        except (PeerError, DamagedSlotError) as exc:
            self.drop_connection()
            self._report(str(exc))

    def _bring_newest(self, rank: int, file: SlotFile) -> None:
        whole = [(slot, header) for slot, header in file.whole() if slot.state is SlotState.CHECKED]
        if whole and file.backed_up < whole[-1][1].step:
            slot, header = whole[-1]
            self._bring(rank, slot)
            file.backed_up = header.step

    def _bring(self, rank: int, slot: Slot) -> None:
        if self._connection is None:
            self._connection = Connection.connect(self._address, self._key, CONNECT_TIMEOUT_S)
            self._connection.set_timeout(ANSWER_TIMEOUT_S)
        self._connection.send({"do": "offer", "rank": rank, "header": slot.header_text().decode()})
        answer = self._connection.receive()
        if answer.get("answer") == "send":
            send_copy(self._connection, slot)
            answer = self._connection.receive()
        if answer.get("answer") != "kept":
            raise PeerError(f"refuses rank {rank}: {str(answer.get('reason'))[:200]}")

    def drop_connection(self) -> None:
        """The next copy is brought over a new one."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _report(self, problem: str) -> None:
        """Say once that it does not answer, and once that it does again."""
        if bool(problem) != bool(self._problem):
            host, port = self._address
            sys.stderr.write(
                f"brctl: backup at {host}:{port}: {problem}; training goes on, saves are skipped "
                "until it answers, the last step stays\n"
                if problem
                else f"brctl: backup at {host}:{port} answers again\n"
            )
        self._problem = problem
