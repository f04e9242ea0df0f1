"""From a fleet's answers to verdicts and the next move, by the code that `dx` runs after asking."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache

from brctl.engine.job.diagnose import assess_job_logs, collect, hangs, scene_of
from brctl.engine.sweeps.run_checks import Question, choose_checks, compare, judge
from brctl.evidence.job.long_phases import excused
from brctl.evidence.job.status import read_job, with_stacks
from brctl.evidence.logs.catalogue import SHIPPED
from brctl.evidence.logs.signature import Signature
from brctl.evidence.stacks.analyse import analyse_stacks
from brctl.evidence.stacks.node_evidence import assess_stacks
from brctl.library.checks import load_checks
from brctl.library.shipped import shipped_dir
from brctl.model.inventory import Inventory, Node
from brctl.model.sweeps.check import Check
from brctl.model.sweeps.sweep import Sweep
from brctl.model.verdict import Verdict
from brctl.playbook.recommend import recommend
from brctl.verdict.decide import decide
from tests.bench.verdicts.fleet import NOW, Fleet


@dataclass(frozen=True, slots=True)
class PureController:
    """The little of a controller that reading a job's words needs."""

    log_signatures: Sequence[Signature] = SHIPPED

    def now(self) -> datetime:
        return NOW


@cache
def checks() -> Mapping[str, Check]:
    return load_checks([shipped_dir("checks")])


def conclude(fleet: Fleet) -> tuple[Verdict, ...]:
    """The verdicts with their moves, likeliest first."""
    asked = choose_checks(checks(), Question(level=1, job=fleet.job))
    inventory = Inventory(
        {node: Node(node, node, gpus=2, labels=_labels(fleet, node)) for node in fleet.nodes}
    )
    nodes = [judge(report, asked, None) for report in fleet.reports()]
    sweep = Sweep("S-1", 1, tuple(asked), NOW, 1.0, compare(nodes, inventory, None))
    status = read_job(fleet.job, [node.report for node in sweep.nodes])
    evidence, gaps = collect(sweep)
    if hangs(status):
        status = with_stacks(status, fleet.rank_stacks())
        analysis = analyse_stacks(fleet.rank_stacks(), fleet.job)
        evidence += assess_stacks(analysis, fleet.job, excused(status))
    logs, unread = assess_job_logs(PureController(), status, sweep, gaps)  # type: ignore[arg-type]  # all it uses
    evidence, gaps = (*evidence, *logs), (*gaps, *unread)
    decided = decide(evidence, gaps, scene_of(status, inventory, NOW))
    return tuple(recommend(verdict) for verdict in decided)


def _labels(fleet: Fleet, node: str) -> dict[str, str]:
    return {"leaf": fleet.leaves[node], "gpu_model": "H100"}
