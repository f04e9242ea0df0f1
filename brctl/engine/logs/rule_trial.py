"""Try rules on lines, and rule files on their own examples."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from brctl.engine.logs.log_sources import read_blocks
from brctl.evidence.logs.event import clean
from brctl.library.log_rules import load_log_rules, matches, read_rule_file

LINE_LIMIT = 10_000
"""A trial shows lines to a person; whole logs go to `logs classify`."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One line and the rules that speak on it.

    Attributes:
        wanted: The rule that should speak, "" when none is demanded.
    """

    line: str
    names: tuple[str, ...]
    wanted: str = ""

    @property
    def passed(self) -> bool:
        return not self.wanted or self.wanted in self.names


def try_lines(path: Path, directories: Iterable[Path]) -> tuple[Trial, ...]:
    """Which rules speak on each line of a file or of standard input."""
    rules = load_log_rules(directories)
    data = b"".join(read_blocks(path, []))[: 1 << 22]
    lines = [clean(raw) for raw in data.split(b"\n")[:LINE_LIMIT] if raw.strip()]
    return tuple(Trial(line, matches(line, rules)) for line in lines)


def try_rule_file(path: Path) -> tuple[Trial, ...]:
    """Every example of a rule file, read by its rule beside the shipped ones."""
    rules = read_rule_file(path)
    return tuple(
        Trial(line, matches(line, (rule,)), rule.signature.name)
        for rule in rules
        for line in rule.examples
    )
