"""Time and effects: a job that trains until a fault stops it, and what a response costs it.

Times are whole microseconds, so that the books sum to the wall time exactly. A fault that comes
while the job stands waits until it runs again, unless its node has left by then.
"""

from typing import Protocol

from brctl.model.simulation import SIMULATED_BOOKS, Book, SimulatedRun
from brctl.model.units import describe_duration
from brctl.simulate.fleet import US, Fleet
from brctl.simulate.policies import SimulatedPolicy, StartKind
from brctl.simulate.pool import RefilledPool
from brctl.simulate.trace import DAY_US, DrawnFault, Trace

STOPS_LIMIT = 200_000
"""A fleet of 100,000 nodes stops some 15,000 times in 90 days; more is a policy without end."""

HOUR_US = 3_600 * US


class Response(Protocol):
    """What brings a stopped job back."""

    def recover(self, world: "World", fault: DrawnFault) -> None:
        """Spend the time that it takes, and leave the job ready to train."""
        ...


class World:
    """One job under one policy."""

    def __init__(
        self, fleet: Fleet, policy: SimulatedPolicy, trace: Trace, response: Response
    ) -> None:
        self.fleet, self.policy, self.trace = fleet, policy, trace
        self._response = response
        self.pool = RefilledPool(policy.pool(fleet), fleet.refill_s)
        self.now_us, self.end_us = 0, round(trace.days * DAY_US)
        self._trained_us = 0
        self._node, self._job = 0, 0
        self._replaced: dict[int, int] = {}
        self._books = dict.fromkeys(SIMULATED_BOOKS, 0)
        self._hours: dict[int, int] = {}
        self._first_short_us = 0
        self._counts = dict.fromkeys(
            ("stops", "actions", "healthy_evicted", "culprits_evicted", "came_back", "shortfalls",
             "pages", "approvals", "refused"), 0,
        )  # fmt: skip

    @property
    def over(self) -> bool:
        return self.now_us >= self.end_us

    @property
    def trained_steps(self) -> int:
        """Steps it made, those it has to do again counted."""
        return int(self._trained_us / (self.fleet.step_s * US))

    def run(self) -> SimulatedRun:
        """Until the simulated time is over, or the policy turns out to have no end."""
        while not self.over and self._counts["stops"] < STOPS_LIMIT:
            fault, at_us = self._next()
            self._train(at_us, saved=fault is None)
            if fault is not None and not self.over:
                self.count("stops")
                self._response.recover(self, fault)
        return self._result()

    def spend(self, book: Book, seconds: float) -> None:
        """Let time pass in a book, up to the end of the run."""
        self._pass(book, min(round(seconds * US), self.end_us - self.now_us))

    def count(self, what: str, by: int = 1) -> None:
        """One more of what a run counts."""
        self._counts[what] += by

    def evict(self, slots: tuple[int, ...], culprits: tuple[int, ...]) -> None:
        """Take the nodes of slots out; others come into their place."""
        for slot in slots:
            self._replaced[slot] = self.now_us
        guilty = len(set(slots) & set(culprits))
        self.count("culprits_evicted", guilty)
        self.count("healthy_evicted", len(slots) - guilty)

    def start(self, replaced: int, *, near: bool) -> None:
        """From a decision to training: nodes for those that left, processes, checkpoint."""
        times, how = self.fleet.times, self.policy.start
        if how is StartKind.REQUEUE:
            self.spend(Book.START, times.requeue_s)
        elif how is StartKind.ORACLE:
            self.spend(Book.START, times.oracle_s)
            return  # its nodes hold the newest state
        elif replaced == 1 and self.policy.one_node_s and self.pool.take(1, self.now_us):
            self.spend(Book.START, self.policy.one_node_s)
            return  # its neighbours hold the newest state
        elif not replaced:
            self.spend(Book.START, times.hot_update_s)
        elif how is StartKind.RESCHEDULE:
            self.spend(Book.START, times.reschedule_s)
        else:
            self._start_warm(replaced)
        self.spend(Book.LOAD, times.load_near_s if near else times.load_remote_s)

    def _start_warm(self, replaced: int) -> None:
        self.spend(Book.START, self.fleet.times.warm_s)
        if self.pool.take(replaced, self.now_us) < replaced:
            self.count("shortfalls")
            self._first_short_us = self._first_short_us or self.now_us
            missing_s = self.fleet.times.reschedule_s - self.fleet.times.warm_s
            self.spend(Book.IDLE_NO_STANDBY, max(missing_s, 0.0))

    def _next(self) -> tuple[DrawnFault | None, int]:
        """The next fault that stops the job, and when; None for the end of the run."""
        nodes, job = self.trace.of_nodes, self.trace.of_job
        while self._node < len(nodes) and self._has_left(nodes[self._node]):
            self._node += 1
        node = nodes[self._node] if self._node < len(nodes) else None
        own = job[self._job] if self._job < len(job) else None
        node_us = max(node.at_us, self.now_us) if node else self.end_us
        job_us = self.now_us + max(own.at_us - self._trained_us, 0) if own else self.end_us
        if min(node_us, job_us) >= self.end_us:
            return None, self.end_us
        if node_us <= job_us:
            self._node += 1
            return node, node_us
        self._job += 1
        return own, job_us

    def _has_left(self, fault: DrawnFault) -> bool:
        """Its node was taken out: before it failed, for one that always does; else since then."""
        slot = fault.nodes[0]
        if slot not in self._replaced:
            return False
        return fault.bad_node or fault.at_us < self._replaced[slot]

    def _train(self, until_us: int, *, saved: bool) -> None:
        """Train up to a moment; what was not saved when a fault came is to be done again."""
        span = until_us - self.now_us
        interval, write = self.policy.interval_us(self.fleet), round(self.policy.write_s * US)
        whole, rest = divmod(span, interval + write)
        unsaved = min(rest, interval)
        self._pass(Book.PRODUCTIVE, whole * interval + (unsaved if saved else 0))
        self._pass(Book.CHECKPOINT, whole * write + rest - unsaved)
        if not saved:
            self._pass(Book.REDO, unsaved)
        self._trained_us += span

    def _pass(self, book: Book, us: int) -> None:
        if book is not Book.PRODUCTIVE and us:
            self._lose(us)
        self._books[book] += us
        self.now_us += us

    def _lose(self, us: int) -> None:
        """Book what is not productive into its hours, for the worst one."""
        at, left = self.now_us, us
        while left:
            hour = at // HOUR_US
            here = min(left, (hour + 1) * HOUR_US - at)
            self._hours[hour] = self._hours.get(hour, 0) + here
            at, left = at + here, left - here

    def _result(self) -> SimulatedRun:
        why = ""
        if not self.over:
            day = describe_duration(self.now_us / US)
            why = f"{self.policy.name}: {STOPS_LIMIT:,} stops by {day} of {self.trace.days:g} days"
        return SimulatedRun(
            self.trace.seed, self.policy.name, self.now_us, self._books, **self._counts,
            first_short_us=self._first_short_us, unfinished=why,
            worst_hour=1 - max(self._hours.values(), default=0) / HOUR_US,
        )  # fmt: skip
