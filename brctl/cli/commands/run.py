"""`brctl run -w NODES -- COMMAND`: one command on many nodes, identical output shown once."""

import asyncio
from dataclasses import replace
from typing import Annotated

import typer

from brctl.cli.invocation import Invocation, new_app
from brctl.cli.on_nodes import run_on_chosen
from brctl.cli.options import NodeDeadline
from brctl.cli.typed import typed

app = new_app()


@app.command(context_settings={"ignore_unknown_options": True})
def run(
    ctx: typer.Context,
    words: Annotated[list[str], typer.Argument(help="the command, after --", metavar="COMMAND")],
    deadline: NodeDeadline = "30s",
    lines: Annotated[bool, typer.Option("--lines", help="one line per node and line")] = False,
    diff: Annotated[bool, typer.Option("--diff", help="against what most nodes say")] = False,
    limit: Annotated[str, typer.Option("--limit", help="output kept per node")] = "1M",
) -> None:
    """Run a command on nodes; their shell reads the words, as with ssh. Exit 3: some are silent."""
    from brctl.engine.controller.reach import choose, must_name
    from brctl.engine.controller.readonly import refuse_readonly
    from brctl.model.command import Command
    from brctl.model.units import parse_duration_s, parse_size_bytes
    from brctl.view.gathered import gathered_page

    invocation: Invocation = ctx.obj
    settings = invocation.settings()
    refuse_readonly(settings, "brctl run", nodes=invocation.nodes or "")
    command = Command(
        ("sh", "-c", " ".join(words)),
        deadline_s=typed("--deadline", deadline, parse_duration_s),
        output_limit_bytes=typed("--limit", limit, parse_size_bytes),
    )
    wanted = must_name(invocation.nodes)
    chosen = asyncio.run(choose(settings, wanted, invocation.exclude))
    gathered, interrupted = run_on_chosen(settings, chosen, command)
    form = "lines" if lines else "diff" if diff else "gathered"
    page = gathered_page(gathered.answers.values(), gathered.missing, form)
    if interrupted is not None:
        page = replace(page, exit_code=interrupted)
    invocation.finish(page, settings.context)
