"""`brctl incident record|replay`, `brctl check incidents`: incidents as files, judged again."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from brctl.cli.invocation import Invocation
from brctl.cli.typed import typed


def add_file_commands(app: typer.Typer) -> None:
    """Give `brctl incident` the verbs about files."""
    app.command("record")(record)
    app.command("replay")(replay)


def record(
    ctx: typer.Context,
    verdict: Annotated[str | None, typer.Argument(help="verdict; default all of --last")] = None,
    last: Annotated[str | None, typer.Option("--last", help="looks since then, 2h")] = None,
) -> None:
    """Write what verdicts judged by into one file (--out); secrets are taken out."""
    from brctl.engine.application.incident_files import record as record_incident
    from brctl.model.units import parse_duration_s

    invocation: Invocation = ctx.obj
    settings = invocation.settings()
    seconds = typed("--last", last, parse_duration_s) if last is not None else None
    page = record_incident(settings, verdict, seconds, invocation.nodes, invocation.out)
    # The file is the answer; what is said of it goes where a person reads it.
    replace(invocation, out=None).finish(page, settings.context)


Rules = Annotated[
    Path | None, typer.Option("--rules", help="folder with other checks/ and rules.d/")
]


def score(
    ctx: typer.Context,
    folder: Annotated[Path, typer.Argument(help="folder of recorded incidents")],
    rules: Rules = None,
) -> None:
    """Judge recorded incidents beside their confirmed causes; exit 0 all right, 1 some not."""
    from brctl.engine.application.incident_files import score as score_incidents

    invocation: Invocation = ctx.obj
    invocation.finish(score_incidents(folder, rules))


def replay(
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(help="what `incident record` wrote")],
    rules: Rules = None,
) -> None:
    """Judge a recorded incident again, asking nobody; exit 0 same, 1 changed, 3 cannot tell."""
    from brctl.engine.application.incident_files import replay as replay_incident

    invocation: Invocation = ctx.obj
    invocation.finish(replay_incident(file, rules))
