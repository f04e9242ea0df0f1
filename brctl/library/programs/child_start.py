"""A child process that is started to the end, though whoever asked for it is cancelled meanwhile.

asyncio kills the process alone whose start is given up, and then waits for its pipes: where a shell
has a child already, that child holds them. A Ctrl-C at that moment hung until the child's own end,
and without pipes the child lived on. What is started here leads a session of its own.
"""

import asyncio
import contextlib
import os
import signal
from asyncio.subprocess import Process
from collections.abc import Callable, Coroutine
from typing import TypeVar

_REAP_S = 2.0
"""SIGKILL acts at once unless the process hangs in the kernel; then it is left to init."""

_Started = TypeVar("_Started")
_Connected = tuple[asyncio.SubprocessTransport, asyncio.SubprocessProtocol]


async def start_child(
    starting: Coroutine[object, object, _Connected],
) -> asyncio.SubprocessTransport:
    """What `loop.subprocess_exec` gives; given up, it is ended with its process group.

    Raises:
        OSError: There is no such program.
    """
    transport, _ = await _start(starting, _end_child)
    return transport


async def start_process(starting: Coroutine[object, object, Process]) -> Process:
    """What `asyncio.create_subprocess_exec` gives; given up, it is ended with its process group.

    Raises:
        OSError: There is no such program.
    """
    return await _start(starting, end_process)


async def start_detached(starting: Coroutine[object, object, Process]) -> Process:
    """As `start_process`, for what puts something into the background and ends: that lives on.

    Raises:
        OSError: There is no such program.
    """
    return await _start(starting, lambda process: _reaped(lambda: process.returncode))


async def end_process(process: Process) -> None:
    """Kill its process group; `wait` would wait for pipes too, which others may hold."""
    await _end_group(process.pid, lambda: process.returncode)


async def _start(
    starting: Coroutine[object, object, _Started],
    give_up: Callable[[_Started], Coroutine[object, object, None]],
) -> _Started:
    task = asyncio.ensure_future(starting)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        if started := await _outlast(task):
            await give_up(started)
        raise


async def _end_child(connected: _Connected) -> None:
    transport, _ = connected
    await _end_group(transport.get_pid(), transport.get_returncode)
    transport.close()


async def _outlast(task: asyncio.Task[_Started]) -> _Started | None:
    """What was started, however often we are cancelled meanwhile; None where nothing was."""
    while not task.done():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait([task])
    return None if task.cancelled() or task.exception() else task.result()


async def _end_group(group: int, status: Callable[[], int | None]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)
    await _reaped(status)


async def _reaped(status: Callable[[], int | None]) -> None:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _REAP_S
    while status() is None and loop.time() < deadline:  # noqa: ASYNC110 - asyncio tells by the pipes, which others may hold
        await asyncio.sleep(0.01)
