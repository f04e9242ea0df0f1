"""`brctl cp -w NODES SOURCE DESTINATION`: a file or folder to nodes; `--get` brings one back."""

import asyncio
import posixpath
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from brctl.cli.invocation import Invocation, new_app
from brctl.cli.on_nodes import Ended, at_once, finish_ended, run_on_chosen
from brctl.cli.options import NodeDeadline
from brctl.cli.typed import typed
from brctl.model.errors import UsageError

if TYPE_CHECKING:
    from brctl.engine.controller.reach import Chosen, CommandResults
    from brctl.library.config import Settings
    from brctl.model.command import Command, CommandResult

app = new_app()


@app.command()
def cp(
    ctx: typer.Context,
    source: Annotated[str, typer.Argument(help="here; with --get on the nodes")],
    destination: Annotated[str, typer.Argument(help="on the nodes; with --get a folder here")],
    get: Annotated[bool, typer.Option("--get", help="from nodes to DESTINATION/NODE/")] = False,
    deadline: NodeDeadline = "5m",
) -> None:
    """Copy to nodes, or from them; a file appears whole or not at all."""
    from brctl.engine.controller.readonly import refuse_readonly
    from brctl.model.units import parse_duration_s

    invocation: Invocation = ctx.obj
    deadline_s = typed("--deadline", deadline, parse_duration_s)
    if get:
        _get(invocation, source, Path(destination), deadline_s)
    refuse_readonly(invocation.settings(), "brctl cp", nodes=invocation.nodes or "")
    if not destination:
        raise UsageError("'': no destination; is a variable of the shell empty?")
    _put(invocation, Path(source), destination, deadline_s)


def _put(invocation: Invocation, source: Path, destination: str, deadline_s: float) -> NoReturn:
    from brctl.engine.controller.command_input import FileInput
    from brctl.engine.controller.copying import bounded_fanout, open_payload
    from brctl.fanout.choose import takes_input_whole
    from brctl.fanout.streaming import WHOLE_LIMIT_BYTES, too_much

    settings, chosen = _chosen(invocation)
    with open_payload(source) as payload:
        if payload.size_bytes > WHOLE_LIMIT_BYTES and takes_input_whole(settings.ssh, chosen.nodes):
            raise too_much()
        command, whole = payload.command(destination, deadline_s), payload.whole
        stdin = FileInput(payload.descriptor, 0) if whole is None else None
        settings = at_once(settings, bounded_fanout(payload.size_bytes, settings.ssh.fanout))
        done = run_on_chosen(settings, chosen, replace(command, stdin=whole or b""), stdin)
    _finish(invocation, settings, *done)


def _get(invocation: Invocation, source: str, folder: Path, deadline_s: float) -> NoReturn:
    """Small files whole, which is fastest; where one is large, it comes again in pieces."""
    from brctl.engine.controller import copying
    from brctl.fanout.choose import takes_input_whole

    settings, chosen = _chosen(invocation)
    _make(folder)
    name = posixpath.basename(source) or "file"
    only_whole = takes_input_whole(settings.ssh, chosen.nodes)
    limit_bytes = copying.GET_LIMIT_BYTES if only_whole else copying.AT_ONCE_BYTES
    command = copying.get_command(source, deadline_s, limit_bytes)
    fanout = copying.bounded_fanout(limit_bytes, settings.ssh.fanout)
    gathered, ended = run_on_chosen(at_once(settings, fanout), chosen, command)
    large = _saved(gathered, name, folder)
    if large and ended is None and not only_whole:
        for node in large:
            del gathered.answers[node]
        some = replace(chosen, nodes=tuple(node for node in chosen.nodes if node.name in large))
        more, ended = _get_large(settings, some, command, folder, name)
        gathered.answers.update(more)
    _finish(invocation, settings, gathered, ended)


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, FileNotFoundError, NotADirectoryError, PermissionError) as exc:
        raise UsageError(f"{folder}: cannot be a folder: {exc.strerror}") from exc


def _saved(gathered: "CommandResults", name: str, folder: Path) -> list[str]:
    """Save what came whole, with its path as the answer; the nodes whose file was too large."""
    from brctl.engine.controller.copying import save_answer
    from brctl.model.command import Outcome

    for node, answer in gathered.answers.items():
        saved = save_answer(answer, name, folder)
        if saved:
            gathered.answers[node] = replace(answer, stdout=f"{saved}\n".encode())
    limit = Outcome.OUTPUT_OVER_LIMIT
    return [node for node, answer in gathered.answers.items() if answer.outcome is limit]


def _get_large(
    settings: "Settings", chosen: "Chosen", command: "Command", folder: Path, name: str
) -> tuple["dict[str, CommandResult]", Ended]:
    from brctl.cli.live_output import Fetched
    from brctl.engine.controller.arriving import share_of_disk
    from brctl.engine.controller.command_input import NoInput

    bounded = replace(command, output_limit_bytes=share_of_disk(folder, len(chosen.nodes)))
    with closing(Fetched(len(chosen.nodes), folder, name)) as fetched:
        gathered, ended = run_on_chosen(settings, chosen, bounded, NoInput(), fetched)
        return {n: fetched.answers.get(n, a) for n, a in gathered.answers.items()}, ended


def _chosen(invocation: Invocation) -> tuple["Settings", "Chosen"]:
    from brctl.engine.controller.reach import choose, must_name

    settings = invocation.settings()
    wanted = must_name(invocation.nodes)
    return settings, asyncio.run(choose(settings, wanted, invocation.exclude))


def _finish(
    invocation: Invocation,
    settings: "Settings",
    gathered: "CommandResults",
    ended: Ended,
) -> NoReturn:
    from brctl.view.gathered import gathered_page

    page = gathered_page(gathered.answers.values(), gathered.missing)
    finish_ended(invocation, page, settings.context, ended)
