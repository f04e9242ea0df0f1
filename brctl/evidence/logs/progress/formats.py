"""Rows of training steps as frameworks print them: a pattern names what it reads.

Groups: `step`; `of` the steps of a bar, of which the longest counts; `epoch`, so that a step is one
of `of` in it; `loss`; the time of a step as `step_s`, `step_ms`, or `rate` in steps a second.
"""

import re
from collections.abc import Iterable, Mapping, Sequence

from brctl.evidence.logs.progress.shape import newest_counter

_NUMBER = r"[-+]?(?:\d[\d.]*(?:[eE][-+]?\d+)?|nan|inf|NaN|Inf)"
_LOSS = f"(?P<loss>{_NUMBER})"
_STEP = r"(?P<step>\d{1,12})"
_BAR = r"(?P<step>\d{1,12})/(?P<of>\d{1,12}) \["
_PACE = r"[^\]]{0,40}?(?:(?P<rate>[\d.]{1,12})it/s|(?P<step_s>[\d.]{1,12})s/it)"

FORMATS: Mapping[str, tuple[str, ...]] = {
    "megatron": (
        rf"iteration {{1,12}}{_STEP}/ {{0,12}}\d{{1,12}} \|"
        r".{0,200}?per iteration \(ms\): (?P<step_ms>[\d.]{1,12})"
        rf"(?:.{{0,300}}?lm loss:? {_LOSS})?",
    ),
    "deepspeed": (
        rf"steps: {_STEP} loss: {_LOSS} iter time \(s\): (?P<step_s>[\d.]{{1,12}})",
        rf"\[Rank \d{{1,6}}\] step={_STEP}, skipped=",
    ),
    "nemo": (
        rf"global_step: {_STEP}\b(?:.{{0,200}}?\breduced_train_loss: {_LOSS})?"
        r"(?:.{0,200}?train_step_timing in s: (?P<step_s>[\d.]{1,12}))?",
        rf"Epoch (?P<epoch>\d{{1,6}}):.{{0,120}}?\| {{0,2}}{_BAR}"
        rf".{{0,120}}?reduced_train_loss={_LOSS}"
        r"(?:.{0,200}?train_step_timing in s=(?P<step_s>[\d.]{1,12}))?",
    ),
    "lightning": (
        rf"Epoch (?P<epoch>\d{{1,6}}):.{{0,120}}?\| ?{_BAR}(?:{_PACE})?"
        rf"(?:.{{0,120}}?loss(?:_step)?={_LOSS})?",
    ),
    "torchtitan": (rf"\bstep: {{1,6}}{_STEP} {{1,4}}loss: {{1,4}}{_LOSS}",),
    "nanogpt": (rf"^iter {_STEP}: loss {_LOSS}, time (?P<step_ms>[\d.]{{1,12}})ms",),
    "hf-trainer": (
        rf"^ {{0,4}}\d{{1,3}}%\|.{{0,120}}?\| {_BAR}{_PACE}",
        rf"^\{{'loss': '?{_LOSS}'?, ",
    ),
    "plain": (
        rf"\b(?:[gG]lobal[_ ]?)?(?:[sS]tep|STEP|[iI]ter(?:ation)?)\W{{0,4}}{_STEP}\b"
        rf".{{0,200}}?\b(?:[lL]oss|LOSS)\W{{1,4}}{_LOSS}",
    ),
}
"""In this order where several fit equally many lines."""

AUTO, OWN = "auto", "pattern"


def patterns_of(name: str, own: str = "") -> Sequence[tuple[str, Sequence[str]]]:
    """What a node is to look for: one format, a job's own pattern, or all formats for `auto`.

    Examples:
        >>> patterns_of("pattern", "at (?P<step>[0-9]+)")
        [('pattern', ('at (?P<step>[0-9]+)',))]
    """
    if name == OWN:
        return [(OWN, (own,))]
    return list(FORMATS.items()) if name == AUTO else [(name, FORMATS[name])]


def step_of_any_shape(text: str) -> int | None:
    """The newest step of lines that no format reads: a number that climbs from line to line."""
    return newest_counter(re.split(r"[\r\n]+", text)[1:])


_ROWS = tuple(re.compile(row) for rows in FORMATS.values() for row in rows if "<step>" in row)


def steps_go_on(lines: Iterable[str]) -> bool:
    """Whether rows of training steps stand in some lines, a later step below an earlier one."""
    found = (next(filter(None, (row.search(line) for row in _ROWS)), None) for line in lines)
    steps = [int(match["step"]) for match in found if match]
    return len(steps) > 1 and steps[-1] > steps[0]
