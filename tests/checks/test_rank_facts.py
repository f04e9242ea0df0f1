"""What a live query must know of a rank is read from outside: its NCCL, and whose listeners are."""

import os
import socket
from importlib import import_module
from pathlib import Path

import pytest

from brctl.evidence.ras.facts import read_facts, strangers

FACTS = import_module("checks._live_queries.rank_facts")


def test_a_listener_of_the_process_itself_is_its_own() -> None:
    """Address, port and socket come from the kernel's tables; nobody is connected to."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        found = FACTS.ras_listeners(os.getpid(), port)
        inode = os.readlink(f"/proc/self/fd/{listener.fileno()}")[8:-1]
    assert (found["addresses"], found["sockets"], found["own"]) == (["127.0.0.1"], [inode], [inode])
    assert FACTS.ras_listeners(os.getpid(), port)["sockets"] == []


def test_another_process_on_the_same_port_is_a_stranger() -> None:
    """A socket that this process does not hold is not its own."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        row = FACTS.ras_listeners(os.getpid(), listener.getsockname()[1])
        facts = read_facts(0, "n1", "S", {"pid": os.getpid(), "ras": {**row, "own": []}})
    assert facts is not None
    assert strangers([facts]) == 1


@pytest.mark.parametrize(
    ("field", "address"),
    [
        ("0100007F:6D7C", "127.0.0.1"),
        ("00000000:6D7C", "127.0.0.1"),
        ("00000000000000000000000001000000:6D7C", "::1"),
        ("00000000000000000000000000000000:6D7C", "::1"),
        ("0500000A:6D7C", "10.0.0.5"),
    ],
)
def test_addresses_are_those_to_ask(field: str, address: str) -> None:
    """A listener on every address is asked over loopback."""
    assert FACTS.address_of(field) == address


@pytest.mark.parametrize(
    ("told", "port"),
    [("", 28028), ("localhost:4000", 4000), ("[::1]:4001", 4001), ("x:99999", 28028), ("y", 28028)],
)
def test_the_port_is_the_one_of_nccls_variable(told: str, port: int) -> None:
    """What is no port leaves the usual one."""
    assert FACTS.port_of(told) == port


def test_the_release_is_that_of_what_is_loaded(tmp_path: Path) -> None:
    """By the names of the file or its package, else by the sentence in it, else by the log."""
    pid = os.getpid()
    log = tmp_path / "rank.log"
    log.write_text("NCCL version 2.30.7+cuda12.8\nNCCL version 2.21.5+cuda12.4\n")
    assert FACTS.version_of(pid, "", str(log)) == "2.21.5", "an attempt before may have been newer"
    package = tmp_path / "site-packages"
    library = package / "nvidia" / "nccl" / "lib" / "libnccl.so.2"
    library.parent.mkdir(parents=True)
    library.write_bytes(b"\0" * 4096 + b"NCCL version 2.28.9 compiled with CUDA 12.8\n\0")
    assert FACTS.version_of(pid, str(library), str(log)) == "2.28.9"
    (package / "nvidia_nccl_cu12-2.27.3.dist-info").mkdir()
    assert FACTS.version_of(pid, str(library), str(log)) == "2.27.3"
    named = tmp_path / "libnccl.so.2.26.5"
    named.write_bytes(b"")
    (tmp_path / "libnccl.so").symlink_to(named)
    assert FACTS.version_of(pid, str(tmp_path / "libnccl.so"), "") == "2.26.5"
    empty = tmp_path / "lib" / "librccl.so.1"
    empty.parent.mkdir()
    empty.write_bytes(b"")
    assert FACTS.version_of(pid, str(empty), "") == ""


def test_this_process_has_no_nccl_and_its_facts_are_read_back() -> None:
    """A real process's facts, as the controller reads them."""
    assert FACTS.library_of(os.getpid()) == ""
    facts = read_facts(3, "n1", "S", FACTS.facts_of(os.getpid(), ""))
    assert facts is not None
    assert (facts.rank, facts.pid, facts.library, facts.port) == (3, os.getpid(), "", 28028)
    assert facts.enabled


def test_a_process_that_is_gone_says_nothing() -> None:
    """No error, and nothing that could be taken for an answer."""
    facts = read_facts(0, "n1", "", FACTS.facts_of(2**22 + 7, ""))
    assert facts is not None
    assert (facts.addresses, facts.listening, facts.own) == (frozenset(), (), None)
