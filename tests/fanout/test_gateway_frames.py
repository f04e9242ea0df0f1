"""A gateway is a machine like others: what it sends is bounded, known, or the end of the talk."""

import json

import pytest

from brctl.fanout.gateway.frames import GREETING_LIMIT_BYTES, HELLO, Frame, Frames, GatewayError
from brctl.fanout.gateway.relay import common_bytes, unwrap

GREETING = b'{"hello": "%s"}\n' % HELLO.encode()


def frame(stdout: bytes = b"", stderr: bytes = b"", **fields: object) -> bytes:
    line = {"number": 1, "status": 0, "begun": True, "stdout": len(stdout), "stderr": len(stderr)}
    return json.dumps({**line, **fields}).encode() + b"\n" + stdout + stderr


def test_frames_are_the_same_however_the_bytes_are_cut() -> None:
    """A login shell's greeting is passed over, also when it looks like a frame."""
    stream = b"Welcome!\n" + frame(b"not me") + GREETING + frame(b"out\n\n", b"err", number=7)
    stream += b'{"beat": 3}\n' + frame(b"", b"x", number=8, status=None)
    for size in (1, 2, 7, 64, len(stream)):
        frames = Frames(100)
        found = [f for i in range(0, len(stream), size) for f in frames.feed(stream[i : i + size])]
        assert [(f.number, f.beat, out, err) for f, out, err in found] == [
            (7, None, b"out\n\n", b"err"), (None, 3, b"", b""), (8, None, b"", b"x"),
        ]  # fmt: skip


@pytest.mark.parametrize(
    "actual",
    [
        b"x" * (GREETING_LIMIT_BYTES + 100),
        GREETING + b"x" * 5000,
        GREETING + b"no json\n",
        GREETING + b"[1]\n",
        GREETING + b'{"number": "one"}\n',
        GREETING + b'{"number": 1, "stdout": 101}\n',
        GREETING + b'{"number": 1, "stderr": -1}\n',
        GREETING + b'{"number": 1, "stdout": 1e30}\n',
        GREETING + b"[" * 4000 + b"\n",
        GREETING + b"\xff\xfe\n",
    ],
)
def test_what_no_honest_gateway_sends_ends_the_talk(actual: bytes) -> None:
    """Nothing of it is kept, waited for or believed."""
    with pytest.raises(GatewayError):
        list(Frames(100).feed(actual))


def test_a_gateway_that_speaks_another_protocol_is_refused_with_both_names() -> None:
    """Not waited for until it falls silent."""
    with pytest.raises(GatewayError, match=f"brctl-gateway 1.*and we speak {HELLO}"):
        list(Frames(100).feed(b'Welcome!\n{"hello": "brctl-gateway 1"}\n'))


@pytest.mark.parametrize(
    ("stderr", "begun", "status", "own"),
    [
        (b"banner\nMARK\nerr\nMARK 3\n", True, 3, b"err\n"),
        (b"MARK\nerr", True, None, b"err"),
        (b"MARK\nMARK x\n", True, None, b"MARK x\n"),
        (b"ssh: connect refused\n", False, 255, b"ssh: connect refused\n"),
    ],
)
def test_only_the_end_mark_makes_a_status(
    stderr: bytes, begun: bool, status: int | None, own: bytes
) -> None:
    """An `ssh` that exits 255 after the command began is a connection that broke."""
    observed = Frame(number=1, status=255, begun=True)
    assert unwrap(observed, stderr, "MARK") == own
    assert (observed.begun, observed.status) == (begun, status)


def test_what_two_commands_have_in_common() -> None:
    """The longest common beginning, by halves."""
    for shared in (0, 1, 5, 1000, 65537):
        assert common_bytes(b"a" * shared + b"x1", b"a" * shared + b"y") == shared
    assert common_bytes(b"", b"abc") == 0
    assert common_bytes(b"abc", b"abc") == 3
