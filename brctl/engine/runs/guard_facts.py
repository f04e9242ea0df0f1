"""Find out what the guards ask, then let them decide."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from brctl.actions.context import RunContext
from brctl.actions.standby.acquire import find_candidates
from brctl.engine.runs.run_files import RunInputs, load_result
from brctl.journal.locks import Leases
from brctl.journal.store import run_dirs
from brctl.model.runs.plan import GuardResult
from brctl.model.runs.playbook import GuardSpec, Need, Playbook
from brctl.model.runs.result import PastRun, RunState
from brctl.model.verdict import Verdict
from brctl.playbook.approvals import Demand
from brctl.playbook.expressions import ExpressionError, Scope
from brctl.playbook.guard_facts import GuardFacts, Taken
from brctl.playbook.guards import MEND, check_guards, guards_for, lock_keys
from brctl.playbook.overrides import Override, overridden
from brctl.playbook.plan import longest_path_s, nodes_named
from brctl.playbook.run_record import RunRecord
from brctl.playbook.templates import expand

LOOK_BACK = timedelta(days=7)
STILL_TRUE_S = 30.0
"""Looking again costs a sweep of the whole job; within this time one look counts, and so does the
look that the verdict itself came from: `fix` right after `dx` does not wait for the dead again."""

FORWARD_ONLY = frozenset({"lock"})
"""Guards that still count once the job was stopped: refusing then would leave it stopped."""

_TAKING_RESULTS = frozenset({RunState.OK, RunState.PARTIAL, RunState.NEEDS_HUMAN, RunState.WAITING})


class Guarding:
    """The guards of one playbook for one run."""

    def __init__(
        self,
        context: RunContext,
        playbook: Playbook,
        record: RunRecord | None = None,
        override: Override | None = None,
    ) -> None:
        """Without a record nothing of the playbook was done yet."""
        self._override = override
        self._context = context
        self._playbook = playbook
        self._record = record
        self._seen: tuple[datetime, bool | None] | None = None

    async def check(
        self,
        inputs: RunInputs,
        scope: Scope,
        taken: tuple[str, ...],
        kinds: Collection[str] | None = None,
        at_once: tuple[tuple[str, ...], ...] = (),
    ) -> tuple[GuardResult, ...]:
        """What every guard of these kinds says; all of them without `kinds`.

        `taken` are the nodes that the whole run takes out of service, `at_once` the same by batch.
        """
        specs, broken = _expanded(
            [
                spec
                for spec in guards_for(self._playbook, self._context.guards.guards)
                if kinds is None or spec.kind in kinds
            ],
            scope,
        )
        if not specs:
            return broken
        context = self._context
        facts = await self._facts(inputs, taken, specs)
        said = (*broken, *check_guards(specs, replace(facts, at_once=at_once)))
        allowed = context.guards.override_groups
        return overridden(
            said, self._override, allowed, context.people.groups_of, context.clock.now()
        )

    async def _facts(
        self, inputs: RunInputs, taken: tuple[str, ...], specs: Sequence[GuardSpec]
    ) -> GuardFacts:
        context, now = self._context, self._context.clock.now()
        cordons = await context.backend.cordons()
        jobs = await context.jobs.all()
        job_name = str(inputs.job.get("name", ""))
        fleet = tuple(n.name for n in context.inventory.nodes.values() if n.gpus != 0)
        keys = lock_keys(self._playbook, inputs.inputs)
        past = self._past_runs(now)
        wants_again = any(s.kind == "verdict" and s.parameters.get("still_true") for s in specs)
        verdict = context.verdicts.get(inputs.verdict_id) if inputs.verdict_id else None
        sick, silent = context.sweeps.ailing()
        candidates = await find_candidates(self._context, job_name)
        return GuardFacts(
            now_at=now,
            run=self._context.run.name,
            playbook=self._playbook.name,
            nodes=taken,
            named=nodes_named(self._playbook, inputs.inputs),
            job=job_name,
            fleet=fleet,
            taken=(
                # What this run takes is counted as `nodes`; a standby it rejected carried nothing.
                *(
                    Taken(c.node, c.owner, c.at or now)
                    for c in cordons.values()
                    if c.owner != context.owner_mark
                ),
                *(Taken(node, r.run, r.ended_at) for r in past for node in r.taken),
            ),
            healthy=frozenset(fleet) - frozenset(cordons) - sick - silent,
            silent=silent,
            standbys=candidates.standbys,
            spares=candidates.spares,
            warmed_at=context.standbys.warmed_at(),
            job_nodes=next((job.nodes for job in jobs if job.name == job_name), ()),
            cordon_owners={name: cordon.owner for name, cordon in cordons.items()},
            busy={node: job.name for job in jobs for node in job.nodes},
            held=Leases(context.state_dir).held_by_others(keys, self._context.run.name, now),
            verdict=inputs.verdict_id,
            verdict_at=verdict.decided_at if verdict else None,
            still_true=await self._still_true(verdict, now) if wants_again and verdict else None,
            past_runs=past,
            racks=_labels(context, "rack"),
            leaves=_labels(context, "leaf"),
            calendars={name: context.calendars.read(name) for name in _calendars_of(specs)},
            left_s=longest_path_s(self._playbook, self._record),
            can_ask=self._playbook.approval is not None,
            per_node=self._playbook.for_each is not None,
        )

    def _past_runs(self, now: datetime) -> tuple[PastRun, ...]:
        found = []
        for run_dir in run_dirs(self._context.state_dir):
            result = load_result(run_dir)
            if result is None or result.run == self._context.run.name:
                continue
            if now - result.ended_at < LOOK_BACK and result.result in _TAKING_RESULTS:
                found.append(result)
        return tuple(found)

    async def _still_true(self, verdict: Verdict, now: datetime) -> bool | None:
        if self._seen is None:
            self._seen = (verdict.decided_at, True)
        if (now - self._seen[0]).total_seconds() > STILL_TRUE_S:
            self._seen = (now, await self._context.verdicts.still_true(verdict))
        return self._seen[1]


def _expanded(
    lines: Sequence[GuardSpec], scope: Scope
) -> tuple[list[GuardSpec], tuple[GuardResult, ...]]:
    """The lines with their values; one that cannot be evaluated refuses."""
    specs: list[GuardSpec] = []
    broken: list[GuardResult] = []
    for line in lines:
        try:
            specs.append(replace(line, parameters=expand(line.parameters, scope)))  # type: ignore[arg-type]  # a mapping stays one
        except ExpressionError as exc:
            sentence = f"its values cannot be evaluated: {exc}"
            broken.append(GuardResult(line.kind, False, sentence, line.origin, MEND))
    return specs, tuple(broken)


def _labels(context: RunContext, label: str) -> dict[str, str]:
    nodes = context.inventory.nodes.values()
    return {node.name: node.labels[label] for node in nodes if label in node.labels}


def _calendars_of(specs: Sequence[GuardSpec]) -> set[str]:
    return {str(s.parameters["calendar"]) for s in specs if "calendar" in s.parameters}


def demands_by_guards(results: Sequence[GuardResult]) -> tuple[Demand, ...]:
    """Who must say yes because a guard asks for it, whatever the policies say."""
    return tuple(Demand(r.people) for r in results if r.people is not Need.NONE)


def refusal(results: Sequence[GuardResult]) -> str | None:
    """One sentence per guard that says no, or None."""
    said = [f"{r.kind}: {r.sentence}   {r.origin}" for r in results if not r.ok]
    return "; ".join(said) if said else None


def way_out(results: Sequence[GuardResult]) -> str:
    """What the person can do about it."""
    return "; ".join(dict.fromkeys(r.way_out for r in results if not r.ok and r.way_out))
