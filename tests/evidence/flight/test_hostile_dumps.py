"""A dump may be built to take minutes or gigabytes; it becomes a sentence instead, and soon."""

import time
import tracemalloc
from pathlib import Path

import pytest

from brctl.engine.job.flight import analyse_folder
from brctl.evidence.flight.analyse import analyse
from brctl.evidence.flight.dump import Operation, parse_dump, read_dump
from brctl.evidence.flight.plain_pickle import UnsafePickleError
from brctl.model.jobs.job import example_job

_ENTRIES = b"X\x07\x00\x00\x00entries"
_SIZES = b"X\x0b\x00\x00\x00input_sizes"


def _text(length: int) -> bytes:
    return b"X" + length.to_bytes(4, "little") + b"A" * length


BOMBS = {
    "deep": b"\x80\x02" + b"]" * 200_000 + b"a" * 199_999 + b".",
    "marks": b"\x80\x02" + b"(" * 4_000_000 + b".",
    "many values": b"\x80\x02](" + b"N" * 4_000_000 + b"e.",
    "a long text, often": b"\x80\x02}" + _ENTRIES + b"]}" + _SIZES + b"(" + _text(60_000)
    + b"q\x01" + b"h\x01" * 500_000 + b"lsas.",
    "a long tuple, often": b"\x80\x02(" + b"N" * 500_000 + b"tq\x01(" + b"h\x01" * 500_000 + b"l.",
    "a long integer": b"\x80\x02I" + b"9" * 4000 + b"\n.",
    "a wide integer": b"\x80\x02\x8a\xff" + b"\x7f" * 255 + b".",
}  # fmt: skip
COUNTED = dict.fromkeys(("marks", "many values"), "more than 2000000 values")
"""Refused while they are read: of the largest dump such a walk takes minutes."""
JSON_BOMBS = {
    "deep": b'{"entries": ' + b"[" * 100_000,
    "digits": b'{"entries": [{"record_id": ' + b"9" * 5000 + b"}]}",
    "digits as a name": b'{"pg_status": {"' + b"9" * 5000 + b'": {}}, "pg_config": {"0": {}}}',
    "digits of another script": '{"pg_status": {"²": {}}, "pg_config": {"²": {}}}'.encode(),
}


@pytest.mark.parametrize("name", sorted(BOMBS))
def test_a_bomb_is_refused_soon_and_small(name: str) -> None:
    """Within seconds of CPU, on whatever machine this is, and 300 MB."""
    tracemalloc.start()
    began = time.process_time()
    with pytest.raises(UnsafePickleError, match=COUNTED.get(name)):
        parse_dump(0, BOMBS[name])
    assert time.process_time() - began < 60
    assert tracemalloc.get_traced_memory()[1] < 300 << 20
    tracemalloc.stop()


def test_a_text_that_stands_in_many_places_is_not_written_out() -> None:
    """Half a million references to 16 KB would be 8 GB."""
    bomb = (
        b"\x80\x02}" + _ENTRIES + b"]}" + _SIZES + b"(" + _text(16_000) + b"q\x01"
        + b"h\x01" * 500_000 + b"lsas."
    )  # fmt: skip
    tracemalloc.start()
    (operation,) = parse_dump(0, bomb).operations
    assert tracemalloc.get_traced_memory()[1] < 100 << 20
    tracemalloc.stop()
    assert len(operation.shape) <= 400


@pytest.mark.parametrize("name", sorted(JSON_BOMBS))
def test_odd_json_is_a_refusal_or_a_dump(name: str, tmp_path: Path) -> None:
    """And beside a sound dump it is a note at most: the command goes on."""
    (tmp_path / "fr_0.json").write_bytes(JSON_BOMBS[name])
    (tmp_path / "fr_1.json").write_bytes(b'{"entries": []}')
    found = analyse_folder(tmp_path, example_job())
    assert any("rank 0" in note or "fr_0" in note for note in found.notes) or 0 in found.ranks


def test_a_flag_is_no_number() -> None:
    """`true` for a sequence would be the number 1."""
    value = {"entries": [{"collective_seq_id": True}], "pg_status": {}}
    (operation,) = read_dump(0, value).operations
    assert operation.sequence == -1


def test_nobody_waits_for_a_rank_that_the_job_does_not_have() -> None:
    """One dump may name any rank as a member; who is none of the job's is no suspect."""
    dump = read_dump(
        0,
        {
            "entries": [{"process_group": ["0", ""], "collective_seq_id": 3, "state": "started"}],
            "pg_config": {"0": {"ranks": "[0, 1, 77]"}},
        },
    )
    assert isinstance(dump.operations[0], Operation)
    assert [s.rank for s in analyse([dump], (0, 1)).suspects] == [1]
    assert [s.rank for s in analyse([dump]).suspects] == [1, 77]
