"""The newest answers of every node, and what they make a watcher suspect at one moment."""

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from brctl.evidence.assess import assess
from brctl.evidence.job.long_phases import at_work
from brctl.evidence.job.status import read_job
from brctl.model.command import Outcome
from brctl.model.evidence import Evidence
from brctl.model.evidence_kinds import RANKS_CHECK
from brctl.model.jobs.job import Job
from brctl.model.jobs.job_status import JobStatus
from brctl.model.sweeps.check import Check
from brctl.model.sweeps.report import CheckResult, NodeReport
from brctl.model.watch.state import Sighting
from brctl.watch.job_rules import JOB_RULES, job_sightings, looked_at
from brctl.watch.node_rules import AGAINST, node_sightings
from brctl.watch.rules import OF_CHECK, round_of
from brctl.watch.tensor_cores import (
    ACTIVITY_CHECK,
    Activity,
    activity_pct,
    activity_sightings,
)
from brctl.watch.tensor_cores import RULE as ACTIVITY_RULE
from brctl.watch.tensor_cores import after_reading as after_activity
from brctl.watch.traffic import RULE as TRAFFIC_RULE
from brctl.watch.traffic import (
    TRAFFIC_CHECK,
    Traffic,
    after_reading,
    traffic_sightings,
    words_of,
)


@dataclass(slots=True)
class NodeAnswers:
    """One node's newest answers.

    Attributes:
        results: By check.
        evidence: What each says; empty for one that says nothing against the node.
        arrived: When each came; what it tells of times is reckoned from there, however often read.
        looks: How often each round was done to its end, as its last heartbeat says.
        told: The look that each check's answer came with; its round may still be going on.
    """

    results: dict[str, CheckResult] = field(default_factory=dict)
    evidence: dict[str, tuple[Evidence, ...]] = field(default_factory=dict)
    arrived: dict[str, datetime] = field(default_factory=dict)
    looks: Mapping[float, int] = field(default_factory=dict)
    told: Mapping[str, int] = field(default_factory=dict)

    def look_of(self, check: str) -> int:
        """The newest look whose answer of a check is known."""
        return max(self.told.get(check, 0), self.looks.get(round_of(check), 0))


@dataclass(frozen=True, slots=True)
class StepSeen:
    """Where a job stood, and since when by the watcher's own monotonic clock."""

    mark: tuple[object, ...]
    since_s: float


class FleetAnswers:
    """What was answered so far; nothing in it outlives the watcher, and nothing has to."""

    def __init__(self, checks: Mapping[str, Check]) -> None:
        self._checks = checks
        self._nodes: dict[str, NodeAnswers] = {}
        self._steps: dict[str, StepSeen] = {}
        self._traffic: dict[str, Traffic] = {}
        self._activity: dict[str, Activity] = {}

    def take(
        self,
        node: str,
        fresh: Mapping[str, CheckResult],
        looks: Mapping[float, int],
        at: datetime,
        told: Mapping[str, int],
    ) -> None:
        """What a node said since the last tick; an answer that did not change is not sent."""
        held = self._nodes.setdefault(node, NodeAnswers())
        held.arrived.update(dict.fromkeys(fresh, at))
        asked = {name for name, result in fresh.items() if name in OF_CHECK}
        again = {name for name, found in held.evidence.items() if found} - asked
        for name in (*asked, *(again if looks != held.looks else ())):
            before, now = held.results.get(name), fresh.get(name, held.results.get(name))
            if now is not None:
                found = self._assessed(node, name, now, before, held.arrived[name])
                held.evidence[name] = tuple(item for item in found if item.weight in AGAINST)
        held.results.update(fresh)
        held.looks, held.told = looks, told

    def _assessed(
        self, node: str, name: str, now: CheckResult, before: CheckResult | None, at: datetime
    ) -> tuple[Evidence, ...]:
        earlier = NodeReport(node, Outcome.ANSWERED, (before,)) if before else None
        report = NodeReport(node, Outcome.ANSWERED, (now,), received_at=at)
        return assess(report, {name: self._checks[name]}, earlier).evidence

    def shift(self, jump: timedelta) -> None:
        """The clock jumped: all that came before keeps its distance to now."""
        for held in self._nodes.values():
            held.arrived = {name: at + jump for name, at in held.arrived.items()}
            held.evidence = {
                name: tuple(replace(item, at=item.at and item.at + jump) for item in items)
                for name, items in held.evidence.items()
            }

    def keep_only(self, known: Set[str]) -> None:
        """Forget nodes that are looked at no more."""
        for node in [node for node in self._nodes if node not in known]:
            del self._nodes[node]

    def node_sightings(self, since: datetime, heard: Mapping[str, datetime]) -> Iterator[Sighting]:
        """What speaks against nodes.

        Args:
            since: Kernel lines from before are old news.
            heard: The same of single nodes, where it is later.
        """
        for node, held in self._nodes.items():
            found = [item for items in held.evidence.values() for item in items]
            if found:
                at = max(since, heard.get(node, since))
                looks = {item.source: held.look_of(item.source) for item in found}
                yield from node_sightings(node, found, looks, at)

    def could_look(self, rule: str, node: str) -> bool:
        """Whether a node ever gave an answer that the rule reads; not whether it still talks."""
        held = self._nodes.get(node)
        if held is None:
            return False
        return rule == "node-silent" or any(
            OF_CHECK.get(check) == rule and bool(held.looks) for check in held.results
        )

    def job_status(self, job: Job, unknown: Iterable[str]) -> JobStatus:
        """A job as the newest answers of its nodes describe it, but for those unknown by now."""
        away = set(unknown)
        reports = [
            NodeReport(node, Outcome.ANSWERED, (held.results[RANKS_CHECK],))
            for node in job.nodes
            if node not in away
            and (held := self._nodes.get(node)) is not None
            and RANKS_CHECK in held.results
        ]
        return read_job(job, reports)

    def job_sightings(
        self, status: JobStatus, seconds: float
    ) -> tuple[tuple[Sighting, ...], set[tuple[str, str]]]:
        """What speaks against the course of a job, and whether it could be looked at."""
        name = status.job.name
        mark = tuple((view.rank, view.step, view.phase) for view in status.ranks)
        before = self._steps.get(name)
        if before is None or before.mark != mark:
            before = self._steps[name] = StepSeen(mark, seconds)
        look = max((self._look(node) for node in status.job.nodes), default=0)
        seen = job_sightings(status, seconds - before.since_s, look)
        looked = {(rule, name) for rule in JOB_RULES} if looked_at(status) else set()
        traffic = self._read_traffic(status, seconds)
        if traffic is not None:
            looked.add((TRAFFIC_RULE, name))
            seen += tuple(traffic_sightings(status, traffic, seconds, look))
        activity = self._read_activity(status, seconds)
        if activity is not None:
            looked.add((ACTIVITY_RULE, name))
            same_step_s = seconds - before.since_s
            seen += tuple(activity_sightings(status, activity, look, same_step_s))
        return seen, looked

    def _read_traffic(self, status: JobStatus, seconds: float) -> Traffic | None:
        """What a job has sent by now; None where not all of its nodes, or only one, tell."""
        job = status.job
        told = [held for node in job.nodes if (held := self._nodes.get(node)) is not None]
        results = [held.results[TRAFFIC_CHECK] for held in told if TRAFFIC_CHECK in held.results]
        words = words_of(results) if 1 < len(results) == len(job.nodes) else None
        if words is None or status.silent:
            return None
        found = after_reading(self._traffic.get(job.name), words, job.nodes, seconds)
        self._traffic[job.name] = found
        return found

    def _read_activity(self, status: JobStatus, seconds: float) -> Activity | None:
        """How busy a job's tensor cores are by now; None where not all of its nodes tell."""
        job = status.job
        told = [held for node in job.nodes if (held := self._nodes.get(node)) is not None]
        results = [held.results[ACTIVITY_CHECK] for held in told if ACTIVITY_CHECK in held.results]
        pct = activity_pct(results) if len(results) == len(job.nodes) else None
        if pct is None or status.silent:
            return None
        found = after_activity(
            self._activity.get(job.name), pct, job.nodes,
            [held.look_of(ACTIVITY_CHECK) for held in told], seconds,
            excused=bool(at_work(status)),
        )  # fmt: skip
        self._activity[job.name] = found
        return found

    def _look(self, node: str) -> int:
        held = self._nodes.get(node)
        return held.look_of(RANKS_CHECK) if held else 0
