"""What collectors and people put around a line: JSON records, stamps of containers, marks of ranks, quoting.

The same line must mean the same however it reached us. A record is opened and its message read as the lines it has; marks before a line are
kept for its time, host and rank, and the rows are tried on what stands behind them too.
"""

# ruff: noqa: E501 - a pattern is read whole

import html
import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

_MESSAGE = re.compile(
    r'"(?:log|message|msg|MESSAGE|Message|@message|text|body|line|exc_info|exception|traceback|stack(?:_?trace)?)" ?: ?"(?P<text>(?:[^"\\]|\\.)*)'
)
_QUOTED_MESSAGE = re.compile(r'\b(?:msg|message)="(?P<text>(?:[^"\\]|\\.)*)"')
_WRITTEN = re.compile(
    r'"(?:time|ts|timestamp|@timestamp|asctime|eventTime|EventTimestamp|Created)" ?: ?"(?P<stamp>\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[^"]{0,16})"'
)
_JOURNAL = re.compile(r'"__REALTIME_TIMESTAMP" ?: ?"(?P<micros>\d{16})"')
_HOST = re.compile(r'"(?:_HOSTNAME|hostname|host)" ?: ?"(?P<host>[\w.-]{1,64})"')
_PROGRAM = re.compile(r'"(?:SYSLOG_IDENTIFIER|_COMM|ident)" ?: ?"(?P<program>[\w./-]{1,40})"')

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_MARK = re.compile(
    r"(?:>|&gt;) ?|"
    r"\[?20\d\d[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?\]?(?: std(?:out|err) [FP])?[ \t]+|"
    r"std(?:out|err) [FP] |<\d{1,3}>(?:1 )?|"
    r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) +\d{1,2} \d\d:\d\d:\d\d [\w.-]{1,64} [\w./@-]{1,64}(?:\[\d+\])?: ?|"
    r"[\w.-]{1,64} [\w./@-]{1,64} (?:\d+|-) (?:\S{1,40}) - (?:- )?|"
    r"\[\d+,\d+\]<std\w+>: ?|\[(?:pod|rank|default|trainer|node|worker)[ /:_-]?[^\]\n]{0,80}\]:? ?|"
    r"(?:DEBUG|INFO|WARNING|ERROR|CRITICAL):[\w.]{1,60}:|\[?(?:DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|CRITICAL|FATAL)\]?(?: ?[:|-] ?| )(?=\S)|[IWEF]\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ [\w./-]+:\d+\] |"
    r"\[20\d\d-[^\]\n]{6,30}\]\[[\w.]{1,60}\]\[\w+\](?: - )?|- [\w.]{1,60} - \w+ - |\| (?!.*\|\s*$)|\d{1,6}(?:\t| {2}(?=\S))|"
    r"\([\w ]{0,40}pid=\d+[^)\n]{0,60}\) ?|[\w.-]{1,60} +\| |\d{1,5}: |"
    r"[\w./@-]{0,120}\b(?:messages|syslog|dmesg|journal|[\w-]{1,60}\.(?:log|out|err|txt))(?:\.\d{1,3})?[:-](?:\d{1,7}[:-])? ?|[a-z][\w-]{0,40}\d(?:\.[\w.-]{1,60})?: |"
    r"[-*+] |\d{10,19} "
)
_ENTITY = re.compile(r"&(?:lt|gt|quot|amp|apos|#x?[0-9a-f]{1,6});", re.IGNORECASE)

_NARROWEST, _WIDEST = 60, 250
_BROKEN = 3
"""Lines that have to end at a terminal's edge before it is taken for one."""

_MARKS = 6
"""Marks before one line: a rank in a container in a pod in a quoted post has four."""

_PIECES = 400
"""Lines that one record is read as: a whole traceback, and no bomb."""


def lines_of(text: str) -> tuple[str, ...]:
    """The lines a record holds, each behind the record's own time, host and program; none for a plain line."""
    if '="' not in text and '":' not in text and '" :' not in text:
        return ()
    pattern = _MESSAGE if '"' in text and ":" in text and _MESSAGE.search(text) else _QUOTED_MESSAGE
    found = [_unescaped(match["text"]) for match in pattern.finditer(text)]
    head = _head(text)
    lines = [line for message in found for line in message.splitlines() if line.strip()]
    return tuple(head + line for line in lines[:_PIECES])


def rejoined(lines: Mapping[int, str]) -> dict[int, str]:
    """Lines of a terminal that were copied as it broke them, joined again; none when it broke none.

    A terminal breaks at one width: several lines have exactly that length and none is longer.
    """
    width = max((len(text) for text in lines.values()), default=0)
    broken = [text for text in lines.values() if len(text) == width and text[-1].isalnum()]
    if not _NARROWEST <= width <= _WIDEST or len(broken) < _BROKEN:
        return {}
    joined: dict[int, str] = {}
    last = None
    for number, text in lines.items():
        if last is not None and len(lines.get(number - 1, "")) == width:
            joined[last] += text
        else:
            joined[number], last = text, number
    return joined


def without_entities(text: str) -> str:
    """A line copied from a page's source as the page shows it."""
    return html.unescape(text) if _ENTITY.search(text) else text


def inner_texts(text: str) -> Iterator[str]:
    """A line without the marks before it, when it has any, and without its indentation."""
    inner = text
    for _ in range(_MARKS):
        match = _MARK.match(inner) or _MARK.match(inner.lstrip())
        if match is None:
            break
        inner = match.string[match.end() :]
    for found in (inner, inner.lstrip()):
        if found != text:
            yield found


def _unescaped(text: str) -> str:
    """A JSON string's value; one cut off in the middle of an escape is read as it stands."""
    try:
        value: str = json.loads(f'"{text}"', strict=False)
    except ValueError:
        return text.replace("\\n", "\n").replace('\\"', '"').replace("\\t", "\t")
    return value


def _head(text: str) -> str:
    """The record's time, host and program as syslog writes them, "" where it names none."""
    written, journal = _WRITTEN.search(text), _JOURNAL.search(text)
    host, program = _HOST.search(text), _PROGRAM.search(text)
    named = f"{host['host']} {program['program']}:" if host and program else ""
    stamp = written["stamp"] if written else ""
    if journal and not written:
        at = datetime.fromtimestamp(int(journal["micros"]) // 1_000_000, UTC)
        stamp = f"{_MONTHS[at.month - 1]} {at.day:2d} {at:%H:%M:%S}" if named else f"{at:%FT%TZ}"
    head = f"{stamp} {named}".strip()
    return f"{head} " if head else ""
