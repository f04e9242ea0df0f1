"""What a watcher hears from nodes, and what it may ask of the rest of brctl."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from brctl.model.jobs.job import Job
from brctl.model.sweeps.report import CheckResult
from brctl.model.verdict import Verdict
from brctl.model.watch.policy import WatchPolicy
from brctl.model.watch.state import MassEvent, WatchDecision
from brctl.watch.gates import GateFacts, WatchedVerdict


@dataclass(frozen=True, slots=True)
class Said:
    """What a node said since it was asked last.

    Attributes:
        looks: How often each round was done to its end.
        told: The look that each check's newest answer came with.
    """

    fresh: Mapping[str, CheckResult]
    looks: Mapping[float, int]
    told: Mapping[str, int] = field(default_factory=dict)


class Nodes(Protocol):
    """Nodes that are looked at."""

    def said(self) -> Mapping[str, Said]: ...

    def silent_s(self, after_s: float) -> Mapping[str, float]: ...

    def waiting(self) -> frozenset[str]: ...

    def stale(self) -> frozenset[str]: ...


@dataclass(frozen=True, slots=True)
class Examined:
    """What a diagnosis that a suspicion asked for came to."""

    at: datetime
    verdicts: tuple[Verdict, ...]
    watched: tuple[WatchedVerdict, ...]


@dataclass(frozen=True, slots=True)
class Attempt:
    """Whether somebody was told, or `fix` was started, and what was said of it."""

    done: bool
    text: str


class Hands(Protocol):
    """What a watcher may ask of the rest of brctl; it has no other."""

    async def examine(self, job: Job | None, nodes: Sequence[str]) -> Examined:
        """Diagnose, keep the verdicts, tell nobody."""
        ...

    def busy_with(self, job: str) -> str:
        """The run that stopped a job or is at work on it; "" for none."""
        ...

    async def facts(self, verdict: WatchedVerdict, policy: WatchPolicy) -> GateFacts: ...

    def touched(self, since: datetime) -> Mapping[str, datetime]:
        """Nodes that a person had a hand in since then, and when."""
        ...

    async def page(self, verdict: Verdict, decision: WatchDecision) -> Attempt:
        """Tell people, with the exact command."""
        ...

    async def tell(self, event: MassEvent) -> Attempt:
        """Tell people of many nodes in one message."""
        ...

    async def start_fix(self, verdict: Verdict, token: int) -> Attempt:
        """Start `fix` in a process of its own."""
        ...
