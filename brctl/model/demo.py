"""What one demo of the main job saw, from the broken node to the step after the old one."""

from dataclasses import dataclass, field

from brctl.model.fault import FaultClass
from brctl.model.verdict import Verdict

_BLAMES_NO_NODE = (FaultClass.USER_CODE, FaultClass.DATA_LOADER)


@dataclass(frozen=True, slots=True)
class DemoMoment:
    """When something came, in seconds after the fault."""

    what: str
    seconds: float


@dataclass(slots=True)
class DemoResult:
    """What happened, in order; None where it did not come to that.

    Attributes:
        fault: What was put in, by its name in `brctl lab faults`.
        expected: The fault class a right verdict names.
        node: The node that was really broken.
        subject: The part of it, `gpu:<uuid>`; "" for the whole node.
        old_step: Newest step any rank had reported when the verdict was made.
        losses: Losses of rank 0 on the first step that was trained twice: before, after.
        seconds: Wall seconds of each phase.
        moments: From the fault to the first new step, where a watcher did it all; else none.
    """

    fault: str
    expected: str
    node: str
    subject: str = ""
    verdict: Verdict | None = None
    run: str | None = None
    run_result: str | None = None
    steps: tuple[str, ...] = ()
    checkpoint: str | None = None
    checkpoint_step: int | None = None
    old_step: int | None = None
    first_new_step: int | None = None
    replayed_step: int | None = None
    losses: tuple[float, float] | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    moments: tuple[DemoMoment, ...] = ()

    @property
    def named_right(self) -> bool:
        """The verdict named exactly the broken node, or no node where the program is to blame."""
        if self.verdict is None or self.verdict.fault.value != self.expected:
            return False
        blameless = self.verdict.fault in _BLAMES_NO_NODE
        return self.verdict.nodes == (() if blameless else (self.node,))

    @property
    def trained_on(self) -> bool:
        """Training passed the step it had reached; what was trained twice had equal losses."""
        passed = self.first_new_step is not None and self.old_step is not None
        return passed and (self.losses is None or self.losses[0] == self.losses[1])
