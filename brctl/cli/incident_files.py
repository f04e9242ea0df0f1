"""`brctl incident record|replay|diff|redact|names` and `brctl check incidents`: as files."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from brctl.cli.invocation import Invocation
from brctl.cli.options import Identity
from brctl.cli.typed import refuse_no_file, typed
from brctl.library.config import user_state_dir
from brctl.model.errors import NoConfigError, UsageError, did_you_mean
from brctl.view.recorded.pseudonyms import Profile


def add_file_commands(app: typer.Typer) -> None:
    """Give `brctl incident` the verbs about files."""
    app.command("record")(record)
    app.command("replay")(replay)
    app.command("diff")(diff)
    app.command("redact")(redact)
    app.command("import")(import_)
    app.command("names")(names)


Reader = Annotated[str, typer.Option("--encrypt", help="for whom alone: age:age1... or gpg:KEY")]
File = Annotated[Path, typer.Argument(help="what `incident record` wrote")]


def record(
    ctx: typer.Context,
    verdict: Annotated[str | None, typer.Argument(help="verdict; default all of --last")] = None,
    last: Annotated[str | None, typer.Option("--last", help="looks since then, 2h")] = None,
    encrypt: Reader = "",
    limit: Annotated[
        str, typer.Option("--limit", help="size of the file; the accused go first")
    ] = "64M",
) -> None:
    """Write what verdicts judged by into one file (--out), no secrets; exit 1 what it lacks."""
    from brctl.engine.application.incident_files import record as record_incident
    from brctl.model.units import parse_duration_s, parse_size_bytes

    invocation: Invocation = ctx.obj
    refuse_no_file("--out", invocation.out)
    settings = invocation.settings()
    seconds = typed("--last", last, parse_duration_s) if last is not None else None
    limit_bytes = typed("--limit", limit, parse_size_bytes)
    page = record_incident(
        settings, verdict, seconds, invocation.nodes, invocation.out, encrypt, limit_bytes
    )
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


def replay(ctx: typer.Context, file: File, rules: Rules = None, identity: Identity = None) -> None:
    """Judge a recorded incident again, asking nobody; exit 0 same, 1 changed, 3 cannot tell."""
    from brctl.engine.application.incident_files import replay as replay_incident

    invocation: Invocation = ctx.obj
    invocation.finish(replay_incident(file, rules, identity))


def diff(ctx: typer.Context, file: File, rules: Rules = None, identity: Identity = None) -> None:
    """Say why a recorded incident is judged otherwise now; exit codes as of replay."""
    from brctl.engine.application.incident_files import diff as diff_incident

    invocation: Invocation = ctx.obj
    invocation.finish(diff_incident(file, rules, identity))


def redact(
    ctx: typer.Context,
    file: File,
    profile: Annotated[
        str, typer.Option("--profile", help="vendor keeps device ids, public does not")
    ] = Profile.VENDOR.value,
    encrypt: Reader = "",
    identity: Identity = None,
) -> None:
    """Write a file with pseudonyms for nodes, jobs, users, addresses; exit 1 what it lost."""
    from brctl.engine.application.incident_redaction import redact as redact_incident

    invocation: Invocation = ctx.obj
    known = [Profile.VENDOR.value, Profile.PUBLIC.value]
    if profile not in known:
        raise UsageError(f"--profile {profile}: unknown; {did_you_mean(profile, known)}")
    refuse_no_file("--out", invocation.out)
    page = redact_incident(
        file, _state_dir(invocation), Profile(profile), invocation.out, identity, encrypt
    )
    replace(invocation, out=None).finish(page)


def import_(
    ctx: typer.Context,
    source: Annotated[
        Path, typer.Argument(help="sosreport, nvidia-bug-report, must-gather, folder of logs")
    ],
    cause: Annotated[
        str, typer.Option("--cause", help="the class it really was, on -w nodes")
    ] = "",
) -> None:
    """Make an incident file of what another tool collected; exit 1 what it lacks."""
    from brctl.engine.application.incident_files import import_files

    invocation: Invocation = ctx.obj
    refuse_no_file("--out", invocation.out)
    page = import_files(source, invocation.out, cause, invocation.nodes)
    replace(invocation, out=None).finish(page)


def names(
    ctx: typer.Context,
    pseudonyms: Annotated[list[str], typer.Argument(help="pseudonyms, as node-x0004")],
) -> None:
    """Say which names pseudonyms stand for, where they were given; exit 1 one is unknown."""
    from brctl.engine.application.incident_redaction import originals

    invocation: Invocation = ctx.obj
    invocation.finish(originals(_state_dir(invocation), pseudonyms))


def _state_dir(invocation: Invocation) -> Path:
    """The context's; the person's own where nothing is configured, as at a vendor's."""
    try:
        return invocation.settings().state_dir
    except NoConfigError:
        return user_state_dir(invocation.environ)
