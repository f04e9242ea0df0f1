"""Replays with real processes on this machine; the node's name decides who is bad."""

import json
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import PurePosixPath

import pytest

from brctl.engine.controller.clock import now
from brctl.engine.search.bisect import BisectOptions, bisect
from brctl.engine.search.group_runner import RoundOrder
from brctl.engine.search.replay_phases import run_dual_phase
from brctl.engine.search.replay_runner import (
    COMMAND_VARIABLE,
    ReplayRunner,
    read_group,
)
from brctl.fanout.local import LocalTransport
from brctl.localise.problem import SearchProblem
from brctl.localise.replay import dual_phase
from brctl.model.command import CommandResult, Outcome
from brctl.model.errors import UsageError
from brctl.model.inventory import Node
from brctl.model.jobs.job import example_job
from brctl.model.localisation import FaultKind

NAMES = tuple(f"n{i}" for i in range(1, 10))
NODES = {name: Node(name, "127.0.0.1", python=sys.executable) for name in NAMES}
OPTIONS = BisectOptions("replay", 0, 120.0, 20.0)


def runner_for(command: str) -> ReplayRunner:
    job = replace(
        example_job(), nodes=NAMES, workdir=PurePosixPath("/"),
        environment={COMMAND_VARIABLE: command} if command else {},
    )  # fmt: skip
    return ReplayRunner(LocalTransport(), NODES, job)


async def test_a_failing_machine_is_found_with_references() -> None:
    """Groups with the bad machine exit badly; the search names it and nobody else."""
    runner = runner_for('[ "$BRCTL_NODE" != n4 ] && echo "{\\"digest\\": \\"d$WORLD_SIZE\\"}"')
    problem = SearchProblem(NAMES, reps=1, span=2)
    result = await bisect(problem, OPTIONS, runner, now)
    assert [(f.kind, f.members) for f in result.conclusion.findings] == [(FaultKind.NODE, ("n4",))]


async def test_both_phases_meet_in_the_machine() -> None:
    """The paper's two rounds name the machine whose row and column fail, each time they are run."""
    runner = runner_for('[ "$BRCTL_NODE" != n5 ]')
    result = await run_dual_phase(NAMES, dual_phase(9, 3), OPTIONS, runner, now, lambda r: None)
    (finding,) = result.conclusion.findings
    assert (finding.kind, finding.members) == (FaultKind.NODE, ("n5",))
    assert result.conclusion.rounds == 4


@pytest.mark.parametrize(
    "command",
    ['echo \'{"loss": NaN, "digest": "a"}\'', "exit 3", "kill -9 $$", "sleep 60"],
)
async def test_nan_bad_exit_and_no_end_fail_a_group(command: str) -> None:
    """What a group may end in, besides zero with a finite loss, is a failure."""
    runner = runner_for(f'if [ "$BRCTL_NODE" = n1 ]; then {command}; fi')
    order = RoundOrder(1, "replay", 0, 1, (("n1", "n2"), ("n3", "n4")), 2.0)
    answer = await runner.run(order)
    assert [result.failed for result in answer.results] == [1, 0]


@pytest.mark.parametrize(
    ("report", "is_bad"),
    [
        ({"loss": 93.0, "first_loss": 2.3}, True),
        ({"loss": 2.4, "first_loss": 2.3}, False),
        ({"loss": 93.0}, False),
        ({"loss": 93.0, "first_loss": "2.3"}, False),
        ({"loss": float("nan"), "first_loss": 2.3}, True),
    ],
)
def test_a_loss_that_jumps_between_two_steps_of_a_replay_is_a_bad_number(
    report: Mapping[str, object], is_bad: bool
) -> None:
    """The same steps on other machines: where all groups show it, it is code or data."""
    ranks = [{"exit_status": 0, "lines": [json.dumps(report)]}]
    stdout = json.dumps({"ranks": ranks}).encode()
    found = read_group([CommandResult("n1", Outcome.ANSWERED, 0, stdout, b"", 1.0)])
    assert (found.measured, found.failed, found.nonfinite) == (True, is_bad, is_bad)


async def test_a_digest_of_its_own_fails_a_group_and_is_noted() -> None:
    """What the ranks print last is compared with the other groups' in the same round."""
    runner = runner_for('echo "{\\"digest\\": \\"$([ $BRCTL_NODE = n1 ] && echo x || echo a)\\"}"')
    order = RoundOrder(1, "replay", 0, 1, (("n1",), ("n2",), ("n3",)), 5.0)
    answer = await runner.run(order)
    assert [(r.failed, r.differs) for r in answer.results] == [(1, 1), (0, 0), (0, 0)]
    assert answer.notes == ("n1: its digest differs",)


def test_where_a_node_died_the_bad_end_of_its_peers_says_nothing() -> None:
    """Ranks whose peer is gone end with an error of their own, and compute as they should."""
    ended = json.dumps({"ranks": [{"exit_status": 1, "lines": ["connection reset"]}]}).encode()
    peer = CommandResult("n1", Outcome.ANSWERED, 0, ended, b"", 1.0)
    dead = CommandResult("n2", Outcome.UNREACHABLE, None, b"", b"", 1.0)
    found = read_group([peer, dead])
    assert (found.measured, found.failed) == (False, False)
    assert "n2" in found.note


async def test_a_job_that_cannot_be_replayed_is_refused() -> None:
    """Without a command in job.yaml nothing runs, and the message says what to write."""
    runner = runner_for("")
    order = RoundOrder(1, "replay", 0, 1, (("n1", "n2"),), 2.0)
    with pytest.raises(UsageError, match="does not say how to replay"):
        await runner.run(order)
