"""What the checks inside a job found names a machine only where it can."""

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from brctl.evidence.job.assess import assess_job, job_gaps
from brctl.evidence.job.wrong_numbers import read_wrong_numbers
from brctl.model.evidence import Evidence, Role, Subject, Weight
from brctl.model.evidence_kinds import NUMBERS_DIFFER
from brctl.model.fault import Action, FaultClass
from brctl.model.jobs.job import example_job
from brctl.model.jobs.job_status import JobStatus, RankView
from brctl.playbook.recommend import recommend
from brctl.verdict.decide import DecisionContext, decide
from tests.checks.probes import read

JOB = example_job()
NOW = datetime(2026, 11, 22, 21, 0, tzinfo=UTC)
Row = Mapping[str, object]

PRODUCT: Row = {"product": {"kind": "product", "step": 41, "module": "head", "count": 3}}
SUM: Row = {"sum": {"kind": "sum", "step": 7, "of": 8, "count": 1}}


def differs(*ranks: int, step: int = 41, of: int = 4, majority: bool = True) -> Row:
    return {
        "replica": {
            "kind": "replica", "step": step, "axis": "dp", "tensor": "head.weight", "tensors": 2,
            "ranks": list(ranks), "of": of, "has_majority": majority, "count": 1,
        }
    }  # fmt: skip


def found(rows: Mapping[int, Row], *, stalled: bool = False) -> tuple[Evidence, ...]:
    """The evidence of a job that advances, or not, whose ranks tell this."""
    ranks = tuple(
        RankView(
            rank, JOB.node_of(rank), alive=True, step=50, phase="forward", progress_age_s=0.1,
            wrong_numbers=read_wrong_numbers(json.dumps(rows.get(rank, {}))),
        )
        for rank in range(8)
    )  # fmt: skip
    return assess_job(JobStatus(JOB, ranks, 50, 0.1, stalled=stalled, silent=()), ())


def convicted(rows: Mapping[int, Row]) -> set[str]:
    return {e.subject.node for e in found(rows) if e.weight is Weight.CONVICTS}


def test_a_wrong_product_convicts_the_machine_that_made_it() -> None:
    """And a swap follows, for nothing else can have made it."""
    items = found({5: PRODUCT})
    assert convicted({5: PRODUCT}) == {"n6"}
    (verdict,) = decide(items, (), DecisionContext(NOW, JOB.name, 50, stalled=False))
    assert (verdict.fault, verdict.nodes) == (FaultClass.SILENT_CORRUPTION, ("n6",))
    assert recommend(verdict).action is Action.SWAP


def test_wrong_products_on_most_ranks_are_no_machine() -> None:
    """A library or a precision that nobody told the check of."""
    rows = dict.fromkeys(range(5), PRODUCT)
    (verdict,) = decide(found(rows), (), DecisionContext(NOW, JOB.name, 50, stalled=False))
    assert (verdict.fault, verdict.nodes) == (FaultClass.NUMERIC_NAN, ())
    assert recommend(verdict).action is not Action.SWAP


def test_the_one_of_four_replicas_that_differs_is_convicted() -> None:
    """All four say so."""
    assert convicted(dict.fromkeys((1, 3, 5, 7), differs(3))) == {"n4"}


def test_only_the_earliest_difference_counts() -> None:
    """What came later was computed from it."""
    rows = {
        **dict.fromkeys((1, 3, 5, 7), differs(3)),
        0: differs(2, step=42),
        2: differs(2, step=42),
    }
    assert convicted(rows) == {"n4"}


def test_a_rank_that_accuses_itself_alone_is_a_hint() -> None:
    """The others of its group compared the same bits and say nothing."""
    (item,) = [e for e in found({3: differs(3)}) if e.kind == "job.rank.replica-differs"]
    assert item.weight is Weight.HINTS


@pytest.mark.parametrize(
    "rows",
    [{5: differs(3)}, {1: differs(3), 3: differs(3), 5: differs(3)}, {5: differs(3, of=1)},
     {0: differs(3, of=8), 1: differs(3, of=8), 2: differs(3, of=8)}],
)  # fmt: skip
def test_what_half_of_a_group_or_fewer_say_of_another_is_a_hint(rows: Mapping[int, Row]) -> None:
    """A rank that received wrong bits accuses a sound one."""
    assert convicted(rows) == set()
    assert [e.weight for e in found(rows) if e.subject.node == "n4"] == [Weight.HINTS]


def test_one_rank_that_tells_of_an_earlier_step_hides_nothing() -> None:
    """What most of a group say counts before what one says."""
    rows = {**dict.fromkeys((1, 3, 5, 7), differs(3)), 6: differs(2, step=0)}
    assert convicted(rows) == {"n4"}


def test_the_one_rank_that_could_tell_before_the_job_ended_leads_to_a_search() -> None:
    """Nobody is accused by its word alone, and the crash is not called code."""
    items = found({3: differs(3)}, stalled=True)
    assert {e.subject.node for e in items if e.kind == NUMBERS_DIFFER} == {""}
    crash = Evidence(
        "log.exception", Subject("n4"), Weight.CONVICTS, FaultClass.USER_CODE, Role.ROOT,
        "log", "RuntimeError: bad state", "", strength=0.93,
    )  # fmt: skip
    first, *_ = decide((*items, crash), (), DecisionContext(NOW, JOB.name, 50, stalled=True))
    assert recommend(first).playbook == "locate-corruption"


def test_a_crash_beside_a_wrong_product_is_the_machines_and_not_the_codes() -> None:
    """However surely a log names a line of code: what a machine made wrong ended there."""
    crash = Evidence(
        "log.exception", Subject("n2"), Weight.CONVICTS, FaultClass.USER_CODE, Role.ROOT,
        "log", "RuntimeError: bad state", "", strength=0.96,
    )  # fmt: skip
    items = (*found({5: PRODUCT}, stalled=True), crash)
    first, *_ = decide(items, (), DecisionContext(NOW, JOB.name, 50, stalled=True))
    assert (first.fault, first.nodes) == (FaultClass.SILENT_CORRUPTION, ("n6",))


def test_of_two_replicas_one_is_wrong_and_nobody_knows_which() -> None:
    """Both are in the text, neither is accused."""
    rows = dict.fromkeys((2, 6), differs(2, 6, of=2, majority=False))
    (item,) = [e for e in found(rows) if e.fault is FaultClass.NUMERIC_NAN]
    assert item.subject.node == ""
    assert "one of rank 2 on n3, rank 6 on n7" in item.text


def test_a_wrong_sum_names_nobody_and_a_wrong_product_beside_it_does() -> None:
    """The reduction is alike on all ranks, whoever sent something else."""
    everybody = dict.fromkeys(range(8), SUM)
    assert convicted(everybody) == {""}
    assert convicted({**everybody, 4: {**SUM, **PRODUCT}}) == {"n5"}


@pytest.mark.parametrize(
    "text",
    ["", "[", "[]", '{"product": 3}', '{"product": {"step": -1}}', '{"sum": {"step": true}}',
     '{"product": {"step": 1e400}}', '{"spite": {"step": 1}}'],
)  # fmt: skip
def test_what_no_rank_writes_is_no_finding(text: str) -> None:
    assert read_wrong_numbers(text) == ()


def test_ranks_outside_the_job_are_nobody() -> None:
    """A file may hold what it likes."""
    assert convicted(dict.fromkeys((1, 3), differs(10**11))) == set()


def test_a_finding_that_cannot_be_read_is_no_health() -> None:
    """It is said of which rank."""
    view = RankView(
        3, "n4", alive=True, step=50, phase="forward", progress_age_s=0.1, has_unread_numbers=True
    )
    (gap,) = job_gaps(JobStatus(JOB, (view,), 50, 0.1, stalled=False, silent=()), ())
    assert (gap.subject.device, gap.why) == (
        "rank:3",
        "which of its numbers are wrong was not read",
    )


def test_it_is_said_whose_bits_were_compared_with_nobody() -> None:
    """Where numbers are wrong, and only there: unlike parts round differently without a fault."""
    kinds = {0: "H100", 1: "H100", 2: "A100"}
    views = [
        RankView(
            rank, JOB.node_of(rank), alive=True, step=50, phase="forward", progress_age_s=0.1,
            compared_tensors=30, compared_kind=kind, loss_finite=True,
        )
        for rank, kind in kinds.items()
    ]  # fmt: skip

    def whys(*views: RankView) -> list[str]:
        status = JobStatus(JOB, views, 50, 0.1, stalled=False, silent=())
        return [gap.why for gap in job_gaps(status, ())]

    assert whys(*views) == []
    views[0] = replace(views[0], loss_finite=False)
    between, alone = whys(*views)
    assert "within each kind of node, not between" in between
    assert "(H100)" in between
    assert "(A100)" in between
    assert alone.startswith(f"rank 2 on {JOB.node_of(2)} is the only one of its kind")
    assert whys(*views[:2]) == []


def test_the_check_reads_what_a_rank_wrote(tmp_path: Path) -> None:
    """And says what it does not read."""
    progress: dict[str, object] = {
        "rank": 3,
        "step": 50,
        "compared_tensors": 30,
        "wrong_numbers": PRODUCT,
    }
    progress["compared_kind"] = "x86_64 AVX2, torch 2.9" + 500 * "!"
    (tmp_path / "rank-00003.json").write_text(json.dumps(progress))
    (tmp_path / "rank-00003.log").write_text("")
    places = {"log_dir": str(tmp_path), "progress_dir": str(tmp_path), "ranks": [3]}
    values = read("job.ranks", places).values
    assert values["job.rank.compared_tensors", "rank:3"] == 30
    kind = str(values["job.rank.compared_kind", "rank:3"])
    assert (kind[:22], len(kind)) == ("x86_64 AVX2, torch 2.9", 200)
    (wrong,) = read_wrong_numbers(str(values["job.rank.wrong_numbers", "rank:3"]))
    assert (wrong.step, wrong.place, wrong.count) == (41, "head", 3)
    progress["wrong_numbers"] = {"product": "x" * 5000}
    (tmp_path / "rank-00003.json").write_text(json.dumps(progress))
    again = read("job.ranks", places)
    assert ("job.rank.wrong_numbers", "rank:3") not in again.values
    assert any("wrong_numbers has" in note for note in again.notes)
