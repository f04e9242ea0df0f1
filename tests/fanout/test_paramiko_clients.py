"""Which connection of paramiko a command uses: one for each node, however many begin at once."""

import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from brctl.fanout.paramiko import transport as paramiko_transport
from brctl.fanout.paramiko.transport import ParamikoTransport
from brctl.library.config import SshSettings
from brctl.model.inventory import Node

TOGETHER_S = 0.2


class FakeClient:
    """A login that holds until it is closed; it is its own transport."""

    def __init__(self) -> None:
        self.closed = False

    def get_transport(self) -> "FakeClient | None":
        return None if self.closed else self

    def is_active(self) -> bool:
        return not self.closed

    def close(self) -> None:
        self.closed = True


async def test_commands_that_begin_at_once_log_in_once_and_anew_after_a_failure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A second login would stay open for good: nobody knows of it any more."""
    both, made = threading.Barrier(2), list[FakeClient]()

    def log_in(node: Node, ssh: SshSettings) -> FakeClient:
        with contextlib.suppress(threading.BrokenBarrierError):
            both.wait(TOGETHER_S)
        made.append(FakeClient())
        return made[-1]

    monkeypatch.setattr(paramiko_transport, "log_in", log_in)
    transport, node = ParamikoTransport(SshSettings(transport="paramiko")), Node("n1", "192.0.2.1")
    with ThreadPoolExecutor(2) as threads:
        first, second = threads.map(transport._client, [node, node])
    assert first is second
    assert len(made) == 1
    held = transport._held_client(node)
    first.close()
    assert transport._client(node) not in (first, held)
    assert [client.closed for client in made] == [True, False, False]
    await transport.close()
    assert [client.closed for client in made] == [True, True, True]
