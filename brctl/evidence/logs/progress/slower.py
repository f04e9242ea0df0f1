"""Steps that take longer than they did: what a log shows of its job's own past.

A job that halves its pace prints no error, and its steps go on: they would prove it well. The time
or the rate of lines of one shape is compared with what it was before the change.
"""

# ruff: noqa: E501 - a pattern is read whole

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median

from brctl.evidence.logs.event import LogEvent
from brctl.evidence.logs.progress.shape import shapes
from brctl.evidence.logs.signature import root
from brctl.model.fault import FaultClass

SLOWER = replace(
    root(FaultClass.STRAGGLER_SLOW, "progress.slower", "step", 0.74,
         "a job's own step times, before and after"),
    beyond_words=True,
)  # fmt: skip
"""Not matched by text: made from the numbers of a log's own lines."""

_TIMES_SLOWER = 1.8
"""Growing batches and a warm disk cache change a pace by less."""

_STEPS = 3
"""Steps on either side of the change: one slow step is an evaluation or a save."""

_LINES = 2000
_AMOUNT = r"(?<![\d.])(?P<amount>\d{1,9}(?:\.\d{1,9})?)"
_AMOUNT_2 = _AMOUNT.replace("amount", "amount2")
_TAKES = re.compile(
    rf"\b(?:(?:step|iter(?:ation)?|batch|train_step)[_ ]?(?:time|timing|took|duration)|per (?:iteration|step)|took|timing_s/step|(?<!/)time(?! elapsed)|dt)(?![a-rt-z])[a-z_ ()\[\]]{{0,12}}\"?[:=]?\s{{0,3}}{_AMOUNT}(?![\d:/]|\.\d)|"
    rf"{_AMOUNT_2}\s?(?:s|secs?|seconds)(?:/(?:it|iter|step|batch)\b|\)$)",
    re.IGNORECASE,
)
_RATE = re.compile(
    rf"{_AMOUNT}\s?(?:it|iter|step|batch|sample|token|tok|image|img|example|seq)(?:e?s)?/s(?:ec)?\b|"
    rf"\b(?:throughput|(?:samples|tokens|images|steps|examples|global_step)[_ /](?:per[_ /])?s(?:ec(?:ond)?)?|tps)\b[a-z_ ()/]{{0,16}}\"?[:=]\s{{0,3}}{_AMOUNT_2}(?![\d,])",
    re.IGNORECASE,
)
_PACED = re.compile(
    r"(?:\b|\d)(?:(?:train_)?steps?|iter(?:ation)?s?|it/s|batch|epochs?|tokens?|tok/s|samples?|images?|img/s|tps)(?:\b|_)",
    re.IGNORECASE,
)
_BAR = re.compile(r"\|[^|\d]{3,}\|")
_PER_STEP = re.compile(r"(?<![\d.])(\d{1,9}(?:\.\d{1,9})?)s/it")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}\b)")


@dataclass(frozen=True, slots=True)
class _Row:
    """One line and how long its step took, in seconds or in the inverse of its rate."""

    line: int
    text: str
    took: float


def slower_steps(lines: Mapping[int, str], source: str) -> LogEvent | None:
    """The newest step of a job that became slower and stayed so; None where none did.

    Args:
        lines: A log's lines by number.
        source: The log's name.
    """
    for rows in shapes(_newest(lines), _PACED):
        timed = list(_timed(rows))
        change = _change(timed)
        if change is None:
            continue
        before, after = _paces(timed, change)
        newest = timed[-1]
        text = f"steps take {after / before:.1f} times as long since line {timed[change].line}: {lines[newest.line].strip()}"
        return LogEvent(SLOWER, source, newest.line, text[:400], count=len(timed) - change)
    return None


def _newest(lines: Mapping[int, str]) -> Iterator[tuple[int, str]]:
    for number, text in list(lines.items())[-_LINES:]:
        yield number, _plain(text)


def _plain(text: str) -> str:
    """A line in the form that its like has: bars differ by their length, slow ones by their unit."""
    text = _THOUSANDS.sub("", _BAR.sub("||", text))
    return _PER_STEP.sub(lambda pace: f"{1.0 / max(float(pace[1]), 1e-9):.9f}it/s", text)


def _timed(rows: Sequence[tuple[int, str, tuple[float, ...]]]) -> Iterator[_Row]:
    for number, text, _ in rows:
        took = _took(text)
        if took is not None:
            yield _Row(number, text, took)


def _took(text: str) -> float | None:
    for pattern, is_rate in ((_TAKES, False), (_RATE, True)):
        match = pattern.search(text)
        if match is not None:
            amount = float(match["amount"] or match["amount2"])
            return None if amount <= 0.0 else 1.0 / amount if is_rate else amount
    return None


def _change(rows: Sequence[_Row]) -> int | None:
    """Where the steps became slower for good; None where they did not, or tell a clock instead."""
    times = [row.took for row in rows]
    if len(times) < 2 * _STEPS or all(a < b for a, b in pairwise(times)):
        return None
    at = max(
        range(_STEPS, len(times) - _STEPS + 1),
        key=lambda place: (
            _parted(times[:place], times[place:]),
            min(times[place:]) / max(times[:place]),
        ),
    )
    before, after = _paces(rows, at)
    return at if after >= _TIMES_SLOWER * before and _parted(times[:at], times[at:]) > 1 else None


def _paces(rows: Sequence[_Row], change: int) -> tuple[float, float]:
    return median(r.took for r in rows[:change]), median(r.took for r in rows[change:])


def _parted(before: Sequence[float], after: Sequence[float]) -> float:
    """How many times as long nearly all steps take after as nearly all did before."""
    return sorted(after)[len(after) // 5] / sorted(before)[-1 - len(before) // 10]
