"""`brctl run` and `brctl cp`: every node accounted for, identical answers once."""

import asyncio
import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path

import pytest

from brctl.cli.commands import cp as cp_module
from brctl.cli.commands import run as run_module
from brctl.cli.invocation import read_common
from brctl.cli.main import run as main
from brctl.cli.on_nodes import hold_where_needed
from brctl.engine.controller import command_input, copying
from brctl.engine.controller.arriving import ArrivingFile
from brctl.engine.controller.copying import AT_ONCE_BYTES, open_payload
from brctl.engine.controller.reach import choose
from brctl.fanout import streaming
from brctl.model.command import CommandResult, Outcome
from brctl.model.errors import GuardError, UsageError
from tests.timeouts import TIMEOUT_S

CONFIG = """\
apiVersion: brctl.dev/v1
kind: Config
context: prod
contexts: {prod: {inventory: [{hostlist: hosts}]}}
ssh: {transport: local}
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Four nodes that are all this machine."""
    (tmp_path / "hosts").write_text("n[1-4]\n")
    (tmp_path / "config.yaml").write_text(CONFIG)
    return tmp_path / "config.yaml"


def call(module: object, config: Path, *argv: str) -> tuple[int, str]:
    invocation, rest = read_common(["--config", str(config), *argv])
    out = io.StringIO()
    with redirect_stdout(out):
        code = module.app(args=rest, standalone_mode=False, obj=invocation)  # type: ignore[attr-defined]
    return int(code or 0), out.getvalue()


def test_identical_answers_are_shown_once(config: Path) -> None:
    """Four nodes, one block; the words are read by the node's shell, as with ssh."""
    code, text = call(run_module, config, "-w", "n[1-4]", "--", "echo a; echo b | tr b c")
    assert code == 0
    assert text == "---------------\nn[1-4] (4)\n---------------\na\nc\n"


def test_a_nonzero_status_is_in_the_header_and_exits_1(config: Path) -> None:
    """What went to stderr is marked, the status stands beside the nodes."""
    code, text = call(run_module, config, "-w", "n1", "--", "echo oops >&2; exit 3")
    assert code == 1
    assert "n1 (1)  exit 3" in text
    assert "stderr: oops" in text


def test_a_late_node_is_named_last_with_its_partial_output(config: Path) -> None:
    """No answer is UNKNOWN, exit 3, and what was said until then is kept."""
    argv = ("-w", "n[1-2]", "--deadline", "5s", "--", "echo half; sleep 600")
    code, text = call(run_module, config, *argv)
    assert code == 3
    assert "n[1-2] (2)  partial output\n---------------\nhalf" in text
    assert (
        "no answer (2): n[1-2]\n  command-timed-out  n[1-2]"
        in text.splitlines()[-2] + "\n" + (text.splitlines()[-1])
    )


def test_json_accounts_for_every_node(config: Path) -> None:
    """One document with each node's status and streams."""
    code, text = call(run_module, config, "-w", "@all", "-x", "n4", "--json", "--", "echo x")
    document = json.loads(text)
    assert (code, document["kind"], document["exit_code"]) == (0, "Answers", 0)
    assert [a["node"] for a in document["answers"]] == ["n1", "n2", "n3"]
    assert {a["stdout"] for a in document["answers"]} == {"x\n"}


def test_node_output_is_never_a_terminal_escape(config: Path) -> None:
    """Colour codes, titles and carriage returns arrive visible."""
    _, text = call(run_module, config, "-w", "n1", "--", "printf '\\033]0;x\\007a\\rb\\n'")
    assert "\x1b" not in text
    assert "\\x1b]0;x\\x07a\\rb" in text


def test_without_w_nothing_runs(config: Path) -> None:
    """Every node must be asked for by name."""
    with pytest.raises(UsageError, match="on which nodes"):
        call(run_module, config, "--", "true")


def test_a_readonly_context_runs_nothing(config: Path) -> None:
    """What a command does cannot be known beforehand."""
    with pytest.raises(GuardError, match="read-only"):
        call(run_module, config, "-w", "n1", "--readonly", "--", "true")


@pytest.mark.parametrize("size_bytes", [0, 200_000, AT_ONCE_BYTES + 1])
def test_a_file_arrives_whole_with_its_mode(config: Path, tmp_path: Path, size_bytes: int) -> None:
    """The old file stays until the new one is complete; a large one goes in pieces."""
    (tmp_path / "tool.sh").write_bytes(b"#!/bin/sh\n" + b"x" * size_bytes)
    (tmp_path / "tool.sh").chmod(0o750)
    target = tmp_path / "there" / "it's here"
    target.parent.mkdir()
    target.write_text("old")
    code, _ = call(cp_module, config, "-w", "n1", str(tmp_path / "tool.sh"), str(target))
    assert code == 0
    assert target.read_bytes() == (tmp_path / "tool.sh").read_bytes()
    assert target.stat().st_mode & 0o777 == 0o750
    assert [path.name for path in target.parent.iterdir()] == ["it's here"]


def test_a_file_whose_end_did_not_come_stays_away(tmp_path: Path) -> None:
    """The end of a cut connection looks like the end of the file; the old file stays."""
    (tmp_path / "new").write_text("all of it")
    (tmp_path / "old").write_text("as it was")
    with open_payload(tmp_path / "new") as payload:
        command = payload.command(str(tmp_path / "old"), 1.0)
    done = subprocess.run(command.argv, input=b"all of", capture_output=True)
    assert done.returncode == 1
    assert b"6 bytes of 9 came" in done.stderr
    assert (tmp_path / "old").read_text() == "as it was"
    assert {path.name for path in tmp_path.iterdir()} == {"new", "old"}


def test_a_folder_is_copied_with_what_is_in_it(config: Path, tmp_path: Path) -> None:
    """Its content goes into the destination folder, which is made when missing."""
    (tmp_path / "conf" / "deep").mkdir(parents=True)
    (tmp_path / "conf" / "deep" / "a").write_text("1")
    code, _ = call(cp_module, config, "-w", "n1", str(tmp_path / "conf"), str(tmp_path / "new"))
    assert code == 0
    assert (tmp_path / "new" / "deep" / "a").read_text() == "1"


def test_a_file_that_makes_a_folder_too_large_is_not_packed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is refused before it fills the disk that holds what is packed."""
    monkeypatch.setattr(copying, "FOLDER_LIMIT_BYTES", 10_000)
    (tmp_path / "checkpoint").write_bytes(b"x" * 20_000)
    packed = io.BytesIO()
    with pytest.raises(UsageError, match="larger than"):
        copying._pack_tree(tmp_path, packed)
    assert len(packed.getvalue()) <= 10_000


def test_a_file_copied_to_a_folder_lands_in_it_under_its_own_name(
    config: Path, tmp_path: Path
) -> None:
    """As with cp; nothing else is left there."""
    (tmp_path / "conf").write_text("x")
    (tmp_path / "there").mkdir()
    code, _ = call(cp_module, config, "-w", "n1", str(tmp_path / "conf"), str(tmp_path / "there"))
    assert code == 0
    assert [(p.name, p.read_text()) for p in (tmp_path / "there").iterdir()] == [("conf", "x")]


def test_a_file_does_not_replace_a_folder_of_its_name(config: Path, tmp_path: Path) -> None:
    """The node says so, the exit is 1, and the folder is as it was."""
    (tmp_path / "conf").write_text("x")
    (tmp_path / "there" / "conf").mkdir(parents=True)
    argv = ("-w", "n1", str(tmp_path / "conf"), str(tmp_path / "there"))
    code, text = call(cp_module, config, *argv)
    assert code == 1
    assert f"{tmp_path}/there/conf is a folder" in text
    assert list((tmp_path / "there").rglob("*")) == [tmp_path / "there" / "conf"]


def test_a_file_comes_back_from_each_node(config: Path, tmp_path: Path) -> None:
    """One folder per node, so that none overwrites another."""
    (tmp_path / "log").write_bytes(b"\x00\xff")
    back = tmp_path / "back"
    code, _ = call(cp_module, config, "-w", "n[1-2]", "--get", str(tmp_path / "log"), str(back))
    assert code == 0
    assert {p.parent.name: p.read_bytes() for p in back.glob("*/log")} == {
        "n1": b"\x00\xff",
        "n2": b"\x00\xff",
    }


def test_a_large_file_comes_back_in_pieces_and_a_small_one_whole(
    config: Path, tmp_path: Path
) -> None:
    """Nothing is held in memory, and nothing beside the files is left in the folder."""
    large = os.urandom(3 * AT_ONCE_BYTES + 5)
    (tmp_path / "large").write_bytes(large)
    back = tmp_path / "back"
    code, text = call(
        cp_module, config, "-w", "n[1-2]", "--get", str(tmp_path / "large"), str(back)
    )
    assert code == 0
    assert f"{back}/n1/large" in text
    found = {path: path.read_bytes() for path in back.rglob("*") if path.is_file()}
    assert found == {back / "n1" / "large": large, back / "n2" / "large": large}


def test_a_place_that_is_no_folder_is_said_before_any_node_is_asked(
    config: Path, tmp_path: Path
) -> None:
    """It was an unexpected error, after the files had come."""
    (tmp_path / "taken").write_bytes(b"")
    with pytest.raises(UsageError, match="cannot be a folder"):
        call(cp_module, config, "-w", "n1", "--get", "/etc/hostname", str(tmp_path / "taken"))


def test_a_file_that_does_not_come_whole_is_not_left_behind(tmp_path: Path) -> None:
    """A cut connection and a command that fails leave no beginning of a file."""
    cut = CommandResult("n1", Outcome.DIED, None, b"", b"", 1.0, "cut")
    for answer in (cut, replace(cut, outcome=Outcome.ANSWERED, exit_status=1)):
        file = ArrivingFile(tmp_path / "n1" / "core")
        file.take(b"half", False)
        file.take(b"cat: I/O error", True)
        assert file.end(answer).stderr == b"cat: I/O error"
        assert list((tmp_path / "n1").iterdir()) == []


def test_a_full_disk_leaves_no_beginning_either(tmp_path: Path) -> None:
    """/dev/full takes nothing, the last piece of the buffer neither; the part goes all the same."""
    file = ArrivingFile(tmp_path / "n1" / "core")
    file.take(b"half", False)
    (part,) = (tmp_path / "n1").iterdir()
    part.unlink()
    part.symlink_to("/dev/full")
    again = ArrivingFile(tmp_path / "n1" / "core")
    again.take(b"half", False)
    again.give_up()
    assert list((tmp_path / "n1").iterdir()) == []
    file.give_up()


def test_a_missing_file_is_an_error_before_any_node_is_asked(config: Path) -> None:
    """One usage error, exit 64."""
    with pytest.raises(UsageError, match="No such file"):
        call(cp_module, config, "-w", "n1", "/nowhere/at/all", "/tmp/x")


def test_an_input_that_fails_keeps_what_came_and_names_the_rest(
    config: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first node was done with it; one document tells of it, and of the error."""
    monkeypatch.setattr(command_input, "stdin_input", OnceInput)
    argv = ("-w", "n[1-2]", "-f", "1", "--json", "--", "cat")
    code, text = call(run_module, config, *argv)
    document = json.loads(text)
    assert [(a["node"], a["stdout"]) for a in document["answers"]] == [("n1", "once")]
    assert document["interrupted"]["nodes"] == ["n2"]
    assert (code, document["exit_code"], document["errors"][0]["message"]) == (64, 64, "no more")
    assert "error: no more" in capsys.readouterr().err


class OnceInput:
    """Fails the second node that reads it."""

    def __init__(self) -> None:
        self._reads = 0

    async def pieces(self) -> AsyncIterator[bytes]:
        self._reads += 1
        if self._reads > 1:
            raise UsageError("no more")
        yield b"once"

    def close(self) -> None:
        """Nothing was opened."""


def test_what_the_terminal_cannot_show_is_written_as_an_escape(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was an error of the encoding, told as the node's."""
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, "ascii", write_through=True))
    argv = ["--config", str(config), "-w", "n1", "--no-stdin", "--lines", "--", "echo \u2713"]
    assert main(["run", *argv]) == 0
    assert written.getvalue() == b"n1: \\u2713\n"


def test_a_file_too_large_for_the_transport_is_refused_before_a_node_is_asked(
    config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broker takes it whole."""
    monkeypatch.setattr(streaming, "WHOLE_LIMIT_BYTES", 3)
    monkeypatch.setattr(cp_module, "run_on_chosen", None)
    (tmp_path / "new").write_text("much")
    argv = ("-w", "n1", "--transport", "broker", str(tmp_path / "new"), "/nowhere/new")
    with pytest.raises(UsageError, match="holds it whole"):
        call(cp_module, config, *argv)


def test_no_more_nodes_hold_an_input_than_fit_in_memory(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over the broker each in flight has a copy; over a transport with streams none has."""
    monkeypatch.setattr(copying, "IN_FLIGHT_LIMIT_BYTES", 8)
    for transport, fanout in (("broker", 2), ("paramiko", 64)):
        argv = ["--config", str(config), "--transport", transport, "-f", "64"]
        settings = read_common(argv)[0].settings()
        chosen = asyncio.run(choose(settings, "n[1-4]", None))
        stdin = command_input.HeldInput(b"4444")
        assert hold_where_needed(settings, chosen, stdin, 1.0)[0].ssh.fanout == fanout


def test_ctrl_c_keeps_what_came_and_names_the_rest(config: Path) -> None:
    """The answers so far are printed, the others are listed, and nothing stays behind."""
    begin = "if test -e {0}/first; then touch {0}/second; exec sleep 600; fi; touch {0}/first"
    script = "echo quick; " + begin
    process = subprocess.Popen(
        [sys.executable, "-m", "brctl", "--config", str(config), "run", "-w", "n[1-2]",
         "-f", "1", "--deadline", "600s", "--", script.format(config.parent)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        # One node at a time: the second is asked once the first has answered.
        limit_s = time.monotonic() + TIMEOUT_S
        while not (config.parent / "second").exists():
            assert time.monotonic() < limit_s
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=TIMEOUT_S)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 130
    assert "n1 (1)\n---------------\nquick" in out
    assert "no answer (1): n2\n  interrupted  n2" in out


def start(config: Path, *argv: str) -> "subprocess.Popen[bytes]":
    begin = [sys.executable, "-m", "brctl", "--config", str(config), "run", "--deadline", "600s"]
    return subprocess.Popen([*begin, *argv], stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def test_lines_come_while_the_command_runs_and_stdin_reaches_it(config: Path) -> None:
    """The second line is written once the first came back, on both nodes."""
    process = start(config, "-w", "n[1-2]", "--lines", "--", "read a; echo $a; read b; exit $b")
    assert process.stdin is not None
    assert process.stdout is not None
    with process:
        process.stdin.write(b"one\n")
        process.stdin.flush()
        first = {process.stdout.readline(), process.stdout.readline()}
        rest, _ = process.communicate(b"4\n", timeout=TIMEOUT_S)
    assert first == {b"n1: one\n", b"n2: one\n"}
    assert set(rest.splitlines()) == {b"n1: exit 4", b"n2: exit 4"}
    assert process.returncode == 1


def test_each_node_is_an_object_as_soon_as_it_has_ended(config: Path) -> None:
    """A program reads the first node while the second is still at it, and counts both."""
    words = "if test -e {0}; then exec sleep 600; fi; touch {0}; echo quick"
    script = words.format(config.parent / "first")
    process = start(config, "-w", "n[1-2]", "-f", "1", "-o", "ndjson", "--no-stdin", "--", script)
    assert process.stdout is not None
    with process:
        first = json.loads(process.stdout.readline())
        process.send_signal(signal.SIGINT)
        rest = [json.loads(line) for line in process.stdout]
        assert process.wait(TIMEOUT_S) == 130
    assert (first["node"], first["outcome"], first["stdout"]) == ("n1", "answered", "quick\n")
    assert [(row["node"], row["outcome"]) for row in rest] == [("n2", "interrupted")]


def test_nothing_is_read_from_stdin_where_that_is_said(config: Path) -> None:
    """The command's input is at its end, and a pipe is left for whoever comes next."""
    process = start(config, "-w", "n1", "--no-stdin", "--", "wc -c")
    out, _ = process.communicate(b"for somebody else", timeout=TIMEOUT_S)
    assert b"---------------\n0\n" in out
    assert process.returncode == 0


def test_whoever_reads_no_more_ends_the_command_and_learns_nothing_of_the_nodes(
    config: Path,
) -> None:
    """`brctl run --lines ... | head -1` exits 0: 1 and 3 would be said of the nodes."""
    process = start(config, "-w", "n1", "--lines", "--", "echo a; read b; echo $b; sleep 600")
    assert process.stdin is not None
    assert process.stdout is not None
    with process:
        assert process.stdout.readline() == b"n1: a\n"
        process.stdout.close()
        process.stdin.write(b"b\n")
        process.stdin.close()
        assert process.wait(TIMEOUT_S) == 0
