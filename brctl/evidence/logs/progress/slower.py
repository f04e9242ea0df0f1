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
"""What an evaluation beside it or a cold cache changes is less."""

_STEPS = 3
"""Steps on either side of the change, and at the end: one slow step is an evaluation or a save."""

_LINES = 2000
_ROWS = 400
_LEVELS = 3
"""A time that never falls and has more values than these is a clock."""

_AMOUNT = r"(?<![\d.])(?P<amount>\d{1,9}(?:\.\d{1,9})?)(?![\d:/]|\.\d)(?!\s?(?:m|min|minutes?|h|hours?)\b)"
_FORMS = (
    (False, r"\b(?:step|iter(?:ation)?|batch|train_step)[_ ]?(?:time|timing|took|duration)(?:_m?s\b|\b)[a-z ()]{0,12}\"?[:=]?\s{0,3}", ""),
    (False, r"\bper (?:iteration|step)\b[ ()a-z]{0,8}[:=]?\s{0,3}|\btiming_s/step:\s?", ""),
    (False, "", r"\s?(?:s|secs?|seconds)(?:/(?:it|iter|step|batch)\b|\)$)"),
    (True, "", r"\s?(?:it|iter|step|batch|sample|token|tok|image|img|example|seq)(?:e?s)?/s(?:ec)?\b"),
    (True, r"\b(?:throughput|(?:samples|tokens|images|steps|examples|global_step)[_ /](?:per[_ /])?s(?:ec(?:ond)?)?|tps)\b[a-z_ ()/]{0,16}\"?[:=]\s{0,3}", ""),
    (False, r"(?<!data )(?<!load )(?<!/)\b(?:took|time)\b[a-z ()]{0,12}\"?[:=]?\s{0,3}", ""),
)  # fmt: skip
"""Whether the number is a rate, what stands before it and what behind it; the first that is read."""

_PACES = tuple(
    (is_rate, re.compile(f"(?:{before}){_AMOUNT}{behind}", re.IGNORECASE))
    for is_rate, before, behind in _FORMS
)
_PACED = re.compile(
    r"(?:\b|\d)(?:(?:train_)?steps?|iter(?:ation)?s?|it/s|batch|epochs?|tokens?|tok/s|samples?|images?|img/s|tps)(?:\b|_)",
    re.IGNORECASE,
)
_NO_STEP = re.compile(
    r"\b(?:eval\w*|valid\w*|test\w*|download\w*|autotun\w*|bench\w*|fio|requests?|reqs?|prompt|running:|generat\w+|infer\w*|warm-?up|sav(?:ed|ing)|energy|trial)\b",
    re.IGNORECASE,
)
_WORK = re.compile(
    r"\b(?:(?:global_|micro_?|mini_?)?batch(?:[_ ]size|_?sz)|bs|seq(?:uence)?(?:[_ ]?len(?:gth)?)?|(?:max_)?length|resolution|size)\W{0,4}(\d+)",
    re.IGNORECASE,
)
_BAR = re.compile(r"\|[^|\d]{3,}\|")
_PER_STEP = re.compile(r"(?<![\d.])(\d{1,9}(?:\.\d{1,9})?)s/it")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}\b)")


@dataclass(frozen=True, slots=True)
class _Row:
    """One line and how long its step took, in its own unit or as the inverse of its rate."""

    line: int
    text: str
    took: float


def slower_steps(lines: Mapping[int, str], source: str) -> LogEvent | None:
    """The newest step of a job that became slower and stayed so; None where none did.

    Args:
        lines: A log's lines by number.
        source: The log's name.
    """
    for rows in shapes(_newest(lines), _PACED, in_vain=_NO_STEP):
        timed = list(_timed(rows[-_ROWS:]))
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
    for is_rate, pattern in _PACES:
        match = pattern.search(text)
        if match is not None:
            amount = float(match["amount"])
            return None if amount <= 0.0 else 1.0 / amount if is_rate else amount
    return None


def _change(rows: Sequence[_Row]) -> int | None:
    """Where the steps became slower for good; None where they did not, or had more to do."""
    times = [row.took for row in rows]
    if len(times) < 2 * _STEPS or _is_clock(times):
        return None
    newest = median(times[-_STEPS:])
    if newest < _TIMES_SLOWER * min(times):
        return None  # no place can part them: looking at each would cost a sound log the most
    at = max(range(_STEPS, len(times) - _STEPS + 1), key=lambda place: _sharpness(times, place))
    before, after = _paces(rows, at)
    least = _TIMES_SLOWER * before
    if min(after, newest) < least or _parted(times[:at], times[at:]) <= 1:
        return None
    return None if _has_more_to_do(rows[:at], rows[at:]) else at


def _is_clock(times: Sequence[float]) -> bool:
    return all(a <= b for a, b in pairwise(times)) and len(set(times)) > _LEVELS


def _sharpness(times: Sequence[float], place: int) -> tuple[float, float]:
    """How well a place parts fast from slow steps; of equal ones that of the largest leap."""
    return round(_parted(times[:place], times[place:]), 3), times[place] / times[place - 1]


def _parted(before: Sequence[float], after: Sequence[float]) -> float:
    """How many times as long nearly all steps take after as nearly all did before."""
    return sorted(after)[len(after) // 5] / sorted(before)[-1 - len(before) // 10]


def _paces(rows: Sequence[_Row], change: int) -> tuple[float, float]:
    return median(r.took for r in rows[:change]), median(r.took for r in rows[change:])


def _has_more_to_do(before: Sequence[_Row], after: Sequence[_Row]) -> bool:
    """Whether the lines themselves tell of longer sequences or larger batches since."""
    usual, since = ({tuple(_WORK.findall(row.text)) for row in rows} for rows in (before, after))
    return not since <= usual
