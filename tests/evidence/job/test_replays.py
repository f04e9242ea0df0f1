"""After a restart the batches of replayed steps are compared with those of the first run."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from brctl.evidence.job.assess import assess_job
from brctl.evidence.job.data.replays import read_replay, replay_note
from brctl.model.evidence import Weight
from brctl.model.evidence_kinds import REPLAY_DIFFERS
from brctl.model.fault import FaultClass
from brctl.model.jobs.job import example_job
from brctl.model.jobs.job_status import JobStatus, RankView
from brctl.model.jobs.replay import Replay
from brctl.playbook.recommend import recommend
from brctl.verdict.decide import DecisionContext, decide
from tests.checks.probes import read
from tests.evidence.job.test_loaders import NOW

JOB = example_job()
Start = Sequence[tuple[int, int]]


def start(first: int, last: int, behind: int = 0) -> Start:
    """The steps of one start with their batches."""
    return [(step, step - behind) for step in range(first, last + 1)]


def replay_of(folder: Path, *starts: Start, **odd: object) -> Replay | None:
    """What the check says of a rank whose ledger has these starts."""
    rows: list[Mapping[str, object]] = [
        {"step": step, "position": batch, "digest": f"d{batch}", "samples": 8,
         **({"start": True} if step == rows[0][0] else {}), **odd}
        for rows in starts
        for step, batch in rows
    ]  # fmt: skip
    (folder / "ledger-00003.ndjson").write_text("".join(json.dumps(r) + "\n" for r in rows))
    (folder / "rank-00003.json").write_text("{}")
    (folder / "rank-00003.log").write_text("")
    places = {"log_dir": str(folder), "progress_dir": str(folder)}
    found = read("job.ranks", {"ranks": [3], **places}).values
    return read_replay(str(found.get(("job.rank.replay", "rank:3"), "")))


FIRST = start(1, 47)
REWOUND = Replay(41, 1, 41, 3, 24)

CASES = [
    ("no restart", [FIRST], None),
    ("the same batches again", [FIRST, start(41, 60)], Replay(41, 7)),
    ("three come twice", [FIRST, start(41, 60, behind=3)], REWOUND),
    ("two are left out", [FIRST, start(41, 60, behind=-2)], Replay(41, 1, 41, -2, 16)),
    ("from sample 0 again, where 50 were run", [start(1, 50), start(51, 60, behind=50)],
     Replay(51, 0, 51, 50, 400)),
    ("it went back and is right again", [FIRST, start(41, 80, behind=3), start(31, 50)],
     Replay(31, 17)),
    ("it is shifted still", [FIRST, start(41, 80, behind=3), start(81, 90, behind=3)], REWOUND),
    ("it is shifted again", [FIRST, start(41, 44, behind=3), start(41, 44, behind=3)], REWOUND),
]  # fmt: skip


@pytest.mark.parametrize(("starts", "expected"), [row[1:] for row in CASES],
                         ids=[row[0] for row in CASES])  # fmt: skip
def test_the_newest_start_is_compared_with_what_was_run_before(
    tmp_path: Path, starts: Sequence[Start], expected: Replay | None
) -> None:
    assert replay_of(tmp_path, *starts) == expected


def test_without_digests_nothing_is_compared_and_positions_tell_what_digests_cannot(
    tmp_path: Path,
) -> None:
    assert replay_of(tmp_path, FIRST, start(41, 60, behind=3), digest=None) is None
    other = start(41, 60, behind=-900)
    assert replay_of(tmp_path, FIRST, other) == Replay(41, 1, 41, -900, 7200)
    assert replay_of(tmp_path, FIRST, other, position=None) == Replay(41, 1, 41)
    again = start(41, 44, behind=-900)
    assert replay_of(tmp_path, FIRST, other, again, position=None) == Replay(41, 4)


def test_a_new_epoch_may_have_the_same_batches_again(tmp_path: Path) -> None:
    """Without shuffling it has; only within an epoch a batch is given twice by mistake."""
    path = tmp_path / "ledger-00003.ndjson"
    rows = [
        {"step": step, "epoch": epoch, "digest": f"d{batch}", "start": batch == 1 or None}
        for epoch in (0, 1)
        for batch, step in enumerate(range(1 + 50 * epoch, 51 + 50 * epoch), 1)
    ]
    assert replay_of(tmp_path, start(1, 50), start(51, 60, behind=50)) is not None
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    places = {"log_dir": str(tmp_path), "progress_dir": str(tmp_path)}
    found = read("job.ranks", {"ranks": [3], **places}).values["job.rank.replay", "rank:3"]
    assert read_replay(str(found)) == Replay(51, 0)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"first": true, "steps": 1}', '{"first": 1}'])
def test_a_comparison_that_is_none_is_nothing(text: str) -> None:
    assert read_replay(text) is None


def job(replay: Replay, *, stalled: bool) -> JobStatus:
    views = [
        RankView(rank, JOB.node_of(rank), alive=True, step=60, phase="forward", progress_age_s=0.1)
        for rank in range(JOB.world_size)
    ]
    views[5] = replace(views[5], replay=replay)
    return JobStatus(JOB, tuple(views), 60, 0.1, stalled=stalled, silent=())


def test_a_job_that_trains_on_other_batches_is_named_and_no_machine() -> None:
    """With the number of samples, and where to go back to."""
    found = assess_job(job(REWOUND, stalled=False), ())
    context = DecisionContext(NOW, JOB.name, 60, stalled=False)
    main = decide(found, (), context)[0]
    assert (main.fault, main.nodes) == (FaultClass.DATA_LOADER, ())
    assert "go back to an earlier checkpoint" in recommend(main).say
    (item,) = [e for e in found if e.kind == REPLAY_DIFFERS]
    assert item.text == (
        "since the restart at step 41 rank 5 is given other batches: 3 batches (24 samples)"
        f" repeated, seen in step 41; go back to a checkpoint before step 40: brctl ckpt latest"
        f" --job {JOB.name}; brctl job stop {JOB.name}; brctl job start {JOB.name} --from DIRECTORY"
    )


def test_the_same_batches_again_are_no_fault_and_a_stall_has_another_cause() -> None:
    assert not assess_job(job(Replay(41, 7), stalled=False), ())
    found = assess_job(job(REWOUND, stalled=True), ())
    assert {e.weight for e in found if e.kind == REPLAY_DIFFERS} == {Weight.CONTEXT}


def test_the_proof_of_a_restart_says_what_was_compared() -> None:
    assert replay_note(job(Replay(41, 7), stalled=False)) == (
        "1 ranks had the same batches again, 7 steps"
    )
    unknown = replay_note(job(Replay(41, 1, 41), stalled=False))
    assert unknown.startswith("WARNING since the restart at step 41 rank 5")
    assert "how many is not known" in unknown
