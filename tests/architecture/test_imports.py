"""Which modules an entry point pulls in: a list, not a stopwatch, because clocks flake.

The static layer graph cannot tell a module-scope import from one deferred into the function that
needs it, so each entry point is run and asked what it loaded.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.timeouts import TIMEOUT_S

HEAVY = {"asyncssh", "numpy", "paramiko", "pynvml", "rich", "textual", "torch"}
ROOT = Path(__file__).resolve().parents[2]
_REPORT = "\nimport sys, json; sys.stderr.write('\\n' + json.dumps(sorted(sys.modules)))"


def loaded_by(arguments: list[str]) -> set[str]:
    """Top-level modules that one command line has loaded when it ends."""
    program = (
        f"import sys; sys.argv = ['brctl', *{arguments!r}]\n"
        "from brctl.__main__ import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass" + _REPORT
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        timeout=TIMEOUT_S,
    )
    return {name.partition(".")[0] for name in json.loads(done.stderr.splitlines()[-1])}


@pytest.mark.parametrize("arguments", [["--help"], ["--version"]])
def test_help_and_version_load_no_library(arguments: list[str]) -> None:
    assert loaded_by(arguments) & (HEAVY | {"typer", "asyncio", "yaml", "pydantic"}) == set()


def test_a_tab_loads_neither_typer_nor_any_library() -> None:
    """Completion starts brctl at every TAB, so it reads two small files and nothing else."""
    loaded = loaded_by(["__complete", "1", "brctl", "sw"])
    assert loaded & (HEAVY | {"typer", "asyncio", "yaml", "pydantic", "dataclasses"}) == set()


@pytest.mark.parametrize(
    "arguments", [["help", "exit-codes"], ["check", "list"], ["config", "path"], ["schema", "list"]]
)
def test_reading_commands_load_no_transport_and_no_torch(arguments: list[str]) -> None:
    assert loaded_by(arguments) & HEAVY == set()
