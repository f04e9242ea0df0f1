"""Numbers that are wrong and look right: which rank's, by the checks that ran inside the job.

A wrong product convicts the machine that made it, and bits that differ from most replicas the one
that has them, once more than half of the group, itself not counted, say so. Two replicas that
differ say that one of two is wrong, a wrong sum that somebody sent what he did not have: then
nobody is named, and only checks of every node tell. What most ranks show is no machine's fault:
code or libraries made it.
"""

from collections.abc import Iterable, Iterator, Mapping

from brctl.evidence.job.numbers import nobody_named
from brctl.model.evidence import Evidence, Role, Subject, Weight
from brctl.model.evidence_kinds import NUMBERS_DIFFER, RANKS_CHECK
from brctl.model.fault import FaultClass
from brctl.model.foreign_json import ForeignJsonError, read_foreign_json
from brctl.model.jobs.job_status import JobStatus, RankView
from brctl.model.jobs.wrong_number import WrongKind, WrongNumber
from brctl.model.nodeset import fold

_LIMIT = 10**12
_NAMED_RANKS = 16
_NAME_LENGTH = 200
_CODE = "what most ranks show is made by code or libraries, not by a machine"

Found = list[tuple[RankView, WrongNumber]]


def read_wrong_numbers(text: str) -> tuple[WrongNumber, ...]:
    """What a node sent of one rank, earliest first; what cannot be read is left out."""
    try:
        document = read_foreign_json(text) if text else None
    except ForeignJsonError:
        return ()
    rows = document if isinstance(document, dict) else {}
    found = [wrong for kind in WrongKind if (wrong := _read(kind, rows.get(kind.value)))]
    return tuple(sorted(found, key=lambda wrong: wrong.step))


def _read(kind: WrongKind, row: object) -> WrongNumber | None:
    if not isinstance(row, dict):
        return None
    step = _whole(row.get("step"))
    if step is None:
        return None
    name = row.get("tensor" if kind is WrongKind.REPLICA else "module")
    ranks = row.get("ranks")
    return WrongNumber(
        kind,
        step,
        place=name[:_NAME_LENGTH] if isinstance(name, str) else "",
        count=_whole(row.get("count")) or 1,
        axis=str(row.get("axis", ""))[:_NAMED_RANKS],
        ranks=tuple(
            rank
            for each in (ranks if isinstance(ranks, list) else [])[:_NAMED_RANKS]
            if (rank := _whole(each)) is not None
        ),
        of=_whole(row.get("of")) or 0,
        has_majority=row.get("has_majority") is True,
    )


def _whole(value: object) -> int | None:
    return value if type(value) is int and 0 <= value < _LIMIT else None


def wrong_numbers(status: JobStatus) -> Iterable[Evidence]:
    """Evidence from what the ranks' checks found."""
    by_kind: dict[WrongKind, Found] = {kind: [] for kind in WrongKind}
    for view in status.ranks:
        for wrong in view.wrong_numbers:
            by_kind[wrong.kind].append((view, wrong))
    products = by_kind[WrongKind.PRODUCT]
    if 2 * len(products) > len(status.ranks) > 1:
        yield nobody_named(
            NUMBERS_DIFFER,
            f"{len(products)} of {len(status.ranks)} ranks have wrong matrix products",
            _CODE,
        )
    else:
        yield from (_product(view, wrong) for view, wrong in products)
    yield from _replicas(status, by_kind[WrongKind.REPLICA], named=bool(products))
    yield from _sums(by_kind[WrongKind.SUM], named=bool(products))


def kinds_not_compared(status: JobStatus) -> Iterable[str]:
    """Unlike parts round differently, so bits are asked to be equal within one kind only."""
    kinds: dict[str, list[RankView]] = {}
    for view in status.ranks:
        if view.compared_tensors is not None:
            kinds.setdefault(view.compared_kind, []).append(view)
    if len(kinds) < 2:
        return
    named = (
        f"{fold(dict.fromkeys(v.node for v in views))} ({kind or 'not told'})"
        for kind, views in kinds.items()
    )
    yield f"bits of ranks were compared within each kind of node, not between {', '.join(named)}"
    alone = [views[0] for views in kinds.values() if len(views) == 1]
    for view in alone:
        yield f"rank {view.rank} on {view.node} is the only one of its kind: nobody has its bits"


def _product(view: RankView, wrong: WrongNumber) -> Evidence:
    return Evidence(
        kind="job.rank.wrong-product",
        subject=Subject(view.node, f"rank:{view.rank}"),
        weight=Weight.CONVICTS,
        fault=FaultClass.SILENT_CORRUPTION,
        role=Role.ROOT,
        source=RANKS_CHECK,
        text=f"a matrix product of rank {view.rank} is wrong in step {wrong.step}"
        f" (layer {wrong.place}), seen {wrong.count} times",
        raw=repr(wrong),
    )


def _replicas(status: JobStatus, found: Found, *, named: bool) -> Iterator[Evidence]:
    """The earliest difference; what comes after it was carried on by the training itself."""
    told = _told_by(found)
    sure = {wrong: ranks for wrong, ranks in told.items() if _most_say(wrong, ranks)}
    first = min((wrong.step for wrong in sure or told), default=None)
    earliest = {wrong: ranks for wrong, ranks in (sure or told).items() if wrong.step == first}
    odd = {rank for wrong in earliest for rank in wrong.ranks}
    if 2 * len(odd) > len(status.ranks) and all(wrong.has_majority for wrong in earliest):
        yield nobody_named(
            NUMBERS_DIFFER, f"{len(odd)} ranks differ from their replicas since step {first}", _CODE
        )
        return
    for wrong, witnesses in earliest.items():
        between = f"{wrong.of} {wrong.axis} replicas since step {wrong.step}"
        text = f"{wrong.place} differs between {between}, as {len(witnesses)} ranks found"
        if not wrong.has_majority:
            names = ", ".join(_named(status, rank) for rank in wrong.ranks)
            yield nobody_named(NUMBERS_DIFFER, f"{text}: one of {names}", "no majority says which")
        for rank in wrong.ranks if wrong.has_majority else ():
            if rank < status.job.world_size:
                yield _replica(status, rank, text, convicts=wrong in sure and not named)
                if wrong not in sure and not named and status.stalled is not False:
                    yield nobody_named(
                        NUMBERS_DIFFER, text, "few had time to say so before the job ended"
                    )


def _told_by(found: Found) -> Mapping[WrongNumber, set[int]]:
    """Every rank of a group tells the same; how often it was seen may differ."""
    told: dict[WrongNumber, set[int]] = {}
    for view, wrong in found:
        same = next((w for w in told if _place(w) == _place(wrong)), wrong)
        told.setdefault(same, set()).add(view.rank)
    return told


def _place(wrong: WrongNumber) -> tuple[object, ...]:
    return wrong.step, wrong.place, wrong.axis, wrong.ranks, wrong.of, wrong.has_majority


def _most_say(wrong: WrongNumber, witnesses: set[int]) -> bool:
    """Whether more than half of a group say it; the word of whom it accuses does not count.

    A majority takes three: a file that claims one of fewer is not believed.
    """
    accused = wrong.ranks if wrong.has_majority else ()
    return 2 * len(witnesses.difference(accused)) > max(wrong.of, 2)


def _replica(status: JobStatus, rank: int, text: str, *, convicts: bool) -> Evidence:
    return Evidence(
        kind="job.rank.replica-differs",
        subject=Subject(status.job.node_of(rank), f"rank:{rank}"),
        weight=Weight.CONVICTS if convicts else Weight.HINTS,
        fault=FaultClass.SILENT_CORRUPTION,
        role=Role.ROOT if convicts else Role.VICTIM,
        source=RANKS_CHECK,
        text=f"rank {rank} has other bits than most: {text}",
    )


def _sums(found: Found, *, named: bool) -> Iterator[Evidence]:
    first = min((wrong.step for _, wrong in found), default=None)
    if first is not None and not named:
        text = f"the reduced gradient is not the sum of what the ranks had, since step {first}"
        yield nobody_named(NUMBERS_DIFFER, text, "who sent something else is not known")


def _named(status: JobStatus, rank: int) -> str:
    known = rank < status.job.world_size
    return f"rank {rank} on {status.job.node_of(rank)}" if known else f"rank {rank}"
