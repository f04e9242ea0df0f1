"""Files of ranks come from real processes, whole or with the reason why not."""

from dataclasses import replace
from pathlib import Path

import pytest

from brctl.engine.job.flight_collect import collect_dumps
from brctl.engine.job.rank_files import RankFile, fetch_rank_files, split_files
from brctl.fanout.local import LocalTransport
from brctl.model.command import Command, CommandResult
from brctl.model.errors import UsageError
from brctl.model.inventory import Node
from brctl.model.jobs.job import Job, example_job
from tests.fakes.transport import FakeTransport, answered


def two_nodes() -> tuple[Job, list[Node]]:
    job = replace(example_job(), nodes=("n1", "n2"), ranks_per_node=2, axes=(("dp", 4),))
    return job, [Node("n1", "127.0.0.1"), Node("n2", "127.0.0.1")]


async def test_every_rank_gives_its_file_or_the_reason(tmp_path: Path) -> None:
    """Bytes come as they are; a long file gives its end, a missing one a sentence."""
    job, nodes = two_nodes()
    (tmp_path / "r0").write_bytes(b"\x00==> rank 9 ok 3\n\xff")
    (tmp_path / "r1").write_bytes(b"a" * 500 + b"the end")
    (tmp_path / "r3").write_bytes(b"")
    files, notes = await fetch_rank_files(
        LocalTransport(), nodes, job, lambda rank: f"{tmp_path}/r{rank}", limit_bytes=100, fanout=2
    )
    assert [(f.rank, f.node, f.is_whole) for f in files] == [
        (0, "n1", True),
        (1, "n1", False),
        (3, "n2", True),
    ]
    assert files[0].data == b"\x00==> rank 9 ok 3\n\xff"
    assert files[1].data.endswith(b"the end")
    (note,) = notes
    assert "rank 2" in note
    assert "No such file" in note


def test_lengths_are_trusted_only_as_far_as_bytes_came() -> None:
    """An answer that breaks off, or lies, gives what is there and marks it incomplete."""
    text = b"noise\x00==> rank 3 ok 5\nabc\nd\n\x00==> rank 4 missing 0\n\n\x00==> rank 5 ok 9\nxy"
    assert split_files("n", text, range(8)) == (
        [RankFile(3, "n", b"abc\nd", is_whole=True), RankFile(5, "n", b"xy", is_whole=False)],
        False,
    )
    assert split_files("n", b"\x00==> rank x y z\n", range(8)) == ([], False)


def test_a_node_gives_no_file_of_a_rank_that_lives_elsewhere() -> None:
    """Nor a second one of its own: what is not its own is dropped and said."""
    text = b"\x00==> rank 0 ok 4\nmine\n\x00==> rank 2 ok 6\nforged\n\x00==> rank 0 ok 3\ntwo\n"
    assert split_files("n1", text, (0, 1)) == ([RankFile(0, "n1", b"mine", is_whole=True)], True)


async def test_a_forged_file_does_not_take_the_place_of_the_right_one(tmp_path: Path) -> None:
    """n1 sends a dump of n2's rank; n2's own dump stays, and the forgery is said."""
    job, nodes = two_nodes()

    def answer(node: Node, _command: Command) -> CommandResult:
        rank = b"0" if node.name == "n1" else b"2"
        text = b"\x00==> rank %s ok 5\nright\n" % rank
        forged = b"\x00==> rank 2 ok 6\nforged\n" if node.name == "n1" else b""
        return answered(node, text + forged)

    job = replace(job, environment={"TORCH_FR_DUMP_TEMP_FILE": "trace_"})
    notes = await collect_dumps(FakeTransport(answer), nodes, job, tmp_path, fanout=2)
    assert (tmp_path / "dump_2").read_bytes() == b"right"
    assert any("n1: sent files of ranks it does not carry" in note for note in notes)


async def test_dumps_are_collected_where_the_job_writes_them(tmp_path: Path) -> None:
    """The prefix stands in the job's environment; a rank without a dump is said."""
    job, nodes = two_nodes()
    for rank in (0, 1, 3):
        (tmp_path / f"trace_{rank}").write_bytes(b"dump")
    job = replace(job, environment={"TORCH_FR_DUMP_TEMP_FILE": f"{tmp_path}/trace_"})
    folder = tmp_path / "collected"
    notes = await collect_dumps(LocalTransport(), nodes, job, folder, fanout=2)
    assert sorted(p.name for p in folder.iterdir()) == ["dump_0", "dump_1", "dump_3"]
    assert any("rank 2" in note for note in notes)


async def test_a_job_that_writes_no_dumps_is_told_how(tmp_path: Path) -> None:
    """The error names the variables to set."""
    job, nodes = two_nodes()
    with pytest.raises(UsageError, match="writes no flight-recorder dumps"):
        await collect_dumps(LocalTransport(), nodes, job, tmp_path, fanout=2)
