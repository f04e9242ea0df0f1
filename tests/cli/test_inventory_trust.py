"""`brctl inventory trust`: keys are shown first, kept on purpose, never replaced."""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import asyncssh
import pytest

from brctl.cli.commands import inventory as inventory_module
from tests.cli.test_run import call
from tests.timeouts import TIMEOUT_S

CONFIG = """\
apiVersion: brctl.dev/v1
kind: Config
context: prod
contexts: {prod: {inventory: [{file: own.yaml}]}}
ssh: {known_hosts: known, connect_timeout: 120s, login_timeout: 120s}
"""


@pytest.fixture
def port() -> Iterator[int]:
    """A real SSH server in a thread of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    key = asyncssh.generate_private_key("ssh-ed25519")

    async def start() -> asyncssh.SSHAcceptor:
        return await asyncssh.listen("127.0.0.1", 0, server_host_keys=[key])

    async def stop(server: asyncssh.SSHAcceptor) -> None:
        server.close()
        await server.wait_closed()

    server = asyncio.run_coroutine_threadsafe(start(), loop).result(TIMEOUT_S)
    yield server.get_port()
    asyncio.run_coroutine_threadsafe(stop(server), loop).result(TIMEOUT_S)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(TIMEOUT_S)
    loop.close()


@pytest.fixture
def config(tmp_path: Path, port: int) -> Path:
    (tmp_path / "own.yaml").write_text(
        "apiVersion: brctl.dev/v1\nkind: Inventory\nnodes:\n"
        f"  n1: {{address: 127.0.0.1, port: {port}}}\n  dead: {{address: 127.0.0.1, port: 1}}\n"
    )
    (tmp_path / "config.yaml").write_text(CONFIG)
    return tmp_path / "config.yaml"


def test_a_key_is_shown_before_it_is_kept(config: Path, tmp_path: Path) -> None:
    """Looking writes nothing; --yes adds the line once and then the node is known."""
    code, text = call(inventory_module, config, "trust", "-w", "n1")
    assert code == 0
    assert "new    n1     ssh-ed25519  SHA256:" in text
    assert "nothing was written" in text
    assert not (tmp_path / "known").exists()
    (tmp_path / "known").write_text("other ssh-ed25519 AAAA")
    call(inventory_module, config, "trust", "-w", "n1", "--yes")
    assert len((tmp_path / "known").read_text().splitlines()) == 2
    _, text = call(inventory_module, config, "trust", "-w", "n1", "--yes")
    assert "known  n1" in text
    assert len((tmp_path / "known").read_text().splitlines()) == 2


def test_a_changed_key_is_critical_and_never_replaced(
    config: Path, tmp_path: Path, port: int
) -> None:
    """A person removes the old line, knowing why."""
    other = asyncssh.generate_private_key("ssh-ed25519").export_public_key().decode()
    (tmp_path / "known").write_text(f"[127.0.0.1]:{port} {other}")
    code, text = call(inventory_module, config, "trust", "-w", "n1", "--yes")
    assert code == 2
    assert "changed  n1" in text
    assert (tmp_path / "known").read_text() == f"[127.0.0.1]:{port} {other}"


def test_a_silent_node_is_unknown(config: Path) -> None:
    """No key is no answer."""
    code, text = call(inventory_module, config, "trust", "-w", "dead")
    assert code == 3
    assert "silent  dead" in text
