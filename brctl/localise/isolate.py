"""Groups that separate suspects: each with verified-good references, leaves by fresh paths."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from brctl.localise.causes import Causes
from brctl.localise.ledger import Ledger
from brctl.localise.problem import FaultKind, Group


@dataclass(slots=True)
class References:
    """Nodes known good, each used once a round, nearest and freshest first."""

    causes: Causes
    met: set[tuple[int, int]]
    free: dict[int, None]
    shunned: frozenset[int]
    by_leaf: dict[int, list[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for node in self.free:
            self.by_leaf.setdefault(int(self.causes.leaf_of[node]), []).append(node)

    def near(self, node: int, count: int) -> list[int]:
        """References for a node: its own leaf first, so that no path is in doubt."""
        home = int(self.causes.leaf_of[node])
        taken = self._pick(self.by_leaf.get(home, ()), count, {node})
        if len(taken) < count:
            elsewhere = [n for n in self.free if int(self.causes.leaf_of[n]) not in self.shunned]
            taken += self._pick(elsewhere, count - len(taken), {node})
        if len(taken) < count:
            taken += self._pick(list(self.free), count - len(taken), {node})
        return taken

    def on_leaf(self, leaf: int, count: int) -> list[int]:
        """References under one leaf."""
        return self._pick(self.by_leaf.get(leaf, ()), count, set())

    def elsewhere(self, leaf: int, count: int) -> list[int]:
        """References under other leaves whose uplinks nobody doubts."""
        home = self.causes.leaf_of
        other = [n for n in self.free if int(home[n]) != leaf and int(home[n]) not in self.shunned]
        return self._pick(other, count, set())

    def give_back(self, nodes: Iterable[int]) -> None:
        for node in nodes:
            self.free[node] = None

    def _pick(self, candidates: Sequence[int], count: int, against: set[int]) -> list[int]:
        """Up to `count` free ones; those that never met the suspect first."""
        fresh: list[int] = []
        known: list[int] = []
        for node in candidates:
            if node not in self.free:
                continue
            met = any((min(node, a), max(node, a)) in self.met for a in against)
            (known if met else fresh).append(node)
            if len(fresh) >= count:
                break
        taken = (fresh + known)[:count]
        for node in taken:
            del self.free[node]
        return taken


def isolate_nodes(
    suspects: Mapping[int, float],
    references: References,
    ledger: Ledger,
    size: int,
    max_groups: int,
) -> list[Group]:
    """Every suspect in a group of its own with references; shared groups when they run short.

    Args:
        suspects: Their probabilities, likeliest first.
        references: Nodes known good; used up as groups are formed.
        ledger: Knows who failed together.
        size: Smallest admissible group.
        max_groups: Most groups this may use.
    """
    available = len(references.free)
    if not suspects or max_groups < 1 or not available:
        return []
    if len(suspects) <= max_groups and len(suspects) * (size - 1) <= available:
        return [_group([s], references.near(s, size - 1)) for s in suspects]
    number = min(max_groups, (len(suspects) + available) // size)
    if number < 1:
        return []
    return _packed(suspects, references, ledger, size, number)


def _group(suspects: list[int], references: list[int]) -> Group:
    return tuple(sorted(suspects + references))


def _packed(
    suspects: Mapping[int, float],
    references: References,
    ledger: Ledger,
    size: int,
    number: int,
) -> list[Group]:
    """Several suspects a group: those that failed together apart, the likeliest alone."""
    together = failed_together(ledger)
    seats: list[list[int]] = [[] for _ in range(min(number, len(suspects)))]

    def crowding(seat: list[int], suspect: int) -> tuple[bool, int, float]:
        mass = sum((suspects[s] for s in seat), 0.0)
        fellows = sum((min(suspect, s), max(suspect, s)) in together for s in seat)
        return (round(mass + suspects[suspect], 1) > 0.5, fellows, mass)

    for suspect in suspects:
        min(seats, key=lambda seat: crowding(seat, suspect)).append(suspect)
    groups = []
    for seat in seats:
        wanted = max(size - len(seat), 1)
        group = _group(seat, references.near(seat[0], wanted))
        if len(group) > len(seat) and len(group) >= size:
            groups.append(group)
        else:
            references.give_back(set(group) - set(seat))
    return groups


def failed_together(ledger: Ledger) -> set[tuple[int, int]]:
    """Pairs of nodes that were in one failing group."""
    pairs: set[tuple[int, int]] = set()
    for failure in ledger.failures:
        if len(failure.group) <= 64:
            ordered = sorted(failure.group)
            pairs.update((a, b) for i, a in enumerate(ordered) for b in ordered[i + 1 :])
    return pairs


def isolate_paths(
    doubtful: Sequence[int], causes: Causes, references: References, size: int, max_groups: int
) -> list[Group]:
    """Groups of good nodes that cross a doubtful uplink or path and nothing else in doubt."""
    groups: list[Group] = []
    for cause in doubtful:
        if len(groups) >= max_groups:
            break
        half = max(1, size // 2)
        if causes.kind(cause) is FaultKind.LEAF:
            leaf = cause - causes.node_count
            ends = [references.on_leaf(leaf, half), references.elsewhere(leaf, size - half)]
        else:
            low, high = causes.leaves_of_pair(cause)
            ends = [references.on_leaf(low, half), references.on_leaf(high, size - half)]
        group = _group(ends[0], ends[1])
        if ends[0] and ends[1] and len(group) >= size:
            groups.append(group)
        else:
            references.give_back(group)
    return groups
