"""`brctl cp -w NODES SOURCE DESTINATION`: a file or folder to nodes; `--get` brings one back."""

import asyncio
import posixpath
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from brctl.cli.invocation import Invocation, new_app
from brctl.cli.on_nodes import run_on_chosen
from brctl.cli.options import NodeDeadline
from brctl.cli.typed import typed

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
    from brctl.engine.controller.copying import (
        bounded_fanout,
        get_command,
        put_command,
        save_answer,
    )
    from brctl.engine.controller.reach import choose, must_name
    from brctl.engine.controller.readonly import refuse_readonly
    from brctl.model.units import parse_duration_s
    from brctl.view.gathered import gathered_page

    invocation: Invocation = ctx.obj
    settings = invocation.settings()
    deadline_s = typed("--deadline", deadline, parse_duration_s)
    wanted = must_name(invocation.nodes)
    chosen = asyncio.run(choose(settings, wanted, invocation.exclude))
    if get:
        command = get_command(source, deadline_s)
    else:
        refuse_readonly(settings, "brctl cp", nodes=invocation.nodes or "")
        command = put_command(Path(source), destination, deadline_s)
    size = command.output_limit_bytes if get else len(command.stdin)
    fanout = bounded_fanout(size, settings.ssh.fanout)
    settings = replace(settings, ssh=replace(settings.ssh, fanout=fanout))
    gathered, interrupted = run_on_chosen(settings, chosen, command)
    if get:
        name = posixpath.basename(source) or "file"
        for node, answer in gathered.answers.items():
            saved = save_answer(answer, name, Path(destination))
            if saved:
                gathered.answers[node] = replace(answer, stdout=f"{saved}\n".encode())
    page = gathered_page(gathered.answers.values(), gathered.missing)
    if interrupted is not None:
        page = replace(page, exit_code=interrupted)
    invocation.finish(page, settings.context)
