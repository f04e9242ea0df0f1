"""Which ranks form which parallel groups, and which machines carry them. Pure.

Machines are judged, not ranks, because machines are evicted. A set of machines is a whole number
with one bit a machine, so that 1,024 of them are compared at once.
"""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True, slots=True)
class Overlay:
    """Groups laid over other axes, as expert parallelism is: `size` neighbours along `over`."""

    name: str
    size: int
    over: tuple[str, ...]


@dataclass(frozen=True)
class Layout:
    """The parallel axes of a job and its machines.

    Attributes:
        axes: Name and size, fastest varying first, `(("tp", 8), ("dp", 32), ("pp", 8))`.
        ranks_per_machine: Consecutive ranks that one machine carries.
        overlays: Further groups, which count like those of an axis.
    """

    axes: tuple[tuple[str, int], ...]
    ranks_per_machine: int
    overlays: tuple[Overlay, ...] = ()

    @cached_property
    def world_size(self) -> int:
        size = 1
        for _, length in self.axes:
            size *= length
        return size

    @property
    def machines(self) -> int:
        return self.world_size // self.ranks_per_machine

    def size(self, axis: str) -> int:
        """Length of an axis; 1 for one the job does not have."""
        return dict(self.axes).get(axis, 1)

    def machine_of(self, rank: int) -> int:
        return rank // self.ranks_per_machine

    def ranks_on(self, machine: int) -> range:
        first = machine * self.ranks_per_machine
        return range(first, first + self.ranks_per_machine)

    def coordinates(self, rank: int) -> dict[str, int]:
        """A rank's index along every axis.

        Examples:
            >>> parse_layout("tp=2,pp=2,dp=2", 1).coordinates(5)
            {'tp': 1, 'pp': 0, 'dp': 1}
        """
        position: dict[str, int] = {}
        for axis, size in self.axes:
            rank, position[axis] = divmod(rank, size)
        return position

    def rank_at(self, position: dict[str, int]) -> int:
        """The rank at these coordinates, each taken modulo the length of its axis."""
        rank, stride = 0, 1
        for axis, size in self.axes:
            rank += stride * (position[axis] % size)
            stride *= size
        return rank

    def group_keys(self, rank: int) -> Iterator[tuple[str, tuple[int, ...]]]:
        """The groups a rank is in: the kind, and what tells its groups apart."""
        position = self.coordinates(rank)
        for axis, _ in self.axes:
            yield axis, tuple(index for name, index in position.items() if name != axis)
        for overlay in self.overlays:
            rest = tuple(i for name, i in position.items() if name not in overlay.over)
            yield overlay.name, (*rest, self._along(overlay, position) // overlay.size)

    def replica_key(self, rank: int) -> tuple[int, ...]:
        """Equal for the ranks of a DP group that hold the same weights: experts differ."""
        position = self.coordinates(rank)
        rest = [index for name, index in position.items() if name != "dp"]
        experts = [o for o in self.overlays if "dp" in o.over]
        return (*rest, *(self._along(overlay, position) % overlay.size for overlay in experts))

    def groups(self) -> dict[str, tuple[int, ...]]:
        """For every kind of group, the set of machines of each group of it."""
        kinds: dict[str, dict[tuple[int, ...], int]] = {}
        for rank in range(self.world_size):
            bit = 1 << self.machine_of(rank)
            for kind, key in self.group_keys(rank):
                members = kinds.setdefault(kind, {})
                members[key] = members.get(key, 0) | bit
        return {kind: tuple(members.values()) for kind, members in kinds.items()}

    def digest(self) -> str:
        """64 hexadecimal digits; slots of another layout are never loaded."""
        overlays = [[o.name, o.size, list(o.over)] for o in self.overlays]
        text = json.dumps([self.axes, self.ranks_per_machine, overlays])
        return hashlib.sha256(text.encode()).hexdigest()

    def _along(self, overlay: Overlay, position: dict[str, int]) -> int:
        index, stride = 0, 1
        for axis, size in self.axes:
            if axis in overlay.over:
                index += stride * position[axis]
                stride *= size
        return index


def parse_layout(text: str, ranks_per_machine: int) -> Layout:
    """Read `tp=8,dp=32,pp=8`, fastest first; `ep=8:cp+dp` lays expert groups over cp and dp.

    Raises:
        ValueError: A size is no whole number above zero, a name comes twice, an overlay names no
            axis, or the machines do not divide the ranks.
    """
    axes: list[tuple[str, int]] = []
    overlays: list[Overlay] = []
    for part in text.split(","):
        name, _, size = part.strip().partition("=")
        length, _, over = size.partition(":")
        if over:
            overlays.append(Overlay(name, _positive(length, part), tuple(over.split("+"))))
        else:
            axes.append((name, _positive(length, part)))
    layout = Layout(tuple(axes), ranks_per_machine, tuple(overlays))
    _check(layout, text)
    return layout


def _positive(text: str, part: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise ValueError(f"{part!r} is not NAME=SIZE with a size above zero, as tp=8")
    return int(text)


def _check(layout: Layout, text: str) -> None:
    names = [name for name, _ in layout.axes] + [overlay.name for overlay in layout.overlays]
    if len(set(names)) < len(names) or "" in names:
        raise ValueError(f"axes {text!r}: every name once")
    known = dict(layout.axes)
    for overlay in layout.overlays:
        missing = [axis for axis in overlay.over if axis not in known]
        if missing:
            raise ValueError(f"axes {text!r}: {overlay.name} lies over {missing[0]}, no axis")
    if layout.ranks_per_machine < 1 or layout.world_size % layout.ranks_per_machine:
        raise ValueError(
            f"axes {text!r} make {layout.world_size} ranks, "
            f"which {layout.ranks_per_machine} a machine do not divide"
        )
