"""What logs say went wrong: one verdict an input, one over all of them."""

from dataclasses import dataclass

from brctl.model.evidence import Role
from brctl.model.fault import Action, FaultClass, Origin


@dataclass(frozen=True, slots=True)
class LogEvidence:
    """One line a log verdict rests on.

    Attributes:
        count: Lines of the same family in that file.
        signature: Name of the rule that read it.
    """

    role: Role
    file: str
    line: int
    text: str
    signature: str
    count: int = 1


@dataclass(frozen=True, slots=True)
class LogLead:
    """A class that an unknown cause may be of: where to look first, never a claim.

    Attributes:
        probability: Chance that the cause is of this class, by what names the lead alone.
        source: What names it: `words` for the model of words, `ending` for how the log ends, `line`
            for a line too weak to be believed alone.
        lines: The lines that speak most for it.
        why: What makes it likely, one sentence; "" where the words do.
        commands: Commands whose output settles it.
    """

    fault: FaultClass
    probability: float
    source: str
    lines: tuple[str, ...] = ()
    why: str = ""
    commands: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LogVerdict:
    """What one input, or all together, say.

    Attributes:
        name: The input's name, or "" for the verdict over all.
        culprit: Rank, host, GPU or peer address in words; None when no line names one.
        names_machine: A culprit is named, or a kernel's own line decides: its machine is at fault.
        probability: Calibrated chance that `fault` is right.
        alternatives: Other classes with what is left of the probability, likeliest first.
        leads: Where to look first when the class is unknown, likeliest first.
        notes: What could not be read, and why; silence is said aloud.
        action: What comes next by the decision tree, once it was asked; see `Verdict`.
    """

    name: str
    fault: FaultClass
    origin: Origin
    culprit: str | None
    probability: float
    evidence: tuple[LogEvidence, ...] = ()
    alternatives: tuple[tuple[FaultClass, float], ...] = ()
    leads: tuple[LogLead, ...] = ()
    notes: tuple[str, ...] = ()
    culprit_ranks: tuple[int, ...] = ()
    culprit_host: str = ""
    names_machine: bool = False
    action: Action = Action.NONE
    playbook: str = ""
    say: str = ""


@dataclass(frozen=True, slots=True)
class LogClassification:
    """The answer of `brctl logs classify`."""

    items: tuple[LogVerdict, ...]
    overall: LogVerdict
