"""`brctl top`: the slowest rank comes first, and what nobody told is said, not shown as zero."""

from dataclasses import replace
from pathlib import PurePosixPath

from brctl.evidence.job.top import TopLook, own_s, slowest_first, top_look
from brctl.model.command import Outcome
from brctl.model.jobs.job import Job
from brctl.model.jobs.job_status import JobStatus, RankView
from brctl.model.sweeps.report import CheckResult, Measurement, NodeReport, ProbeStatus
from brctl.view.job.top import top_page
from tests.fakes.documents import check_page
from tests.fakes.nodes import NOW

HERE = PurePosixPath("/x")
JOB = Job("llm", ("n1", "n2", "n3"), 1, (("dp", 3),), ("train",), HERE, HERE, HERE)
FAST = RankView(0, "n1", True, step=40, step_s=0.5, wait_s=0.3, loss_finite=True)
SLOW = RankView(1, "n2", True, step=40, step_s=0.5, wait_s=0.1, loss_finite=False,
                first_nonfinite_step=39, phase="forward\x1b[2J")  # fmt: skip
UNKNOWN = RankView(2, "n3")


def report(node: str, errors: int, *more: CheckResult) -> NodeReport:
    rows = (
        Measurement("gpu.ecc.volatile_corrected", "gpu:A", errors),
        Measurement("gpu.clocks.temperature_c", "gpu:A", 50 + errors),
        Measurement("gpu.clocks.power_w", "gpu:A", 300.0),
    )
    found = CheckResult("gpu.ecc", ProbeStatus.MEASURED, rows)
    return NodeReport(node, Outcome.ANSWERED, (found, *more))


def look(*reports: NodeReport, age_s: float = 0.0) -> TopLook:
    status = JobStatus(JOB, (FAST, SLOW, UNKNOWN), 40, 0.2, False, ("n3",))
    ages = {each.node: age_s for each in reports}
    return top_look(status, reports, ages, {"n3": "connect-timed-out"}, NOW)


def test_who_waits_least_for_the_others_is_the_slowest() -> None:
    """All steps take the same time; ranks that are gone, unknown or behind come before that."""
    behind = replace(FAST, rank=3, step=20)
    gone = replace(FAST, rank=4, alive=False)
    ranked = slowest_first([FAST, SLOW, UNKNOWN, behind, gone])
    assert [view.rank for view in ranked] == [2, 4, 3, 1, 0]
    assert own_s(SLOW) == 0.4
    assert own_s(UNKNOWN) is None


def test_nodes_that_were_looked_at_in_other_moments_are_not_behind() -> None:
    """Ten steps a second: three steps are a third of a second between two answers."""
    views = [replace(FAST, step=100, step_s=0.1, wait_s=0.01), replace(SLOW, step=103, step_s=0.1)]
    assert [view.rank for view in slowest_first(views)] == [0, 1]
    views = [replace(FAST, step=100, step_s=0.1), replace(SLOW, step=103, wait_s=0.0)]
    assert [view.rank for view in slowest_first(views)] == [1, 0]


def test_a_narrow_terminal_goes_without_what_matters_least() -> None:
    """Never without the rank, its node, its step and its own time; lines are not wrapped."""
    found = look(report("n1", 0), report("n2", 0))
    wide, narrow = (top_page(found, found, 9, width).text for width in (None, 60))
    assert "WAITS" in wide
    assert "WAITS" not in narrow
    for title in ("RANK", "NODE", "STEP", "OWN", "ANSWER"):
        assert title in narrow
    tables = [line for line in narrow.splitlines() if not line.startswith(("llm", "not measured"))]
    assert max(map(len, tables)) <= 60


def test_a_page_shows_ranks_nodes_growth_and_what_is_missing() -> None:
    failed = CheckResult(
        "fabric.eth", ProbeStatus.COULD_NOT_MEASURE, notes=("no /sys\x1b[31m", "twice")
    )
    first = look(report("n1", 3), report("n2", 7, failed))
    now = look(report("n1", 3), report("n2", 9, failed), age_s=40.0)
    page = top_page(now, first, 20)
    check_page(page, "lab")
    lines = page.text.splitlines()
    assert lines[0].startswith("llm  progressing: step 40")
    assert lines[2].split() == ["2", "n3", "unknown", *"-------"]
    assert lines[3].split()[-6:] == ["0.5", "0.4", "0.1", "NaN", "since", "39"]
    assert "\x1b" not in page.text
    table = lines[lines.index(next(line for line in lines if line.startswith("NODE"))) + 1 :]
    assert table[0].split() == ["n3", "-", "-", "-", "-", "SILENT:", "connect-timed-out"]
    assert table[1].split() == ["n2", "59", "300", "9", "+2", "-", "OLD:", "40.0", "s"]
    assert "not measured on n2: fabric.eth: no /sys\\x1b[31m; twice" in table
    assert "not measured on n1: link errors: no such reading" in table
    assert "not measured on n3: anything: connect-timed-out" in table


def test_what_is_left_out_is_counted() -> None:
    text = top_page(look(report("n1", 0)), look(), 1).text
    assert "1 of 3 ranks, the slowest first" in text
    assert "1 of 3 nodes, silent ones and the hottest first" in text


def test_each_rank_and_node_is_a_row_with_its_moment() -> None:
    page = top_page(look(report("n1", 0)), look(), 1)
    assert [row["row"] for row in page.rows] == ["rank"] * 3 + ["node"] * 3
    assert all(row["job"] == "llm" and row["at"] for row in page.rows)


def test_a_step_too_short_to_be_one_is_not_counted_with() -> None:
    """A rank's file may claim a time whose inverse is no number."""
    assert [view.rank for view in slowest_first([replace(FAST, step_s=1e-320)])] == [FAST.rank]
