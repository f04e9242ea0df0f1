"""asyncssh builds the options of each login in a thread; ours read no file, so none is needed.

The way there and back costs as much CPU as the building itself, together a tenth of a login.
Everything else that goes to the loop's threads, names looked up for one, still does.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any

import asyncssh


def build_options_here() -> None:
    """From now on the running loop builds options of connections itself."""
    asyncio.get_running_loop().set_default_executor(_Executor(thread_name_prefix="asyncio"))


class _Executor(ThreadPoolExecutor):
    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        if not (isinstance(fn, partial) and fn.func is asyncssh.SSHClientConnectionOptions):
            return super().submit(fn, *args, **kwargs)
        done: Future[Any] = Future()
        try:
            done.set_result(fn(*args, **kwargs))
        except Exception as error:  # noqa: BLE001 - raised where the result is awaited
            done.set_exception(error)
        return done
