"""Which replays gave other bits than sound machines give, judged over all rounds of a search.

Equal groups replay the same steps from the same checkpoint: sound ones give one digest, whatever
nodes they are made of and in every round. Bits are asked to be equal within one kind of node only.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from math import comb, inf

from brctl.model.localisation import GroupResult

Nodes = tuple[str, ...]
Round = tuple[Sequence[Nodes], Sequence[GroupResult]]
_Run = tuple[Nodes, str]
_Key = tuple[int, str]

ROUNDS_TO_TELL_APART = 2
"""Of each phase: only what was computed twice can be seen to repeat itself, or not to."""

CHANCE = 0.01
"""How often sound replays that are not always equal may have one machine named for it."""


def judge_digests(rounds: Sequence[Round]) -> list[tuple[GroupResult, ...]]:
    """The results of all rounds, in the light of all their digests.

    A digest that is not the right one is a failure. Where the right one is not known nobody can be
    called wrong, and nobody right; nor can a group of a kind of its own.
    """
    runs: dict[_Key, list[_Run]] = {}
    for groups, results in rounds:
        for group, result in zip(groups, results, strict=True):
            told = runs.setdefault((len(group), result.kind), [])
            told += [(group, digest) for digest in result.digests if digest]
    right = {key: right_digest(told) for key, told in runs.items()}
    alone = {key for key, told in runs.items() if _is_alone(key, told, runs)}
    return [
        tuple(
            _judged(result, right[key], is_alone=key in alone)
            for group, result in zip(groups, results, strict=True)
            for key in [(len(group), result.kind)]
        )
        for groups, results in rounds
    ]


def right_digest(runs: Sequence[_Run]) -> str:
    """What sound machines compute; "" where these replays of equal groups do not say.

    More than half of them agree. Or some groups give one digest each time, and no other digest ever
    came twice: a machine that computes wrongly now and then does not repeat itself. Replays that
    are never equal, and two digests that both repeat themselves, say nothing.

    Examples:
        >>> right_digest([(("a",), "1"), (("b",), "1"), (("c",), "2")])
        '1'
        >>> right_digest([(("a",), "1"), (("b",), "2")])
        ''
    """
    counts = Counter(digest for _, digest in runs)
    usual, votes = counts.most_common(1)[0] if counts else ("", 0)
    if 2 * votes > len(runs):
        return usual
    others_once = all(count == 1 for digest, count in counts.items() if digest != usual)
    return usual if others_once and _repeat_themselves(runs, usual) else ""


def chance_of_strays(node: str, machines: int, rounds: Sequence[Round]) -> float:
    """How likely strays of sound machines fall into groups with this one, and into no other.

    At most: any of the machines might have been the one they have in common. 0.0 where no digest
    accuses it, infinite where a group without it strayed as well.
    """
    runs = [
        (node in group, result)
        for groups, results in rounds
        for group, result in zip(groups, results, strict=True)
        if result.failed == result.nonfinite + result.differs
    ]
    with_it = [result for has_it, result in runs if has_it]
    if not any(result.differs for result in with_it):
        return 0.0
    strays = sum(bool(result.failed) for result in with_it)
    if strays < sum(bool(result.failed) for _, result in runs):
        return inf
    return machines * comb(len(with_it), strays) / comb(len(runs), strays)


def _repeat_themselves(runs: Sequence[_Run], usual: str) -> bool:
    """Whether two groups gave nothing else when asked again, and no group gave both."""
    times = Counter(group for group, _ in runs)
    again = {group for group, count in times.items() if count >= ROUNDS_TO_TELL_APART}
    steady = {group for group, digest in runs if digest == usual}
    strays = {group for group, digest in runs if digest != usual}
    return len(steady & again) > 1 and bool(strays & again) and not steady & strays


def _is_alone(key: _Key, told: Sequence[_Run], runs: dict[_Key, list[_Run]]) -> bool:
    of_size = sum(bool(others) for (size, _), others in runs.items() if size == key[0])
    return of_size > 1 and len({group for group, _ in told}) == 1


def _judged(result: GroupResult, right: str, *, is_alone: bool) -> GroupResult:
    if not any(result.digests) or (result.failed is None and not result.apart):
        return result
    ended_badly = (result.failed or 0) - result.differs
    if is_alone and not ended_badly:
        return replace(result, failed=None, differs=0, apart=False)
    if not right:
        return replace(result, failed=None, differs=0, apart=True)
    differs = sum(digest not in ("", right) for digest in result.digests)
    return replace(result, failed=ended_badly + differs, differs=differs, apart=False)
