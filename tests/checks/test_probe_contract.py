"""Every shipped check keeps the contract of a probe, on every Python it may meet."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from brctl.library.checks import load_checks
from brctl.library.shipped import shipped_dir
from brctl.model.sweeps.check import Check
from tests.checks.probes import DRIVER, load_probe, probe_path

CHECKS = {n: c for n, c in load_checks([shipped_dir("checks")]).items() if not c.together}
PYENV = Path.home() / ".pyenv/versions"
VERSIONS = ("3.8", "3.9", "3.11", "3.13")
PYTHONS = [
    Path(sys.executable),
    *sorted(path for v in VERSIONS for path in PYENV.glob(f"{v}.*/bin/python3")),
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


@pytest.mark.parametrize("python", PYTHONS, ids=[p.parent.parent.name for p in PYTHONS])
def test_a_probe_answers_on_every_python(python: Path, tmp_path: Path) -> None:
    """With nothing it needs at hand, a probe still prints one envelope and says why."""
    (tmp_path / "kmsg").write_text("")
    checks = {str(probe_path(c.name)): c for c in CHECKS.values() if "torch" not in c.needs}
    parameters = {"deadline_s": 5, "kernel_log": str(tmp_path / "kmsg"), "ranks": [0]}
    done = subprocess.run(
        [python, "-I", "-S", "-W", "error::SyntaxWarning", "-c", DRIVER, *checks],
        input=json.dumps(parameters), capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    answers = json.loads(done.stdout)
    assert set(answers) == set(checks)
    for path, (status, text) in answers.items():
        answer = json.loads(text)
        assert status in (0, 1), path
        assert set(answer) == {"measurements", "notes"}
        assert {row["name"] for row in answer["measurements"]} <= set(checks[path].measurements)
        assert answer["measurements"] or answer["notes"], path


def test_every_python_of_the_contract_was_tried() -> None:
    """Where pyenv has them, 3.8, 3.9, 3.11 and 3.13 all run the probes."""
    tried = {p.parent.parent.name.rsplit(".", 1)[0] for p in PYTHONS[1:]}
    there = {p.name.rsplit(".", 1)[0] for p in PYENV.glob("3.*")}
    assert tried == there & set(VERSIONS)
