"""Which troubles of a kernel log are history because a later line says so: a reset or an end."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from brctl.evidence.kernel_line import KernelLine

RESET_MARK = "brctl: every GPU of this node was reset"
"""What gpu.reset leaves in the kernel log: what the driver said before it is history."""

DRIVER_LOADS = "NVRM: loading NVIDIA UNIX "
"""The driver starts anew, with every GPU: what ails one still is measured, not remembered."""

WAS_RESET = "older than the reset of the GPUs"
ENDED = "the kernel has said since that it is over"

HAS_ENDED = ".ended"
"""Ends the kind of evidence of a trouble that is over, and is dated by its end."""

COMES_AND_GOES = 3
"""What ended so often is not well because it ended once more, as in any other log (own)."""

_ENDS = {
    "host.kernel.nfs_hangs": re.compile(
        r"nfs: server (?P<what>\S{1,255}) (?:not responding|(?P<over>OK))\b"
    ),
    "host.kernel.cpu_throttled": re.compile(
        r"(?P<what>CPU\d{1,5}: (?:Core|Package)) temperature"
        r"(?: (?:is )?above|(?P<over>/speed normal))",
        re.IGNORECASE,
    ),
}
"""Troubles whose end the kernel tells as well, and what both lines name."""

_What = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Over:
    """Why what a line tells of is history; `at` is when it ended, where that is known."""

    why: str = ""
    at: datetime | None = None


NOT_OVER = Over()


@dataclass(slots=True)
class _Later:
    """What was read of a log so far, from its newest line back."""

    reset: bool = False
    ended: dict[_What, KernelLine] = field(default_factory=dict)
    between: set[_What] = field(default_factory=set)
    times: Counter[_What] = field(default_factory=Counter)

    def read_end(self, line: KernelLine) -> None:
        self.reset = self.reset or RESET_MARK in line.message
        self.reset = self.reset or line.message.startswith(DRIVER_LOADS)
        for kind, pattern in _ENDS.items():
            found = pattern.search(line.message)
            if found and found["over"]:
                self.ended.setdefault((kind, found["what"]), line)
                self.between.add((kind, found["what"]))

    def read_trouble(self, what: _What) -> None:
        """Lines of trouble without an end between them are of one: each caller tells of it."""
        if what in self.between:
            self.between.remove(what)
            self.times[what] += 1


def overs(said: Sequence[tuple[KernelLine, str]]) -> list[Over]:
    """For each line, with the kind of its trouble or "", why it is history; in one pass."""
    later, found, whats = _Later(), [NOT_OVER] * len(said), dict(_whats(said))
    for place in reversed(_in_order([line for line, _ in said])):
        line, kind = said[place]
        if not kind:
            later.read_end(line)
            continue
        what = whats.get(place)
        if what is not None:
            later.read_trouble(what)
        found[place] = _over(later, what)
    often = {what for what, times in later.times.items() if times >= COMES_AND_GOES}
    stands = {place for place, what in whats.items() if what in often}
    return [
        NOT_OVER if place in stands and over.why == ENDED else over
        for place, over in enumerate(found)
    ]


def _over(later: _Later, what: _What | None) -> Over:
    if later.reset:
        return Over(WAS_RESET)
    if what is not None and what in later.ended:
        return Over(ENDED, later.ended[what].at)
    return NOT_OVER


def _whats(said: Iterable[tuple[KernelLine, str]]) -> Iterator[tuple[int, _What]]:
    """What each trouble that has an end names, by the place of its line."""
    for place, (line, kind) in enumerate(said):
        pattern = _ENDS.get(kind)
        found = pattern.search(line.message) if pattern else None
        if found:
            yield place, (kind, found["what"])


def _in_order(lines: Sequence[KernelLine]) -> list[int]:
    """Places from the oldest line: by the kernel's clock where each has one, else as they came."""
    clocks = [line.uptime_s for line in lines]
    known = [clock for clock in clocks if clock is not None]
    places = list(range(len(lines)))
    return sorted(places, key=known.__getitem__) if len(known) == len(lines) else places
