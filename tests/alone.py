"""Which tests failed beside others, to be run once more with the machine to themselves.

A test of a lab in training is at the mercy of what else the two cores do. One that fails again is a
failure; one that then passes is named as what it is, a flaw of that test (decision 0434).
"""

import json
import re
from pathlib import Path

MOST_FILES, MOST_TESTS = 5, 20
"""More failures at once are no accident of load. Tests of one file fail together where what they
share came up late (decision 0449)."""

_GROUP = re.compile(r"@[^\]@]*$")
"""What pytest-xdist appends to the name of a test in a group."""


def failed_tests(root: Path) -> list[str]:
    """Names of the tests that failed in the last run below a checkout; empty if none is known."""
    path = root / ".pytest_cache" / "v" / "cache" / "lastfailed"
    if not path.exists():
        return []
    return sorted({_GROUP.sub("", name) for name in json.loads(path.read_text())})


def are_few(tests: list[str]) -> bool:
    """Whether these may be an accident of load."""
    files = {name.partition("::")[0] for name in tests}
    return 0 < len(tests) <= MOST_TESTS and len(files) <= MOST_FILES
