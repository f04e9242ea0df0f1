"""What we believe is broken, how sure we are, why, and what to do about it."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from brctl.model.evidence import Evidence, Gap, Subject
from brctl.model.fault import Action, FaultClass, Origin


class Confidence(StrEnum):
    """A probability as one word."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


# A swap at 0.9 is wrong once in ten; below 0.6 the runner-up is nearly as likely.
_CONFIDENCE_FLOORS = ((0.9, Confidence.HIGH), (0.6, Confidence.MEDIUM), (0.0, Confidence.LOW))


def confidence_word(probability: float) -> Confidence:
    """The word for a probability between 0 and 1.

    Examples:
        >>> confidence_word(0.93).value
        'high'
    """
    return next(word for floor, word in _CONFIDENCE_FLOORS if probability >= floor)


@dataclass(frozen=True, slots=True)
class Suspect:
    """One node that a verdict names, with the parts of it when they are known."""

    node: str
    devices: tuple[str, ...] = ()
    ranks: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Place:
    """Where a fault came to light that nobody's machine is to blame for."""

    node: str
    ranks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Alternative:
    """A hypothesis that lost, with what is left of its probability."""

    fault: FaultClass
    nodes: tuple[str, ...]
    probability: float


@dataclass(frozen=True, slots=True)
class RuledOut:
    """A fault class the evidence speaks against; `by` are numbers into the evidence chain."""

    fault: FaultClass
    by: tuple[int, ...]
    why: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """A belief with its reasons; every one can be explained down to the raw line.

    Attributes:
        evidence: The chain in order of time; numbers in documents count from 1.
        not_checked: What could not be looked at.
        action: What comes next, once the decision tree was asked (brctl/playbook/recommend.py);
            `playbook` does it, or is "" when a person must; `say` is why, or what a person does.
        stalled: The job made no progress; None without a job, or when it is not known.
        cost_if_wrong: One sentence: what acting on a wrong verdict costs.
        settle: Commands that would tell the likeliest causes apart, where none is named.
        places: Where it came to light, when no node is to blame: ranks that failed by themselves.
    """

    id: str
    fault: FaultClass
    title: str
    suspects: tuple[Suspect, ...]
    origin: Origin
    probability: float
    evidence: tuple[Evidence, ...]
    alternatives: tuple[Alternative, ...]
    ruled_out: tuple[RuledOut, ...]
    not_checked: tuple[Gap, ...]
    decided_at: datetime
    job: str = ""
    job_step: int | None = None
    cost_if_wrong: str = ""
    action: Action = Action.NONE
    playbook: str = ""
    say: str = ""
    stalled: bool | None = None
    settle: tuple[str, ...] = ()
    places: tuple[Place, ...] = ()

    @property
    def confidence(self) -> Confidence:
        return confidence_word(self.probability)

    @property
    def nodes(self) -> tuple[str, ...]:
        return tuple(suspect.node for suspect in self.suspects)

    @property
    def parts(self) -> tuple[Subject, ...]:
        """The suspects' devices, with the names the evidence has for them."""
        named = {item.subject: item.subject for item in self.evidence if item.subject.name}
        found = (Subject(s.node, device) for s in self.suspects for device in s.devices)
        return tuple(named.get(subject, subject) for subject in found)

    @property
    def called(self) -> tuple[str, ...]:
        """What people call those devices, each once: one GPU may have answered by two ids."""
        return tuple(dict.fromkeys(part.called for part in self.parts))
