"""Every shipped check keeps the contract of a probe, on every Python it may meet."""

import json
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from brctl.library.checks import load_checks
from brctl.library.shipped import shipped_dir
from brctl.model.sweeps.check import Check
from tests.checks.probes import DRIVER, load_probe, probe_path
from tests.fakes.pythons import OLDEST, find_python, needs_oldest
from tests.timeouts import TIMEOUT_S

CHECKS = {n: c for n, c in load_checks([shipped_dir("checks")]).items() if not c.together}
VERSIONS = ("3.8", "3.9", "3.11", "3.13")
FOUND = {version: find_python(version) for version in VERSIONS}
PYTHONS = [
    pytest.param(sys.executable, id="this"),
    pytest.param(FOUND[OLDEST], id=OLDEST, marks=needs_oldest),
    *(pytest.param(path, id=v) for v, path in FOUND.items() if path and v != OLDEST),
]


def _block(name: str, first: str, last: str) -> str:
    source = probe_path(name).read_text()
    return source[source.index(first) : source.index(last, source.index(first))]


@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
def test_importing_a_probe_does_nothing(check: Check) -> None:
    """A probe is importable without a GPU, torch or parameters, and offers `measure`."""
    assert callable(load_probe(check.name).measure)


@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
def test_a_probe_says_what_it_does(check: Check) -> None:
    """The first docstring line says where it runs and what it reads."""
    assert (load_probe(check.name).__doc__ or "").startswith("RUNS ON THE NODE. ")


@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
def test_the_reading_block_is_the_same_everywhere(check: Check) -> None:
    """Probes share no module, so the block they share is equal to the byte."""
    first, last = "class Readings", "    readings.note("
    assert _block(check.name, first, last) == _block("host.clock", first, last)
    assert _block(check.name, "def main", "    return status") == _block(
        "host.clock", "def main", "    return status"
    )


NO_JOBS = 987_654
"""Ranks of other tests run here, and no job of theirs is of this size."""


def answers_of(python: str, folder: Path) -> Mapping[str, tuple[int, Mapping[str, list[Any]]]]:
    """Exit status and envelope of every probe, with nothing it needs at hand."""
    (folder / "kmsg").write_text("")
    paths = [str(_as_sent(check, folder)) for check in CHECKS.values()]
    parameters = {
        "deadline_s": 20, "kernel_log": str(folder / "kmsg"), "ranks": [0], "world_size": NO_JOBS,
    }  # fmt: skip
    done = subprocess.run(
        [python, "-I", "-S", "-W", "error::SyntaxWarning", "-c", DRIVER, *paths],
        input=json.dumps(parameters), capture_output=True, text=True, check=False,
        timeout=TIMEOUT_S,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = {
        path: (status, json.loads(text)) for path, (status, text) in json.loads(done.stdout).items()
    }
    assert set(found) == set(paths)
    return found


def _as_sent(check: Check, folder: Path) -> Path:
    """The program a node is given: the probe and the parts it shares with others."""
    path = folder / f"{check.name}.py"
    path.write_text(check.probe_source)
    return path


@pytest.mark.parametrize("python", PYTHONS)
def test_a_probe_answers_on_every_python(python: str, tmp_path: Path) -> None:
    """A probe still prints one envelope, says why, and says the same as on the Python of the tests.

    A word that an older Python lacks would end as a note, for a probe survives its own errors.
    """
    answers, here = answers_of(python, tmp_path), answers_of(sys.executable, tmp_path)
    for check in CHECKS.values():
        status, answer = answers[path := str(_as_sent(check, tmp_path))]
        assert status in (0, 1), path
        assert set(answer) == {"measurements", "notes"}
        assert {row["name"] for row in answer["measurements"]} <= set(check.measurements)
        assert answer["measurements"] or answer["notes"], path
        assert _gist(status, answer) == _gist(*here[path]), path


def _gist(status: int, answer: Mapping[str, list[Any]]) -> tuple[int, set[str], list[str]]:
    """What does not change between two looks at one machine."""
    names = {row["name"] for row in answer["measurements"]}
    return status, names, [re.sub(r"\d+", "0", note) for note in answer["notes"]]
