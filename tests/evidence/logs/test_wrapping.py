"""The same line means the same however it reached us: a record, behind marks, quoted, escaped."""

import html
import json
from collections.abc import Callable

import pytest

from brctl.evidence.logs.catalogue import SHIPPED
from brctl.evidence.logs.reader import LineIndex, LineReader
from brctl.evidence.logs.signature import SPEAKING
from brctl.evidence.logs.wrapping import inner_texts, lines_of, rejoined
from brctl.model.fault import FaultClass
from tests.evidence.logs.examples import EXAMPLES

WRAPPINGS: dict[str, Callable[[str], str]] = {
    "carriage return": lambda line: line + "\r",
    "colours": lambda line: f"\x1b[36m(Worker pid=12, ip=10.0.0.3)\x1b[0m {line}",
    "quoted in a post": lambda line: f"> {line}",
    "indented": lambda line: f"        {line}",
    "srun --label": lambda line: f"3: {line}",
    "mpirun --tag-output": lambda line: f"[1,3]<stderr>:{line}",
    "docker compose": lambda line: f"trainer-1  | {line}",
    "container run-time": lambda line: f"2026-11-22T10:00:01.123456789Z stderr F {line}",
    "docker's file": lambda line: json.dumps({"log": line + "\n", "stream": "stderr"}),
    "journalctl -o json": lambda line: json.dumps(
        {"__REALTIME_TIMESTAMP": "1795341600000000", "_HOSTNAME": "n7", "MESSAGE": line}
    ),
    "syslog": lambda line: f"Nov 22 10:00:01 node7 train[4242]: {line}",
    "syslog of 2009": lambda line: f"<11>1 2026-11-22T10:00:01Z node7 train 4242 - - {line}",
    "kubectl logs --prefix": lambda line: f"[pod/trainer-0/pytorch] {line}",
    "a rank's mark": lambda line: f"[rank3]: {line}",
    "a time before it": lambda line: f"2026-11-22 10:00:01,123 {line}",
    "key and value": lambda line: f"time=2026-11-22T10:00:01Z level=info msg={json.dumps(line)}",
    "python's logging": lambda line: f"2026-11-22 10:00:01,123 - train.loop - ERROR - {line}",
    "python's logging without a format": lambda line: f"ERROR:train.loop:{line}",
    "grep over files": lambda line: f"logs/rank-3.err:217:{line}",
    "grep over syslog": lambda line: f"/var/log/messages.1:{line}",
    "pdsh": lambda line: f"gpu-017: {line}",
    "cat -n": lambda line: f"   217\t{line}",
    "a list in a post": lambda line: f"- {line}",
    "milliseconds since 1970": lambda line: f"1795341600123 {line}",
    "glog": lambda line: f"E1122 10:00:01.123456 4242 main.cc:99] {line}",
    "a page's entities": html.escape,
}
LINES = [line for lines in EXAMPLES.values() for line in lines[:6]]
INDEX = LineIndex(SHIPPED)


def speaks(line: str) -> set[FaultClass | None]:
    """The classes that rows speak for on a line, as the reader keeps them."""
    reader = LineReader("a.log", INDEX)
    reader.read(1, line.encode())
    return {e.signature.fault for e in reader.events() if e.signature.part in SPEAKING}


PLAIN = {line: speaks(line) for line in LINES}


@pytest.mark.parametrize("wrap", WRAPPINGS.values(), ids=WRAPPINGS)
def test_a_line_in_any_wrapping_speaks_for_the_class_that_it_speaks_for_plain(
    wrap: Callable[[str], str],
) -> None:
    """What speaks for a class stands on the wrapped line too, for examples of every class."""
    lost = {line: PLAIN[line] - speaks(wrap(line)) for line in LINES}
    assert {line: classes for line, classes in lost.items() if classes} == {}


def test_a_traceback_in_one_record_is_read_line_by_line() -> None:
    """The final line of a traceback that a logger packed into one JSON string names the class."""
    trace = 'Traceback (most recent call last):\n  File "/job/train.py", line 3, in <module>\n'
    record = json.dumps({"level": "error", "exc_info": trace + "TypeError: f() takes 1 argument"})
    assert speaks(record) == {FaultClass.USER_CODE}


def test_a_record_keeps_its_time_host_and_program() -> None:
    """They stand before each of its lines as syslog writes them; a stamp alone stands alone."""
    journal = (
        '{"__REALTIME_TIMESTAMP":"1795341600000000","_HOSTNAME":"n7",'
        '"SYSLOG_IDENTIFIER":"kernel","MESSAGE":"mce: one\\ntwo"}'
    )
    head = "Nov 22 10:00:00 n7 kernel: "
    assert lines_of(journal) == (head + "mce: one", head + "two")
    assert lines_of('{"log":"x\\n","time":"2026-11-22T10:00:00Z"}') == ("2026-11-22T10:00:00Z x",)


@pytest.mark.parametrize(
    "line", ['{"loss": 2.3, "step": 5}', "a plain line", 'path="/data" size=3', "{}", '{"log": 5}']
)
def test_what_holds_no_message_is_no_record(line: str) -> None:
    assert lines_of(line) == ()


def test_a_record_cut_off_in_an_escape_is_read_as_far_as_it_goes() -> None:
    """A broken escape is no reason to lose the line."""
    assert lines_of('{"log":"bad \\x escape\\n"}') == ("bad \\x escape",)


def test_marks_are_taken_away_as_often_as_they_stand_there() -> None:
    """A rank in a container in a quoted post; a plain line has none."""
    line = "> 2026-11-22T10:00:01.1Z stderr F [rank3]: CUDA error"
    assert next(inner_texts(line)) == "CUDA error"
    assert list(inner_texts("CUDA error")) == []


def broken_at(width: int, *lines: str) -> dict[int, str]:
    """Lines as a terminal of a width shows them."""
    pieces = [line[at : at + width] for line in lines for at in range(0, len(line), width)]
    return dict(enumerate(pieces, start=1))


def test_lines_that_a_terminal_broke_are_joined_again() -> None:
    """Their numbers are those of their first pieces."""
    lines = [f"{n} " + "x" * 200 for n in range(3)]
    assert rejoined(broken_at(80, *lines)) == dict(zip((1, 4, 7), lines, strict=True))


@pytest.mark.parametrize(
    "lines",
    [
        broken_at(80, "x" * 100, "short", "y" * 90),
        broken_at(300, *(f"{n} " + "x" * 700 for n in range(3))),
        {n: "|" + " " * 90 + "|" for n in range(1, 9)},
        {},
    ],
    ids=["seldom", "wider than a terminal", "a table", "nothing"],
)
def test_lines_of_one_length_that_no_terminal_broke_stand_as_they_are(
    lines: dict[int, str],
) -> None:
    assert rejoined(lines) == {}
