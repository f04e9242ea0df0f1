"""From what was read of nodes and their job to verdicts: all of a diagnosis that asks nobody.

`diagnose` reads and concludes here; the bench of verdicts invents the readings and concludes here
too, so that what it measures is what users get.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from types import MappingProxyType

from brctl.engine.job.flight import analyse_dumps
from brctl.engine.job.split_groups import split_groups
from brctl.evidence.flight.dump import Dump
from brctl.evidence.flight.node_evidence import assess_flight, is_of_this_pause
from brctl.evidence.job.assess import assess_job, job_gaps
from brctl.evidence.job.history import usual_pace
from brctl.evidence.job.kernel_waits import served_alone
from brctl.evidence.job.late.own_hints import why_late
from brctl.evidence.job.long_phases import excused
from brctl.evidence.job.missing import left_over
from brctl.evidence.job.network.leaf_border import at_the_border_of_a_leaf
from brctl.evidence.job.pace import patience_s
from brctl.evidence.job.past.outlived import not_outlived, of_this_job, outlived
from brctl.evidence.job.past.shared_states import without_shared_states
from brctl.evidence.job.past.waits import with_waits_that_ended, without_past_waits
from brctl.evidence.job.status import with_stacks
from brctl.evidence.logs.rank_logs import RankLog, assess_log_lines
from brctl.evidence.logs.signature import Signature
from brctl.evidence.reach import unreached_together
from brctl.evidence.stacks.analyse import analyse_stacks
from brctl.evidence.stacks.node_evidence import assess_stacks
from brctl.evidence.stacks.snapshot import RankStack
from brctl.model.evidence import Evidence, Gap, Role, Subject, Weight
from brctl.model.evidence_kinds import AILING, FLIGHT_RECORDER, STACKS_CHECK
from brctl.model.inventory import Inventory
from brctl.model.jobs.job_status import JobStatus, RankView
from brctl.model.sweeps.report import NodeReport
from brctl.model.sweeps.sweep import Health, Sweep
from brctl.model.verdict import Verdict
from brctl.sweep.problems import reason_of
from brctl.verdict.decide import DecisionContext, decide

Findings = tuple[tuple[Evidence, ...], tuple[Gap, ...]]
NOTHING: Findings = ((), ())


@dataclass(frozen=True, slots=True)
class JobFindings:
    """What a job's own readings suggest.

    Attributes:
        ranks: From what its ranks did and printed.
        hang: From stacks and dumps, where its ranks stand still.
        later: Its ranks asked a second time, where what they printed made that necessary.
    """

    status: JobStatus
    ranks: Findings
    hang: Findings = NOTHING
    later: JobStatus | None = None


def conclude(
    sweep: Sweep,
    job: JobFindings | None,
    inventory: Inventory,
    now: datetime,
    others: Sequence[NodeReport] = (),
    against: Mapping[str, tuple[str, str]] = MappingProxyType({}),
    unusable: Mapping[str, str] = MappingProxyType({}),
) -> tuple[Verdict, ...]:
    """The verdicts, likeliest first and without their next moves.

    Args:
        sweep: What its nodes answered.
        job: What their job's own readings suggest.
        inventory: All nodes there are.
        now: The moment of the decision.
        others: Nodes beside those of the sweep, asked only whether they are reached.
        against: Check and sentence of nodes that `status` shows a warning or worse of.
        unusable: Checks of the site that were not asked, and why they cannot be.
    """
    evidence, gaps = collect(sweep)
    gaps += tuple(Gap(Subject(""), name, f"left out: {why}") for name, why in unusable.items())
    reports = [node.report for node in sweep.nodes]
    unreached = unreached_together((*reports, *others), inventory.nodes)
    ailing = _ailing(sweep, against)
    if job is None:
        leaves = _leaves(inventory, [report.node for report in reports])
        context = DecisionContext(now, leaves=leaves, unreached=unreached, ailing=ailing)
        return decide(evidence, gaps, context)
    evidence = of_this_job(evidence, job.status, reports)
    evidence = without_past_waits(evidence, job.status, now)
    evidence = without_shared_states(evidence, job.status, now)
    evidence = with_waits_that_ended(evidence, job.status, now)
    of_ranks, unread = job.ranks
    if job.later is not None:
        of_ranks = outlived(of_ranks, job.status, job.later)
        unread = (*unread, *not_outlived(job.status, job.later))
    leaves = _leaves(inventory, job.status.job.nodes)
    of_ranks = at_the_border_of_a_leaf(of_ranks, job.status, reports, leaves)
    of_ranks = (*of_ranks, *split_groups(of_ranks, job.status, inventory))
    of_hang, unseen = job.hang
    return decide(
        why_late((*evidence, *of_ranks, *of_hang)),
        (*gaps, *unread, *unseen),
        replace(_context(job.status, inventory, now), unreached=unreached, ailing=ailing),
    )


def _ailing(sweep: Sweep, against: Mapping[str, tuple[str, str]]) -> tuple[Evidence, ...]:
    """What stands against nodes, whatever it means for the job."""
    bad = (Health.WARNING, Health.CRITICAL)
    found = {node.node: reason_of(node) for node in sweep.nodes if node.health in bad}
    return tuple(
        Evidence(
            kind=AILING,
            subject=Subject(""),
            weight=Weight.CONTEXT,
            fault=None,
            role=Role.CONTEXT,
            source=check,
            text=f"{node} {detail}",
        )
        for node, (check, detail) in sorted({**against, **found}.items())
    )


def collect(sweep: Sweep) -> Findings:
    """Everything the nodes of a sweep say, and everything they leave unsaid."""
    evidence = [item for node in sweep.nodes for item in node.evidence]
    gaps = [gap for node in sweep.nodes for gap in node.gaps]
    return tuple(evidence), tuple(gaps)


def hangs(status: JobStatus, reports: Iterable[NodeReport]) -> bool:
    """It stands still, and what a rank stands in may tell why: none ended, or some are left over.

    Ranks whose watchdogs ended them waited for one that lives, and it is still where it was.
    """
    if not status.stalled or not any(view.alive for view in status.ranks):
        return False
    return not _ended(status) or bool(left_over(status, {r.node: r for r in reports}))


def _ended(status: JobStatus) -> list[RankView]:
    return [view for view in status.ranks if view.alive is False]


def assess_ranks(status: JobStatus, sweep: Sweep, signatures: Sequence[Signature]) -> Findings:
    """What the job's ranks did and printed, and what is not known of them."""
    advancing = status.stalled is False and all(view.alive is True for view in status.ranks)
    texts = [_rank_text(view) for view in status.ranks]
    evidence = (
        *assess_job(status, [node.report for node in sweep.nodes]),
        *assess_log_lines(texts, signatures, advancing=advancing),
    )
    return evidence, job_gaps(status, collect(sweep)[1])


def assess_hang(status: JobStatus, stacks: Sequence[RankStack]) -> tuple[JobStatus, Findings]:
    """The job with the places its ranks stand in, and what those say; too few are a gap.

    Ranks that are left over have nobody to be compared with: their places say it alone.
    """
    status = with_stacks(status, stacks)
    if _ended(status):
        return status, NOTHING
    analysis = analyse_stacks(stacks, status.job)
    if len(analysis.silent) * 2 > status.job.world_size:
        why = f"{len(analysis.silent)} of {status.job.world_size} ranks gave no stack"
        return status, ((), (Gap(Subject(""), STACKS_CHECK, why),))
    found = assess_stacks(analysis, status.job, excused(status), served_alone(status))
    return status, (found, ())


def assess_dumps(
    status: JobStatus, dumps: Sequence[Dump], notes: Sequence[str], now: datetime
) -> Findings:
    """What the flight recorders of a job that stands still say, if they are of this pause."""
    if not dumps or is_of_this_pause(dumps, status, now.timestamp()):
        return assess_flight(analyse_dumps(dumps, notes, status.job), excused(status)), ()
    why = "the ranks' dumps were written before the job came to stand: they say nothing of it"
    return (), (Gap(Subject(""), FLIGHT_RECORDER, why),)


def may_be_restarted(status: JobStatus) -> bool:
    """Some ranks ended, others make progress: some nodes may have answered before a new start."""
    age_s, limit_s = status.progress_age_s, patience_s(status)
    ended = any(view.exit_status is not None for view in status.ranks)
    return ended and any(v.alive for v in status.ranks) and age_s is not None and age_s < limit_s


def _rank_text(view: RankView) -> RankLog:
    return RankLog(view.rank, view.node, view.last_words, view.exit_status, view.alive)


def _context(status: JobStatus, inventory: Inventory, now: datetime) -> DecisionContext:
    """What is known of a job besides the evidence."""
    return DecisionContext(
        decided_at=now,
        job=status.job.name,
        job_step=status.step,
        stalled=status.stalled,
        ranks={node: status.job.ranks_on(node) for node in status.job.nodes},
        usual_pace=usual_pace(status),
        leaves=_leaves(inventory, status.job.nodes),
    )


def _leaves(inventory: Inventory, names: Iterable[str]) -> Mapping[str, str]:
    """The leaf of each node whose labels name one."""
    nodes = inventory.pick(name for name in names if name in inventory.nodes)
    return {node.name: node.labels["leaf"] for node in nodes if "leaf" in node.labels}
