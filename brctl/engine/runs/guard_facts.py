"""Find out what the guards ask, then let them decide."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from brctl.actions.context import RunContext
from brctl.engine.runs.gather_facts import FactGatherer, with_other_runs
from brctl.engine.runs.run_files import RunInputs
from brctl.model.runs.plan import GuardResult
from brctl.model.runs.playbook import GuardSpec, Need, Playbook
from brctl.model.verdict import Verdict
from brctl.playbook.approvals import Demand
from brctl.playbook.expressions import ExpressionError, Scope
from brctl.playbook.guard_facts import GuardFacts
from brctl.playbook.guards import MEND, check_guards, guards_for, lock_keys, needed_by
from brctl.playbook.overrides import Override, overridden
from brctl.playbook.plan import longest_path_s, nodes_named
from brctl.playbook.run_record import RunRecord
from brctl.playbook.templates import expand

STILL_TRUE_S = 30.0
"""Looking again costs a sweep of the whole job; within this time one look counts, and so does the
look that the verdict itself came from: `fix` right after `dx` does not wait for the dead again."""

FORWARD_ONLY = frozenset({"lock"})
"""Guards that still count once the job was stopped: refusing then would leave it stopped."""


@dataclass(frozen=True, slots=True)
class GuardQuestion:
    """What the guards are asked about.

    Attributes:
        takes: The nodes that the whole run takes out of service; `at_once` the same by batch.
        kinds: Only guards of these kinds; None for all of them.
    """

    inputs: RunInputs
    scope: Scope
    takes: tuple[str, ...]
    at_once: tuple[tuple[str, ...], ...] = ()
    kinds: Collection[str] | None = None


@dataclass(frozen=True, slots=True)
class GuardInputs:
    """Guards with what they go by.

    Attributes:
        broken: What those said whose values cannot be evaluated.
    """

    specs: tuple[GuardSpec, ...]
    broken: tuple[GuardResult, ...]
    facts: GuardFacts


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

    async def check(self, question: GuardQuestion) -> tuple[GuardResult, ...]:
        """What every guard that is asked says."""
        return self.decide(await self.gather(question))

    async def gather(self, question: GuardQuestion) -> GuardInputs:
        """What the guards go by, but for the other runs: those are read last."""
        lines = [
            spec
            for spec in guards_for(self._playbook, self._context.guards.guards)
            if question.kinds is None or spec.kind in question.kinds
        ]
        specs, broken = expanded(lines, question.scope)
        return GuardInputs(tuple(specs), broken, await self._facts(question, specs))

    def decide(self, gathered: GuardInputs) -> tuple[GuardResult, ...]:
        """What they say now; nothing is waited for, so that it can be done under a lock."""
        context, specs = self._context, gathered.specs
        facts = with_other_runs(context, gathered.facts, needed_by(specs))
        said = (*gathered.broken, *check_guards(specs, facts))
        allowed = context.guards.override_groups
        return overridden(
            said, self._override, allowed, context.people.groups_of, context.clock.now()
        )

    async def _facts(self, question: GuardQuestion, specs: Sequence[GuardSpec]) -> GuardFacts:
        """What is known without asking anybody, and then what these guards declare."""
        context, nodes = self._context, self._context.inventory.nodes.values()
        inputs = question.inputs
        facts = GuardFacts(
            now_at=context.clock.now(),
            run=context.run.name,
            playbook=self._playbook.name,
            nodes=question.takes,
            at_once=question.at_once,
            named=nodes_named(self._playbook, inputs.inputs),
            job=str(inputs.job.get("name", "")),
            fleet=tuple(n.name for n in nodes if n.gpus != 0),
            verdict=inputs.verdict_id,
            racks=_labels(context, "rack"),
            leaves=_labels(context, "leaf"),
            left_s=longest_path_s(self._playbook, self._record),
            can_ask=self._playbook.approval is not None,
            per_node=self._playbook.for_each is not None,
        )
        keys = lock_keys(self._playbook, inputs.inputs)
        gatherer = FactGatherer(context, keys, specs, self._still_true)
        return await gatherer.gather(facts, needed_by(specs))

    async def _still_true(self, verdict: Verdict, now: datetime) -> bool | None:
        if self._seen is None:
            self._seen = (verdict.decided_at, True)
        if (now - self._seen[0]).total_seconds() > STILL_TRUE_S:
            self._seen = (now, await self._context.verdicts.still_true(verdict))
        return self._seen[1]


def expanded(
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


def demands_by_guards(results: Sequence[GuardResult]) -> tuple[Demand, ...]:
    """Who must say yes because a guard asks for it, whatever the policies say."""
    return tuple(Demand(r.people) for r in results if r.people is not Need.NONE)


def refusal(results: Sequence[GuardResult]) -> str | None:
    """One sentence per guard that says no, or None."""
    lines = [f"{r.kind}: {r.sentence}   {r.origin}" for r in results if not r.ok]
    return "; ".join(lines) if lines else None


def way_out(results: Sequence[GuardResult]) -> str:
    """What the person can do about it."""
    return "; ".join(dict.fromkeys(r.way_out for r in results if not r.ok and r.way_out))
