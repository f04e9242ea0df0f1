"""`brctl lab demo`: the main job, end to end, on this machine."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from brctl.cli.invocation import Invocation
from brctl.cli.progress import progress
from brctl.library.config import lab_dir
from brctl.model.errors import UsageError, did_you_mean
from brctl.view.demo import demo_page

Fault = Annotated[str, typer.Option("--fault", help="what to break; `lab faults` lists them")]


def demo(
    ctx: typer.Context,
    fault: Fault = "gpu-lost",
    seed: Annotated[int, typer.Option("--seed", help="picks the node")] = 0,
    nodes: Annotated[int, typer.Option("--nodes", help="active nodes")] = 8,
    standbys: Annotated[int, typer.Option("--standbys", help="backup nodes")] = 2,
    isolation: Annotated[str, typer.Option("--isolation", help="auto, none, netns")] = "auto",
    watch: Annotated[
        bool, typer.Option("--watch", help="a watcher finds and fixes it, standbys are parked")
    ] = False,
) -> None:
    """Train, break a node, find it, swap it, train on; exit 0 only if all of that was right."""
    from brctl.lab.demo import Demo, run_demo
    from brctl.lab.faults import FAULTS
    from brctl.lab.spec import LabSpec, parse_isolation
    from brctl.lab.watched_demo import WatchedDemo

    invocation: Invocation = ctx.obj
    if fault not in FAULTS:
        raise UsageError(f"no fault `{fault}`; {did_you_mean(fault, FAULTS)}")
    spec = LabSpec(nodes, standbys, isolation=parse_isolation(isolation))
    directory: Path = lab_dir(invocation.environ)
    with progress(quiet=invocation.quiet) as line:
        note = (lambda _: None) if invocation.quiet else line.say
        played = WatchedDemo if watch else Demo
        result = asyncio.run(run_demo(spec, directory, fault, seed, note, line.tell, played))
    invocation.finish(demo_page(result), "lab")
