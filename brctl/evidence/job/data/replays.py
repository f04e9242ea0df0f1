"""Whether a restart gave every rank the batches it had before: nothing stops when it did not."""

from collections.abc import Iterable, Mapping

from brctl.model.evidence import Evidence, Role, Subject, Weight
from brctl.model.evidence_kinds import RANKS_CHECK, REPLAY_DIFFERS
from brctl.model.fault import FaultClass
from brctl.model.foreign_json import ForeignJsonError, read_foreign_json
from brctl.model.jobs.job_status import JobStatus
from brctl.model.jobs.replay import Replay

_LIMIT = 10**15
_NAMED_RANKS = 8


def read_replay(text: str) -> Replay | None:
    """What a node sent of one rank; None where it is none."""
    try:
        found = read_foreign_json(text) if text else None
    except ForeignJsonError:
        return None
    if not isinstance(found, dict):
        return None
    first, steps = _whole(found, "first"), _whole(found, "steps")
    if first is None or steps is None:
        return None
    return Replay(
        first, steps, _whole(found, "differs_at"), _whole(found, "off"), _whole(found, "samples")
    )


def _whole(found: Mapping[str, object], name: str) -> int | None:
    value = found.get(name)
    return value if type(value) is int and abs(value) < _LIMIT else None


def differing(status: JobStatus) -> Mapping[int, Replay]:
    """Ranks whose newest start was given other batches than they had before."""
    return {
        view.rank: view.replay
        for view in status.ranks
        if view.replay is not None and view.replay.differs_at is not None
    }


def said_of(rank: int, replay: Replay) -> str:
    """One rank's mismatch in a line."""
    head = f"since the restart at step {replay.first} rank {rank} is given other batches"
    if replay.off is None:
        return f"{head} than before, first in step {replay.differs_at}: how many is not known"
    samples = "" if replay.samples is None else f" ({replay.samples} samples)"
    word = "repeated" if replay.off > 0 else "skipped"
    return f"{head}: {abs(replay.off)} batches{samples} {word}, seen in step {replay.differs_at}"


def way_back(status: JobStatus) -> str:
    """What undoes it: the checkpoint it started from has the wrong position."""
    step = min((replay.first for replay in differing(status).values()), default=0) - 1
    name = status.job.name
    return (
        f"go back to a checkpoint before step {step}: brctl ckpt latest --job {name};"
        f" brctl job stop {name}; brctl job start {name} --from DIRECTORY"
    )


def replay_note(status: JobStatus) -> str:
    """What the comparison says, for the proof of a restart; "" where nothing could be compared."""
    wrong = differing(status)
    if wrong:
        lines = "; ".join(said_of(rank, found) for rank, found in _named(wrong))
        return f"WARNING {lines}; {way_back(status)}"
    same = [v.replay.steps for v in status.ranks if v.replay is not None and v.replay.steps]
    return f"{len(same)} ranks had the same batches again, {max(same)} steps" if same else ""


def replays_that_differ(status: JobStatus) -> Iterable[Evidence]:
    """A job that advances has this fault; of one that stands still it explains nothing."""
    for rank, replay in _named(differing(status)):
        yield Evidence(
            kind=REPLAY_DIFFERS,
            subject=Subject(status.job.node_of(rank), f"rank:{rank}"),
            weight=Weight.CONVICTS if status.stalled is False else Weight.CONTEXT,
            fault=FaultClass.DATA_LOADER,
            role=Role.ROOT if status.stalled is False else Role.CONTEXT,
            source=RANKS_CHECK,
            text=f"{said_of(rank, replay)}; {way_back(status)}",
        )


def _named(found: Mapping[int, Replay]) -> list[tuple[int, Replay]]:
    return sorted(found.items())[:_NAMED_RANKS]
