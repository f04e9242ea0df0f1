"""Classify logs: stream candidate lines into readers, judge each input and all together."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from brctl.engine.logs.anchor_scan import AnchorEngine, AnchorScan, open_engine
from brctl.engine.logs.log_sources import list_inputs, read_blocks
from brctl.engine.logs.text_sample import TextSample
from brctl.evidence.logs.catalogue import SHIPPED, anchors_of
from brctl.evidence.logs.event import LogEvent
from brctl.evidence.logs.health import split
from brctl.evidence.logs.judge import judge
from brctl.evidence.logs.leads import with_leads, with_leads_of, with_words
from brctl.evidence.logs.progress.benchmark import benchmark_rows
from brctl.evidence.logs.progress.counters import counters_at_zero
from brctl.evidence.logs.progress.shape import progress_shape
from brctl.evidence.logs.progress.slower import slower_steps
from brctl.evidence.logs.reader import LineIndex, LineReader
from brctl.evidence.logs.signature import SPEAKING, Signature
from brctl.evidence.logs.words.components import NAMES_NO_CAUSE, component_event
from brctl.evidence.logs.words.second_opinion import (
    NO_WORDS,
    proof_of_words,
    with_ordinary,
)
from brctl.evidence.logs.words.word_model import Heard, hear
from brctl.evidence.logs.wrapping import rejoined
from brctl.library.log_model import shipped_model
from brctl.model.evidence import Role
from brctl.model.fault import FaultClass
from brctl.model.log_verdict import LogClassification, LogVerdict
from brctl.playbook.recommend import recommend_for_logs

_SAMPLE_BYTES = 64 << 10
_CONTROL_SHARE = 0.05
SEARCHED_INPUTS = 16
"""Inputs of unknown cause that are searched for leads; ranks that fail together say the same."""

PROVED = 0.85
"""A log stated healthy as surely as this ended well; below, an unread line may speak against it."""

SURE_ENOUGH = 0.85
"""What the rules state as surely is not put to the model: its tables cost a tenth of a second, the
lines of a long input up to one.
"""

LINES_AGAINST_HEALTH = 3
"""Lines of a component no rule read that weigh against a proof of health: one is in passing."""

_TEXT = bytes({*range(32, 127), *range(128, 256), *b"\t\n\r\f\v\b\x07\x1b"})
"""Bytes of text in any encoding: random data has a tenth of others, logs next to none."""


@dataclass(slots=True)
class Classifier:
    """Signatures compiled once; each input is read in one pass.

    Attributes:
        signatures: The shipped ones and the site's own.
        clock_offsets_s: Seconds to add to an input's clock, by input name.
        on_input: Told the name of each input before it is read.
    """

    signatures: Sequence[Signature] = SHIPPED
    clock_offsets_s: Mapping[str, float] = field(default_factory=dict)
    on_input: Callable[[str], None] = lambda _: None
    engine: AnchorEngine = field(init=False)
    _index: LineIndex = field(init=False)

    def __post_init__(self) -> None:
        self.engine = open_engine(anchors_of(self.signatures))
        self._index = LineIndex(self.signatures)

    def classify_paths(self, paths: Iterable[Path]) -> LogClassification:
        """Files and directories; `-` is standard input."""
        notes: list[str] = []
        files = [
            f for path in paths for f in ([path] if str(path) == "-" else list_inputs(path, notes))
        ]
        return self.classify_inputs(((str(f), self._blocks(f)) for f in files), notes)

    def classify_inputs(
        self,
        inputs: Iterable[tuple[str, "Blocks"]],
        notes: Sequence[str] = (),
        *,
        complete: bool = True,
    ) -> LogClassification:
        """Named inputs, each a source of blocks; not `complete` when a log is known to be missing.

        An empty log beside others that speak is quiet, as most ranks are; alone it is no answer.
        """
        items: list[LogVerdict] = []
        everything: list[LogEvent] = []
        unread = list(notes)
        any_read = False
        heard: list[tuple[LogVerdict, Mapping[FaultClass, float]]] = []
        sure: set[FaultClass] = set()
        for name, blocks in inputs:
            self.on_input(name)
            sample = TextSample()
            events, lines, readable = self.read_events(name, blocks, sample)
            events += _slower(events, sample, name)
            item = judge(name, events, lines, readable=readable)
            if item.probability >= SURE_ENOUGH:
                sure.add(item.fault)
            elif readable and len(heard) < SEARCHED_INPUTS:
                item, words = self._searched(item, events, sample.lines())
                heard.append((item, words))
            items.append(recommend_for_logs(item))
            everything += events
            unread += lines
            any_read = any_read or readable
            complete = complete and (readable or blocks.is_empty)
        items.sort(key=lambda item: item.name)
        readable = any_read and complete
        overall = judge("", everything, unread, readable=readable)
        words = _words_of_all(heard, sure, overall)
        if words:
            overall = judge("", everything, unread, readable=readable, words=words)
        overall = with_leads_of(overall, items)
        return LogClassification(tuple(items), recommend_for_logs(overall))

    def read_events(
        self, name: str, blocks: "Blocks", sample: TextSample | None = None
    ) -> tuple[list[LogEvent], list[str], bool]:
        """Events of one input, notes on what could not be read, and whether anything was."""
        scan = AnchorScan(self.engine)
        reader = LineReader(name, self._index, self.clock_offsets_s.get(name, 0.0))
        size = zeros = 0
        text = True
        for block in blocks:
            text = text and (size > 0 or not _is_binary(block))
            size += len(block)
            zeros += block.count(0)
            if sample is not None:
                sample.feed(block)
            for line in scan.feed(block):
                reader.read(line.number, line.raw, line.anchors)
        for line in scan.finish():
            reader.read(line.number, line.raw, line.anchors)
        if sample is not None:
            sample.newlines = scan.newlines
        notes = list(blocks.notes)
        if not size:
            notes.append(f"{name}: empty")
        if zeros:
            notes.append(f"{name}: {zeros} NUL bytes; binary or a sparse file after a crash")
        if not text:
            notes.append(f"{name}: binary, not a log")
        if scan.long_lines:
            notes.append(f"{name}: a line longer than 1 MiB was read in pieces")
        readable = bool(size) and text and zeros * 10 < size and not blocks.failed
        return reader.events(), notes, readable

    def _searched(
        self, item: LogVerdict, events: list[LogEvent], text: Mapping[int, str]
    ) -> tuple[LogVerdict, Mapping[FaultClass, float]]:
        """A verdict after a look at the text, and how likely its words make each class."""
        heard = hear(shipped_model(), text, events)
        if not _is_open(item):
            item = judge(item.name, events, item.notes, words=heard.shares)
            return with_words(item, heard, item.name), heard.shares
        whole = rejoined(text) if item.fault is FaultClass.UNKNOWN else {}
        if whole:
            again = self._events_of(item.name, whole)
            anew = hear(shipped_model(), whole, again)
            told = judge(item.name, again, item.notes, words=anew.shares)
            if told.fault is not FaultClass.UNKNOWN:
                events[:], text, item, heard = again, whole, told, anew
        events += self._found_in(item, events, text, heard)
        item = judge(item.name, events, item.notes, words=heard.shares)
        if item.fault is FaultClass.UNKNOWN:
            item = _beside_ordinary(item, events, text, heard)
        if item.fault is FaultClass.UNKNOWN:
            return with_leads(item, text, heard, item.name), heard.shares
        return with_words(item, heard, item.name), heard.shares

    def _found_in(
        self, item: LogVerdict, events: Sequence[LogEvent], text: Mapping[int, str], heard: Heard
    ) -> list[LogEvent]:
        """What no rule of one line reads: progress, a component that fails, words of health."""
        advances = _proof_of_shape(text, item.name)
        needed = 1 if item.fault is FaultClass.UNKNOWN else LINES_AGAINST_HEALTH
        failing = component_event(text, item.name, self._is_known, needed)
        if failing is not None and failing.signature.fault in _settled(events):
            failing = None
        found = [event for event in (advances, failing) if event is not None]
        if not found and item.fault is FaultClass.UNKNOWN:
            well = proof_of_words(heard, item.name, len(text))
            found = [well] if well is not None else []
        return found

    def _events_of(self, name: str, lines: Mapping[int, str]) -> list[LogEvent]:
        reader = LineReader(name, self._index, self.clock_offsets_s.get(name, 0.0))
        for number, line in lines.items():
            reader.read(number, line.encode())
        return reader.events()

    def _is_known(self, text: str) -> bool:
        """Whether a rule reads a line; a warning that names no cause is not yet read."""
        reader = LineReader("", self._index)
        matched = reader.match(text, 1, self._index.anchors_on(text))
        known = any(row.name not in NAMES_NO_CAUSE for row, _ in matched)
        return known or self._index.harmless_row(text) is not None

    def _blocks(self, path: Path) -> "Blocks":
        notes: list[str] = []
        return Blocks(read_blocks(path, notes), notes)


def _words_of_all(
    heard: Sequence[tuple[LogVerdict, Mapping[FaultClass, float]]],
    sure: Collection[FaultClass],
    by_rules: LogVerdict,
) -> Mapping[FaultClass, float]:
    """The model's shares over all inputs: of those that are not well, where some are not.

    Where rules name a cause, only of the inputs it stands in: the words of its victims say nothing
    of it. None where an input that the model did not read surely has a class, for the same reason.
    """
    claimed = {item.fault for item, _ in heard} - {FaultClass.NO_FAULT, FaultClass.UNKNOWN}
    if set(sure) - {FaultClass.UNKNOWN, *({FaultClass.NO_FAULT} if claimed else ())}:
        return NO_WORDS
    roots = [line for line in by_rules.evidence if line.role is Role.ROOT]
    files = {line.file for line in roots if line.signature == roots[0].signature}
    if files:
        heard = [(item, words) for item, words in heard if item.name in files]
    ill = [words for item, words in heard if words and item.fault is not FaultClass.NO_FAULT]
    asked = ill or [words for _, words in heard if words]
    if not asked:
        return NO_WORDS
    return {fault: sum(words[fault] for words in asked) / len(asked) for fault in asked[0]}


def _beside_ordinary(
    item: LogVerdict, events: list[LogEvent], text: Mapping[int, str], heard: Heard
) -> LogVerdict:
    """Health where only alarms that sound logs print too stood against it; else as it was."""
    quiet = with_ordinary(events, heard, list(text))
    told = item if quiet == events else judge(item.name, quiet, item.notes, words=heard.shares)
    if told.fault is not FaultClass.NO_FAULT:
        return item
    events[:] = quiet
    return told


def _proof_of_shape(text: Mapping[int, str], name: str) -> LogEvent | None:
    """What shows health by the shape of its lines: steps, a benchmark's rows, counters at zero."""
    return progress_shape(text, name) or benchmark_rows(text, name) or counters_at_zero(text, name)


def _slower(events: Sequence[LogEvent], sample: TextSample, name: str) -> list[LogEvent]:
    """That a job became slower, where it has steps and nothing else is known to hold it."""
    if any(event.signature.part in SPEAKING for event in events):
        return []
    slower = slower_steps(sample.lines(), name)
    return [] if slower is None else [slower]


def _settled(events: Sequence[LogEvent]) -> set[FaultClass | None]:
    """Classes whose warnings are over or too few: an unread line beside them tells of the same."""
    _, over = split(events)
    return {event.signature.fault for event in over}


def _is_open(item: LogVerdict) -> bool:
    """Whether a verdict leaves room for what no rule read: no cause, or health by a weak proof."""
    if item.fault is FaultClass.NO_FAULT:
        return item.probability < PROVED
    return item.fault is FaultClass.UNKNOWN


def _is_binary(block: bytes) -> bool:
    """Whether a first block holds more control characters than any log does."""
    sample = block[:_SAMPLE_BYTES]
    return len(sample.translate(None, _TEXT)) > _CONTROL_SHARE * len(sample)


@dataclass(slots=True)
class Blocks:
    """The blocks of one input and what went wrong while reading them."""

    source: Iterable[bytes]
    notes: list[str] = field(default_factory=list)
    failed: bool = False
    is_empty: bool = True

    def __iter__(self) -> Iterator[bytes]:
        try:
            for block in self.source:
                self.is_empty = self.is_empty and not block
                yield block
        except OSError as exc:
            self.failed = True
            self.is_empty = False
            self.notes.append(f"cannot be read: {exc.strerror or exc}")
