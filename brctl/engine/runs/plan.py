"""Observe and plan for real: what a playbook would do now, what the guards say, who must agree."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from brctl.actions.context import RunContext
from brctl.actions.contract import ActionFailed
from brctl.actions.registry import action_of
from brctl.engine.runs.guard_facts import (
    Guarding,
    GuardQuestion,
    demands_by_guards,
    refusal,
    way_out,
)
from brctl.engine.runs.node_facts import facts_for, verdicts_of
from brctl.engine.runs.run_files import RunInputs
from brctl.model.errors import GuardError, UsageError, did_you_mean
from brctl.model.jobs.job import Job
from brctl.model.nodeset import fold
from brctl.model.runs.plan import Change, Plan, PlannedStep, Sign
from brctl.model.runs.playbook import Arguments, InputType, Json, Playbook, Step
from brctl.model.verdict import Verdict
from brctl.playbook.approvals import Demand, demands_of
from brctl.playbook.assemble import Observed, plan_of, skip_reason
from brctl.playbook.expressions import ExpressionError, Scope
from brctl.playbook.node_runs import Waves, instance_of, waves_of
from brctl.playbook.overrides import Override
from brctl.playbook.plan import (
    arguments_of,
    gives_back,
    job_scope,
    nodes_named,
    nodes_taken,
    read_input,
    scope_of,
    verdict_scope,
)
from brctl.playbook.run_record import RunRecord, blank_record

NODES_AT_ONCE = 8
"""Nodes of `for_each` that are planned side by side; some verbs ask the scheduler each time."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A playbook ready to run: nothing was changed yet."""

    playbook: Playbook
    inputs: RunInputs
    plan: Plan


async def prepare(
    context: RunContext,
    playbook: Playbook,
    verdict: Verdict | None = None,
    settings: Mapping[str, Json] | None = None,
    override: Override | None = None,
) -> Prepared:
    """Resolve inputs, look at the world, plan every step and ask the guards.

    Raises:
        UsageError: An input is missing, unknown or does not fit.
    """
    inputs = await resolve_inputs(context, playbook, verdict, settings or {})
    scope = scope_of(inputs.inputs, inputs.verdict, inputs.job, "", blank_record(playbook))
    waves = waves_of(playbook, scope)
    node_runs = [node for wave in waves for node in wave]
    _refuse_strangers(context, [node for node in node_runs if node])
    inputs = replace(inputs, verdicts=verdicts_of(context.state_dir, list(filter(None, node_runs))))
    blank = blank_record(playbook, waves)
    planner = _Planner(context, playbook, inputs, blank)
    planned = await asyncio.gather(*(planner.plan(node) for node in node_runs))
    steps = [step for node_run in planned for step in node_run]
    taken = nodes_taken(playbook, [planner.scopes[node] for node in node_runs])
    guarding = Guarding(context, playbook, blank, override)
    guards = await guarding.check(GuardQuestion(inputs, scope, taken, planner.at_once(waves)))
    demands = (*demands_on(context, playbook, scope), *demands_by_guards(guards))
    addresses = _addresses(context, playbook, inputs.inputs, steps)
    found = Observed(tuple(steps), guards, demands, waves, context.clock.now(), addresses)
    plan = plan_of(playbook, inputs.inputs, inputs.verdict_id, blank, found)
    return Prepared(playbook, inputs, plan)


def _addresses(
    context: RunContext, playbook: Playbook, inputs: Arguments, steps: Sequence[PlannedStep]
) -> dict[str, str]:
    """Of the nodes that are named, and of those that the changes are about: standbys too."""
    subjects = {change.subject for step in steps for change in step.changes}
    touched = sorted(subjects.union(nodes_named(playbook, inputs)) & set(context.inventory.nodes))
    return {name: context.inventory.nodes[name].address for name in touched}


def refuse_guarded(prepared: Prepared) -> None:
    """End here when a guard says no: nothing has changed.

    Raises:
        GuardError: With number, limit, file, line and the way out.
    """
    problem = refusal(prepared.plan.guards)
    if problem:
        raise GuardError(
            f"refused by {problem}. Nothing changed.", hint=way_out(prepared.plan.guards)
        )


def demands_on(context: RunContext, playbook: Playbook, scope: Scope) -> tuple[Demand, ...]:
    """Who must say yes: what the playbook asks for, and every file of the site."""
    inputs = scope["inputs"]
    named = nodes_named(playbook, inputs if isinstance(inputs, Mapping) else {})
    site_scope: Scope = {
        "verdict": scope["verdict"],
        "job": scope["job"],
        "nodes": len(named),
        "playbook": playbook.name,
    }
    return demands_of(playbook, context.guards.approval, scope, site_scope)


async def resolve_inputs(
    context: RunContext, playbook: Playbook, verdict: Verdict | None, settings: Mapping[str, Json]
) -> RunInputs:
    """Values for every input: what was set, then the verdict's, then the default."""
    for name in settings:
        if name not in playbook.inputs:
            problem = did_you_mean(name, playbook.inputs)
            raise UsageError(f"{playbook.name} has no input {name!r}; {problem}")
    about = verdict_scope(verdict)
    sources: dict[str, Json] = {
        "verdict.suspects": about["suspects"],
        "verdict.job": about["job"],
        "verdict.title": about["title"] if verdict else "",
    }
    values: dict[str, Json] = {}
    for name, spec in playbook.inputs.items():
        if spec.source == "nodes.job" and not settings.get(name):
            sources[spec.source] = await _job_on(context, name, nodes_named(playbook, values))
        value = settings.get(name, sources.get(spec.source) or spec.default)
        if value in (None, "", []):
            if spec.required:
                raise UsageError(f"{playbook.name} needs `--set {name}=...` ({spec.type})")
            values[name] = [] if spec.type.names_nodes else ""
            continue
        if spec.type is InputType.NODESET and isinstance(value, str) and "@" in value:
            value = list(await context.nodes.select(value))
        try:
            values[name] = read_input(spec, value)
        except ValueError as exc:
            raise UsageError(f"input `{name}`: {exc}") from exc
    job = await _job_of(context, playbook, values)
    named = nodes_named(playbook, values)
    _refuse_strangers(context, named)
    wish = context.jobs.wanted_order(job.name).waiting() if job else None
    scope = job_scope(job, named, wish.id if wish else "")
    return RunInputs(values, about, verdict.id if verdict else "", scope)


async def _job_on(context: RunContext, name: str, nodes: Sequence[str]) -> str:
    """The job on these nodes; "" where there is none.

    Raises:
        UsageError: There are several, and a person must say which.
    """
    found = {
        job.name: [n for n in nodes if n in job.nodes]
        for job in await context.jobs.all()
        if set(nodes) & set(job.nodes)
    }
    if len(found) > 1:
        jobs = ", ".join(f"{job} on {fold(members)}" for job, members in sorted(found.items()))
        hint = f"one after the other: --set {name}={min(found)}"
        raise UsageError(f"several jobs run on these nodes: {jobs}", hint=hint)
    return next(iter(found), "")


async def _job_of(
    context: RunContext, playbook: Playbook, values: Mapping[str, Json]
) -> Job | None:
    for name, spec in playbook.inputs.items():
        if spec.type is InputType.JOB and values.get(name):
            return await context.jobs.get(str(values[name]))
    return None


def _refuse_strangers(context: RunContext, nodes: Sequence[str]) -> None:
    for node in nodes:
        if node not in context.inventory.nodes:
            problem = did_you_mean(node, context.inventory.nodes)
            raise UsageError(f"{node!r} is not in the inventory; {problem}")


class _Planner:
    """Plans the steps of every node run."""

    def __init__(
        self, context: RunContext, playbook: Playbook, inputs: RunInputs, blank: RunRecord
    ) -> None:
        self._context = context
        self._playbook = playbook
        self._inputs = inputs
        self._blank = blank
        self.scopes: dict[str, Scope] = {}
        self._slots = asyncio.Semaphore(NODES_AT_ONCE)

    async def plan(self, node: str) -> list[PlannedStep]:
        """What the steps would do for one node, or for the whole run without `for_each`."""
        async with self._slots:
            return await self._plan(node)

    async def _plan(self, node: str) -> list[PlannedStep]:
        facts: dict[str, Json] = {}
        for step in self._playbook.steps if node else ():
            facts |= await facts_for(self._context, step, node)
        i, known = self._inputs, {"verdicts": self._inputs.verdicts, "facts": {node: facts}}
        scope = scope_of(i.inputs, i.verdict, i.job, "", self._blank, node, known)
        self.scopes[node] = scope
        return [await _plan_step(self._context, step, scope, node) for step in self._playbook.steps]

    def at_once(self, waves: Waves) -> Waves:
        """The nodes that each batch takes, where a batch is given back before the next begins."""
        if not gives_back(self._playbook):
            return ()
        return tuple(nodes_taken(self._playbook, [self.scopes[n] for n in wave]) for wave in waves)


async def _plan_step(context: RunContext, step: Step, scope: Scope, node: str) -> PlannedStep:
    given: Mapping[str, Json] = {}
    changes: Sequence[Change] = ()
    try:
        given = arguments_of(step, scope)
        skipped = "only after a failure" if step.after == "failure" else skip_reason(step, scope)
        if not skipped:
            changes = await action_of(step, instance_of(step.id, node)).plan(context, given)
    except (ActionFailed, ExpressionError) as exc:
        skipped, changes = None, (Change(Sign.ALTER, step.id, f"cannot be planned: {exc}"),)
    return PlannedStep(
        id=step.id,
        name=step.name,
        uses=step.verb,
        safety=step.safety,
        arguments=given,
        changes=tuple(changes),
        skipped=skipped or ("decided during the run" if skipped == "" else ""),
        undoable=step.undo is not None,
        node=node,
    )
