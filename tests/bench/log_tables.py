r"""The composed lines, excerpts and logs in `log_lines/`: what programs print, and what it means.

`lines_*.txt` has `class|line`: the class that an expert would name if the line decided; `/origin`
behind it where that differs from the class's own; several classes, likeliest first, where the line
cannot tell them apart; `quiet` where nothing is wrong, `unknown` where it does not say what. ` \n `
parts lines. `excerpts_*.txt` has `=== class | incident` above the lines of each, `logs_*.txt` has
`=== class | origin | remark` above whole logs: what one finds in one file or one capture, with
victims, retries that succeeded and harmless alarms around the cause.
Forms are the programs' own; hosts, numbers, paths and times are made up.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from brctl.model.fault import FaultClass

FOLDER = Path(__file__).with_name("log_lines")
LINE_WEIGHT = 0.3
"""What one composed line counts beside a whole log."""

EXCERPT_WEIGHT = 0.6
LOG_WEIGHT = 1.0
_HEAD = re.compile(r"^=== ([a-z,/ -]+?) *\| *(.*)\n", re.MULTILINE)
_QUIET = {"quiet": "no-fault", "weak": "no-fault"}


@dataclass(frozen=True)
class Example:
    """A labelled text.

    Attributes:
        text: Its lines.
        fault: Its class, the likeliest where it has several.
        weight: What it counts beside a whole log.
        others: Classes that it may be as well.
        section: The kind of program or incident it is of.
    """

    text: str
    fault: FaultClass
    weight: float = 1.0
    others: tuple[FaultClass, ...] = ()
    section: str = ""


def read_tables(folder: Path = FOLDER) -> list[Example]:
    """Every line, excerpt and log.

    Raises:
        ValueError: A row names no known class.
    """
    lines = [row for path in sorted(folder.glob("lines_*.txt")) for row in _lines(path)]
    for kind, weight in (("excerpts", EXCERPT_WEIGHT), ("logs", LOG_WEIGHT)):
        for path in sorted(folder.glob(f"{kind}_*.txt")):
            lines += _parts(path, weight)
    return lines


def _lines(path: Path) -> Iterator[Example]:
    section = path.stem
    for row in path.read_text().splitlines():
        if row.startswith("## "):
            section = f"{path.stem}: {row.removeprefix('## ')}"
        elif row:
            label, _, text = row.partition("|")
            yield _example(label, text.replace(" \\n ", "\n"), LINE_WEIGHT, section)


def _parts(path: Path, weight: float) -> Iterator[Example]:
    _, *parts = _HEAD.split(path.read_text())
    for label, name, text in zip(*[iter(parts)] * 3, strict=True):
        yield _example(label, text.strip("\n"), weight, f"{path.stem}: {name}")


def _example(label: str, text: str, weight: float, section: str) -> Example:
    names = [name.partition("/")[0].strip() for name in label.split(",")]
    first, *others = [FaultClass(_QUIET.get(name, name)) for name in names]
    return Example(text, first, weight, tuple(others), section)
