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
    asyncio.run(_learn(ctx.obj, out, level))


async def _learn(invocation: Invocation, chosen: Path | None, level: int) -> None:
    from brctl.engine.controller.selection import select_nodes
    from brctl.engine.controller.wiring import open_controller
    from brctl.engine.sweeps.run_checks import Question, sweep_nodes
    from brctl.evidence.baseline import learn_baseline
    from brctl.library.baselines import write_baseline
    from brctl.library.config import BASELINE_NAME
    from brctl.model.nodeset import fold
    from brctl.model.sweeps.sweep import Health

    settings = invocation.settings()
    folder = settings.config_file.parent if settings.config_file else Path()
    out = chosen or folder / BASELINE_NAME
    async with open_controller(settings) as controller:
        names = await select_nodes(controller, invocation.nodes, invocation.exclude)
        result = await sweep_nodes(controller, names, Question(level=level))
        models = {
            n.name: n.labels.get("gpu_model", "") for n in controller.inventory.nodes.values()
        }
        moment = controller.now()
    well = [node.report for node in result.nodes if node.health is not Health.CRITICAL]
    left_out = sorted(set(names) - {report.node for report in well})
    baseline = learn_baseline(well, moment, lambda node: models[node])
    write_baseline(out, baseline)
    if left_out:
        invocation.note(f"left out, because something is wrong with them: {fold(left_out)}")
    invocation.finish(
        Page(
            kind="Baseline",
            body={"file": str(out), "nodes": len(well), "readings": len(baseline.entries)},
            text=f"{out}: {len(baseline.entries)} readings of {len(well)} nodes",
        )
    )
