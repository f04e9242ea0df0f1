"""Every family of lines speaks for its class, and harmless lines for none."""

import pytest

from brctl.evidence.logs.catalogue import SHIPPED
from brctl.evidence.logs.claim import CLAIMED
from brctl.evidence.logs.judge import judge
from brctl.evidence.logs.reader import LineIndex, LineReader
from brctl.evidence.logs.signature import Part
from brctl.evidence.logs.unexplained import UNEXPLAINED
from brctl.model.fault import FaultClass
from brctl.model.log_verdict import LogVerdict
from tests.evidence.logs.examples import EXAMPLES, STORIES
from tests.evidence.logs.examples_of_jobs import JOB_LINES

INDEX = LineIndex(SHIPPED)
EVERY = [(fault, line) for fault, lines in EXAMPLES.items() for line in lines]
EVERY += [*STORIES, *JOB_LINES]
LINES = [(fault, line) for fault, line in EVERY if fault != "no-fault"]
WEAK_STARTS = (
    "RuntimeError: [enforce fail at inline_container.cc",
    "Bus error (core dumped)",
)
"""Lines that mean their class in about every second log: alone they name a lead."""
WEAK = [(fault, line) for fault, line in LINES if line.startswith(WEAK_STARTS)]
LINES = [pair for pair in LINES if pair not in WEAK]
HARMLESS = [line for fault, line in EVERY if fault == "no-fault"]
ENDED_WELL = "Training completed. Exiting normally."


def classify(*lines: str) -> LogVerdict:
    reader = LineReader("rank-00003.log", INDEX)
    for number, line in enumerate(lines, 1):
        reader.read(number, line.encode())
    return judge("rank-00003.log", reader.events())


@pytest.mark.parametrize(("fault", "line"), LINES, ids=[line[:60] for _, line in LINES])
def test_a_line_alone_speaks_for_its_class(fault: str, line: str) -> None:
    """The class of one line, read alone, is the one its system means by it."""
    assert classify(*line.split("\n")).fault.value == fault


@pytest.mark.parametrize(("fault", "line"), WEAK, ids=[line[:40] for _, line in WEAK])
def test_a_weak_line_alone_is_the_first_lead(fault: str, line: str) -> None:
    """What is as often something else is not claimed, and what it speaks for is named first."""
    said = classify(line)
    assert said.fault is FaultClass.UNKNOWN
    assert said.leads[0].fault.value == fault
    assert said.leads[0].probability < CLAIMED
    assert said.leads[0].lines == (line,)


def test_a_second_family_makes_a_weak_line_a_claim() -> None:
    """Two families that say the same are believed, where each alone would name a lead."""
    line = "NCCL WARN NET/IB : No device found."
    other = "NCCL WARN Bootstrap : no socket interface found"
    assert classify(line, other).probability > classify(other).probability


@pytest.mark.parametrize("line", HARMLESS, ids=[line[:60] for line in HARMLESS])
def test_a_harmless_line_accuses_nobody(line: str) -> None:
    """It is no alarm, known or unknown; what proves health after it is believed."""
    alone = classify(*line.split("\n"))
    assert alone.fault in (FaultClass.NO_FAULT, FaultClass.UNKNOWN)
    assert not any(read.signature == UNEXPLAINED.name for read in alone.evidence)
    assert classify(*line.split("\n"), ENDED_WELL).fault is FaultClass.NO_FAULT


def test_names_are_unique() -> None:
    """A name in a document leads to exactly one rule."""
    names = [signature.name for signature in SHIPPED]
    assert len(names) == len(set(names))


def test_victims_and_harmless_lines_carry_no_class() -> None:
    """The reporter of a broken connection did not break it."""
    for signature in SHIPPED:
        if signature.part not in (Part.ROOT, Part.GENERIC, Part.HINT, Part.STOPPED):
            assert signature.fault is None, signature.name


def test_every_rule_says_where_it_comes_from() -> None:
    """A rule nobody can check is a rumour."""
    assert all(signature.source.strip() for signature in SHIPPED)


def test_anchors_are_lower_case() -> None:
    """The streaming engine lowers the block once and searches for these texts as they are."""
    assert all(anchor == anchor.lower() for s in SHIPPED for anchor in s.anchors)
