"""`brctl cordon|uncordon|swap`: changes a person makes by hand, as runs with a journal."""

import asyncio
from datetime import timedelta
from typing import Annotated

import typer

from brctl.cli.invocation import Invocation, new_app
from brctl.cli.options import ConfirmSwap, DryRun, Nodes
from brctl.cli.running import Consent, OverrideOption, finish_run, run_playbook
from brctl.cli.typed import typed
from brctl.engine.application.by_hand import (
    node_names,
    refuse_cordoned,
    standing_against,
    swap_inputs,
)
from brctl.engine.application.runs import find_playbook
from brctl.engine.controller.clock import now
from brctl.model.errors import GuardError, UsageError
from brctl.model.nodeset import fold
from brctl.model.runs.playbook import Json
from brctl.model.units import parse_duration_s, rfc3339
from brctl.view.text import printable

app = new_app()

_SHORTEST_TTL_S, _LONGEST_TTL_S = 60.0, 365 * 86_400.0

Message = Annotated[str, typer.Option("-m", "--message", help="why, for the people after you")]


@app.command()
def cordon(
    ctx: typer.Context,
    nodes: Nodes,
    message: Message,
    drain: Annotated[bool, typer.Option("--drain", help="ask their work to go, and wait")] = False,
    ttl: Annotated[
        str, typer.Option("--ttl", metavar="DURATION", help="then cron gives well nodes back")
    ] = "",
    confirm: ConfirmSwap = None,
    dry_run: DryRun = False,
    override: OverrideOption = "",
) -> None:
    """Take nodes out of service, with a reason; --drain also waits until their work has gone.

    With --ttl the first `brctl sweep --cron` after that time gives those back that are well.
    """
    values: dict[str, Json] = {"reason": message}
    if ttl:
        seconds = typed("--ttl", ttl, _parse_ttl_s)
        until = rfc3339(now().replace(microsecond=0) + timedelta(seconds=seconds))
        values = {"reason": f"{message} (until {until})", "until": until}
        asyncio.run(refuse_cordoned(ctx.obj.settings(), _names(ctx.obj, nodes)))
    # A drain ends other people's pods, so it asks before it acts.
    yes, playbook = not drain, "drain" if drain else "cordon"
    consent = Consent(yes=yes, typed=confirm, dry_run=dry_run, override=override, why=message)
    _run_on(ctx.obj, playbook, nodes, values, consent)


def _parse_ttl_s(text: str) -> float:
    seconds = parse_duration_s(text)
    if not _SHORTEST_TTL_S <= seconds <= _LONGEST_TTL_S:
        raise ValueError(f"{text!r}: a cordon lasts between 1m and 365d")
    return seconds


@app.command()
def uncordon(
    ctx: typer.Context,
    nodes: Nodes,
    message: Annotated[str, typer.Option("-m", "--message", help="why")] = "",
    take_over: Annotated[bool, typer.Option("--take-over", help="lift others' cordons")] = False,
    check: Annotated[bool, typer.Option("--check", help="look first; only if all is well")] = False,
    dry_run: DryRun = False,
) -> None:
    """Give cordoned nodes back; somebody else's cordon needs --take-over and a message.

    What stands against them is said; with --check they are looked at now, and refused then.
    """
    if take_over and not message:
        raise UsageError("--take-over needs -m: say why you lift somebody else's cordon")
    invocation: Invocation = ctx.obj
    names = _names(invocation, nodes)
    _say_what_stands(invocation, list(map(str, names)), look=check)
    values: dict[str, Json] = {"owner": "anyone" if take_over else "brctl", "note": message}
    values["nodes"] = names
    _run(invocation, "uncordon", values, Consent(yes=True, dry_run=dry_run))


def _say_what_stands(invocation: Invocation, names: list[str], *, look: bool) -> None:
    """Warn of faults that stand; after a look of this moment they refuse."""
    found = asyncio.run(standing_against(invocation.settings(), names, look=look))
    for line in found.lines:
        invocation.note(f"{'refused' if look else 'warning'}: {printable(line, 200)}")
    if look and found.lines:
        raise GuardError(
            f"refused: what is named above stands against {fold(names)}. Nothing changed.",
            hint=f"brctl check run -w '{fold(names)}', or leave out --check",
        )
    if found.age_s is None:
        invocation.note(f"warning: no sweep has seen {fold(names)}; --check looks first")


@app.command()
def swap(
    ctx: typer.Context,
    nodes: Nodes,
    message: Message,
    job: Annotated[str | None, typer.Option("--job", help="default the one they carry")] = None,
    standbys: Annotated[
        str | None, typer.Option("--with", metavar="NODES", help="these standbys, not the best")
    ] = None,
    confirm: ConfirmSwap = None,
    dry_run: DryRun = False,
    override: OverrideOption = "",
) -> None:
    """Replace nodes by standbys and resume their job from the newest whole checkpoint."""
    invocation: Invocation = ctx.obj
    given = swap_inputs(invocation.settings(), nodes, job, message, standbys, invocation.exclude)
    values = asyncio.run(given)
    consent = Consent(typed=confirm, dry_run=dry_run, override=override, why=message)
    _run(invocation, "swap-and-resume", values, consent)


def _names(invocation: Invocation, nodes: str) -> list[Json]:
    return asyncio.run(node_names(invocation.settings(), nodes, invocation.exclude))


def _run_on(
    invocation: Invocation, playbook: str, nodes: str, values: dict[str, Json], consent: Consent
) -> None:
    values["nodes"] = _names(invocation, nodes)
    _run(invocation, playbook, values, consent)


def _run(invocation: Invocation, playbook: str, values: dict[str, Json], consent: Consent) -> None:
    settings = invocation.settings()
    chosen = find_playbook(settings.library_dirs, playbook)
    run = asyncio.run(run_playbook(invocation, settings, chosen, values, None, consent))
    finish_run(invocation, settings, run)
