"""`brctl check new|import-nhc|learn`: a site's own checks and its own normal."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from brctl.cli.invocation import Invocation
from brctl.view.notices.page import Page


def add_site_commands(app: typer.Typer) -> None:
    """Give `brctl check` the verbs that write files."""
    app.command("new")(new)
    app.command("import-nhc")(import_nhc_file)
    app.command("learn")(learn)


Into = Annotated[Path, typer.Option("--into", help="folder of checks; /etc/brctl/checks is read")]


def new(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(help="domain.check, e.g. site.tmp")],
    into: Into = Path("checks"),
) -> None:
    """Write a new check that runs as it is, to start from."""
    from brctl.library.new_check import write_new_check

    invocation: Invocation = ctx.obj
    folder = write_new_check(name, into)
    invocation.finish(
        Page(
            kind="NewCheck",
            body={"check": name, "files": [f"{folder}/check.yaml", f"{folder}/probe.py"]},
            text=f"{folder}/check.yaml\n{folder}/probe.py",
            next=(f"brctl check explain {name}",),
        )
    )


def import_nhc_file(
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(help="nhc.conf")],
    into: Into = Path("checks"),
) -> None:
    """Take over the lines of an NHC file as checks that call the nodes' own nhc."""
    from brctl.library.foreign import import_nhc

    invocation: Invocation = ctx.obj
    folders = [str(folder) for folder in import_nhc(file, into)]
    invocation.finish(
        Page(
            kind="ImportedChecks",
            body={"source": str(file), "folders": folders},
            text="\n".join(folders) or f"{file} holds no check",
            names=tuple(folders),
            next=("brctl sweep --profile nhc",) if folders else (),
        )
    )


def learn(
    ctx: typer.Context,
    out: Annotated[Path | None, typer.Option("--baseline", help="default: beside config")] = None,
    level: Annotated[int, typer.Option("--level", min=1, max=4, help="checks up to this")] = 1,
) -> None:
    """Measure nodes that are well and keep what is normal for them."""
    from brctl.engine.application.baseline import learn as learn_normal
    from brctl.model.nodeset import fold

    invocation: Invocation = ctx.obj
    nodes, exclude = invocation.nodes, invocation.exclude
    found = asyncio.run(learn_normal(invocation.settings(), nodes, exclude, out, level))
    if found.left_out:
        names = fold(found.left_out)
        invocation.note(f"left out, because something is wrong or they are silent: {names}")
    invocation.finish(
        Page(
            kind="Baseline",
            body={"file": str(found.path), "nodes": found.nodes, "readings": found.readings},
            text=f"{found.path}: {found.readings} readings of {found.nodes} nodes",
        )
    )
