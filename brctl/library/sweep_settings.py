"""The `sweep:` keys of config.yaml: what regular sweeps of this site ask and how loud they are."""

import math
import re
from dataclasses import dataclass
from datetime import timedelta

from brctl.library.file_tables import SWEEP
from brctl.library.schema import Section


@dataclass(frozen=True, slots=True)
class SweepSettings:
    """Defaults of `brctl sweep` and `brctl schedule`; their flags win.

    Attributes:
        interval: How often, as `brctl schedule` writes it into units: `5m`.
        max_unknown: Silent nodes that still count as an answer: a count or `2%`.
        reminder: A problem that lasts is told again after this long.
    """

    profile: str = "sweep"
    interval: str = "5m"
    max_unknown: str = "0"
    reminder: timedelta = timedelta(hours=24)


def read_sweep(section: Section) -> SweepSettings:
    """The settings of one section; absent keys keep their defaults.

    Raises:
        ConfigError: A key is unknown or its value makes no sense; names the line.
    """
    section.allow(SWEEP)
    section.duration_s("interval", "5m")
    return SweepSettings(
        profile=section.value("profile", str, "sweep"),
        interval=section.value("interval", str, "5m"),
        max_unknown=_max_unknown(section),
        reminder=timedelta(seconds=section.duration_s("reminder", "24h")),
    )


def _max_unknown(section: Section) -> str:
    # YAML reads `3` as a number and `1%` as text; both are what people write.
    number = isinstance(section.data.get("max_unknown"), int)
    text = (
        str(section.value("max_unknown", int)) if number else section.value("max_unknown", str, "0")
    )
    section.read("max_unknown", lambda: parse_max_unknown(text, 1))
    return text


def parse_max_unknown(text: str, total: int) -> int:
    """How many nodes a count or a percentage of `total` means.

    Raises:
        ValueError: The text is neither.

    Examples:
        >>> parse_max_unknown("1%", 250)
        2
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(%?)", text.strip())
    if match is None or (not match[2] and "." in match[1]):
        raise ValueError(f"{text!r}: write a number of nodes, or a percentage such as 1%")
    if match[2] and float(match[1]) > 100:
        raise ValueError(f"{text!r}: a share of the nodes is at most 100%")
    return math.floor(float(match[1]) * total / 100) if match[2] else int(match[1])
