"""`--timeout` ends a command on a node, whichever command of brctl sent it there."""

import json
import os
from pathlib import Path

import pytest

from brctl.cli.commands import check as check_module
from brctl.cli.commands import cp as cp_module
from brctl.cli.commands import run as run_module
from brctl.cli.commands import sweep as sweep_module
from brctl.cli.invocation import COMMON_HELP, read_common
from tests.cli.test_run import call
from tests.cli.test_sweep import CONFIG

NEVER_ANSWERS = "#!/bin/sh\nexec sleep 600\n"
LIMIT = ("--timeout", "400ms")


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """One node that is this machine, whose Python never answers."""
    slow = tmp_path / "slow-python"
    slow.write_text(NEVER_ANSWERS)
    slow.chmod(0o700)
    (tmp_path / "own.yaml").write_text(
        "apiVersion: brctl.dev/v1\nkind: Inventory\n"
        f"nodes: {{n1: {{address: 127.0.0.1, python: {slow}}}}}\n"
    )
    (tmp_path / "config.yaml").write_text(CONFIG)
    return tmp_path / "config.yaml"


def test_run_and_cp_end_their_command(config: Path, tmp_path: Path) -> None:
    """Both would wait 30 s or more; what did not answer is named, exit 3."""
    code, text = call(run_module, config, *LIMIT, "-w", "n1", "--", "sleep 600")
    assert (code, "n1" in text, "0.4 s" in text) == (3, True, True)
    endless, here = tmp_path / "pipe", tmp_path / "got"
    os.mkfifo(endless)
    code, text = call(cp_module, config, *LIMIT, "-w", "n1", "--get", str(endless), str(here))
    assert (code, "0.4 s" in text) == (3, True)


@pytest.mark.parametrize("module", [sweep_module, check_module])
def test_a_look_ends_with_the_node_unknown(config: Path, module: object) -> None:
    """Nodes that a sweep or a check did not hear in time are not healthy."""
    arguments = ("run", "host.kernel") if module is check_module else ("--checks", "host.kernel")
    code, text = call(module, config, *LIMIT, "-w", "n1", "-o", "json", *arguments)
    assert code == 3
    assert "0.4 s" in json.dumps(json.loads(text))


def test_it_never_gives_a_command_more_time_than_it_has(config: Path) -> None:
    """A longer limit leaves the deadline of the command."""
    argv = ("--timeout", "10m", "-w", "n1", "--deadline", "300ms", "--", "sleep 600")
    code, text = call(run_module, config, *argv)
    assert (code, "0.3 s" in text) == (3, True)


def test_no_common_flag_is_read_and_ignored() -> None:
    """`-v` did nothing: it belongs to the command now, as after `run -w n1 grep`."""
    assert read_common(["-v", "--verbose"])[1] == ["-v", "--verbose"]
    assert "--verbose" not in COMMON_HELP
