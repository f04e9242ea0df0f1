"""A program of the site may print without end or never stop; memory and time stay bounded."""

import subprocess
import time
import tracemalloc
from collections.abc import Sequence

import pytest

from brctl.inventory import commands
from brctl.inventory.commands import ask_tool
from brctl.library.programs.output import ProgramOutput, hear
from brctl.model.errors import UnavailableError
from brctl.notify.hook_programs import LIMIT_BYTES, run_program
from tests.timeouts import TIMEOUT_S

MIB = 1 << 20


def heard(command: Sequence[str], text: bytes = b"", limit: int = MIB) -> ProgramOutput:
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        try:
            return hear(process, text, limit, time.monotonic() + TIMEOUT_S)
        finally:
            process.kill()


def test_all_of_a_large_input_and_output_pass_at_once() -> None:
    """More than the pipes hold, in both directions."""
    text = b"0123456789" * 100_000
    assert heard(["cat"], text, limit=2 * MIB) == ProgramOutput(text, b"", cut=False)


def test_the_streams_are_kept_apart_and_a_program_need_not_read() -> None:
    output = heard(["sh", "-c", "echo out; echo err >&2; exit 3"], b"x" * MIB)
    assert output == ProgramOutput(b"out\n", b"err\n", cut=False)


def test_what_is_over_the_limit_is_read_and_thrown_away() -> None:
    tracemalloc.start()
    output = heard(["head", "-c", str(256 * MIB), "/dev/zero"])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (len(output.stdout), output.cut) == (MIB, True)
    assert peak < 8 * MIB


def test_a_hook_that_says_much_is_taken_at_its_first_words() -> None:
    command = ["sh", "-c", "echo HW-1; head -c 100000000 /dev/zero"]
    assert run_program(command, b"{}", time.monotonic() + TIMEOUT_S)[:5] == b"HW-1\n"
    assert len(run_program(command, b"{}", time.monotonic() + TIMEOUT_S)) == LIMIT_BYTES


def test_a_tool_that_prints_without_end_or_never_stops_is_no_inventory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ended at the limit of time; what it printed until then was not kept."""
    monkeypatch.setattr(commands, "TIMEOUT_S", 0.3)
    tracemalloc.start()
    with pytest.raises(UnavailableError, match="`yes` gave no answer"):
        ask_tool(["yes"])
    assert tracemalloc.get_traced_memory()[1] < commands.OUTPUT_LIMIT_BYTES + 8 * MIB
    tracemalloc.stop()
    with pytest.raises(UnavailableError, match="`sleep` gave no answer"):
        ask_tool(["sleep", "600"])


def test_a_tool_that_printed_more_than_an_inventory_is_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(commands, "OUTPUT_LIMIT_BYTES", 1000)
    with pytest.raises(UnavailableError, match="printed more than"):
        ask_tool(["head", "-c", "5000", "/dev/zero"])
    assert ask_tool(["echo", "n1"]) == b"n1\n"
