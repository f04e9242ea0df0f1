"""`brctl watch`: look all the time; `watch status|stop|policy|replay`."""

import asyncio
import contextlib
import signal
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from brctl.cli import output
from brctl.cli.invocation import Invocation, new_app
from brctl.cli.options import read_address
from brctl.model.errors import UsageError, did_you_mean
from brctl.model.watch.policy import WatchMode

if TYPE_CHECKING:
    from brctl.engine.application.watching.process import WatchRequest

app = new_app()

Policy = Annotated[Path | None, typer.Option("--policy", help="a WatchPolicy file")]


@app.callback(invoke_without_command=True)
def watch(
    ctx: typer.Context,
    job: Annotated[str | None, typer.Option("--job", help="this job and its nodes")] = None,
    mode: Annotated[
        str, typer.Option("--mode", help="at most this: observe, propose or act")
    ] = "observe",
    policy: Policy = None,
    wait: Annotated[bool, typer.Option("--wait", help="stand by while another one leads")] = False,
    prom: Annotated[Path | None, typer.Option("--prom", help="metrics file, atomic")] = None,
    listen: Annotated[
        str | None, typer.Option("--listen", help="[HOST:]PORT to serve metrics, 127.0.0.1 if none")
    ] = None,
) -> None:
    """Look at nodes and jobs all the time; write, page or fix as far as the policy allows."""
    if ctx.invoked_subcommand is not None:
        return
    from brctl.engine.application.watching.process import WatchRequest

    invocation: Invocation = ctx.obj
    cap = read_mode(mode)
    request = WatchRequest(
        job, invocation.nodes, invocation.exclude, cap, policy, wait, prom,
        read_address(listen, "127.0.0.1") if listen is not None else None,
    )  # fmt: skip
    asyncio.run(_watch(invocation, request))


async def _watch(invocation: Invocation, request: "WatchRequest") -> None:
    from brctl.engine.application.watching.process import watch
    from brctl.engine.controller.readonly import refuse_readonly
    from brctl.engine.controller.wiring import open_controller

    settings = invocation.settings()
    if request.cap is WatchMode.ACT:
        refuse_readonly(settings, "fix by the watcher")
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    if task is not None:
        loop.add_signal_handler(signal.SIGTERM, task.cancel)
    async with open_controller(settings) as controller:
        # A service manager ends a watcher by SIGTERM, and that is no failure.
        with contextlib.suppress(asyncio.CancelledError):
            await watch(controller, request, output.say)


@app.command()
def status(
    ctx: typer.Context,
    lines: Annotated[int, typer.Option("--lines", min=0, max=1000, help="newest records")] = 10,
    policy: Policy = None,
) -> None:
    """Say who watches, what is suspected and what was decided; exit 3 when nobody watches."""
    from brctl.engine.controller.clock import now
    from brctl.engine.watch.folder import WatchFolder
    from brctl.engine.watch.policy_file import policy_or_observe
    from brctl.view.watch.pages import status_page

    invocation: Invocation = ctx.obj
    settings = invocation.settings()
    folder = WatchFolder(settings.state_dir, settings.context)
    seen = folder.snapshot(lines)
    tried = policy_or_observe(policy)
    if policy is None and seen.limits is not None:
        tried = replace(tried, limits=seen.limits)
    page = status_page(seen, tried, now())
    invocation.finish(page, settings.context)


@app.command()
def stop(
    ctx: typer.Context,
    message: Annotated[str, typer.Option("-m", "--message", help="why")] = "",
    lift: Annotated[bool, typer.Option("--lift", help="take the stop back")] = False,
) -> None:
    """Switch every watcher of this context off; runs that were started go on."""
    from brctl.engine.controller.clock import now
    from brctl.engine.controller.people import person
    from brctl.engine.watch.folder import WatchFolder
    from brctl.view.notices.page import Page

    invocation: Invocation = ctx.obj
    settings = invocation.settings()
    folder = WatchFolder(settings.state_dir, settings.context)
    if lift:
        text = "watching is allowed again" if folder.lift() else "nothing was stopped"
    else:
        folder.stop(person(), message, now())
        text = "watchers end within a second, and none starts until `brctl watch stop --lift`"
    page = Page("WatchStop", {"stopped": folder.stopped() or None}, text)
    invocation.finish(page, settings.context)


@app.command()
def policy(
    ctx: typer.Context,
    file: Annotated[Path | None, typer.Argument(help="default the built-in one")] = None,
    close_breaker: Annotated[
        str, typer.Option("--close-breaker", help="why the breaker is closed again")
    ] = "",
) -> None:
    """Show what a policy allows, rule by rule; or close the breaker, with a reason."""
    from brctl.engine.controller.clock import now
    from brctl.engine.watch.folder import WatchFolder
    from brctl.engine.watch.policy_file import load_watch_policy
    from brctl.model.watch.policy import WatchPolicy
    from brctl.view.watch.pages import policy_page

    invocation: Invocation = ctx.obj
    found = load_watch_policy(file) if file is not None else WatchPolicy()
    if close_breaker:
        settings = invocation.settings()
        WatchFolder(settings.state_dir, settings.context).close_breaker(close_breaker, now())
        invocation.note("the breaker closes at the watcher's next look")
    invocation.finish(policy_page(found))


@app.command()
def replay(
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(help="a watch.ndjson")],
    policy: Policy = None,
    mode: Annotated[str, typer.Option("--mode", help="at most this")] = "act",
) -> None:
    """Judge a recorded time again under another policy: what would have been done, was it right."""
    from brctl.engine.application.watching.replay import replay_file
    from brctl.engine.watch.policy_file import load_watch_policy
    from brctl.model.watch.policy import WatchPolicy
    from brctl.view.watch.pages import replay_page

    invocation: Invocation = ctx.obj
    tried = load_watch_policy(policy) if policy is not None else WatchPolicy()
    found = replay_file(invocation.settings(), file, tried, read_mode(mode))
    invocation.finish(replay_page(found, tried))


def read_mode(text: str) -> WatchMode:
    """A mode as it is typed.

    Raises:
        UsageError: There is none of this name.
    """
    known = [each.value for each in WatchMode]
    if text not in known:
        raise UsageError(f"--mode {text}: unknown; {did_you_mean(text, known)}")
    return WatchMode(text)
