"""Gather the facts that guards declare; what cannot be had is named, and never guessed."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from brctl.actions.context import RunContext
from brctl.actions.standby.acquire import find_candidates
from brctl.backends.contract import Cordon
from brctl.engine.runs.past_runs import other_runs
from brctl.journal.locks import Leases
from brctl.model.errors import BrctlError
from brctl.model.runs.playbook import GuardSpec
from brctl.model.verdict import Verdict
from brctl.playbook.guard_facts import Fact, GuardFacts, Taken

StillTrue = Callable[[Verdict, datetime], Awaitable[bool | None]]


class FactGatherer:
    """What the world says to the guards of one moment."""

    def __init__(
        self,
        context: RunContext,
        keys: Sequence[str],
        specs: Sequence[GuardSpec],
        still_true: StillTrue,
    ) -> None:
        self._context = context
        self._keys = tuple(keys)
        self._specs = specs
        self._still_true = still_true
        self._cordoned: Mapping[str, Cordon] | None = None

    async def gather(self, facts: GuardFacts, needed: Collection[Fact]) -> GuardFacts:
        """The same facts with those that are needed."""
        unknown: dict[Fact, str] = {}
        for fact in Fact:
            if fact in needed and fact in _GATHERERS:
                try:
                    facts = await _GATHERERS[fact](self, facts)
                except BrctlError as exc:
                    unknown[fact] = str(exc)
        return replace(facts, unknown=unknown)

    async def _cordons(self) -> Mapping[str, Cordon]:
        if self._cordoned is None:
            self._cordoned = await self._context.backend.cordons()
        return self._cordoned

    async def _owners(self, facts: GuardFacts) -> GuardFacts:
        cordons = await self._cordons()
        return replace(
            facts,
            cordon_owners={name: c.owner for name, c in cordons.items()},
            cordon_reasons={name: c.reason for name, c in cordons.items()},
        )

    async def _burnins(self, facts: GuardFacts) -> GuardFacts:
        """What was found before a node was cordoned was known to whoever gave it back since."""
        found, cordons = self._context.sweeps.computed_wrongly(), await self._cordons()
        wrong = frozenset(
            node for node, at in found.items() if node in cordons and at >= (cordons[node].at or at)
        )
        return replace(facts, computed_wrongly=wrong)

    async def _taken(self, facts: GuardFacts) -> GuardFacts:
        """What this run takes is counted as `nodes`; a standby it rejected carried nothing."""
        own, now = self._context.owner_mark, facts.now_at
        cordons = (await self._cordons()).values()
        taken = tuple(Taken(c.node, c.owner, c.at or now) for c in cordons if c.owner != own)
        return replace(facts, taken=taken)

    async def _health(self, facts: GuardFacts) -> GuardFacts:
        sick, silent = self._context.sweeps.ailing()
        well = frozenset(facts.fleet) - frozenset(await self._cordons()) - sick - silent
        return replace(facts, healthy=well, silent=silent)

    async def _silent_nodes(self, facts: GuardFacts) -> GuardFacts:
        return replace(facts, silent=self._context.sweeps.ailing()[1])

    async def _standbys(self, facts: GuardFacts) -> GuardFacts:
        found = await find_candidates(self._context, facts.job)
        warmed_at = self._context.standbys.warmed_at()
        return replace(facts, standbys=found.standbys, spares=found.spares, warmed_at=warmed_at)

    async def _jobs(self, facts: GuardFacts) -> GuardFacts:
        jobs = await self._context.jobs.all()
        return replace(
            facts,
            job_nodes=next((job.nodes for job in jobs if job.name == facts.job), ()),
            busy={node: job.name for job in jobs for node in job.nodes},
        )

    async def _locks(self, facts: GuardFacts) -> GuardFacts:
        leases = Leases(self._context.state_dir)
        held = leases.held_by_others(self._keys, facts.run, facts.now_at)
        return replace(facts, held=held)

    async def _verdict(self, facts: GuardFacts) -> GuardFacts:
        if not facts.verdict:
            return facts
        verdict = self._context.verdicts.get(facts.verdict)
        still_true = goes_on = None
        if self._asks("still_true"):
            still_true = await self._still_true(verdict, facts.now_at)
        if self._asks("still_stalled") and verdict.stalled and verdict.job:
            status = await self._context.jobs.progress(await self._context.jobs.get(verdict.job))
            goes_on = None if status.stalled is None else not status.stalled
        return replace(facts, verdict_at=verdict.decided_at, still_true=still_true, goes_on=goes_on)

    def _asks(self, parameter: str) -> bool:
        return any(s.kind == "verdict" and s.parameters.get(parameter) for s in self._specs)

    async def _calendars(self, facts: GuardFacts) -> GuardFacts:
        names = {str(s.parameters["calendar"]) for s in self._specs if "calendar" in s.parameters}
        read = {name: self._context.calendars.read(name) for name in names}
        return replace(facts, calendars=read)


def with_other_runs(context: RunContext, facts: GuardFacts, needed: Collection[Fact]) -> GuardFacts:
    """The same facts with what other runs took, as it is on disk at this moment."""
    if Fact.PAST_RUNS not in needed:
        return facts
    try:
        found = other_runs(context.state_dir, context.run.name, facts.now_at)
    except BrctlError as exc:
        return replace(facts, unknown={**facts.unknown, Fact.PAST_RUNS: str(exc)})
    return replace(facts, past_runs=found.counted, uncounted=found.uncounted)


_GATHERERS: Mapping[Fact, Callable[[FactGatherer, GuardFacts], Awaitable[GuardFacts]]] = {
    Fact.CORDONS: FactGatherer._owners,
    Fact.BURNINS: FactGatherer._burnins,
    Fact.TAKEN: FactGatherer._taken,
    Fact.HEALTH: FactGatherer._health,
    Fact.SILENCE: FactGatherer._silent_nodes,
    Fact.STANDBYS: FactGatherer._standbys,
    Fact.JOBS: FactGatherer._jobs,
    Fact.LOCKS: FactGatherer._locks,
    Fact.VERDICT: FactGatherer._verdict,
    Fact.CALENDARS: FactGatherer._calendars,
}
