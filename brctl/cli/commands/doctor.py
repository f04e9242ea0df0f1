"""`brctl doctor [--security] [ssh]`: can this controller work at all, and what is in the way."""

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from brctl.cli.invocation import Invocation, new_app
from brctl.cli.progress import progress
from brctl.model.errors import UsageError

if TYPE_CHECKING:
    from brctl.model.security_finding import SecurityFinding

app = new_app()


@app.callback(invoke_without_command=True)
def doctor(
    ctx: typer.Context,
    security: Annotated[
        bool, typer.Option("--security", help="who could act as brctl or read its state, and how")
    ] = False,
) -> None:
    """Check configuration, SSH set-up, tools and permissions of this controller.

    No node is reached, but with `--security -w NODES` these are asked what sudo allows the login.
    """
    if ctx.invoked_subcommand is not None:
        return
    invocation: Invocation = ctx.obj
    if security:
        _security(invocation)
    if invocation.nodes or invocation.exclude:
        raise UsageError("doctor reaches no node", hint="brctl doctor --security -w NODES")
    from brctl.engine.controller.doctor import examine
    from brctl.view.doctor import doctor_page

    with progress("looking at configuration, SSH and tools", quiet=invocation.quiet):
        findings = examine(invocation.environ, invocation.context, invocation.config)
    invocation.finish(doctor_page(findings), invocation.context or "")


def _security(invocation: Invocation) -> None:
    from brctl.engine.controller.security.report import examine_security, first_environment
    from brctl.view.security import security_page

    findings = examine_security(first_environment(), invocation.settings)
    if invocation.nodes:
        findings = (*findings, *_sudo_on_nodes(invocation))
    invocation.finish(security_page(findings), invocation.context or "")


def _sudo_on_nodes(invocation: Invocation) -> "tuple[SecurityFinding, ...]":
    from brctl.engine.controller.reach import choose
    from brctl.engine.controller.security.sudo import sudo_findings
    from brctl.library.checks import site_checks

    settings = invocation.settings()
    chosen = asyncio.run(choose(settings, invocation.nodes, invocation.exclude))
    return asyncio.run(sudo_findings(settings, chosen, site_checks(settings.library_dirs)))


@app.command()
def ssh(ctx: typer.Context) -> None:
    """Say which transport each node gets and why, and whose host key is known; reach none."""
    from brctl.engine.controller.doctor_ssh import ssh_routes
    from brctl.engine.controller.reach import choose
    from brctl.view.doctor_ssh import doctor_ssh_page

    invocation: Invocation = ctx.obj
    settings = invocation.settings()
    chosen = asyncio.run(choose(settings, invocation.nodes, invocation.exclude))
    routes, files = ssh_routes(settings, chosen.inventory, chosen.names)
    invocation.finish(doctor_ssh_page(routes, files), settings.context)
