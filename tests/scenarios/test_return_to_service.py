"""Return to service on the fake cluster: fence, window, and nodes that are in service already."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest

from brctl.engine.runs.plan import prepare
from brctl.engine.runs.read_run import read_run
from brctl.engine.runs.remediate import create_run
from brctl.engine.runs.run_files import RunRequest
from brctl.library.playbooks import load_playbook
from brctl.library.shipped import shipped_dir
from brctl.model.errors import GuardError
from brctl.model.exit_codes import ExitCode
from brctl.model.runs.calendar import Calendar, Span
from tests.fakes.run_context import NOON, FakeContext, fake_context
from tests.fakes.run_here import carry

PLAYBOOK = load_playbook(shipped_dir("playbooks") / "return-to-service.yaml")


def cordoned(folder: Path, nodes: Sequence[str], **world: object) -> FakeContext:
    context = fake_context(folder)
    with context.world.change() as data:
        data |= {"dead": [], "nodes": ["n1", "n2"], "ranks": {}, **world}
    asyncio.run(context.backend.cordon(list(nodes), "brctl:R-0000", "test", NOON))
    return context


def run(context: FakeContext, nodes: str) -> tuple[Path, ExitCode]:
    prepared = asyncio.run(prepare(context, PLAYBOOK, None, {"nodes": nodes, "golden": ""}))
    run_dir = create_run(context, prepared, RunRequest("ann", typed="return-to-service"))
    return run_dir, carry(context, run_dir)


def labels(context: FakeContext) -> list[str]:
    return [e for e in context.world.read()["effects"] if e.startswith("label")]


def test_a_node_is_fenced_while_it_is_tested_and_the_label_goes_in_the_end(tmp_path: Path) -> None:
    """Whether it passes or not: what the run wrote on a node, it takes off again."""
    context = cordoned(tmp_path, ["s1", "s2"], sick=["s2"])
    run_dir, _ = run(context, "s[1-2]")
    node_runs = read_run(run_dir).record.node_runs
    assert {node: node_run.result for node, node_run in node_runs.items()} == {
        "s1": "ok",
        "s2": "failed",
    }
    assert labels(context) == [
        "label s1 burnin=R-0001", "label s1 burnin=None",
        "label s2 burnin=R-0001", "label s2 burnin=None",
    ]  # fmt: skip
    assert set(context.world.read()["cordons"]) == {"s2"}


def test_a_node_in_service_is_passed_over(tmp_path: Path) -> None:
    """There is nothing to return, and a burn-in would load a node that jobs may get."""
    context = cordoned(tmp_path, ["s1"])
    run_dir, code = run(context, "s[1-2]")
    assert code is ExitCode.OK
    node_run = read_run(run_dir).record.node_runs["s2"]
    assert (node_run.result, "in service already: s2" in node_run.why) == ("skipped", True)
    assert not [line for line in labels(context) if "s2" in line]


def test_the_window_counts_where_the_site_has_one(tmp_path: Path) -> None:
    """None: any time, and the guard says so. A closed one, or one nobody can read: refused."""
    context = cordoned(tmp_path, ["s1"])
    prepared = asyncio.run(prepare(context, PLAYBOOK, None, {"nodes": "s1", "golden": ""}))
    actual = next(g for g in prepared.plan.guards if g.kind == "maintenance_window")
    assert (actual.ok, actual.sentence) == (
        True, "any time will do: `calendars` of the configuration has no 'hw-daytime'",
    )  # fmt: skip
    tomorrow = Span(NOON + timedelta(days=1), NOON + timedelta(days=2))
    context.calendars.known["hw-daytime"] = Calendar("hw-daytime", (tomorrow,))
    with pytest.raises(GuardError, match="no window of 'hw-daytime' is open; next Mon 2026-07-06"):
        run(context, "s1")
    context.calendars.known["hw-daytime"] = Calendar("hw-daytime", problem="is no iCal file")
    with pytest.raises(GuardError, match="cannot be read, so nothing is allowed: is no iCal file"):
        run(context, "s1")
    context.calendars.known["hw-daytime"] = Calendar(
        "hw-daytime", (Span(NOON, NOON + timedelta(days=9)),)
    )
    assert run(context, "s1")[1] is ExitCode.OK
