"""Everything the ranks' own numbers say of a job, and what they leave unsaid.

The rank that everybody waits for is the one that is NOT in the collective (faults.md of the field:
compare who joined, not who complains; ByteRobust, arXiv 2509.16293, section 5). Log lines are
judged elsewhere; this room reads the numbers of the `job.ranks` check.
"""

from collections.abc import Iterable

from brctl.evidence.job.absent import absent_ranks, own_code, silent_but_training, silent_nodes
from brctl.evidence.job.booted import booted_since
from brctl.evidence.job.busy_hosts import are_busy, hosts_may_account
from brctl.evidence.job.cpu_waits import cpu_waits
from brctl.evidence.job.data.replays import replays_that_differ
from brctl.evidence.job.data.slow_ranks import not_told_apart, slow_ranks
from brctl.evidence.job.data.uneven import uneven_steps
from brctl.evidence.job.ends import exits, first_ends, leaving
from brctl.evidence.job.history import jumps, slower
from brctl.evidence.job.kernel_waits import held_back
from brctl.evidence.job.late.odd_settings import odd_settings
from brctl.evidence.job.late.stragglers import stragglers
from brctl.evidence.job.long_phases import at_work
from brctl.evidence.job.network.assess import assess_network
from brctl.evidence.job.numbers import non_finite
from brctl.evidence.job.pace import patience_s
from brctl.evidence.job.scheduler import scheduler_reasons, why_not_running
from brctl.evidence.job.signals import told_to_stop
from brctl.evidence.job.status import DONE_PHASE, PAUSE_SHARE
from brctl.evidence.job.storage import storage
from brctl.evidence.job.wrong_numbers import kinds_not_compared, wrong_numbers
from brctl.model.evidence import Evidence, Gap, Subject
from brctl.model.evidence_kinds import RANKS_CHECK
from brctl.model.jobs.job_status import JobStatus, RankView
from brctl.model.sweeps.report import NodeReport


def assess_job(status: JobStatus, reports: Iterable[NodeReport]) -> tuple[Evidence, ...]:
    """Evidence from the ranks' own numbers; empty while the job makes even progress."""
    outcomes = {report.node: report for report in reports}
    network = assess_network(status, outcomes.values())
    busy = are_busy(outcomes.values())
    late = tuple(_late_ranks(status, busy))
    found = [
        *network,
        *storage(status, outcomes.values()),
        *non_finite(status),
        *wrong_numbers(status),
        *jumps(status),
        *slower(status, busy),
        *uneven_steps(status, busy),
        *hosts_may_account(status, outcomes.values()),
        *late,
        *odd_settings(status, outcomes.values(), late),
        *cpu_waits(status, outcomes.values(), busy),
        *held_back(status),
        *replays_that_differ(status),
    ]
    found += scheduler_reasons(status)
    if status.stalled is False and not status.ended:
        found += silent_but_training(status)
    if status.stalled is not False:
        found += [*silent_nodes(status, outcomes), *absent_ranks(status, outcomes)]
        found += [*exits(status), *leaving(status), *own_code(status, outcomes)]
        found += first_ends(status)
        found += told_to_stop(status)
        found += booted_since(status, outcomes)
    return tuple(found)


def _late_ranks(status: JobStatus, busy: bool) -> Iterable[Evidence]:
    """By the ranks' ledgers where these tell; else by who waits least."""
    found = slow_ranks(status, busy)
    return stragglers(status, busy) if found is None else found


def job_gaps(status: JobStatus, gaps: Iterable[Gap]) -> tuple[Gap, ...]:
    """What cannot be known of the job yet, said once: by another gap of the node or here."""
    explained = {gap.subject.node for gap in gaps}
    reasons = why_not_running(status)
    unread = [
        Gap(
            Subject(view.node, f"rank:{view.rank}"),
            RANKS_CHECK,
            f"{what} was not read{reasons.get(view.rank, '')}",
        )
        for view in status.ranks
        if view.node not in explained and (what := _unread(view))
    ]
    apart = (*not_told_apart(status), *_not_compared(status))
    return (*unread, *_pause(status), *_long_work(status), *apart)


def _not_compared(status: JobStatus) -> Iterable[Gap]:
    """Where numbers are wrong: whose bits nobody could compare, and why nobody asks them to."""
    if any((*non_finite(status), *wrong_numbers(status), *jumps(status))):
        for why in kinds_not_compared(status):
            yield Gap(Subject(""), RANKS_CHECK, why)


def _long_work(status: JobStatus) -> Iterable[Gap]:
    """A rank at work may only need more time: until it is done nobody knows."""
    if status.stalled:
        for rank, why in at_work(status).items():
            yield Gap(
                Subject(status.job.node_of(rank), f"rank:{rank}"), RANKS_CHECK, f"{why}: look again"
            )


def _pause(status: JobStatus) -> Iterable[Gap]:
    """A pause on its way to a stall is too early for a verdict, and no proof of health."""
    age_s, limit_s = status.progress_age_s or 0.0, patience_s(status)
    at_work = any(view.alive and view.phase != DONE_PHASE for view in status.ranks)
    if status.stalled is False and at_work and age_s > limit_s * PAUSE_SHARE:
        why = f"no rank made progress for {age_s:.1f} s; after {limit_s:g} s this is a stall"
        yield Gap(Subject(""), RANKS_CHECK, f"{why}: look again then")


def _unread(view: RankView) -> str:
    if view.alive is None:
        return "whether it runs"
    if view.alive and view.progress_age_s is None:
        return "its progress"
    return "which of its numbers are wrong" if view.has_unread_numbers else ""
