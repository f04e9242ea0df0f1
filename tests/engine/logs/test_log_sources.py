"""Logs are read however they are packed, and a broken archive is read up to the break."""

import bz2
import gzip
import io
import lzma
import os
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from brctl.engine.logs import log_sources
from brctl.engine.logs.log_sources import BLOCK_BYTES, list_inputs, read_blocks, unpack
from brctl.model.errors import UsageError

TEXT = b"".join(b"line %d of the log\n" % i for i in range(200_000))
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "plain": bytes,
    "gzip": lambda data: gzip.compress(data, 1),
    "zstd": lambda data: zstandard.ZstdCompressor().compress(data),
    "xz": lambda data: lzma.compress(data, preset=0),
    "bzip2": lambda data: bz2.compress(data, 1),
    "two gzip members": lambda d: gzip.compress(d[:1000], 1) + gzip.compress(d[1000:], 1),
}


@pytest.mark.parametrize("name", PACKERS)
def test_every_packing_gives_the_same_bytes(name: str) -> None:
    """The reader looks at the bytes, not at the file's name."""
    notes: list[str] = []
    blocks = list(unpack(io.BytesIO(PACKERS[name](TEXT)), "x", notes))
    assert b"".join(blocks) == TEXT
    assert notes == []
    assert max(map(len, blocks)) <= BLOCK_BYTES


@pytest.mark.parametrize("name", ["gzip", "zstd", "xz", "bzip2"])
def test_a_truncated_archive_is_read_up_to_the_break(name: str) -> None:
    """A log cut by a dying node still says what it says, and the cut is noted."""
    packed = PACKERS[name](os.urandom(3_000_000))
    notes: list[str] = []
    data = b"".join(unpack(io.BytesIO(packed[: len(packed) // 2]), "x", notes))
    assert len(notes) == 1
    assert "truncated" in notes[0] or "broken" in notes[0]
    assert name in ("bzip2", "xz") or len(data) > 100_000


@pytest.mark.parametrize("name", ["gzip", "zstd"])
def test_a_bomb_is_unpacked_in_small_pieces(name: str) -> None:
    """A few kilobytes that unpack to a hundred mebibytes never stand in memory whole."""
    packed = PACKERS[name](bytes(100 << 20))
    sizes = [len(block) for block in unpack(io.BytesIO(packed), "x", [])]
    assert max(sizes) <= BLOCK_BYTES
    assert sum(sizes) == 100 << 20


@pytest.mark.parametrize("name", ["gzip", "zstd", "xz", "bzip2"])
def test_a_bomb_is_given_up_and_said(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Megabytes of it would take minutes; what was read is read, and the rest is no silence."""
    monkeypatch.setattr(log_sources, "UNPACKED_FREELY_BYTES", 8 << 20)
    pack = {**PACKERS, "gzip": gzip.compress}[name]
    notes: list[str] = []
    blocks = unpack(io.BytesIO(pack(bytes(64 << 20))), "x", notes)
    assert sum(map(len, blocks)) < 64 << 20
    assert notes[0].startswith("x: unpacks to more than 500 times its size")


def test_a_log_of_one_line_over_and_over_is_no_bomb(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its stamps and counters keep it far below."""
    monkeypatch.setattr(log_sources, "UNPACKED_FREELY_BYTES", 1 << 20)
    text = b"".join(b"2026-07-05 09:%02d:%02d step %d loss 2.31\n" % (i // 60 % 60, i % 60, i)
                    for i in range(100_000))  # fmt: skip
    notes: list[str] = []
    for name in ("gzip", "zstd", "xz"):
        assert b"".join(unpack(io.BytesIO(PACKERS[name](text)), "x", notes)) == text
    assert notes == []


def test_a_folders_pipes_and_links_are_left_out_and_said(tmp_path: Path) -> None:
    """Opening a pipe would hang for ever."""
    (tmp_path / "rank-0.log").write_bytes(b"x")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("/etc/passwd")
    notes: list[str] = []
    assert [p.name for p in list_inputs(tmp_path, notes)] == ["rank-0.log"]
    assert len(notes) == 2


def test_a_file_that_goes_away_while_a_folder_is_listed_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A running program rotates and removes its files; the others are still a story."""
    (tmp_path / "rank-0.log").write_bytes(b"x")
    listed = [tmp_path / "gone.log", tmp_path / "rank-0.log"]
    monkeypatch.setattr(Path, "rglob", lambda _self, _pattern: iter(listed))
    notes: list[str] = []
    assert [p.name for p in list_inputs(tmp_path, notes)] == ["rank-0.log"]
    assert notes == [f"{tmp_path}/gone.log: No such file or directory"]


def test_a_missing_file_is_the_users_mistake(tmp_path: Path) -> None:
    """Nothing is classified when there is nothing to read."""
    with pytest.raises(UsageError, match="no such file"):
        list_inputs(tmp_path / "absent", [])


def test_a_plain_file_comes_in_blocks(tmp_path: Path) -> None:
    """Ten gigabytes must fit: a block at a time."""
    path = tmp_path / "big.log"
    path.write_bytes(TEXT)
    assert max(len(block) for block in read_blocks(path, [])) <= BLOCK_BYTES
