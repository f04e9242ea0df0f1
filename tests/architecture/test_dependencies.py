"""What brctl needs of others is bounded on both sides; one set of versions is the tested one."""

import importlib.metadata
import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).parents[2]
DECLARED = [
    Requirement(text)
    for text in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
]


def pinned() -> dict[str, Version]:
    """The lines of tests/constraints.txt."""
    lines = (ROOT / "tests" / "constraints.txt").read_text().splitlines()
    rows = [line.split("==") for line in lines if not line.startswith("#")]
    return {name: Version(version) for name, version in rows}


def key(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@pytest.mark.parametrize("need", DECLARED, ids=lambda need: need.name)
def test_a_dependency_has_a_lowest_and_a_first_untested_version(need: Requirement) -> None:
    """A library that breaks in its next major release breaks nobody's installation."""
    assert {operator.operator for operator in need.specifier} == {">=", "<"}


@pytest.mark.parametrize("need", DECLARED, ids=lambda need: need.name)
def test_the_tested_version_is_one_of_those_allowed_and_the_one_here(need: Requirement) -> None:
    """Tests run with what tests/constraints.txt says, so what it says was tested."""
    version = pinned()[key(need.name)]
    assert version in need.specifier
    assert Version(importlib.metadata.version(need.name)) == version


def test_what_dependencies_need_is_pinned_too() -> None:
    """The whole set, so an installation next year is the one of today."""
    missing = {
        key(inner.name)
        for name in pinned()
        for text in importlib.metadata.requires(name) or []
        if (inner := Requirement(text)).marker is None or inner.marker.evaluate({"extra": ""})
    } - set(pinned())
    assert missing == set()
