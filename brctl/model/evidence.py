"""One judged observation, and one thing that could not be observed."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from brctl.model.fault import FaultClass, Origin


class Weight(StrEnum):
    """What an observation says about its subject."""

    CLEARS = "clears"
    CONTEXT = "context"
    HINTS = "hints"
    CONVICTS = "convicts"


class Role(StrEnum):
    """Where an observation stands in the chain of events."""

    ROOT = "root"
    VICTIM = "victim"
    TEARDOWN = "teardown"
    CONTEXT = "context"


@dataclass(frozen=True, slots=True, order=True)
class Subject:
    """What an observation is about.

    Attributes:
        node: Node name, or "" when the subject is not tied to one (code, a switch).
        device: "" for the whole node, else `kind:id`: `gpu:GPU-8f6d...`, `pci:0000:9b:00.0`,
            `nic:mlx5_3`, `link:gpu-uuid/7`, `disk:/ckpt`, `rank:221`, `code:train.py`.
        name: What people call the device, `gpu 5 (slot 0000:9b:00.0)`; "" for its own id.
    """

    node: str
    device: str = ""
    name: str = field(default="", compare=False)

    @property
    def called(self) -> str:
        """The device as people read it."""
        return self.name or self.device

    def __str__(self) -> str:
        return " ".join(part for part in (self.node, self.called) if part) or "job"


@dataclass(frozen=True, slots=True)
class Evidence:
    """An observation judged by a rule.

    Attributes:
        kind: Dotted name of what was observed, `gpu.ecc.uncorrected`.
        subject: What it is about.
        weight: Clears, hints at or convicts the subject of `fault`; context does neither.
        fault: The class it speaks about; None for plain context.
        role: Root candidate, victim, teardown or context.
        source: Where it was read: a check's name, or a file.
        text: One sentence for people, without markup.
        raw: The line or measurement it rests on, verbatim and bounded.
        at: When it happened, UTC; None when the source does not say.
        strength: Calibrated chance that `fault` is right by the job's logs alone, all their lines
            weighed together; None for anything else, which counts by its weight.
        origin: Whose side the fault is on, where the observation itself proves it.
    """

    kind: str
    subject: Subject
    weight: Weight
    fault: FaultClass | None
    role: Role
    source: str
    text: str
    raw: str = ""
    at: datetime | None = None
    strength: float | None = None
    origin: Origin | None = None


@dataclass(frozen=True, slots=True)
class Gap:
    """Something that could not be observed; silence is said aloud.

    Attributes:
        subject: What stayed unobserved.
        what: The check or question that has no answer.
        why: The reason, with the limit or error.
    """

    subject: Subject
    what: str
    why: str
