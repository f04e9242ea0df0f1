"""Turns the candidate lines of one input into events: signatures, tracebacks, progress, context."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from brctl.evidence.logs.catalogue import PROGRESS_ANCHORS, anchors_of
from brctl.evidence.logs.event import RECORD_LIMIT, LogEvent, clean
from brctl.evidence.logs.family import Family
from brctl.evidence.logs.health import GOES_ON
from brctl.evidence.logs.passed_on import QuotedTracebacks
from brctl.evidence.logs.phrasing.matched import ACCUSING, names_only
from brctl.evidence.logs.phrasing.speaker import is_said_by
from brctl.evidence.logs.progress.rows import StepRows
from brctl.evidence.logs.quiet_rows import falls_short
from brctl.evidence.logs.severity import is_below_warning, is_caught_by_library, states_warning
from brctl.evidence.logs.signature import Part, Signature, named_groups, root
from brctl.evidence.logs.signatures.harmless import BYSTANDER, QUOTED_OPTIONS, SAYS_SO
from brctl.evidence.logs.timestamps import seconds_of_year
from brctl.evidence.logs.tracebacks import CARRIERS, FINAL, FRAME, classify_final
from brctl.evidence.logs.unexplained import UNEXPLAINED, is_alarming, template_of
from brctl.evidence.logs.witnesses import GUESSED, QUEUE_FLUSHED, WITNESSES
from brctl.evidence.logs.wrapping import inner_texts, lines_of, without_entities
from brctl.evidence.numeric import NumericWatch, parse_progress
from brctl.model.fault import FaultClass, Origin

KEPT_PER_FAMILY = 8
"""Lines of one signature that one input keeps; the rest are counted. Bounds memory for any size."""

KEPT_UNEXPLAINED = 32
"""Kinds of unexplained lines that one input keeps."""

_FAMILIES_SPLIT = 1000
"""Families of one input from which on sensors are no longer told apart: bounds memory."""

_TEMPLATE = 120
QUOTED = 1000
"""Characters of a line that an event keeps."""

_START = 3
"""Characters of an anchor that are looked up before it is searched for."""

_GUESS_NEAR = 40
"""Characters before a match in which stands that it is one guess of several, or long past."""

TRACEBACK_LINES = 400
"""A final line further than this from its `Traceback` head belongs to something else."""

_RANK = re.compile(
    r"\[(?:default|rank|Rank )(?P<rank>\d+)\]|\brank[ =:](?P<rank2>\d+)\b", re.IGNORECASE
)
_NCCL_HOST = re.compile(
    r"(?:^|[\]:\s])(?P<host>(?=[\d.-]*[A-Za-z])\w[\w.-]*):\d+:\d+ \[(?P<cuda_device>\d+)\]"
)
_SYSLOG_HOST = re.compile(
    r"(?:^|[: ])\S{2,6} +\d{1,2} \d\d:\d\d:\d\d (?P<host>[A-Za-z][\w.-]*) [\w.-]+(?:\[\d+\])?:"
)
_TASK_PID = re.compile(r":(?P<pid>\d+) blocked")
_UPTIME = re.compile(r"^.{0,80}?\[ *(?P<uptime>\d{1,9}\.\d{6})\]")
_OTHER_GUESS = re.compile(r",? or \w|[^.;:?]{0,24}\?(?:\s|$)")
_AN_ERROR = re.compile(
    r"^(?!.*[Ww]arning\b)(?:|.*[\[ ])(?:ERROR|CRITICAL|FATAL)\b[\] :|-].*\w=|"
    r"Error: .{0,40}out of memory"
)
_GUESS_BEFORE = re.compile(
    r"\bor (?:was |were |got |is |been )?$|\b(?:maybe|perhaps|possibly)\b[^.;:]{0,16}$|"
    r"\b(?:last|previous|earlier|prior) (?:attempt|run|job)\b[^|;]{0,24}$"
)
_JUMP = replace(
    root(FaultClass.NUMERIC_NAN, "progress.jump", "loss", 0.74,
         "ByteRobust section 4.1: the 5x rule", origin=Origin.USER),
    beyond_words=True,
)  # fmt: skip
_NAN = root(
    FaultClass.NUMERIC_NAN, "progress.nan", "loss", 0.88, "ByteRobust section 4.1: NaN",
    origin=Origin.USER,
)  # fmt: skip


class LineIndex:
    """Signatures by the anchors that can lead to them."""

    def __init__(self, signatures: Sequence[Signature]) -> None:
        self.signatures = tuple(signatures)
        self._by_anchor: dict[str, list[int]] = {}
        self._by_start: dict[str, list[str]] = {}
        for anchor in anchors_of(self.signatures):
            self._by_start.setdefault(anchor[:_START], []).append(anchor)
        self._start_lengths = {len(start) for start in self._by_start}
        self._benign = [s for s in self.signatures if s.part is Part.BENIGN]
        for number, signature in enumerate(self.signatures):
            for anchor in signature.anchors if signature.part is not Part.BENIGN else ():
                self._by_anchor.setdefault(anchor, []).append(number)

    def anchors_on(self, text: str) -> frozenset[str]:
        """Every anchor on the line, for callers without a streaming engine.

        Only those are searched whose first characters stand on the line somewhere.
        """
        lowered = text.lower()
        starts = {lowered[at : at + n] for n in self._start_lengths for at in range(len(lowered))}
        near = starts & self._by_start.keys()
        return frozenset(a for start in near for a in self._by_start[start] if a in lowered)

    def possible(self, anchors: Iterable[str]) -> list[Signature]:
        """Signatures that one of the anchors can lead to, in catalogue order."""
        numbers = {number for anchor in anchors for number in self._by_anchor.get(anchor, ())}
        return [self.signatures[number] for number in sorted(numbers)]

    def harmless_row(self, text: str) -> Signature | None:
        """The first benign signature that matches."""
        lowered = text.lower()
        return next(
            (
                signature
                for signature in self._benign
                if any(anchor in lowered for anchor in signature.anchors)
                and signature.compiled.search(text)
            ),
            None,
        )


_IGNORED = re.compile(
    r"^(?P<prefix>.{0,60}?)Exception ignored (?:in|while)\b.{0,80}"
    r"_MultiProcessingDataLoaderIter\.__del__"
)
"""PyTorch's loader at the end of a process, sound ones too: what it raises there ends nothing."""


@dataclass(slots=True)
class LineReader:
    """Reads the candidate lines of one input in order; everything it keeps is bounded.

    Attributes:
        source: Name of the input.
        offset_s: Seconds to add to this input's clock.
    """

    source: str
    index: LineIndex
    offset_s: float = 0.0
    _context: dict[str, tuple[str, int]] = field(default_factory=dict)
    _frames: list[str] = field(default_factory=list)
    _function: str = ""
    _traceback_at: int = -TRACEBACK_LINES
    _ignored: tuple[str, int] | None = None
    _quoted: QuotedTracebacks = field(default_factory=QuotedTracebacks)
    _at_s: float | None = None
    _watch: NumericWatch = field(default_factory=NumericWatch)
    _unexplained: int = 0
    _steps: StepRows = field(default_factory=StepRows)
    _events: dict[str, list[LogEvent]] = field(default_factory=dict)
    _families: dict[str, Family] = field(default_factory=dict)

    def read(self, number: int, raw: bytes, anchors: Collection[str] | None = None) -> None:
        """Take one line; `anchors` are the texts known to stand on it, None to search."""
        text = clean(raw)
        lines = lines_of(clean(raw, RECORD_LIMIT)) if b'"' in raw else ()
        if lines:
            self._read_record(number, text, lines)
        elif anchors is not None and PROGRESS_ANCHORS.issuperset(anchors):
            self._read_progress(number, text)
        else:
            self._read_plain(number, text, anchors)

    def _read_plain(self, number: int, text: str, anchors: Collection[str] | None) -> None:
        shown = without_entities(text)
        if anchors is None or shown != text:
            anchors = self.index.anchors_on(shown)
        if not self._read_line(number, shown, anchors):
            self._read_alarm(number, shown)

    def _read_record(self, number: int, text: str, lines: Sequence[str]) -> None:
        """Read the lines of a record's message; its other fields where those say nothing."""
        said = [self._read_line(number, line, self.index.anchors_on(line)) for line in lines]
        if any(said) or self._read_line(number, text, self.index.anchors_on(text)):
            return
        # A collector stamps its own level on whatever a program prints.
        below = is_below_warning(text)
        for line in lines:
            if not below or states_warning(line):
                self._read_alarm(number, line)

    def _read_line(self, number: int, text: str, anchors: Collection[str]) -> bool:
        """Read one line but for words of alarm; whether it said anything."""
        if PROGRESS_ANCHORS.issuperset(anchors):
            self._read_progress(number, text)
            return True
        at_s = seconds_of_year(text)
        if at_s is not None:
            self._at_s = at_s + self.offset_s
        if self._is_ignored(number, text):
            return True
        self._follow_traceback(number, text)
        matched = self.match(text, number, anchors)
        for signature, fields in matched:
            self._keep(signature, number, text, fields)
        parts = {signature.part for signature, _ in matched}
        if not parts - {Part.CONTEXT, Part.GENERIC}:
            self._read_exception(number, text, explained=Part.GENERIC in parts)
        if not PROGRESS_ANCHORS.isdisjoint(anchors):
            self._read_progress(number, text)
        return any(signature.name not in _NAME_A_GPU for signature, _ in matched)

    def events(self) -> list[LogEvent]:
        """What was kept, in line order, each with the number of lines of its family."""
        made = (
            self._steps.proof(self.source),
            self._steps.loader(self.source),
            self._steps.norm_back(self.source),
        )
        kept = [event for event in made if event is not None]
        for name, events in self._events.items():
            first, *rest = events
            kept += [self._families[name].describe(first), *(replace(e, count=0) for e in rest)]
        kept = list(self._quoted.without_carrier(kept))
        return sorted(kept, key=lambda event: (event.line, event.signature.name))

    def match(
        self, text: str, number: int, anchors: Iterable[str]
    ) -> list[tuple[Signature, Mapping[str, str]]]:
        """The signatures that speak on a line, and what they name; harmless lines have none."""
        found: list[tuple[Signature, Mapping[str, str]]] = []
        texts = (text, *inner_texts(text))
        for signature in self.index.possible(anchors):
            if not self._holds(signature):
                continue
            match = _first_match(signature.compiled, texts)
            if match is None or (signature.part is Part.STOPPED and _is_one_guess(match)):
                continue
            if _only_looks_well(signature, text) or names_only(signature, match):
                continue
            fields = named_groups(match)
            if signature.sets:
                self._context[signature.sets] = (
                    fields.get("value", match[0]).strip().lower(),
                    number,
                )
            found.append((signature, fields))
        if any(signature.part is not Part.HEALTHY for signature, _ in found):
            row = next(filter(None, map(self.index.harmless_row, texts)), None)
            if row is not None:
                found = [pair for pair in found if _stands_beside(row, pair[0], text)]
        found = [pair for pair in found if is_said_by(text, pair[0])]
        return _without_weaker(_as_witnessed(found, texts))

    def _holds(self, signature: Signature) -> bool:
        for key, wanted in signature.when:
            have = self._context.get(key)
            if have is None or (wanted != "*" and have[0] != wanted):
                return False
        return True

    def _keep(
        self,
        signature: Signature,
        number: int,
        text: str,
        fields: Mapping[str, str],
        family: str = "",
    ) -> None:
        name = family or self._family_of(signature, fields)
        seen = self._families.setdefault(name, Family())
        seen.see(number, self._at_s, _uptime_s(text), fields)
        events = self._events.setdefault(name, [])
        if len(events) >= KEPT_PER_FAMILY:
            return
        known = {**self._known(text), **fields}
        event = LogEvent(signature, self.source, number, text[:QUOTED], self._at_s, known)
        events.append(replace(event, family=name))

    def _family_of(self, signature: Signature, fields: Mapping[str, str]) -> str:
        """A family for each sensor, so that one sensor's recovery settles no other's alarm."""
        name = f"{signature.name}:{fields['sensor']}" if "sensor" in fields else signature.name
        full = len(self._families) >= _FAMILIES_SPLIT
        return signature.name if full and name not in self._families else name

    def _known(self, text: str) -> dict[str, str]:
        known: dict[str, str] = {}
        for pattern in (_RANK, _NCCL_HOST, _SYSLOG_HOST):
            match = pattern.search(text)
            if match:
                known |= named_groups(match)
        task = _TASK_PID.search(self._context.get("hung-task", ("", 0))[0])
        if task:
            known.setdefault("pid", task["pid"])
        if "gpu" in self._context:
            known.setdefault("section_gpu", self._context["gpu"][0].rstrip(":"))
        return known

    def _is_ignored(self, number: int, text: str) -> bool:
        """Whether a line is of a traceback that Python printed and went on, up to its last line."""
        head = _IGNORED.match(text) if "Exception ignored" in text else None
        if head is not None:
            self._ignored = (head["prefix"], number)
            return True
        if self._ignored is None:
            return False
        prefix, began = self._ignored
        rest = text.removeprefix(prefix)
        inside = text.startswith(prefix) and number - began < TRACEBACK_LINES
        # Its own traceback has one head; the next is of another exception.
        is_head = rest.startswith("Traceback (most recent") and number == began + 1
        if inside and (is_head or rest.startswith(" ")):
            return True
        self._ignored = None
        return inside and FINAL.match(rest) is not None

    def _follow_traceback(self, number: int, text: str) -> None:
        if "Traceback (most recent call last)" in text:
            self._traceback_at = number
            self._frames.clear()
            self._quoted.begin(number, text)
            return
        if self._quoted.is_open(number) and _first_match(FINAL, (text, *inner_texts(text))):
            self._quoted.end()
        frame = _first_match(FRAME, (text, *inner_texts(text))) if 'File "' in text else None
        if frame and len(self._frames) < TRACEBACK_LINES:
            self._frames.append(frame["path"])
            self._function = frame["function"] or ""

    def _read_exception(self, number: int, text: str, *, explained: bool) -> None:
        """Keep the exception a line names, unless its type only carries words already explained."""
        final = _first_match(FINAL, (text, *inner_texts(text)))
        if final is None or "Warning" in final["type"] or is_caught_by_library(text):
            return
        if explained and CARRIERS.fullmatch(final["type"]):
            return
        inside = number - self._traceback_at < TRACEBACK_LINES
        signature = classify_final(
            final["type"],
            tuple(self._frames),
            final["words"] or "",
            in_traceback=inside,
            function=self._function if self._frames else "",
        )
        self._keep(signature, number, text, {"exception": final["type"]})

    def _read_alarm(self, number: int, text: str) -> None:
        """Keep a line that nobody knows and that reads like an error, or a known harmless one."""
        if number - self._traceback_at < TRACEBACK_LINES and FRAME.match(text):
            return
        if not is_alarming(text) or is_below_warning(text):
            return
        row = self.index.harmless_row(text)
        if row is not None and _ends_program(row, text):
            row = None
        if row is not None:
            self._keep(row, number, text, {})
            return
        name = f"{UNEXPLAINED.name}:{template_of(text)[:_TEMPLATE]}"
        if name in self._families or self._unexplained < KEPT_UNEXPLAINED:
            self._unexplained += name not in self._families
            self._keep(UNEXPLAINED, number, text, {}, family=name)

    def _read_progress(self, number: int, text: str) -> None:
        row = parse_progress(text)
        if row is not None:
            self._steps.see(row, number, self._at_s, text)
        trouble = self._watch.see(row) if row else None
        if trouble:
            at_s = seconds_of_year(text)
            self._at_s = at_s + self.offset_s if at_s is not None else self._at_s
            self._keep(_NAN if trouble.kind == "nan" else _JUMP, number, text, {})


_NAME_A_GPU = frozenset({"dcgm.gpu", "smi.gpu"})
"""Rows that tell whose a line is and not what it says, which may be `GPU 3 : FAIL`."""

_CAUSES = ACCUSING - {Part.VICTIM}
_NO_WORD_OF_CAUSES = frozenset({SAYS_SO.name, BYSTANDER})


def _stands_beside(harmless: Signature, other: Signature, text: str) -> bool:
    """Whether a row speaks on a line though another calls it harmless.

    What a program says of its own line takes nothing from a cause that the line names, nor does
    who speaks on it.
    """
    if _ends_program(harmless, text):
        return other.part is not Part.BENIGN
    if harmless.name in _NO_WORD_OF_CAUSES and (other.physical or other.part is Part.ROOT):
        return True
    return other.part is Part.HEALTHY


def _only_looks_well(signature: Signature, text: str) -> bool:
    """Whether a line of alarm has the words of a success: `Local abort completed successfully`."""
    if signature.part is not Part.HEALTHY:
        return False
    return (signature.strength >= GOES_ON and is_alarming(text)) or falls_short(text)


def _ends_program(harmless: Signature, text: str) -> bool:
    """Whether a line that quotes an option or a warning tells of an error all the same.

    An exception's last line does, what a logger calls an error of a call with options, and memory
    that ran out.
    """
    if harmless.name != QUOTED_OPTIONS:
        return False
    final = FINAL.match(text)
    if final is not None and "Warning" not in final["type"]:
        return True
    return _AN_ERROR.search(text) is not None


def _first_match(pattern: re.Pattern[str], texts: Iterable[str]) -> re.Match[str] | None:
    return next((match for text in texts if (match := pattern.search(text))), None)


def _is_one_guess(match: re.Match[str]) -> bool:
    """Whether the line offers other causes beside the matched one, asks, or tells of an old run."""
    start = max(0, match.start() - _GUESS_NEAR)
    before = _GUESS_BEFORE.search(match.string, start, match.start())
    return before is not None or _OTHER_GUESS.match(match.string, match.end()) is not None


def _uptime_s(text: str) -> float | None:
    """Seconds since boot, as `dmesg` prints them; None on other lines."""
    match = _UPTIME.match(text)
    return float(match["uptime"]) if match else None


def _as_witnessed(
    found: list[tuple[Signature, Mapping[str, str]]], texts: Sequence[str]
) -> list[tuple[Signature, Mapping[str, str]]]:
    """Without the causes that rows read in the words of a witness, or that it may only guess at."""
    heard = [signature for signature, _ in found if signature.name in WITNESSES]
    return [pair for pair in found if not any(_is_guess_of(w, pair[0], texts) for w in heard)]


def _is_guess_of(witness: Signature, cause: Signature, texts: Sequence[str]) -> bool:
    """Whether a cause has no other words than the witness's; what hardware tells stands beside."""
    if cause.part not in _CAUSES or (cause.physical and witness.name != QUEUE_FLUSHED):
        return False
    own, its = _first_match(witness.compiled, texts), _first_match(cause.compiled, texts)
    overlap = own and its and own.start() < its.end() and its.start() < own.end()
    return bool(overlap) or cause.fault in GUESSED


def _without_weaker(
    found: list[tuple[Signature, Mapping[str, str]]],
) -> list[tuple[Signature, Mapping[str, str]]]:
    """One cause a line: the strongest; generic rows speak only when nothing else does."""
    roots = [pair for pair in found if pair[0].part in (Part.ROOT, Part.STOPPED)]
    if not roots:
        roots = [pair for pair in found if pair[0].part is Part.GENERIC]
    rest = [
        pair
        for pair in found
        if pair[0].part in (Part.VICTIM, Part.TEARDOWN, Part.CONTEXT, Part.HINT, Part.HEALTHY)
    ]
    if not roots:
        return rest
    best = max(roots, key=lambda pair: pair[0].strength)
    return [best, *(pair for pair in rest if pair[0].part is not Part.VICTIM)]
