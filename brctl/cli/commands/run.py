"""`brctl run -w NODES -- COMMAND`: one command on many nodes, identical output shown once."""

import asyncio
from contextlib import closing
from typing import Annotated

import typer

from brctl.cli.invocation import Invocation, new_app
from brctl.cli.on_nodes import finish_ended, hold_where_needed, run_on_chosen
from brctl.cli.options import NodeDeadline
from brctl.cli.typed import typed

app = new_app()


@app.command(context_settings={"ignore_unknown_options": True})
def run(
    ctx: typer.Context,
    words: Annotated[list[str], typer.Argument(help="the command, after --", metavar="COMMAND")],
    deadline: NodeDeadline = "30s",
    lines: Annotated[bool, typer.Option("--lines", help="each line as it comes")] = False,
    diff: Annotated[bool, typer.Option("--diff", help="against what most nodes say")] = False,
    limit: Annotated[str, typer.Option("--limit", help="output kept per node")] = "1M",
    no_stdin: Annotated[bool, typer.Option("--no-stdin", help="read nothing here")] = False,
) -> None:
    """Run a command on nodes; their shell reads the words, as with ssh. Exit 3: some are silent.

    A file or pipe on stdin is read by every node. Ctrl-C ends the command on the nodes as well,
    except over kubectl.
    """
    from brctl.cli.live_output import Counted, EachAnswer, EachLine
    from brctl.engine.controller.command_input import NoInput, stdin_input
    from brctl.engine.controller.reach import choose, must_name
    from brctl.engine.controller.readonly import refuse_readonly
    from brctl.engine.controller.remote_shell import shell_argv
    from brctl.model.command import Command
    from brctl.model.units import parse_duration_s, parse_size_bytes
    from brctl.view.gathered import gathered_page

    invocation: Invocation = ctx.obj
    settings = invocation.settings()
    refuse_readonly(settings, "brctl run", nodes=invocation.nodes or "")
    command = Command(
        shell_argv(" ".join(words)),
        deadline_s=typed("--deadline", deadline, parse_duration_s),
        output_limit_bytes=typed("--limit", limit, parse_size_bytes),
    )
    wanted = must_name(invocation.nodes)
    chosen = asyncio.run(choose(settings, wanted, invocation.exclude))
    form = "lines" if lines else "diff" if diff else "gathered"
    if lines and invocation.output in ("table", "wide") and invocation.out is None:
        form = "live"
    each = None
    if invocation.output == "ndjson" and invocation.out is None:
        each = EachAnswer(len(chosen.nodes))
    shown = each or (EachLine if form == "live" else Counted)(len(chosen.nodes))
    with closing(NoInput() if no_stdin else stdin_input()) as stdin:
        settings, given = hold_where_needed(settings, chosen, stdin, command.deadline_s)
        is_streamed = form == "live" or not isinstance(given, NoInput)
        gathered, ended = run_on_chosen(
            settings, chosen, command, given if is_streamed else None, shown
        )
    page = gathered_page(gathered.answers.values(), gathered.missing, form)
    if each is not None:
        each.end(gathered.missing)
    finish_ended(invocation, page, settings.context, ended, written=each is not None)
