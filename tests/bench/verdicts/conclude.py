"""From a fleet's answers to verdicts and the next move, by the code that `dx` runs after asking."""

from collections.abc import Mapping
from functools import cache

from brctl.engine.job.conclude import (
    NOTHING,
    Findings,
    JobFindings,
    assess_dumps,
    assess_hang,
    assess_ranks,
    hangs,
    may_be_restarted,
)
from brctl.engine.job.conclude import (
    conclude as verdicts_of,
)
from brctl.engine.sweeps.run_checks import Question, assess_node, choose_checks, compare
from brctl.evidence.flight.dump import parse_dump
from brctl.evidence.job.ends import raised
from brctl.evidence.job.past.outlived import said_in_passing
from brctl.evidence.job.status import goes_on, read_job
from brctl.evidence.logs.catalogue import SHIPPED
from brctl.library.checks import load_checks
from brctl.library.shipped import shipped_dir
from brctl.model.inventory import Inventory, Node
from brctl.model.jobs.job_status import JobStatus
from brctl.model.sweeps.check import Check
from brctl.model.sweeps.sweep import Sweep
from brctl.model.verdict import Verdict
from brctl.playbook.recommend import recommend
from tests.bench.verdicts.fleet import NOW, Fleet


@cache
def checks() -> Mapping[str, Check]:
    return load_checks([shipped_dir("checks")])


def conclude(fleet: Fleet) -> tuple[Verdict, ...]:
    """The verdicts with their moves, likeliest first."""
    asked = choose_checks(checks(), Question(level=1, job=fleet.job))
    inventory = Inventory(
        {node: Node(node, node, gpus=2, labels=_labels(fleet, node)) for node in fleet.nodes}
    )
    nodes = [assess_node(report, asked, None) for report in fleet.reports()]
    sweep = Sweep("S-1", 1, tuple(asked), NOW, 1.0, compare(nodes, inventory, None))
    decided = verdicts_of(sweep, _examine(fleet, sweep), inventory, NOW)
    return tuple(recommend(verdict) for verdict in decided)


def _examine(fleet: Fleet, sweep: Sweep) -> JobFindings:
    """What `dx` asks for besides the sweep, and when it does."""
    reports = [node.report for node in sweep.nodes]
    status, hang = read_job(fleet.job, reports), NOTHING
    if hangs(status, reports):
        status, hang = _examine_hang(fleet, status)
    elif may_be_restarted(status):
        again = read_job(fleet.job, fleet.reports_later())
        status = again if goes_on(status, again) else status
    ranks = assess_ranks(status, sweep, SHIPPED)
    later = None
    if said_in_passing(ranks[0], status):
        later = read_job(fleet.job, fleet.reports_later())
    return JobFindings(status, ranks, hang, later)


def _examine_hang(fleet: Fleet, status: JobStatus) -> tuple[JobStatus, Findings]:
    """A second look, the stacks, and the dumps where the job keeps any."""
    later = read_job(fleet.job, fleet.reports_later())
    if goes_on(status, later):
        return later, NOTHING
    status, (seen, unseen) = assess_hang(status, fleet.rank_stacks())
    if not fleet.dumps or raised(status):
        return status, (seen, unseen)
    dumps = [parse_dump(rank, data) for rank, data in fleet.dumps.items()]
    dumped, undumped = assess_dumps(status, dumps, (), NOW)
    return status, ((*seen, *dumped), (*unseen, *undumped))


def _labels(fleet: Fleet, node: str) -> dict[str, str]:
    return {"leaf": fleet.leaves[node], "gpu_model": fleet.models.get(node, "H100")}
