"""What a plan is expected to cost, said before anybody agrees to it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Took:
    """How long runs like this one took, shortest first.

    Attributes:
        seconds: Of each, without the time people were waited for.
        same_job: They were about this job; false where only other jobs' runs tell.
    """

    seconds: tuple[float, ...]
    same_job: bool

    @property
    def usual_s(self) -> float:
        """The one in the middle; of two, the longer."""
        return self.seconds[len(self.seconds) // 2]


@dataclass(frozen=True, slots=True)
class LostSteps:
    """What training does again.

    Attributes:
        checkpoint_step: Of the newest whole checkpoint, or step that all ranks have in memory.
        checkpoint_age_s: How old it is; None where the node does not say.
        stopped_step: Where the job stood; None where nobody looked.
        in_memory: It is kept in the memory of nodes that stay.
    """

    checkpoint_step: int
    checkpoint_age_s: float | None
    stopped_step: int | None
    in_memory: bool = False

    @property
    def steps(self) -> int | None:
        """Steps that are trained twice."""
        if self.stopped_step is None:
            return None
        return max(0, self.stopped_step - self.checkpoint_step)


@dataclass(frozen=True, slots=True)
class Estimate:
    """What is known of a plan's cost; a sentence instead says why something is not.

    Attributes:
        took: Earlier runs of the playbook that ended well; None for none.
        at_most_s: All deadlines of the playbook, retries included.
        resumes: It starts a job, so there is training to wait for and to lose.
        loss: What is trained twice, or why that is not known.
        standbys_left: After it; None where it takes none.
    """

    took: Took | None
    at_most_s: float
    resumes: bool
    loss: LostSteps | str = ""
    standbys_left: int | str | None = None
