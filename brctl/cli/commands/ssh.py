"""`brctl ssh NODE`: a shell on one node, with the address, user and keys the inventory says."""

import asyncio

import typer

from brctl.cli.invocation import Invocation, leave, new_app
from brctl.cli.options import OneNode

app = new_app()


@app.command()
def ssh(
    ctx: typer.Context,
    node: OneNode,
) -> None:
    """Open a shell on a node; `exit` or Ctrl-D comes back."""
    from brctl.engine.controller.reach import choose_one
    from brctl.engine.controller.readonly import refuse_readonly
    from brctl.engine.controller.shell import exec_openssh, needs_openssh, shell_on
    from brctl.model.command import Outcome
    from brctl.model.exit_codes import ExitCode

    invocation: Invocation = ctx.obj
    settings = invocation.settings()
    refuse_readonly(settings, "a shell", nodes=node)
    chosen = asyncio.run(choose_one(settings, node))
    if needs_openssh(settings, chosen):
        exec_openssh(settings, chosen)
    if shell_on(settings, chosen) is not Outcome.ANSWERED:
        invocation.note(f"{chosen.name}: the connection broke")
        leave(ExitCode.UNKNOWN)
