"""Dumps from files: read, refused, placed on nodes."""

import json
import pickle
from dataclasses import replace
from pathlib import Path

import pytest

from brctl.engine.job.diagnose import dumps_compare
from brctl.engine.job.flight import analyse_folder
from brctl.model.errors import UsageError
from brctl.model.jobs.job import example_job
from brctl.model.jobs.job_status import JobStatus, RankView

RAISED = """Traceback (most recent call last):
  File "train.py", line 3, in forward
IndexError: index out of range in self
"""


def row(number: int, *, done: bool) -> dict[str, object]:
    return {
        "record_id": number, "pg_id": 0, "process_group": ["0", "default"],
        "collective_seq_id": number, "profiling_name": "nccl:all_reduce", "is_p2p": False,
        "state": "completed" if done else "scheduled", "retired": done,
    }  # fmt: skip


def document(*rows: dict[str, object]) -> dict[str, object]:
    config = {"0": {"desc": "default", "ranks": "[0, 1, 2, 3, 4, 5, 6, 7]"}}
    return {"pg_config": config, "pg_status": {}, "entries": list(rows)}


def test_a_folder_of_pickles_and_json_names_rank_and_node(tmp_path: Path) -> None:
    """Rank 5 never entered number 7; the job file says where it runs."""
    for rank in range(8):
        rows = [row(6, done=True)] + ([] if rank == 5 else [row(7, done=False)])
        if rank % 2:
            (tmp_path / f"fr_{rank}.json").write_text(json.dumps(document(*rows)))
        else:
            (tmp_path / f"trace_{rank}").write_bytes(pickle.dumps(document(*rows), 2))
    (tmp_path / "README").write_text("not a dump")
    found = analyse_folder(tmp_path, example_job())
    assert [(s.rank, s.node) for s in found.suspects] == [(5, "n6")]


def test_a_hostile_dump_is_a_note_and_its_rank_a_suspect(tmp_path: Path) -> None:
    """It is never loaded; the others are still compared."""
    for rank in range(8):
        data = pickle.dumps(document(row(6, done=True), row(7, done=False)), 2)
        (tmp_path / f"d_{rank}").write_bytes(data if rank != 2 else pickle.dumps(Path("/x")))
    found = analyse_folder(tmp_path)
    assert any("not allowed" in note for note in found.notes)
    assert [s.rank for s in found.suspects] == [2]


def test_an_empty_folder_is_the_users_mistake(tmp_path: Path) -> None:
    """No dump is no answer."""
    with pytest.raises(UsageError, match="no flight-recorder dump"):
        analyse_folder(tmp_path)


@pytest.mark.parametrize(
    ("phase", "last_words", "compared"),
    [
        ("forward", "", True),
        ("forward", RAISED, False),
        ("all_reduce", RAISED, True),
    ],
)
def test_dumps_are_compared_unless_a_rank_that_raised_is_ending(
    phase: str, last_words: str, *, compared: bool
) -> None:
    """Its end completes for some peers what others wait in; one that waited is a victim."""
    job = replace(example_job(), environment={"TORCH_FR_DUMP_TEMP_FILE": "/logs/flight-"})
    views = [RankView(rank, job.node_of(rank), alive=True, phase="all_reduce") for rank in (0, 1)]
    views[1] = replace(views[1], phase=phase, last_words=last_words)
    status = JobStatus(job, tuple(views), 20, 9.0, stalled=True, silent=())
    assert dumps_compare(status) is compared
