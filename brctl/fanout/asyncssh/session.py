"""One command's channel: collects bounded output and how the command ended."""

import asyncio

import asyncssh


class CollectingSession(asyncssh.SSHClientSession[bytes]):
    """Keeps at most `limit_bytes` of stdout and of stderr; `ended` is set when nothing more comes.

    Attributes:
        exit_status: The command's status, or 128 + n when it reported signal n; None when the
            node went away without a word, which asyncssh does not raise.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self.stdout = bytearray()
        self.stderr = bytearray()
        self.exit_status: int | None = None
        self.exit_signal = ""
        self.over_limit = False
        self.error: Exception | None = None
        self.ended = asyncio.Event()

    def data_received(self, data: bytes, datatype: asyncssh.DataType) -> None:
        kept = self.stderr if datatype == asyncssh.EXTENDED_DATA_STDERR else self.stdout
        remaining = self._limit_bytes - len(kept)
        kept += data[:remaining]
        if len(data) > remaining:
            self.over_limit = True
            self.ended.set()

    def exit_status_received(self, status: int) -> None:
        self.exit_status = status

    def exit_signal_received(self, signal: str, core_dumped: bool, msg: str, lang: str) -> None:
        self.exit_signal = signal

    def connection_lost(self, exc: Exception | None) -> None:
        self.error = exc
        self.ended.set()
