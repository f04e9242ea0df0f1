"""Patterns of a site are read in time that grows with the line, or are refused."""

import re
import time

import pytest

from brctl.model.pattern_cost import why_costly

COSTLY = (
    r"(a+)+$",
    r"(?:\w+\s?)*end",
    r"(a|a)*b",
    r"(?:x*y*)*z",
    r"((?:ab)*?)*c",
    r"(?:.{0,80}a){20}",
    r".*a.*b.*c.*d.*e",
    r"(?=(\d+)+x)",
)
CHEAP = (
    r"\berror\b.{0,80}device (?P<device>\S+)",
    r"(?:\d+\.){3}\d+",
    r"(?P<host>\S+): .*(?:failed|lost).*port \d+",
    r"[a-z]+(?:-[a-z]+)?",
    r"(?<!un)corrected (?:memory|cache) error",
)


@pytest.mark.parametrize("pattern", COSTLY)
def test_what_can_explode_is_refused_with_what_to_write(pattern: str) -> None:
    assert "at most 4" in str(why_costly(pattern))


@pytest.mark.parametrize("pattern", CHEAP)
def test_what_people_write_is_taken(pattern: str) -> None:
    assert why_costly(pattern) is None


@pytest.mark.parametrize("pattern", CHEAP)
def test_what_is_taken_reads_the_worst_lines_quickly(pattern: str) -> None:
    """CPU time, of lines made of what each pattern repeats: milliseconds, not for ever."""
    compiled = re.compile(pattern)
    started = time.process_time()
    for unit in ("a", "1.", "a-", "error ", "failed ", "9"):
        compiled.search(unit * (2048 // len(unit)) + "!")
    assert time.process_time() - started < 5.0


def test_the_engine_really_explodes_on_what_is_refused() -> None:
    """Twice the time for each further character; 22 of them stand for a line of two thousand."""
    compiled = re.compile(COSTLY[0])

    def seconds(length: int) -> float:
        started = time.process_time()
        compiled.search("a" * length + "!")
        return time.process_time() - started

    assert seconds(22) > 8 * seconds(12)
