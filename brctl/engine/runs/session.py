"""What every part of a run's process works on: its context, playbook, journal and record."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from brctl.actions.context import RunContext
from brctl.engine.runs.context import JournalledRun
from brctl.engine.runs.guard_facts import GuardQuestion
from brctl.engine.runs.run_files import RunInputs, RunRequest
from brctl.journal.locks import Lease, Leases
from brctl.journal.store import Journal
from brctl.model.exit_codes import ExitCode
from brctl.model.runs.event import Event, EventType
from brctl.model.runs.playbook import Json, Playbook
from brctl.model.runs.result import RunState
from brctl.playbook.expressions import Scope
from brctl.playbook.node_runs import ONLY, narrowed
from brctl.playbook.plan import gives_back, nodes_taken, scope_of
from brctl.playbook.run import may_have_changed, nodes_held
from brctl.playbook.run_record import RunRecord, apply_event
from brctl.playbook.steps import StepState

Batches = tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Ending:
    """How a run, or this part of it, ends.

    Attributes:
        own_code: The exit code where it is not that of the result: of the signal that interrupted
            it, or UNKNOWN where what was done cannot be told.
    """

    result: RunState
    why: str = ""
    own_code: ExitCode | None = None

    @property
    def exit_code(self) -> ExitCode:
        return self.own_code or self.result.exit_code


class RunEnds(Exception):  # noqa: N818 - an outcome that stops the loop, not a mistake
    """Stop the steps here, with this ending."""

    def __init__(self, ending: Ending) -> None:
        super().__init__(ending.result)
        self.ending = ending


class RunSession:
    """One run in one process; the journal is open and the run is owned."""

    def __init__(
        self,
        context: RunContext,
        run: JournalledRun,
        playbook: Playbook,
        inputs: RunInputs,
        request: RunRequest,
        digest: str,
        journal: Journal,
        record: RunRecord,
    ) -> None:
        self.context = context
        self.run = run
        self.playbook = playbook
        self.inputs = inputs
        self.request = request
        self.digest = digest
        self.record = record
        self.leases = Leases(context.state_dir)
        self.lease: Lease | None = None
        self.facts: dict[str, Json] = {}
        self._journal = journal

    def write(self, kind: EventType, fields: Mapping[str, Json]) -> Event:
        """Record an event and carry it into the record; a fenced run can do neither.

        Raises:
            LockedError: Another run was granted our lease.
        """
        if self.lease is not None:
            self.leases.verify(self.lease)
        event = self._journal.append(kind, self.context.clock.now(), fields)
        apply_event(self.record, event)
        return event

    def scope(self, node: str = ONLY) -> Scope:
        """Every name an expression may read now; with a node, as that node's steps read it."""
        return self._scope_with(self.inputs, node)

    def _scope_with(self, i: RunInputs, node: str) -> Scope:
        known = {"verdicts": i.verdicts, "facts": self.facts}
        return scope_of(i.inputs, i.verdict, i.job, self.context.run.name, self.record, node, known)

    def guarded(self, node: str, kinds: Collection[str] | None) -> GuardQuestion:
        """What a guard looks at: one node of `for_each`, or all that are not through yet."""
        node_runs = self.record.node_runs
        keep = {node} if node else {n for n, node_run in node_runs.items() if not node_run.result}
        inputs = replace(
            self.inputs, inputs=narrowed(self.playbook, self.inputs.inputs, keep, node_runs)
        )
        scope = self._scope_with(inputs, ONLY)
        return GuardQuestion(inputs, scope, self.takes(), self._takes_at_once(node), kinds)

    def takes(self) -> tuple[str, ...]:
        """The nodes this run takes out of service, of all its node runs."""
        return nodes_taken(self.playbook, (self.scope(node) for node in self.record.node_runs))

    def _takes_at_once(self, node: str) -> Batches:
        """The same by batch, of the node runs that are not through: all batches, or this node's."""
        if not gives_back(self.playbook):
            return ()
        waves = [wave for wave in self.record.waves if node in ("", *wave)]
        open_runs = [[n for n in wave if not self.record.node_runs[n].result] for wave in waves]
        return tuple(
            nodes_taken(self.playbook, (self.scope(n) for n in node_runs))
            for node_runs in open_runs
            if node_runs
        )

    def since(self, started: datetime) -> float:
        """Seconds since a moment, for the journal."""
        return round((self.context.clock.now() - started).total_seconds(), 3)

    def any_started(self) -> bool:
        """Whether a step ever left its first state."""
        return any(step.state is not StepState.PENDING for step in self.record.steps.values())

    def anything_changed(self) -> bool:
        """Whether something may be different because of this run."""
        return may_have_changed(self.playbook, self.record)

    def taken(self) -> tuple[str, ...]:
        """Nodes this run took out of service and did not give back."""
        return nodes_held(self.playbook, self.record)
