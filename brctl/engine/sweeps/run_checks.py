"""Run checks on nodes and judge the answers: the one way every command looks at nodes."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from brctl.engine.controller.readonly import refuse_readonly
from brctl.engine.controller.wiring import Controller
from brctl.engine.sweeps.busy_nodes import nodes_of_jobs, refuse_busy
from brctl.engine.sweeps.pair_check import askable, probed, with_pairs
from brctl.engine.sweeps.sweep_store import latest_reports, save
from brctl.evidence.assess import assess
from brctl.evidence.baseline import Baseline, assess_baseline
from brctl.evidence.gpu_names import name_gpus
from brctl.evidence.peers import assess_peers
from brctl.library.parameters import fill_parameters
from brctl.model.errors import UsageError, did_you_mean
from brctl.model.evidence import Evidence, Gap
from brctl.model.inventory import Inventory, Node
from brctl.model.jobs.job import Job
from brctl.model.sweeps.check import Check
from brctl.model.sweeps.report import NodeReport
from brctl.model.sweeps.sweep import NodeHealth, Sweep
from brctl.sweep.stream import sweep
from brctl.verdict.health import judge_node

Progress = Callable[[NodeHealth], None]


@dataclass(frozen=True, slots=True)
class Question:
    """What to ask: which checks, of which job the nodes are.

    Attributes:
        level: Highest level of the checks that run; 1 is safe beside a job.
        pattern: Shell-style pattern of check names; a check named exactly runs whatever its
            profile.
        profile: Only checks of this profile; a level above 1 adds the heavier ones of any.
        job: Its ranks and directories are asked about on its own nodes.
        heavy: Of the checks above level 1 these alone; empty for all of them.
    """

    level: int = 1
    pattern: str = "*"
    profile: str = "sweep"
    job: Job | None = None
    heavy: tuple[str, ...] = ()


def choose_checks(checks: Mapping[str, Check], question: Question) -> dict[str, Check]:
    """The checks a question means: up to its level, of its pattern.

    Raises:
        UsageError: No check matches.
    """
    chosen = {
        name: check
        for name, check in checks.items()
        if check.level <= question.level
        and fnmatchcase(name, question.pattern)
        and (check.level > 1 or name == question.pattern or question.profile in check.profiles)
        and (question.job is not None or "job" not in check.needs)
        and (check.level == 1 or not question.heavy or name in question.heavy)
    }
    if not chosen:
        raise _no_check(checks, question)
    return chosen


def _no_check(checks: Mapping[str, Check], question: Question) -> UsageError:
    """Which part of the question leaves nothing, and what would not."""
    level, pattern, profile = question.level, question.pattern, question.profile
    named = {name: check for name, check in checks.items() if fnmatchcase(name, pattern)}
    profiles = {known for check in checks.values() for known in check.profiles}
    if not named:
        return UsageError(f"no check matches {pattern!r}; {did_you_mean(pattern, checks)}")
    if profile not in profiles:
        near = did_you_mean(profile, profiles)
        return UsageError(f"no check matches: there is no profile {profile!r}; {near}")
    text = f"no check matches {pattern!r} of profile {profile} up to level {level}"
    lowest = min(check.level for check in named.values())
    if lowest > level:
        return UsageError(text, hint=f"--level {lowest} takes {', '.join(named)}")
    return UsageError(
        text, hint=f"brctl check list; {', '.join(named)} may need --job, or its full name"
    )


def refuse_heavy_on_busy(
    controller: Controller, names: Sequence[str], question: Question, *, hint: str
) -> None:
    """Checks that load a machine are not for nodes that carry ranks.

    Raises:
        GuardError: A check above level 1, or a disruptive one, meets a node with a job on it.
    """
    chosen = choose_checks(controller.checks, question).values()
    if any(check.level > 1 or check.disruptive for check in chosen):
        refuse_busy(nodes_of_jobs(controller), names, hint=hint)


async def sweep_nodes(
    controller: Controller,
    names: Sequence[str],
    question: Question,
    on_node: Progress | None = None,
) -> Sweep:
    """Ask nodes and judge each as it answers; every name appears in the result exactly once."""
    started_at = controller.now()
    checks = askable(choose_checks(controller.checks, question), names, question.pattern)
    heavy = sorted(name for name, check in checks.items() if check.level > 1)
    if heavy:
        refuse_readonly(controller.settings, f"check {heavy[0]}")
    nodes = controller.inventory.pick(names)
    judged: dict[str, NodeHealth] = {}
    past = controller.past
    before = past.reports() if past is not None else latest_reports(controller.state_dir)
    async with AsyncExitStack() as stack:
        stream = sweep(
            controller.transport,
            nodes,
            probed(checks),
            lambda node, check: fill_parameters(check, node, _job_on(node, question.job)),
            limit=controller.settings.ssh.fanout,
            root=controller.settings.ssh.root,
            now=controller.now,
        )
        stack.push_async_callback(stream.aclose)
        async for report in stream:
            chosen = probed(_chosen_for(checks, report.node, question))
            judged[report.node] = assess_node(report, chosen, before.get(report.node))
            if on_node is not None:
                on_node(judged[report.node])
    if any(check.together for check in checks.values()):
        reports = await with_pairs(controller, [judged[name].report for name in names], checks)
        judged = {
            r.node: assess_node(r, _chosen_for(checks, r.node, question), before.get(r.node))
            for r in reports
        }
    result = Sweep(
        id=f"S-{started_at:%Y%m%dT%H%M%S%f}"[:-3],
        level=question.level,
        checks=tuple(sorted(checks)),
        started_at=started_at,
        seconds=(controller.now() - started_at).total_seconds(),
        nodes=compare([judged[name] for name in names], controller.inventory, controller.baseline),
    )
    save(controller.state_dir, result)
    return result


def assess_node(
    report: NodeReport, checks: Mapping[str, Check], previous: NodeReport | None
) -> NodeHealth:
    """One node's report as evidence, gaps and a state; counters grow since the previous one."""
    answers = tuple(result for result in report.results if result.check in checks)
    report = replace(report, results=answers)
    assessment = assess(report, checks, previous)
    return judge_node(report, assessment.evidence, assessment.gaps)


def compare(
    nodes: Sequence[NodeHealth], inventory: Inventory, baseline: Baseline | None
) -> tuple[NodeHealth, ...]:
    """The nodes, judged once more beside their peers and what was normal when it was learned."""
    model = {name: node.labels.get("gpu_model", "") for name, node in inventory.nodes.items()}
    found = assess_peers([node.report for node in nodes], lambda name: model.get(name, ""))
    evidence: dict[str, list[Evidence]] = {}
    if baseline is not None:
        for node in nodes:
            usual = assess_baseline(node.report, baseline, model.get(node.node, ""))
            evidence.setdefault(node.node, []).extend(usual)
    gaps: dict[str, list[Gap]] = {}
    for item in found.evidence:
        evidence.setdefault(item.subject.node, []).append(item)
    for gap in found.gaps:
        gaps.setdefault(gap.subject.node, []).append(gap)
    return tuple(
        judge_node(
            node.report,
            (*node.evidence, *name_gpus(node.report, evidence.get(node.node, ()))),
            (*node.gaps, *name_gpus(node.report, gaps.get(node.node, ()))),
        )
        for node in nodes
    )


def _job_on(node: Node, job: Job | None) -> Job | None:
    return job if job is not None and node.name in job.nodes else None


def _chosen_for(checks: Mapping[str, Check], node: str, question: Question) -> Mapping[str, Check]:
    """The checks this node was asked: job checks only where the job has ranks."""
    if question.job is not None and node in question.job.nodes:
        return checks
    return {name: check for name, check in checks.items() if "job" not in check.needs}
