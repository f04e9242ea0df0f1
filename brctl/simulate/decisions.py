"""brctl's own rules on what nodes answer: evidence, verdict, next move, guards, approvals.

Nothing here knows what a fault truly is: it may import neither the trace nor the world (an import
contract holds it to that). A verdict is kept by its readings, as the same readings give the same.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from pathlib import Path

from brctl.engine.application.runs import all_playbooks
from brctl.engine.job.conclude import (
    NOTHING,
    Findings,
    JobFindings,
    assess_hang,
    assess_ranks,
    conclude,
    hangs,
    may_be_restarted,
)
from brctl.engine.runs.guard_facts import expanded
from brctl.engine.sweeps.run_checks import assess_node, compare
from brctl.evidence.job.past.outlived import said_in_passing
from brctl.evidence.job.status import goes_on, read_job
from brctl.evidence.logs.catalogue import SHIPPED
from brctl.evidence.stacks.snapshot import RankStack
from brctl.library.checks import load_checks
from brctl.library.guards import SiteGuards, load_guards
from brctl.library.shipped import shipped_dir
from brctl.localise.replay import dual_phase
from brctl.localise.replay_findings import conclude_phases
from brctl.localise.replay_rounds import BAD_ENDS
from brctl.model.errors import UsageError
from brctl.model.inventory import Inventory, Node
from brctl.model.jobs.job import Job
from brctl.model.jobs.job_status import JobStatus
from brctl.model.localisation import FaultKind, GroupResult, RoundReport, Stage
from brctl.model.runs.plan import GuardResult
from brctl.model.runs.playbook import GuardSpec, Json, Need, Playbook
from brctl.model.sweeps.check import Check
from brctl.model.sweeps.report import NodeReport
from brctl.model.sweeps.sweep import Sweep
from brctl.model.verdict import Verdict
from brctl.model.watch.policy import WatchMode, WatchPolicy
from brctl.playbook.approvals import demands_of, strictest
from brctl.playbook.expressions import Scope
from brctl.playbook.guard_facts import GuardFacts
from brctl.playbook.guards import BUILT_IN, DEFAULT_WINDOW, check_guards, guards_for
from brctl.playbook.plan import scope_of
from brctl.playbook.recommend import case_of
from brctl.playbook.run_record import RunRecord
from brctl.playbook.tree import IncidentHistory, Move, next_move

NOT_SIMULATED = frozenset({"maintenance_window", "freeze"})
"""Guards that ask calendars: a simulated day is on none."""


@dataclass(frozen=True, slots=True)
class Readings:
    """What one look at a job found; `name` stands for all of it."""

    name: str
    job: Job
    asked: tuple[str, ...]
    at: datetime
    reports: tuple[NodeReport, ...]
    later: tuple[NodeReport, ...]
    stacks: tuple[RankStack, ...]


@dataclass(frozen=True, slots=True)
class Rules:
    """The playbooks, limits and watcher's policy that decide: a site's, or those built in.

    The built-in watcher may act on every class, up to what its row says and its gates let through.
    """

    playbooks: Mapping[str, Playbook]
    guards: SiteGuards = field(default_factory=SiteGuards)
    watch: WatchPolicy = field(default_factory=lambda: WatchPolicy(mode=WatchMode.ACT))


def rules_of(library_dirs: Sequence[Path] = (), guard_files: Sequence[Path] = ()) -> Rules:
    """A site's rules; without its folders those that come with brctl, and the limit built in.

    Raises:
        ConfigError: A playbook or a limit is wrong.
    """
    return Rules(all_playbooks(library_dirs), load_guards(guard_files))


@lru_cache(maxsize=1)
def _checks() -> Mapping[str, Check]:
    return load_checks([shipped_dir("checks")])


_VERDICTS: dict[str, Verdict] = {}


def verdict_of(readings: Readings) -> Verdict:
    """The likeliest verdict, by what `dx` concludes from such answers."""
    if readings.name not in _VERDICTS:
        _VERDICTS[readings.name] = _decide(readings)
    return _VERDICTS[readings.name]


def _decide(readings: Readings) -> Verdict:
    checks = {name: _checks()[name] for name in readings.asked}
    inventory = Inventory({node: Node(node, node, gpus=1) for node in readings.job.nodes})
    nodes = [assess_node(report, checks, None) for report in readings.reports]
    sweep = Sweep("S-1", 1, readings.asked, readings.at, 1.0, compare(nodes, inventory, None))
    return conclude(sweep, _job_findings(readings, sweep), inventory, readings.at)[0]


def _job_findings(readings: Readings, sweep: Sweep) -> JobFindings:
    """What `dx` asks for besides the sweep, and when it does."""
    status, hang = read_job(readings.job, readings.reports), NOTHING
    if hangs(status, readings.reports):
        status, hang = _hang(readings, status)
    elif may_be_restarted(status):
        again = read_job(readings.job, readings.later)
        status = again if goes_on(status, again) else status
    ranks = assess_ranks(status, sweep, SHIPPED)
    passing = said_in_passing(ranks[0], status)
    later = read_job(readings.job, readings.later) if passing else None
    return JobFindings(status, ranks, hang, later)


def _hang(readings: Readings, status: JobStatus) -> tuple[JobStatus, Findings]:
    later = read_job(readings.job, readings.later)
    return (later, NOTHING) if goes_on(status, later) else assess_hang(status, readings.stacks)


def convicted_by_replay(
    count: int, span: int, fails: Callable[[int, int, Sequence[int]], bool]
) -> tuple[int, ...]:
    """Whom `job.replay` convicts; nobody where a job of so many nodes cannot be replayed.

    A replay fails each time it is run, or never.
    """
    try:
        phases = dual_phase(count, span)
    except UsageError:
        return ()
    names = tuple(map(str, range(count)))
    reports = [
        RoundReport(
            2 * run + stage, Stage.SCREEN,
            tuple(tuple(names[x] for x in group) for group in groups),
            tuple(GroupResult(1, int(fails(stage, n, group))) for n, group in enumerate(groups)),
            0.0,
        )
        for run in range(BAD_ENDS)
        for stage, groups in enumerate((phases.horizontal(), phases.vertical()), 1)
    ]  # fmt: skip
    found = conclude_phases(names, phases, reports).findings
    return tuple(int(name) for f in found if f.kind is FaultKind.NODE for name in f.members)


def move_of(verdict: Verdict, incident: IncidentHistory) -> Move:
    """What the decision tree says comes next."""
    return next_move(case_of(verdict), incident)


@dataclass(frozen=True, slots=True)
class ProposedAction:
    """A playbook on the nodes that a verdict named."""

    playbook: Playbook
    verdict: Verdict
    suspects: tuple[str, ...]

    def scope(self) -> Scope:
        """What guards and approvals may read."""
        inputs: dict[str, Json] = {"suspects": list(self.suspects), "job": self.verdict.job}
        verdict: dict[str, Json] = {
            "id": self.verdict.id, "class": self.verdict.fault.value,
            "confidence": self.verdict.confidence.value, "suspects": list(self.suspects),
            "job": self.verdict.job, "title": self.verdict.title,
        }  # fmt: skip
        job: dict[str, Json] = {"name": self.verdict.job}
        ids = tuple(step.id for step in self.playbook.steps)
        return scope_of(inputs, verdict, job, "", RunRecord(ids))


def with_blast_radius(rules: Rules, most_nodes: int) -> Rules:
    """The rules with another limit of nodes in place of every line of `blast_radius`."""
    line = GuardSpec(
        BUILT_IN.kind, {"max_nodes": most_nodes, "window": DEFAULT_WINDOW}, "simulated"
    )
    kept = (spec for spec in rules.guards.guards if spec.kind != line.kind)
    playbooks = {
        name: replace(one, guards=tuple(g for g in one.guards if g.kind != line.kind))
        for name, one in rules.playbooks.items()
    }
    return replace(rules, playbooks=playbooks,
                   guards=replace(rules.guards, guards=(*kept, line)))  # fmt: skip


def refusals(rules: Rules, plan: ProposedAction, facts: GuardFacts) -> tuple[GuardResult, ...]:
    """Guards that refuse the plan."""
    lines = [
        spec
        for spec in guards_for(plan.playbook, rules.guards.guards)
        if spec.kind not in NOT_SIMULATED
    ]
    specs, broken = expanded(lines, plan.scope())
    return tuple(r for r in (*broken, *check_guards(specs, facts)) if not r.ok)


def people_needed(rules: Rules, plan: ProposedAction) -> Need:
    """How many people must approve."""
    scope = plan.scope()
    return strictest(demands_of(plan.playbook, rules.guards.approval, scope, scope))
