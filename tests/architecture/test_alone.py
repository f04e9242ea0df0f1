"""What failed beside other tests is found by name, to be run alone."""

import json
from pathlib import Path

from tests.alone import MOST_FILES, MOST_TESTS, are_few, failed_tests


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


def test_many_of_one_file_are_few_and_more_than_an_accident_are_not() -> None:
    """A lab that does not come up takes all tests of its file along."""
    assert are_few([f"tests/a.py::test_{number}" for number in range(MOST_TESTS)])
    assert not are_few([f"tests/a.py::test_{number}" for number in range(MOST_TESTS + 1)])
    assert not are_few([f"tests/{number}.py::test" for number in range(MOST_FILES + 1)])
    assert not are_few([])
