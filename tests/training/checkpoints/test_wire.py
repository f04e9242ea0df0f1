"""What a helper makes of those who connect: nothing without the key, with it only its own."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from brctl.training.checkpoints.copies import MachineCopies
from brctl.training.checkpoints.directory import SlotDirectory
from brctl.training.checkpoints.keeper import Keeper, fetch_copy, send_copy
from brctl.training.checkpoints.restore import Saved, Tier
from brctl.training.checkpoints.sender import Sender
from brctl.training.checkpoints.slots import DamagedSlotError, SlotFile, SlotState
from brctl.training.checkpoints.spec import Address, HelperSpec
from brctl.training.checkpoints.wire import (
    Connection,
    PeerError,
    new_key,
    read_key,
    write_key,
)
from tests.timeouts import TIMEOUT_S
from tests.training.checkpoints.filler import CAPACITY, fill, header

KEY = bytes(32)


class Machine:
    """One machine with its own rank 0, which keeps rank 1 for another."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir()
        files = SlotDirectory(directory)
        self.own = SlotFile.create(files.own(0), CAPACITY)
        self.kept = SlotFile.create(files.peer(1), CAPACITY)
        copies = MachineCopies(HelperSpec("toy", "l", 2, 0, {0: 1}, (1,), directory))
        copies.open_files()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address: Address = ("127.0.0.1", self.listener.getsockname()[1])
        Keeper(copies, KEY, self.listener).start()


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    machine = Machine(tmp_path / "machine")
    yield machine
    machine.listener.close()


@pytest.fixture
def sender(tmp_path: Path) -> SlotFile:
    """Rank 1's own slots, on its machine."""
    (tmp_path / "sender").mkdir()
    return SlotFile.create(SlotDirectory(tmp_path / "sender").own(1), CAPACITY)


def offer(machine: Machine, slots: SlotFile, step: int, **fields: object) -> dict[str, object]:
    """Offer a step of a rank, send it if asked to, and return the last answer."""
    slot = slots.find(Saved(1, step))
    assert slot is not None
    connection = Connection.connect(machine.address, KEY, TIMEOUT_S)
    frame = {"do": "offer", "rank": 1, "header": slot.header_text().decode(), **fields}
    connection.send(frame)
    answer = connection.receive()
    if answer == {"answer": "send"}:
        send_copy(connection, slot)
        answer = connection.receive()
    connection.close()
    return answer


def fill_rank_1(slots: SlotFile, index: int, step: int) -> None:
    fill(slots.slots[index], step)
    slots.slots[index].write_header(header(step, rank=1))


def test_a_copy_arrives_bit_by_bit_and_once(machine: Machine, sender: SlotFile) -> None:
    """The one before it stays; what is there already is not sent again."""
    fill_rank_1(sender, 0, 7)
    fill_rank_1(sender, 1, 8)
    assert offer(machine, sender, 7) == {"answer": "kept"}
    assert offer(machine, sender, 8) == {"answer": "kept"}
    assert [found.step for _, found in machine.kept.whole()] == [7, 8]
    assert machine.kept.slots[1].verify() == header(8, rank=1)
    assert bytes(machine.kept.slots[1].payload) == bytes(sender.slots[1].payload)
    assert offer(machine, sender, 8) == {"answer": "kept"}


def test_a_copy_is_fetched_back(machine: Machine, sender: SlotFile) -> None:
    """Into the slot that is worth least."""
    fill_rank_1(sender, 0, 7)
    offer(machine, sender, 7)
    for slot in sender.slots:
        slot.state = SlotState.EMPTY
    connection = Connection.connect(machine.address, KEY, TIMEOUT_S)
    fetch_copy(connection, sender, 1, Saved(1, 7), Tier.MEMORY)
    assert sender.slots[0].verify() == header(7, rank=1)
    with pytest.raises(DamagedSlotError, match="no copy of rank 1 at step 9"):
        fetch_copy(connection, sender, 1, Saved(1, 9), Tier.MEMORY)
    connection.close()


def test_what_is_damaged_on_the_way_is_not_kept(machine: Machine, sender: SlotFile) -> None:
    """And the last good copy is still there."""
    fill_rank_1(sender, 0, 7)
    offer(machine, sender, 7)
    fill_rank_1(sender, 1, 8)
    sender.slots[1].payload[9] ^= 1
    answer = offer(machine, sender, 8)
    assert answer == {"answer": "refused", "reason": "the checksum of block 0 differs"}
    assert [found.step for _, found in machine.kept.whole()] == [7]


@pytest.mark.parametrize("rank", [0, 5, -1, "1", None, [1]])
def test_only_ranks_that_belong_here_are_kept(
    machine: Machine, sender: SlotFile, rank: object
) -> None:
    """A machine's own slots are written by its own ranks alone."""
    fill_rank_1(sender, 0, 7)
    fill(machine.own.slots[0], 3)
    assert offer(machine, sender, 7, rank=rank)["answer"] == "refused"
    assert machine.own.slots[0].verify() == header(3)


def test_another_jobs_copy_is_not_kept(machine: Machine, sender: SlotFile) -> None:
    """Nor one that is larger than the slot."""
    fill_rank_1(sender, 0, 7)
    sender.slots[0].write_header(header(7, rank=1, job="other"))
    reason = offer(machine, sender, 7)["reason"]
    assert reason == "of job 'other', this is 'toy'"
    large = json.loads(sender.slots[0].header_text()) | {"job": "toy", "payload_bytes": 1 << 40}
    answer = offer(machine, sender, 7, header=json.dumps(large))
    assert "do not fit" in str(answer["reason"])


def test_who_does_not_have_the_key_gets_nothing(machine: Machine) -> None:
    """Neither end believes the other without it."""
    with pytest.raises(PeerError):
        Connection.connect(machine.address, bytes(31) + b"x", 5.0)


def test_a_server_without_the_key_gets_nothing() -> None:
    """It may hold the port of a machine that is gone."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        served = threading.Thread(target=_impersonate, args=(listener,))
        served.start()
        with pytest.raises(PeerError, match="does not have the key"):
            Connection.connect(("127.0.0.1", listener.getsockname()[1]), KEY, TIMEOUT_S)
        served.join()


def _impersonate(listener: socket.socket) -> None:
    link, _ = listener.accept()
    with link, pytest.raises(PeerError):
        Connection.accept(link, b"another key", 5.0).receive()


def test_an_echo_proves_nothing() -> None:
    """Who sends back what he gets has the right nonce and the right proof of the wrong role."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        served = threading.Thread(target=_echo, args=(listener,))
        served.start()
        with pytest.raises(PeerError, match="does not have the key"):
            Connection.connect(("127.0.0.1", listener.getsockname()[1]), KEY, TIMEOUT_S)
        served.join()


def _echo(listener: socket.socket) -> None:
    link, _ = listener.accept()
    with link:
        while content := link.recv(4096):
            link.sendall(content)


@pytest.mark.parametrize(
    "content",
    [b"\xff\xff\xff\xff", b"\x00\x00\x02\x01" + b"x" * 513, b"\x00\x00\x00\x02[]",
     b"\x00\x00\x00\x01{", b"\x00\x00\x00\x02{}", b'\x00\x00\x00\x0d{"nonce": 12}', b""],
)  # fmt: skip
def test_junk_ends_its_own_connection_only(
    machine: Machine, sender: SlotFile, content: bytes
) -> None:
    """The next one with the key is served."""
    with socket.create_connection(machine.address, timeout=TIMEOUT_S) as link:
        link.sendall(content)
        with suppress(OSError):
            link.shutdown(socket.SHUT_WR)
            while link.recv(4096):
                pass
    fill_rank_1(sender, 0, 7)
    assert offer(machine, sender, 7) == {"answer": "kept"}


@pytest.mark.parametrize(
    "request_",
    [{"do": "format"}, {}, {"do": "fetch", "rank": "x"},
     {"do": "fetch", "rank": 0, "attempt": 1, "step": 1, "tier": "memory"}],
)  # fmt: skip
def test_a_partner_that_talks_nonsense_is_refused_or_dropped(
    machine: Machine, request_: dict[str, object]
) -> None:
    """With the key as well; nobody else notices."""
    connection = Connection.connect(machine.address, KEY, TIMEOUT_S)
    connection.send(request_)
    with suppress(PeerError):
        assert connection.receive()["answer"] == "refused"
    connection.close()
    Connection.connect(machine.address, KEY, TIMEOUT_S).close()


def test_the_key_is_readable_by_its_user_only(tmp_path: Path) -> None:
    """And replaced as a whole: whoever had the old file open has the old key."""
    path, key = tmp_path / "key", new_key()
    write_key(path, "00" * 32)
    write_key(path, key)
    assert path.stat().st_mode & 0o777 == 0o600
    assert read_key(path).hex() == key


def test_a_dead_peer_is_said_once_and_has_the_copy_when_it_is_back(
    machine: Machine, sender: SlotFile, capsys: pytest.CaptureFixture[str]
) -> None:
    """What it is to keep stays where it is; the count of what it has whole tells the ranks."""
    fill_rank_1(sender, 0, 8)
    with socket.socket() as bound:  # does not listen, and nobody else is given its port
        bound.bind(("127.0.0.1", 0))
        address = ("127.0.0.1", bound.getsockname()[1])
        dead = Sender(address, {1: sender}, KEY)
        dead.bring_newest()
        dead.bring_newest()
    said = capsys.readouterr().err
    assert said.count("training goes on, saves are skipped until it answers") == 1
    assert f"backup at 127.0.0.1:{address[1]}" in said
    assert (sender.backed_up, [header.step for _, header in sender.whole()]) == (0, [8])
    back = Sender(machine.address, {1: sender}, KEY)
    back.bring_newest()
    back.drop_connection()
    assert sender.backed_up == 8
    assert [header.step for _, header in machine.kept.whole()] == [8]
