"""One line that means something, cleaned and placed in time."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from brctl.evidence.logs.signature import Signature

TEXT_LIMIT = 2048
"""Characters of a line that are matched and kept: longer lines are one rank dumping a tensor."""

RECORD_LIMIT = 16 << 10
"""Characters of a record whose message is read line by line: a traceback in one string."""

_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[@-_]|\^\[\[[0-9;]*m"
)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@dataclass(frozen=True, slots=True)
class LogEvent:
    """A line matched by a signature.

    Attributes:
        source: File or stream it stands in.
        line: Line number from 1.
        text: The line without escapes and control characters, bounded.
        at_s: Seconds since the start of the year, when the line or one before it says; logs without
            a year (syslog, glog) compare with those that have one.
        fields: Named groups of the pattern: host, rank, gpu, peer, ...
        count: Lines of this family in this source.
        reported: Errors that those lines report; one line may stand for hundreds.
        last_line: The family's newest line in this source, on its first event; 0 on others.
        last_at_s: When that was, as `at_s`.
        family: What lines are counted together; the signature's name but for unexplained lines.
        rate_per_min: Lines of the family a minute, on its first event; None without clocks.
    """

    signature: Signature
    source: str
    line: int
    text: str
    at_s: float | None = None
    fields: Mapping[str, str] = field(default_factory=dict)
    count: int = 1
    reported: int = 1
    last_line: int = 0
    last_at_s: float | None = None
    rate_per_min: float | None = None
    family: str = ""

    def newest(self) -> "LogEvent":
        """The same family where it was seen last, for questions of order."""
        return replace(self, line=self.last_line or self.line, at_s=self.last_at_s or self.at_s)


def clean(raw: bytes, limit: int = TEXT_LIMIT) -> str:
    """A line as text that is safe to print: escapes and control characters removed, bounded."""
    text = raw[:limit].decode("utf-8", "replace")
    if "\x1b" in text or "^[" in text:
        text = _ESCAPES.sub("", text)
    return _CONTROL.sub(" ", text).rstrip()
