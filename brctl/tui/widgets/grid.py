"""Where every node stands in the heatmap, and what its character is; pure."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from brctl.model.nodeset import natural_key
from brctl.tui.rows.row import Tone
from brctl.tui.rows.state_letters import APPEARANCES
from brctl.tui.session.facts import NodeFact

RACK_LABELS = ("rack", "leaf", "pod", "zone")
LABEL_WIDTH = 10
PLAIN_GROUP = 32


@dataclass(frozen=True, slots=True)
class MapLine:
    """One line of the heatmap."""

    label: str
    names: tuple[str, ...]


Cell = tuple[str, Tone]
Colouring = Callable[[NodeFact], Cell]


def layout(facts: Sequence[NodeFact], width: int) -> list[MapLine]:
    """Nodes rack by rack, as many whole racks on a line as fit; a wide rack takes several lines."""
    available = max(width - LABEL_WIDTH, 8)
    lines: list[MapLine] = []
    for label, names in _groups(facts):
        last = lines[-1] if lines else None
        if last and last.label and len(last.names) + len(names) <= available and label:
            lines[-1] = MapLine(_span(last.label, label), last.names + names)
            continue
        lines += [
            MapLine(label if start == 0 else "", names[start : start + available])
            for start in range(0, len(names), available)
        ]
    return lines


def _span(first: str, last: str) -> str:
    """`r00-01` for the racks r00 to r01."""
    start = first.split("-")[0]
    shared = 0
    while shared < min(len(start), len(last)) and not start[shared].isdecimal():
        shared += 1
    tail = last[shared:] if last[:shared] == start[:shared] else last
    return f"{start}-{tail}"


def _groups(facts: Sequence[NodeFact]) -> list[tuple[str, tuple[str, ...]]]:
    label = next((key for key in RACK_LABELS if any(key in f.node.labels for f in facts)), "")
    groups: dict[str, list[str]] = {}
    for fact in facts:
        groups.setdefault(fact.node.labels.get(label, "other") if label else "", []).append(
            fact.name
        )
    if label:
        ordered = sorted(groups.items(), key=lambda item: natural_key(item[0]))
        return [(name[: LABEL_WIDTH - 1], tuple(names)) for name, names in ordered]
    names = groups.get("", [])
    return [
        (names[start][: LABEL_WIDTH - 1], tuple(names[start : start + PLAIN_GROUP]))
        for start in range(0, len(names), PLAIN_GROUP)
    ]


def by_health(fact: NodeFact) -> Cell:
    """The letter of a node's state."""
    appearance = APPEARANCES[fact.state]
    return appearance.letter, appearance.tone


def by_job(jobs: Sequence[str]) -> Colouring:
    """A letter per job."""
    letters = {name: chr(ord("a") + i % 26) for i, name in enumerate(sorted(jobs))}
    return lambda fact: (letters[fact.job], Tone.SPARE) if fact.job in letters else (".", Tone.DIM)


def by_owner(fact: NodeFact) -> Cell:
    """Who cordoned a node: `b` brctl, `o` somebody else."""
    if fact.cordon is None:
        return ".", Tone.DIM
    return ("b", Tone.SPARE) if fact.cordon[0].startswith("brctl") else ("o", Tone.CORDON)


_AGES = ((60.0, "0"), (300.0, "1"), (900.0, "2"), (3600.0, "3"), (86400.0, "4"))


def by_age(now_at: datetime) -> Colouring:
    """How old an answer is: 0 under a minute, 1 5 m, 2 15 m, 3 1 h, 4 a day, 5 older, - never."""

    def cell(fact: NodeFact) -> Cell:
        if fact.at is None:
            return "-", Tone.UNKNOWN
        age_s = (now_at - fact.at).total_seconds()
        digit = next((digit for limit, digit in _AGES if age_s < limit), "5")
        return digit, Tone.OK if digit in "01" else Tone.WARN

    return cell


def by_measure(values: Mapping[str, float], low: float, high: float) -> Colouring:
    """A digit 0 to 9 between two values; `?` where nothing was measured, never 0."""

    def cell(fact: NodeFact) -> Cell:
        if fact.name not in values:
            return "?", Tone.UNKNOWN
        part = (values[fact.name] - low) / (high - low)
        digit = min(max(int(part * 10), 0), 9)
        return str(digit), Tone.CRIT if digit == 9 else Tone.WARN if digit >= 7 else Tone.OK

    return cell
