"""Which step of a job is whole in memory, and what may be lost before it is not."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from brctl.evidence.job.kept_steps import CHECK, KeptStep, KeptSteps, read_kept_steps
from brctl.model.command import Outcome
from brctl.model.jobs.job import Job, example_job
from brctl.model.sweeps.report import CheckResult, Measurement, NodeReport, ProbeStatus, Value
from brctl.training.checkpoints.layout import Layout
from brctl.training.checkpoints.placement import Backups, next_machine, place_backups
from brctl.view.job.kept_steps import kept_steps_lines

JOB = example_job()
"""Eight ranks on n1 to n8, tp=2 pp=2 dp=2."""
LAYOUT = Layout(JOB.axes, JOB.ranks_per_node)
Row = tuple[int, bool, int, int]


def report(node: str, rows: Sequence[Row], *more: Measurement) -> NodeReport:
    """A node that keeps these: rank, whether it runs there, attempt, step."""
    measured: list[Measurement] = []
    for number, (rank, own, attempt, step) in enumerate(rows):
        values: dict[str, Value] = {"rank": rank, "own": own, "attempt": attempt, "step": step}
        measured += [
            Measurement(f"job.slots.{name}", f"slot:{number}", value)
            for name, value in values.items()
        ]
    result = CheckResult(CHECK, ProbeStatus.MEASURED, (*measured, *more))
    return NodeReport(node, Outcome.ANSWERED, (result,))


def placed(backups: Backups, step: int = 40, job: Job = JOB) -> list[NodeReport]:
    """What each node answers when every rank has this step at home and with its backup."""
    rows: dict[str, list[Row]] = {node: [] for node in job.nodes}
    for rank, keeper in enumerate(backups):
        rows[job.node_of(rank)].append((rank, True, 1, step))
        rows[job.node_of(keeper)].append((rank, False, 1, step))
    return [report(node, found) for node, found in rows.items()]


def kept(reports: Sequence[NodeReport]) -> KeptSteps:
    return read_kept_steps(JOB, reports)


def test_with_the_paper_s_placement_any_node_and_any_group_may_go() -> None:
    """Table of section 4, first row: TP2 PP2 DP2 on eight machines."""
    found = kept(placed(place_backups(LAYOUT).backups))
    assert found.newest() == KeptStep(1, 40)
    assert [(kind, lost) for kind, lost, _ in found.lost_with()] == [
        ("node", 0), ("tp", 0), ("pp", 0), ("dp", 0),
    ]  # fmt: skip
    for axis in ("tp", "pp", "dp"):
        for group in JOB.groups(axis):
            assert found.newest([JOB.node_of(rank) for rank in group]) == KeptStep(1, 40)


def test_with_the_next_machine_as_backup_groups_of_neighbours_lose_their_steps() -> None:
    """What peers' default would do: the line names it before a group is evicted."""
    found = kept(placed(next_machine(LAYOUT)))
    assert dict((kind, lost) for kind, lost, _ in found.lost_with())["tp"] == 4
    assert found.newest(["n1", "n2"]) is None
    assert found.uncopied(["n1", "n2"]) == (0,)
    text = "\n".join(kept_steps_lines(found, ["n1", "n2"]))
    assert "with these goes the only copy of a rank: 4 of 4 tp groups" in text
    assert "without n[1-2]: no copy of rank 0 in memory" in text


def test_the_newest_step_of_all_ranks_is_chosen_never_a_mixture() -> None:
    """One rank is a step behind: all go back to the step that it has."""
    reports = placed(place_backups(LAYOUT).backups, 41)
    behind = {JOB.node_of(3), JOB.node_of(place_backups(LAYOUT).backups[3])}
    both = [report("x", []) if r.node in behind else r for r in reports]
    older = placed(place_backups(LAYOUT).backups, 40)
    assert kept([*both, *(replace(r, node=f"{r.node}-") for r in older)]).newest() == KeptStep(
        1, 40
    )


def test_a_later_attempt_is_newer_whatever_its_step() -> None:
    """A machine back from repair may hold step 50 of an attempt that was thrown away."""
    job = replace(JOB, nodes=("n1",), axes=(("dp", 1),))
    found = read_kept_steps(job, [report("n1", [(0, True, 1, 50), (0, True, 2, 44)])])
    assert found.newest() == KeptStep(2, 44)


def test_a_step_that_led_to_nan_is_not_offered_again() -> None:
    """Whichever node wrote it down."""
    backups = place_backups(LAYOUT).backups
    struck = Measurement("job.slots.never", "never:1-41", "1-41")
    reports = [*placed(backups, 41), report("n1", [], struck), *placed(backups, 40)]
    assert kept(reports).newest() == KeptStep(1, 40)


def test_silence_is_not_emptiness() -> None:
    """A node that gave no answer may hold the only copy: it is named."""
    reports = placed(next_machine(LAYOUT))
    reports[0] = NodeReport("n1", Outcome.UNREACHABLE, detail="no answer in 5 s")
    found = kept(reports)
    assert list(found.silent) == ["n1"]
    assert any(line.startswith("UNKNOWN what n1 keep") for line in kept_steps_lines(found, []))


@pytest.mark.parametrize(
    "row",
    [(9, True, 1, 40), (-1, True, 1, 40), (0, True, -1, 40), (0, True, 1, 1 << 70)],
    ids=["no such rank", "negative rank", "negative attempt", "endless step"],
)
def test_what_no_rank_wrote_is_not_believed(row: Row) -> None:
    """A node says what it likes."""
    assert kept([report("n1", [row])]).slots == ()


def test_a_damaged_slot_counts_for_nothing() -> None:
    """Its reading says so; the copy elsewhere is used."""
    damaged = Measurement("job.slots.sound", "slot:0", value=False)
    assert kept([report("n1", [(0, True, 1, 40)], damaged)]).slots == ()
