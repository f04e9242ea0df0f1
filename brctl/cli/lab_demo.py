"""`brctl lab demo`: the main job, end to end, on this machine."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from brctl.cli.invocation import Invocation
from brctl.library.config import lab_dir
from brctl.model.errors import UsageError, did_you_mean
from brctl.view.demo import DemoAccount, demo_page

Fault = Annotated[str, typer.Option("--fault", help="what to break; `lab faults` lists them")]


def demo(
    ctx: typer.Context,
    fault: Fault = "gpu-lost",
    seed: Annotated[int, typer.Option("--seed", help="picks the node")] = 0,
    nodes: Annotated[int, typer.Option("--nodes", help="active nodes")] = 8,
    standbys: Annotated[int, typer.Option("--standbys", help="backup nodes")] = 2,
    isolation: Annotated[str, typer.Option("--isolation", help="auto, none, netns")] = "auto",
) -> None:
    """Train, break a node, find it, swap it, train on; exit 0 only if all of that was right."""
    from brctl.lab.demo import run_demo
    from brctl.lab.faults import FAULTS
    from brctl.lab.spec import LabSpec, parse_isolation

    invocation: Invocation = ctx.obj
    if fault not in FAULTS:
        raise UsageError(f"no fault `{fault}`; {did_you_mean(fault, FAULTS)}")
    spec = LabSpec(nodes, standbys, isolation=parse_isolation(isolation))
    directory: Path = lab_dir(invocation.environ)
    result = asyncio.run(run_demo(spec, directory, fault, seed, invocation.note))
    account = DemoAccount(
        fault=fault,
        expected=result.expected,
        node=result.truth.node,
        subject=result.truth.subject,
        verdict=result.verdict,
        run=result.run,
        run_result=result.run_result,
        playbook_steps=result.steps,
        checkpoint=result.checkpoint,
        old_step=result.old_step,
        first_new_step=result.first_new_step,
        replayed_step=result.replayed_step,
        losses=result.losses,
        seconds=result.seconds,
        named_right=result.named_right,
        trained_on=result.trained_on,
    )
    invocation.finish(demo_page(account), "lab")
