"""What failed beside other tests is found by name, to be run alone."""

import json
from pathlib import Path

from tests.alone import failed_tests


def test_the_group_of_a_test_is_no_part_of_its_name(tmp_path: Path) -> None:
    """Pytest-xdist appends it; a parameter may have the same sign in it."""
    cache = tmp_path / ".pytest_cache" / "v" / "cache"
    cache.mkdir(parents=True)
    names = {
        "tests/a.py::test_one@tests/a.py": True,
        "tests/b.py::test_two[me@here]@held": True,
        "tests/b.py::test_two[me@there]": True,
        "tests/c.py": True,
    }
    (cache / "lastfailed").write_text(json.dumps(names))
    assert failed_tests(tmp_path) == [
        "tests/a.py::test_one",
        "tests/b.py::test_two[me@here]",
        "tests/b.py::test_two[me@there]",
        "tests/c.py",
    ]


def test_a_run_without_failures_left_none(tmp_path: Path) -> None:
    assert failed_tests(tmp_path) == []
