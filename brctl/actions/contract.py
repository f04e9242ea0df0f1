"""What a verb is: look, say what would change, change it, undo it, look again.

A verb knows what it did by marks in the world (the owner of a cordon, the incarnation of a rank),
never by its own memory: the process that changed something may be gone when somebody asks. So
`apply` and `undo` are safe to repeat, and `undo` touches only what carries this run's mark.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from brctl.actions.context import RunContext
from brctl.model.runs.plan import Change
from brctl.model.runs.playbook import Arguments


class FailureKind(StrEnum):
    """What `retry.only` can name."""

    TRANSPORT = "transport"
    TIMEOUT = "timeout"
    SCHEDULER = "scheduler"
    OTHER = "other"


class ActionFailed(Exception):  # noqa: N818 - a result of the world, not a mistake in the program
    """A verb could not do what it was asked; the world may be partly changed."""

    def __init__(self, message: str, kind: FailureKind = FailureKind.OTHER) -> None:
        super().__init__(message)
        self.kind = kind


class NothingDone(ActionFailed):
    """A verb refused before it acted: the world is as it was."""


@dataclass(frozen=True, slots=True)
class Observation:
    """What a look at the world says about a verb.

    Attributes:
        done: The world is as the verb would leave it; None when that cannot be told.
        out: What `steps.ID.out` holds when it is done.
        say: One sentence for people.
        markless: What was done leaves no mark, so after a crash a person says whether to repeat it.
    """

    done: bool | None
    out: Arguments = field(default_factory=dict)
    say: str = ""
    markless: bool = False


@dataclass(frozen=True, slots=True)
class ActionResult:
    """What a verb did."""

    out: Arguments = field(default_factory=dict)
    changed: bool = True
    say: str = ""


class VerbImplementation(Protocol):
    """One verb; see the head of this file.

    A verb that inherits from it need not say `confirm` when the look before would tell as well.
    """

    async def observe(self, context: RunContext, args: Arguments) -> Observation:
        """Look whether the world already is as asked."""
        ...

    async def plan(self, context: RunContext, args: Arguments) -> Sequence[Change]:
        """What `apply` would change now; arguments may be unknown until the run."""
        ...

    async def apply(self, context: RunContext, args: Arguments) -> ActionResult:
        """Make it so.

        Raises:
            ActionFailed: It could not be done; what was changed carries this run's mark.
        """
        ...

    async def undo(self, context: RunContext, args: Arguments) -> ActionResult:
        """Take back what this run did, and nothing anybody else did."""
        ...

    async def confirm(self, context: RunContext, args: Arguments) -> Observation:
        """Look again after acting: what the world says, not what was sent."""
        return await self.observe(context, args)


class NotUndoable(VerbImplementation):
    """A verb that leaves nothing which could be taken back."""

    async def undo(self, context: RunContext, args: Arguments) -> ActionResult:
        return ActionResult(changed=False, say="nothing to undo")


class ReadOnly(NotUndoable):
    """A verb that only looks: nothing is planned, nothing can be undone."""

    async def observe(self, context: RunContext, args: Arguments) -> Observation:
        """A look is never done already: the world may have moved."""
        return Observation(done=False)

    async def plan(self, context: RunContext, args: Arguments) -> Sequence[Change]:
        return ()

    async def confirm(self, context: RunContext, args: Arguments) -> Observation:
        return Observation(done=True)
