"""Each program's messages speak for their class, whichever of its spellings is printed."""

from pathlib import Path

import pytest

from brctl.evidence.logs.catalogue import SHIPPED
from brctl.evidence.logs.judge import judge
from brctl.evidence.logs.reader import LineIndex, LineReader
from brctl.evidence.logs.unexplained import UNEXPLAINED
from brctl.model.fault import FaultClass
from brctl.model.log_verdict import LogVerdict

INDEX = LineIndex(SHIPPED)
ENDED_WELL = "Training completed. Exiting normally."
HARMLESS = frozenset({FaultClass.NO_FAULT, FaultClass.UNKNOWN})


TABLES = ("hardware_lines.txt", "software_lines.txt")


def read_families() -> dict[str, list[tuple[str, str]]]:
    families: dict[str, list[tuple[str, str]]] = {}
    name = ""
    texts = (Path(__file__).with_name(table).read_text() for table in TABLES)
    for line in (line for text in texts for line in text.splitlines()):
        if line.startswith("## "):
            name = line.removeprefix("## ")
        elif line and not line.startswith("#"):
            wanted, _, message = line.partition("|")
            families.setdefault(name, []).append((wanted, message))
    return families


FAMILIES = read_families()


def classify(*lines: str) -> LogVerdict:
    reader = LineReader("node.log", INDEX)
    for number, line in enumerate(lines, 1):
        reader.read(number, line.encode())
    return judge("node.log", reader.events())


def holds(wanted: str, message: str) -> bool:
    lines = message.split("\\n")
    alone = classify(*lines)
    if wanted == "weak":
        return alone.fault in HARMLESS
    if wanted == "quiet":
        strange = any(read.signature == UNEXPLAINED.name for read in alone.evidence)
        well = classify(*lines, ENDED_WELL).fault is FaultClass.NO_FAULT
        return alone.fault in HARMLESS and well and not strange
    classes, _, origin = wanted.partition("/")
    return alone.fault.value in classes.split(",") and alone.origin.value.startswith(origin)


def test_the_tables_are_read() -> None:
    """An empty table would prove nothing."""
    assert sum(map(len, FAMILIES.values())) > 600


@pytest.mark.parametrize("family", FAMILIES)
def test_every_message_of_a_family_speaks_for_its_class(family: str) -> None:
    """No spelling is missed, and no harmless message of the same program accuses anybody."""
    assert [row for row in FAMILIES[family] if not holds(*row)] == []
