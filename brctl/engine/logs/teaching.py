"""Teach brctl a log of this site, and show what an unknown log is like."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from brctl.engine.logs.classify import Blocks, Classifier
from brctl.engine.logs.log_sources import read_blocks
from brctl.engine.logs.text_sample import TextSample
from brctl.evidence.logs.signature import Signature
from brctl.evidence.logs.taught import phrase_of, rule_for
from brctl.evidence.logs.words.nearest import NearRule, nearest_rules
from brctl.evidence.logs.words.unusual import UnusualLine, rank_unusual
from brctl.library.log_model import shipped_model
from brctl.library.log_rules import write_taught_rule
from brctl.model.errors import UsageError
from brctl.model.fault import FaultClass
from brctl.model.log_verdict import LogVerdict

_LOOKED_AT = 20
_EXPLAINED = 5


@dataclass(frozen=True, slots=True)
class Lesson:
    """A rule that was learned from one log.

    Attributes:
        number: The line it was learned from.
        before: What the log was classified as without it.
        path: The rule file that was written.
    """

    rule: Signature
    line: str
    number: int
    before: LogVerdict
    after: LogVerdict
    path: Path


@dataclass(frozen=True, slots=True)
class ExplainedLine:
    """A line that stands out and the rules it is like."""

    line: UnusualLine
    near: tuple[NearRule, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """What is known about a log: its verdict, and its unusual lines beside known ones."""

    verdict: LogVerdict
    lines: tuple[ExplainedLine, ...]


def teach(
    path: Path,
    fault: FaultClass,
    signatures: Sequence[Signature],
    directory: Path,
    on: date,
    number: int | None = None,
) -> Lesson:
    """Learn that this log is of this class, by its most unusual line or the one given.

    Raises:
        UsageError: No line has words to learn by, or the rules already read the log otherwise.
        OSError: The rule cannot be written.
    """
    lines = _lines_of(path)
    before = _verdict(path, signatures)
    if before.fault is fault:
        raise UsageError(f"{path}: known as {fault} already (p={before.probability:.2f})")
    chosen, phrase = _chosen(path, lines, number)
    rule = rule_for(phrase, fault, f"taught on {on} from {path.name}")
    after = _verdict(path, (rule, *signatures))
    if after.fault is not fault:
        deciding = after.evidence[0].signature if after.evidence else "no rule"
        raise UsageError(
            f"{path}: still {after.fault} with the rule ({deciding} decides); nothing was learned",
            hint="give the line that shows the cause with --line N",
        )
    written = write_taught_rule(directory, rule, lines[chosen].strip())
    return Lesson(rule, lines[chosen].strip(), chosen, before, after, written)


def explain(path: Path, signatures: Sequence[Signature]) -> Explanation:
    """The verdict on a log, and for its most unusual lines the known ones they are like.

    Raises:
        UsageError: There is no such file.
    """
    model = shipped_model()
    lines = _lines_of(path)
    numbers = tuple(lines)
    found = rank_unusual(tuple(lines.values()), model, _EXPLAINED)
    explained = tuple(
        ExplainedLine(
            UnusualLine(numbers[line.number - 1], line.text, line.alike, line.score),
            nearest_rules(line.text, signatures, model.surprise_of),
        )
        for line in found
    )
    return Explanation(_verdict(path, signatures), explained)


def _lines_of(path: Path) -> Mapping[int, str]:
    if not path.is_file():
        raise UsageError(f"{path}: no such file", hint="give one log; a folder holds many causes")
    sample = TextSample()
    for block in read_blocks(path, []):
        sample.feed(block)
        sample.newlines += block.count(b"\n")
    return sample.lines()


def _verdict(path: Path, signatures: Sequence[Signature]) -> LogVerdict:
    blocks = Blocks(read_blocks(path, []))
    return Classifier(signatures).classify_inputs([(str(path), blocks)]).overall


def _chosen(path: Path, lines: Mapping[int, str], number: int | None) -> tuple[int, str]:
    """The line to learn from, and its phrase."""
    if number is not None:
        if number not in lines:
            raise UsageError(f"{path}:{number}: no such line at either end of the log, or empty")
        candidates = [number]
    else:
        numbers = tuple(lines)
        ranked = rank_unusual(tuple(lines.values()), shipped_model(), _LOOKED_AT)
        candidates = [numbers[line.number - 1] for line in ranked]
    for candidate in candidates:
        phrase = phrase_of(lines[candidate])
        if phrase:
            return candidate, phrase
    raise UsageError(
        f"{path}: no line with words that stay the same when the values change",
        hint="write a rule in rules.d by hand: brctl logs rules test FILE",
    )
