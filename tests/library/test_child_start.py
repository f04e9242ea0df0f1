"""A program that is given up while it starts ends then, and leaves nothing behind."""

import asyncio
import secrets
import time
from asyncio.subprocess import PIPE
from collections.abc import Callable, Coroutine
from pathlib import Path

import pytest

from brctl.actions.child import run_child
from brctl.engine.application.watching import waiting_fix
from brctl.engine.application.watching.waiting_fix import WaitingFix
from brctl.engine.search import group_runner_exec
from brctl.engine.search.group_runner import RoundOrder
from brctl.engine.search.group_runner_exec import ExecRunner
from brctl.engine.search.group_runner_nccl_tests import launch_program
from brctl.fanout.client_process import ClientProcess
from brctl.fanout.local import LocalTransport
from brctl.library.programs.child_start import start_detached, start_process
from brctl.model.command import Command
from brctl.model.inventory import Node
from tests.own_processes import pids_with
from tests.timeouts import TIMEOUT_S

MOMENTS = range(0, 14, 2)
"""Turns of the event loop; a start takes about six, and one of a transport ten."""
BLOCKED_S = 0.02

Argv = tuple[str, ...]
ORDER = RoundOrder(1, "all_reduce", 1 << 20, 4, (("a", "b"),), TIMEOUT_S)


async def on_this_machine(argv: Argv, _: Path) -> None:
    transport = LocalTransport()
    try:
        await transport.run(Node("n1", "127.0.0.1"), Command(argv, deadline_s=TIMEOUT_S))
    finally:
        await transport.close()


async def by_a_client(argv: Argv, _: Path) -> None:
    client = ClientProcess(b"mark", 1 << 20)
    try:
        await client.start(argv, {})
        await client.ends_within(TIMEOUT_S)
    finally:
        await client.end()


async def as_a_step(argv: Argv, folder: Path) -> None:
    await run_child(argv, {}, folder / "log")


async def as_a_launch(argv: Argv, _: Path) -> None:
    await launch_program(argv)


async def as_a_group_test(argv: Argv, _: Path) -> None:
    runner = ExecRunner(argv)
    try:
        await runner.run(ORDER)
    finally:
        await runner.close()


async def as_a_fix(argv: Argv, _: Path) -> None:
    fix = WaitingFix(argv)
    try:
        await fix.prepare()
        await asyncio.Event().wait()
    finally:
        await fix.close()


@pytest.mark.parametrize(
    "start",
    [on_this_machine, by_a_client, as_a_step, as_a_launch, as_a_group_test, as_a_fix],
)
async def test_a_program_given_up_at_any_moment_of_its_start_ends(
    start: Callable[[Argv, Path], Coroutine[None, None, None]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An interrupt between the pipes of a child once hung for ever."""
    monkeypatch.setattr(group_runner_exec, "_PATIENCE_S", 0.05)
    monkeypatch.setattr(waiting_fix, "ENDS_S", 0.05)
    for moment in MOMENTS:
        seconds = f"600.{secrets.randbelow(10**9):09}"
        # The shell's child would hold its pipes when the shell alone is killed.
        starting = asyncio.ensure_future(
            start(("/bin/sh", "-c", f"sleep {seconds}; true"), tmp_path)
        )
        for _ in range(moment):
            await asyncio.sleep(0)
        time.sleep(BLOCKED_S)  # noqa: ASYNC251 - the loop is busy, and the shell has its child
        starting.cancel()
        done, _ = await asyncio.wait([starting], timeout=TIMEOUT_S)
        assert done, f"given up after {moment} turns of the loop, it never ended"
        assert starting.cancelled()
        await gone(seconds)


async def gone(argument: str) -> None:
    async with asyncio.timeout(TIMEOUT_S):
        while pids_with(argument):  # noqa: ASYNC110 - what was killed ends when the kernel likes
            await asyncio.sleep(0.01)


async def test_whoever_is_cancelled_twice_still_ends_what_starts() -> None:
    """A deadline and a Ctrl-C in one moment: the second one left the child to itself."""
    seconds = f"600.{secrets.randbelow(10**9):09}"
    starting = asyncio.ensure_future(
        start_process(
            asyncio.create_subprocess_exec("sleep", seconds, stdout=PIPE, start_new_session=True)
        )
    )
    for _ in range(3):
        await asyncio.sleep(0)
        starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    await gone(seconds)


async def test_what_is_to_outlive_us_is_started_though_we_are_cancelled(tmp_path: Path) -> None:
    """A run that was promised has its process, whoever stops waiting for it."""
    argv = ("/bin/sh", "-c", f"echo alive > {tmp_path}/said")
    starting = asyncio.ensure_future(start_detached(asyncio.create_subprocess_exec(*argv)))
    await asyncio.sleep(0)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    async with asyncio.timeout(TIMEOUT_S):
        while not (tmp_path / "said").exists():  # noqa: ASYNC110 - another process writes it
            await asyncio.sleep(0.01)
