"""What a watcher saw, did and may not do yet: all of it lies on disk between two ticks."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from brctl.model.fault import FaultClass


class WatchClass(StrEnum):
    """What is looked at together."""

    KERNEL = "kernel-log"
    GPU = "gpu"
    NETWORK = "network"
    SILENT = "silent"
    NUMBERS = "numbers"
    STALL = "stall"
    SPEED = "speed"


@dataclass(frozen=True, slots=True)
class Sighting:
    """One look at one thing that a rule holds against a node or a job.

    Attributes:
        rule: Name of the rule.
        subject: A node's name, or a job's.
        look: Number of the look it was seen in, so that two of them are told apart from one.
        sources: Checks that say it: a second one counts as a second look.
    """

    rule: str
    subject: str
    look: int
    text: str
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Suspicion:
    """Something seen, and not settled.

    Attributes:
        looks: How many looks saw it.
        confirmed_at: When it had been seen often enough; None while it was not.
        verdicts: What a diagnosis made of it.
        named_at: When its own diagnosis began, of one that named a cause; else None.
        named: Nodes that this diagnosis named.
    """

    rule: str
    subject: str
    since: datetime
    look: int
    text: str
    looks: int = 1
    sources: tuple[str, ...] = ()
    confirmed_at: datetime | None = None
    diagnosed: bool = False
    verdicts: tuple[str, ...] = ()
    named_at: datetime | None = None
    named: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        return f"{self.rule}/{self.subject}"


@dataclass(frozen=True, slots=True)
class WatchAct:
    """A `fix` that was started, or is about to be.

    Attributes:
        token: The leader's fencing number when it was decided.
        step: The job's step then; None when it had none.
    """

    at: datetime
    verdict: str
    fault: FaultClass
    nodes: tuple[str, ...]
    job: str
    step: int | None
    token: int


@dataclass(frozen=True, slots=True)
class MassEvent:
    """What befalls many nodes at once.

    Attributes:
        about: Its name, the same at its end as at its beginning.
    """

    about: str
    text: str
    nodes: tuple[str, ...]
    over: bool = False


@dataclass(frozen=True, slots=True)
class WatchState:
    """All that a watcher knows from one tick to the next.

    Attributes:
        began_at: When it started, or came under a new version or policy.
        under: Version and policy it began under.
        seq: Number of the newest record.
        acts: Of the last days, oldest first.
        breaker_open: When and why the breaker opened; "" while closed. Only a person closes it.
        breaker_since: Since a person closed it last, so that older acts do not open it again.
        quiet: Nodes that are left alone, and until when.
        decided: Verdicts that were decided about already, with how.
        network: Why silence says nothing of nodes now; "" while it does.
        crowds: Nodes that too many share a sign with for each to be broken by itself, by rule.
        untold: What befell many nodes, or ended, and no person was told of yet, by its name.
        kernel_since: Kernel lines of a node from before are old news.
    """

    began_at: datetime
    under: str = ""
    seq: int = 0
    suspicions: Mapping[str, Suspicion] = field(default_factory=dict)
    acts: tuple[WatchAct, ...] = ()
    breaker_open: str = ""
    breaker_since: datetime | None = None
    quiet: Mapping[str, datetime] = field(default_factory=dict)
    decided: Mapping[str, str] = field(default_factory=dict)
    network: str = ""
    crowds: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    untold: Mapping[str, MassEvent] = field(default_factory=dict)
    kernel_since: Mapping[str, datetime] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GateAnswer:
    """What one gate says to one action."""

    gate: str
    open: bool
    why: str


@dataclass(frozen=True, slots=True)
class WatchDecision:
    """What becomes of a verdict.

    Attributes:
        mode: What is done: observe writes, propose pages, act starts `fix`.
        wanted: What the policy allows, whatever the gates say.
        held: The first thing that held it back; "" for nothing.
        opens_breaker: Why the breaker opens by this; "" when it does not.
    """

    verdict: str
    mode: str
    wanted: str
    held: str
    gates: tuple[GateAnswer, ...]
    opens_breaker: str = ""

    @property
    def in_crowd(self) -> bool:
        """It is one of many at once, of which people are told in one message."""
        return any(gate.gate == "crowd" and not gate.open for gate in self.gates)


@dataclass(frozen=True, slots=True)
class WatchRecord:
    """One line of the record: what happened, and all that was known of it."""

    seq: int
    at: datetime
    kind: str
    fields: Mapping[str, object] = field(default_factory=dict)

    def text(self, key: str) -> str:
        """A field's text; "" for any other value."""
        value = self.fields.get(key)
        return value if isinstance(value, str) else ""

    def names(self, key: str) -> tuple[str, ...]:
        """A field's list of names."""
        value = self.fields.get(key)
        rows = value if isinstance(value, list) else []
        return tuple(name for name in rows if isinstance(name, str))

    def count(self, key: str) -> int | None:
        """A field's whole number; None for any other value."""
        value = self.fields.get(key)
        return value if type(value) is int else None


@dataclass(frozen=True, slots=True)
class Rejudged:
    """A decision of the record beside the one that another policy comes to.

    Attributes:
        right: Whether the verdict was confirmed or dismissed since; None while nobody knows.
    """

    at: datetime
    verdict: str
    rule: str
    fault: str
    nodes: tuple[str, ...]
    was: str
    now: str
    held: str
    right: bool | None
