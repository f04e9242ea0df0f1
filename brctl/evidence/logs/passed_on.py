"""Exceptions that only pass on another one: of another rank, of a process below, of a pool's worker.

Whoever catches an exception for somebody else raises one of its own, and its type says where it was
caught, not what went wrong: a save that another rank's data loader ended is no storage fault. Such
an exception is a victim where the other one is in the log or where its own words point to it.
"""

# ruff: noqa: E501 - a pattern is read whole

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from brctl.evidence.logs.event import LogEvent
from brctl.evidence.logs.signature import Part, aside, root
from brctl.model.fault import FaultClass

_SOURCE = "exceptions of launchers, pools and checkpoints that carry another one"

PASSED_ON = aside(Part.VICTIM, "python.passed-on", "error", _SOURCE)

FAILED_CHECKPOINT = root(
    FaultClass.STORAGE_CHECKPOINT, "python.failed-checkpoint", "error", 0.72, _SOURCE
)
"""torch.distributed.checkpoint: what the ranks' own exceptions were stands in the lines behind it."""

CHECKPOINT_TYPE = re.compile(r"(?:.*\.)?CheckpointException")

_QUOTED_HEAD = "Traceback (most recent call last): (RANK "
_LINES = 400
"""A final line further than this from the head of a quoted traceback belongs to something else."""

_TYPES = re.compile(
    r"(?:.*\.)?(?:(?:Training|Trials?|Workers?|WorkerGroup|Subprocess|Child|Job)Failed(?:Error|Exception)|WorkerGroupError|TuneError|ExecuteUserScriptError|UserScriptException|"
    r"CellExecutionError|PapermillExecutionError|TerminatedWorkerError|BrokenExecutor(?:Error)?|RemoteError|RemoteException|HorovodInternalError)"
)
"""Types that report that a process below failed, and not why."""

_WHERE = r"(?:error|exception|log|trace|traceback|stack ?trace|output|stderr)s?(?: (?:messages?|output|files?))?"
_WHICH = r"(?:(?:previous|earlier|other|full|complete|ranks?'?|workers?'?|child|inner|underlying|engine) ){0,3}"
_POINTS_ELSEWHERE = re.compile(
    rf"\b(?:see|check|inspect|look at|refer to) (?:the |its |their |each )?{_WHICH}{_WHERE} ?(?:\(?above\)?|for (?:the |a |its )?(?:(?:root|real|actual|original|underlying) )?(?:cause|reason|more details))|"
    r"\b(?:one or more|some|another|other) (?:of the )?(?:workers?|ranks?|(?:sub|child )?process(?:es)?|actors?|replicas?) (?:has |have |had )?(?:failed|died|crashed|exited|aborted|raised)",
    re.IGNORECASE,
)
"""Words that send whoever reads the exception to another one."""


def passes_on(type_name: str, words: str) -> bool:
    """Whether an exception by its type or its words only tells that another one came first."""
    return (
        _TYPES.fullmatch(type_name) is not None or _POINTS_ELSEWHERE.search(words[:400]) is not None
    )


@dataclass(slots=True)
class QuotedTracebacks:
    """Follows the tracebacks of other ranks that an exception prints behind its own line.

    Attributes:
        any_read: Of one at least its last line was read: that exception decides.
    """

    any_read: bool = False
    _head: int = -_LINES

    def begin(self, number: int, text: str) -> None:
        """Take a line that may be the head of a quoted traceback."""
        if _QUOTED_HEAD in text:
            self._head = number

    def is_open(self, number: int) -> bool:
        """Whether a last line now would be that of a quoted traceback."""
        return number - self._head < _LINES

    def end(self) -> None:
        """The last line of the open one was read."""
        self._head, self.any_read = -_LINES, True

    def without_carrier(self, events: Iterable[LogEvent]) -> Iterator[LogEvent]:
        """The events, those that carry what was read behind them turned into victims."""
        for event in events:
            carries = self.any_read and event.signature is FAILED_CHECKPOINT
            yield replace(event, signature=PASSED_ON) if carries else event
