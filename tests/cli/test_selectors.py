"""Every word of the interface that takes nodes takes every selector; the words are not listed."""

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from dis import get_instructions
from operator import attrgetter
from pathlib import Path
from types import CodeType, FunctionType

import pytest
import typer.main

from brctl.backends.contract import Cordon
from brctl.backends.static.state import StaticState, change_state
from brctl.cli.main import run
from brctl.cli.words import WORDS
from brctl.engine.controller.clock import now
from brctl.engine.sweeps.sweep_store import save
from brctl.inventory.select import SELECTORS
from brctl.model.selectors import SELECTOR_FORMS
from brctl.model.sweeps.sweep import Health, Sweep
from tests.sweep.healths import node

CONFIG = """\
apiVersion: brctl.dev/v1
kind: Config
context: prod
state_dir: state
ssh: {transport: local}
contexts: {prod: {inventory: [{file: own.yaml}], jobs: [job.yaml]}}
"""
OWN = """\
apiVersion: brctl.dev/v1
kind: Inventory
nodes:
  n1: {address: 127.0.0.1, rack: r12}
  n2: {address: 127.0.0.1, rack: r12}
  n3: {address: 127.0.0.1}
  n4: {address: 127.0.0.1}
  s1: {address: 127.0.0.1, role: standby}
groups: {golden: n4}
"""
JOB = """\
apiVersion: brctl.dev/v1
kind: Job
name: demo
nodes: n[1-2]
launch: [train]
checkpoint: {directory: /nowhere/ckpt}
logs: /nowhere/logs
progress: /nowhere/progress
"""

EXAMPLES = {
    "@all": "@all",
    "@active": "@active",
    "@standby": "@standby",
    "@GROUP": "@golden",
    "@LABEL:VALUE": "@rack:r12",
    "@job:NAME": "@job:demo",
    "@cordoned": "@cordoned",
    "@by:OWNER": "@by:ann",
    "@state:STATE": "@state:crit",
}
NO_NODE = ",".join(EXAMPLES.values()) + "!@all"
"""Every selector is read and no node is left, so that a command ends where it knows its nodes."""

METAVARS = ("NODE", "NODES")

NEEDS_A_LAB = "lab"
"""Its words have the same nodes as any context, but only while a lab is up: tests/lab."""


@dataclass(frozen=True)
class Leaf:
    """One command: its words, its parameters, its function."""

    words: tuple[str, ...]
    parameters: tuple[typer.core.TyperArgument | typer.core.TyperOption, ...]
    function: FunctionType

    def line(self, nodes_at: str, text: str) -> list[str]:
        """Words for one call: `text` where nodes stand, something for whatever else it needs."""
        line = list(self.words)
        if line == ["doctor"]:
            # It reaches nodes only when it is asked who could act as brctl there.
            line.append("--security")
        for parameter in self.parameters:
            value = text if parameter.name == nodes_at else _something(parameter)
            is_left = bool(nodes_at) and parameter.name == "nodes"
            if parameter.name == nodes_at or parameter.required or is_left:
                named = parameter.param_type_name == "option"
                line += [parameter.opts[0], value] if named else [value]
        return line


def _something(parameter: typer.core.TyperArgument | typer.core.TyperOption) -> str:
    if parameter.metavar in METAVARS:
        return "n1"
    return "1" if parameter.type.name.startswith(("int", "float")) else "a=b"


def leaves() -> Iterator[Leaf]:
    for word, entry in WORDS.items():
        command = typer.main.get_command(entry.load())
        children = getattr(command, "commands", None)
        named = {"": command, **(children or {})} if not entry.verb else {}
        if entry.verb and children:
            named = {"": children[entry.verb]}
        for name, child in named.items():
            if child.callback is not None:
                inner = (
                    child.callback.__wrapped__
                    if hasattr(child.callback, "__wrapped__")
                    else child.callback
                )
                yield Leaf((word, *([name] if name else [])), tuple(child.params), inner)


def takes_nodes(leaf: Leaf) -> list[str]:
    """Names of the parameters that are nodes."""
    return [str(p.name) for p in leaf.parameters if p.metavar in METAVARS]


def reads_minus_w(function: FunctionType) -> bool:
    """Whether a command's own code looks at `-w` and `-x`, through the functions of its file."""
    observed: set[FunctionType] = set()
    todo = [function]
    while todo:
        here = todo.pop()
        observed.add(here)
        read = [i for code in _codes(here.__code__) for i in get_instructions(code)]
        if {"nodes", "exclude"} <= {i.argval for i in read if i.opname == "LOAD_ATTR"}:
            return True
        known = [here.__globals__.get(i.argval) for i in read if i.opname == "LOAD_GLOBAL"]
        todo += [f for f in known if isinstance(f, FunctionType) and f not in observed
                 and f.__module__.startswith("brctl.cli.")]  # fmt: skip
    return False


def _codes(code: CodeType) -> Iterator[CodeType]:
    """A function's code and that of the functions inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


LEAVES = {" ".join(leaf.words): leaf for leaf in leaves() if leaf.words[0] != NEEDS_A_LAB}
ARGUMENTS = [(name, at) for name, leaf in LEAVES.items() for at in takes_nodes(leaf)]
READ_MINUS_W = [name for name, leaf in LEAVES.items() if reads_minus_w(leaf.function)]
PASS_ON = [name for name in READ_MINUS_W if name.startswith("schedule ")]
"""They print a line that another brctl will read."""

EITHER = ["cordon", "uncordon", "swap", "standby add", "standby remove"]
"""NODES is an argument of theirs, and -w may stand in its place."""

MINUS_W = [*EITHER, *(name for name in READ_MINUS_W if name not in PASS_ON)]
ONLY_W = ["tui", "config init", "incident record", "incident import", "verdict confirm"]
"""They have no use for -x."""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Five nodes, one of them cordoned and one critical; the job was swapped from n2 to s1."""
    for name, text in (("config.yaml", CONFIG), ("own.yaml", OWN), ("job.yaml", JOB)):
        (tmp_path / name).write_text(text)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("BRCTL_CONFIG", str(tmp_path / "config.yaml"))
    state = tmp_path / "state"
    cordon = Cordon("n2", "brctl:ann", "swapped", now())

    def swapped(before: StaticState) -> StaticState:
        return replace(before, cordons={"n2": cordon}, jobs={"demo": ("n1", "s1")})

    change_state(state / "static" / "prod.json", swapped)
    at = now() - timedelta(minutes=1)
    save(
        state, Sweep("S-20260101T000000", 1, ("gpu.ecc",), at, 1.0, (node("n3", Health.CRITICAL),))
    )
    return tmp_path


def test_every_selector_of_the_table_is_tried() -> None:
    """A form that is added to the table is missing here until it is."""
    assert set(EXAMPLES) == {selector.form for selector in SELECTORS} == set(SELECTOR_FORMS)


def test_every_parameter_that_is_called_node_takes_nodes() -> None:
    """What help shows as NODES is what these tests try, so nothing may go by another name."""
    plain = [
        (name, parameter.name)
        for name, leaf in LEAVES.items()
        for parameter in leaf.parameters
        if parameter.name in ("node", "nodes", "golden")
        and parameter.metavar not in ("NODE", "NODES")
    ]
    assert not plain
    assert len(ARGUMENTS) > 10
    assert len(MINUS_W) > 10


@pytest.mark.parametrize(("name", "at"), ARGUMENTS)
def test_an_argument_that_takes_nodes_takes_every_selector(
    site: Path, capsys: pytest.CaptureFixture[str], name: str, at: str
) -> None:
    """No selector is unknown to it, and none of them is silently empty."""
    code = run(LEAVES[name].line(at, NO_NODE))
    output = capsys.readouterr()
    if LEAVES[name].words == ("play", "history"):
        assert code == 0
        assert "no run" in output.out
        return
    if LEAVES[name].words == ("nodes", "count"):
        assert (code, output.out) == (0, "0\n")
        return
    assert code == 64, output.err
    assert "matched 0 of" in output.err or "means 0 nodes" in output.err


@pytest.mark.parametrize("name", MINUS_W)
def test_a_command_that_reads_minus_w_takes_every_selector(
    site: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    """The same for -w, in front of the command's own words or behind them."""
    code = run(["-w", NO_NODE, *LEAVES[name].line("", "")])
    if LEAVES[name].words == ("nodes", "count"):
        assert (code, capsys.readouterr().out) == (0, "0\n")
        return
    assert code == 64
    assert "matched 0 of" in capsys.readouterr().err


@pytest.mark.parametrize("name", EITHER)
def test_nodes_that_are_excluded_are_left_alone(
    site: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    """`cordon n[1-2] -x n2` took n2 as well."""
    code = run([*LEAVES[name].line("nodes", "@all"), "-x", "@all"])
    assert (code, "matched 0 of" in capsys.readouterr().err) == (64, True)
    assert run([*LEAVES[name].line("nodes", "n1"), "-w", "n3"]) == 64
    assert "name the nodes once" in capsys.readouterr().err
    assert run(LEAVES[name].line("", "")) == 64
    assert "which nodes?" in capsys.readouterr().err


def test_a_command_that_reads_no_minus_w_refuses_it(
    site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`fix V-1 -x n2` would swap n2 and say nothing; the table is what the code of each reads."""
    selects, only_w = (
        {f"{word} {verb}".rstrip() for word, entry in WORDS.items() for verb in chosen(entry)}
        for chosen in (attrgetter("selects"), attrgetter("only_w"))
    )
    assert selects == {*MINUS_W, *PASS_ON}
    assert only_w == set(ONLY_W)
    for words in (
        ["fix", "V-1", "-x", "n2"],
        ["job", "start", "-w", "n1"],
        ["play", "list", "-w", "n1"],
        *([*name.split(), "-x", "n2"] for name in ONLY_W),
    ):
        assert run(words) == 64
        assert "chooses no nodes by -" in capsys.readouterr().err


@pytest.mark.parametrize("name", PASS_ON)
def test_a_printed_line_keeps_its_selectors(
    site: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    name: str,
) -> None:
    """They are read when the line runs, not when it is printed."""
    # The printed line begins with our own path, which a worker of a test run has not.
    monkeypatch.setattr(sys, "argv", ["/usr/bin/brctl"])
    assert run(["-w", "@job:demo", *LEAVES[name].line("", "")]) == 0
    assert "@job:demo" in capsys.readouterr().out


@pytest.mark.parametrize("name", MINUS_W)
def test_what_cannot_be_answered_is_an_error_of_every_command(
    site: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    """Without a sweep nobody knows who is critical; that must not become "none is"."""
    for sweep in (site / "state" / "sweeps").iterdir():
        sweep.unlink()
    code = run(["-w", "@state:crit", *LEAVES[name].line("", "")])
    assert code == 69
    assert "@state:crit: nothing was swept yet" in capsys.readouterr().err


def test_a_job_is_where_its_ranks_run_and_not_where_job_yaml_put_it(
    site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """After a swap `-w @job:demo` reaches the replacement and leaves the evicted node alone."""
    assert run(["run", "-w", "@job:demo", "-o", "json", "--", "true"]) == 0
    output = capsys.readouterr().out
    rows = json.loads(output)["answers"]
    assert sorted(row["node"] for row in rows) == ["n1", "s1"]


def test_a_playbook_s_input_takes_every_selector(
    site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`--set nodes=` reads what -w reads."""
    assert run(["play", "plan", "cordon", "--set", f"nodes={NO_NODE}", "--set", "reason=x"]) == 64
    assert "matched 0 of" in capsys.readouterr().err


def test_a_filter_of_the_terminal_takes_every_selector(
    site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`/` reads what -w reads; a filter that leaves nothing is no error there."""
    assert run(["tui", "--once", "--filter", ",".join(EXAMPLES.values())]) == 0
    assert run(["tui", "--once", "--filter", "@nosuch"]) == 64
    assert "no such group" in capsys.readouterr().err


def test_wildcards_mean_nodes_of_the_inventory(
    site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["ls", "-w", "n*!n[2-3]", "-o", "name"]) == 0
    assert capsys.readouterr().out == "n1\nn4\n"


def test_a_node_where_a_job_stands_is_said_to_be_one(
    site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`dx n2` is how people ask; the answer is the line they meant."""
    assert run(["dx", "n2"]) == 64
    assert "brctl dx -w 'n2'" in capsys.readouterr().err


def test_help_lists_every_selector(capsys: pytest.CaptureFixture[str]) -> None:
    """The text comes from the table that the parser reads."""
    assert run(["help", "selectors"]) == 0
    output = capsys.readouterr().out
    assert all(form in output and meaning in output for form, meaning in SELECTOR_FORMS.items())
