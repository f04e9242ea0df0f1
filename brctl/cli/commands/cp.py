"""`brctl cp -w NODES SOURCE DESTINATION`: a file or folder to nodes; `--get` brings one back."""

import asyncio
import posixpath
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
    from brctl.engine.controller.copying import bounded_fanout, get_command, save_answer

    settings, chosen = _chosen(invocation)
    command = get_command(source, deadline_s)
    fanout = bounded_fanout(command.output_limit_bytes, settings.ssh.fanout)
    gathered, ended = run_on_chosen(at_once(settings, fanout), chosen, command)
    name = posixpath.basename(source) or "file"
    for node, answer in gathered.answers.items():
        saved = save_answer(answer, name, folder)
        if saved:
            gathered.answers[node] = replace(answer, stdout=f"{saved}\n".encode())
    _finish(invocation, settings, gathered, ended)


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
