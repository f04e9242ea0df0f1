"""Stacks from files: brctl's own dump, py-spy's JSON and text, rounds."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from brctl.engine.job.stack_store import new_folder, newest_folder
from brctl.engine.job.stacks import analyse_folder
from brctl.model.errors import UsageError
from brctl.model.jobs.job import example_job

SYNC = [{"name": "all_reduce", "short_filename": "distributed_c10d.py", "line": 1}]
LOAD = [{"name": "__next__", "short_filename": "dataloader.py", "line": 1}]


def write(folder: Path, rank: int, frames: list[dict[str, object]]) -> None:
    folder.mkdir(exist_ok=True)
    threads = [{"thread_name": "MainThread", "frames": frames}]
    body = {"rank": rank, "threads": threads, "state": "S", "note": ""}
    (folder / f"rank-{rank:05d}.json").write_text(json.dumps(body))


def test_three_forms_of_one_stack_are_one_group(tmp_path: Path) -> None:
    """Brctl's dump, py-spy's JSON and py-spy's text of one wait compare equal."""
    for rank in range(5):
        write(tmp_path, rank, SYNC)
    bare = [{"thread_name": "MainThread", "frames": SYNC}]
    (tmp_path / "pyspy_n5.json").write_text(json.dumps(bare))
    text = 'Thread 7 (active): "MainThread"\n    all_reduce (torch/distributed_c10d.py:9)\n'
    (tmp_path / "pyspy_n6.txt").write_text(text)
    write(tmp_path, 7, LOAD)
    found = analyse_folder(tmp_path, example_job())
    assert [group.ranks for group in found.groups] == [(0, 1, 2, 3, 4, 5, 6), (7,)]
    assert found.suspect_nodes == ("n8",)


def test_stacks_belong_to_the_nodes_they_were_captured_on(tmp_path: Path) -> None:
    """After a swap the standby, which stands where the dead node stood, is no suspect."""
    then = example_job()
    for rank in range(8):
        write(tmp_path, rank, LOAD if rank == 7 else SYNC)
        path = tmp_path / f"rank-{rank:05d}.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), "node": then.node_of(rank)}))
    swapped = replace(then, nodes=(*then.nodes[:-1], "spare1"))
    found = analyse_folder(tmp_path, swapped)
    assert found.suspect_nodes == analyse_folder(tmp_path, then).suspect_nodes == ("n8",)
    assert any("n8 (now spare1); take them anew" in note for note in found.notes)


@pytest.mark.parametrize("node", [None, 7, "", "../n8", "n8 n9", "n1", "x" * 300])
def test_a_name_that_is_none_or_somebody_elses_moves_no_rank(tmp_path: Path, node: object) -> None:
    """A folder may come from anywhere: then the job's own places hold."""
    for rank in range(8):
        write(tmp_path, rank, LOAD if rank == 7 else SYNC)
    path = tmp_path / "rank-00007.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "node": node}))
    assert analyse_folder(tmp_path, example_job()).suspect_nodes == ("n8",)


def test_a_file_that_is_no_dump_counts_as_no_answer(tmp_path: Path) -> None:
    """Junk from a rank is a note and makes it an outlier."""
    for rank in range(7):
        write(tmp_path, rank, SYNC)
    (tmp_path / "rank-00007.json").write_text("{broken")
    found = analyse_folder(tmp_path, example_job())
    assert found.silent == (7,)
    assert any("not JSON" in note for note in found.notes)


def test_rounds_are_counted_and_the_last_decides(tmp_path: Path) -> None:
    """Five rounds give the fail-slow flags; the newest gives the stand-still."""
    job = replace(example_job(), axes=(("tp", 2), ("dp", 4)))
    for number in range(1, 6):
        for rank in range(8):
            write(tmp_path / f"round-{number}", rank, LOAD if rank in (4, 5) else SYNC)
    found = analyse_folder(tmp_path, job)
    assert found.rounds == 5
    assert any("tp [4, 5]" in note for note in found.notes)


def test_no_stacks_is_the_users_mistake(tmp_path: Path) -> None:
    """An empty folder proves nothing about any node."""
    with pytest.raises(UsageError, match="no stacks"):
        analyse_folder(tmp_path, example_job())


def test_the_newest_capture_is_shown(tmp_path: Path) -> None:
    """Captures are kept by time; show reads the last."""
    at = datetime(2026, 7, 5, 3, 2, tzinfo=UTC)
    first = new_folder(tmp_path, "j", at)
    second = new_folder(tmp_path, "j", at + timedelta(minutes=1))
    assert first != second
    assert newest_folder(tmp_path, "j") == second
