"""Steps that a job keeps in memory, as people read them."""

from collections.abc import Sequence

from brctl.evidence.job.kept_steps import KeptStep, KeptSteps
from brctl.model.nodeset import fold
from brctl.view.notices.page import Json
from brctl.view.text import printable

_SHOWN = 4


def kept_steps_document(kept: KeptSteps, lost: Sequence[str]) -> dict[str, Json]:
    """The same for programs."""
    newest, left = kept.newest(), kept.newest(lost)
    return {
        "step": newest.step if newest else None,
        "attempt": newest.attempt if newest else None,
        "own_ranks": kept.ranks_at(newest, own=True) if newest else 0,
        "copied_ranks": kept.ranks_at(newest, own=False) if newest else 0,
        "silent": dict(kept.silent),
        "lost_groups": [
            {"kind": kind, "lost": lost, "groups": groups}
            for kind, lost, groups in kept.lost_with()
        ],
        "if_lost": {
            "nodes": list(lost),
            "step": left.step if left else None,
            "ranks_without_copy": list(kept.uncopied(lost)),
        } if lost else None,
    }  # fmt: skip


def kept_steps_lines(kept: KeptSteps, lost: Sequence[str]) -> list[str]:
    """Which step is whole in memory, what may be lost, and what is left without `lost`."""
    lines = [_whole(kept, kept.newest()), _coverage(kept)]
    if lost:
        lines.append(_left(kept, lost))
    if kept.silent:
        reason = next(iter(kept.silent.values()))
        lines.append(f"UNKNOWN what {fold(kept.silent)} keep in memory: {printable(reason)}")
    return lines + [printable(note) for note in kept.notes[:_SHOWN]]


def _whole(kept: KeptSteps, newest: KeptStep | None) -> str:
    if newest is not None:
        own, copied = (kept.ranks_at(newest, own=own) for own in (True, False))
        ranks = kept.job.world_size
        return (
            f"step {newest.step} in memory: {own} of {ranks} ranks on their nodes, {copied} copied"
        )
    if not kept.slots:
        return "no step in memory"
    steps = [slot.kept.step for slot in kept.slots]
    span = f"between {min(steps)} and {max(steps)}"
    return f"no step of all ranks in memory at one moment ({span}): the job advances, or lost them"


def _coverage(kept: KeptSteps) -> str:
    if missing := kept.uncopied():
        return f"nothing in memory of {len(missing)} ranks, first {missing[0]}"
    lost = [f"{bad} of {count} {_plural(kind)}" for kind, bad, count in kept.lost_with() if bad]
    if not lost:
        kinds = " or ".join(_one(kind) for kind, _, _ in kept.lost_with())
        return f"any {kinds} may go: every rank has a copy elsewhere"
    return f"with these goes the only copy of a rank: {', '.join(lost)}"


def _left(kept: KeptSteps, lost: Sequence[str]) -> str:
    left, newest = kept.newest(lost), kept.newest()
    if left is not None:
        steps = newest.step - left.step if newest and newest.attempt == left.attempt else None
        fewer = "" if steps is None else f" ({steps} steps lost)"
        return f"without {fold(lost)}: step {left.step} in memory{fewer}"
    missing = kept.uncopied(lost)
    why = f"no copy of rank {missing[0]}" if missing else "no step of all ranks"
    return f"without {fold(lost)}: {why} in memory, only what is saved below"


def _one(kind: str) -> str:
    return kind if kind == "node" else f"{kind} group"


def _plural(kind: str) -> str:
    return f"{_one(kind)}s"
