"""`brctl lab`: the embedded cluster, to practise on and to test with."""

import asyncio
import os
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from brctl.cli.invocation import Invocation, new_app
from brctl.cli.lab_demo import demo
from brctl.cli.progress import progress
from brctl.library.config import lab_dir, load_settings, user_cache_dir
from brctl.model.errors import UsageError
from brctl.model.exit_codes import ExitCode
from brctl.model.nodeset import fold
from brctl.view.notices.page import Page
from brctl.view.text import columns

if TYPE_CHECKING:
    from brctl.lab.cluster import Lab, LabStatus, NodeStatus
    from brctl.lab.wrong_results import WrongResults

app = new_app()
app.command()(demo)


@app.command()
def up(
    ctx: typer.Context,
    nodes: Annotated[int, typer.Option("--nodes", help="active nodes")] = 8,
    standbys: Annotated[int, typer.Option("--standbys", help="backup nodes")] = 2,
    gpus: Annotated[int, typer.Option("--gpus", help="fake GPUs a node")] = 8,
    isolation: Annotated[
        str, typer.Option("--isolation", help="auto, none (no privileges) or netns (root)")
    ] = "auto",
    every_step: Annotated[
        bool,
        typer.Option("--every-step", help="tensor, pipeline and data parallel, steps in memory"),
    ] = False,
    data_parallel: Annotated[
        bool, typer.Option("--data-parallel", help="no tensor or pipeline groups, replicas alone")
    ] = False,
    on_loader: Annotated[
        str,
        typer.Option(
            "--on-loader",
            metavar="POLICY",
            help="supervise the job's data loaders: respawn, shadow or fail when one dies",
        ),
    ] = "",
) -> None:
    """Bring the cluster up: real SSH nodes, fake GPUs, a training job ready to start."""
    from brctl.lab.cluster import up as bring_up
    from brctl.lab.spec import LabSpec, parse_isolation

    invocation: Invocation = ctx.obj
    spec = LabSpec(
        nodes, standbys, gpus, parse_isolation(isolation), every_step=every_step,
        data_parallel=data_parallel, on_loader=on_loader,
    )  # fmt: skip
    with progress(f"starting {nodes + standbys} nodes", quiet=invocation.quiet):
        lab = bring_up(spec, lab_dir(invocation.environ))
    _remember_names(lab)
    invocation.finish(_status_page(lab.status(), "brctl --context lab job start lab-train"), "lab")


def _remember_names(lab: "Lab") -> None:
    """So that TAB knows the lab's nodes before anybody swept them."""
    from brctl.engine.controller.name_cache import inventory_names, write_cache
    from brctl.inventory.load import load_inventory
    from brctl.library.jobs import load_jobs

    settings = load_settings({}, config=lab.paths.config)
    jobs = load_jobs(settings.jobs)
    write_cache(settings, inventory_names(settings, load_inventory(settings), jobs))


@app.command("break")
def break_(
    ctx: typer.Context,
    fault: Annotated[str, typer.Argument(help="`brctl lab faults` lists them")],
    node: Annotated[str, typer.Argument(help="the node to break", metavar="NODE")],
    gpu: Annotated[int | None, typer.Option("--gpu", help="GPU slot, for GPU faults")] = None,
    probability: Annotated[
        float | None, typer.Option("--probability", help="of a wrong element a call; else 1")
    ] = None,
    from_elements: Annotated[
        int | None, typer.Option("--from-elements", help="smaller results are right")
    ] = None,
    from_temperature: Annotated[
        float | None, typer.Option("--from-temperature", help="a cooler GPU is right; degrees C")
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="which calls are wrong")] = None,
) -> None:
    """Break a node, live; `lab heal` undoes it. The last four are for gpu-wrong and its kind."""
    from brctl.engine.controller.reach import only
    from brctl.lab.cluster import load

    invocation: Invocation = ctx.obj
    lab = load(lab_dir(invocation.environ))
    chosen = only(node, _nodes(lab, node))
    wrong = _wrong_results(probability, from_elements, from_temperature, seed)
    broken = lab.break_node(fault, chosen, gpu=gpu, wrong=wrong)
    body = {"fault": asdict(broken)}
    page = Page("LabFault", body, broken.say, next=("brctl --context lab dx", "brctl lab heal"))
    invocation.finish(page, "lab")


def _wrong_results(
    probability: float | None,
    from_elements: int | None,
    from_temperature_c: float | None,
    seed: int | None,
) -> "WrongResults | None":
    from brctl.lab.wrong_results import WrongResults

    if (probability, from_elements, from_temperature_c, seed) == (None, None, None, None):
        return None
    try:
        return WrongResults(
            probability=1.0 if probability is None else probability,
            from_elements=1 if from_elements is None else from_elements,
            from_temperature_c=from_temperature_c or 0.0,
            seed=seed or 0,
        )
    except ValueError as exc:
        raise UsageError(str(exc)) from exc


def _nodes(lab: "Lab", text: str) -> tuple[str, ...]:
    """The nodes a text means in the lab, whichever context the person works in."""
    from brctl.engine.controller.reach import choose

    settings = load_settings({}, config=lab.paths.config)
    return asyncio.run(choose(settings, text, None)).names


@app.command()
def faults(ctx: typer.Context) -> None:
    """List what can be broken, and what it takes."""
    from brctl.lab.faults import FAULTS

    invocation: Invocation = ctx.obj
    rows: tuple[Mapping[str, object], ...] = tuple(
        {
            "fault": fault.name,
            "needs": "netns" if fault.needs_netns else "-",
            "class": fault.expected,
            "what": fault.say.format(node="the node"),
        }
        for fault in FAULTS.values()
    )
    text = columns([tuple(map(str, row.values())) for row in rows])
    names = tuple(FAULTS)
    invocation.finish(Page("LabFaults", {"faults": list(rows)}, text, names=names, rows=rows))


@app.command()
def heal(
    ctx: typer.Context,
    node: Annotated[str | None, typer.Argument(help="only these nodes", metavar="NODES")] = None,
) -> None:
    """Undo faults; a node without power boots again."""
    from brctl.lab.cluster import load

    invocation: Invocation = ctx.obj
    lab = load(lab_dir(invocation.environ))
    names = _nodes(lab, node) if node is not None else (None,)
    healed = tuple(sorted({healed for name in names for healed in lab.heal(name)}))
    text = f"healed {fold(healed)}" if healed else "nothing was broken"
    page = Page("LabHealed", {"nodes": list(healed)}, text, names=healed)
    invocation.finish(page, "lab")


@app.command()
def status(ctx: typer.Context) -> None:
    """Show which nodes run, answer SSH and are broken."""
    from brctl.lab.cluster import load

    invocation: Invocation = ctx.obj
    invocation.finish(_status_page(load(lab_dir(invocation.environ)).status(), ""), "lab")


@app.command()
def down(
    ctx: typer.Context,
    everything: Annotated[
        bool, typer.Option("--all", help="also the libraries in the cache, which all labs share")
    ] = False,
) -> None:
    """End every process of the cluster and remove its files and its state."""
    from brctl.engine.controller.name_cache import forget_names
    from brctl.lab.cluster import Lab
    from brctl.lab.compile import forget_libraries

    invocation: Invocation = ctx.obj
    directory = lab_dir(invocation.environ)
    Lab(directory).down()
    forget_names("lab")
    if everything:
        forget_libraries(user_cache_dir(os.environ))
    page = Page("LabDown", {"directory": str(directory)}, f"nothing is left in {directory}")
    invocation.finish(page, "lab")


def _status_page(lab: "LabStatus", hint: str) -> Page:
    rows = tuple(_row(node) for node in lab.nodes)
    header = ("NODE", "ROLE", "ADDRESS", "POWER", "SSH", "PROCESSES", "FAULTS")
    lines = [header, *(tuple(map(str, row.values())) for row in rows)]
    text = f"lab in {lab.directory}, isolation {lab.isolation.value}\n{columns(lines)}"
    body = {
        "directory": str(lab.directory),
        "isolation": lab.isolation.value,
        "nodes": [
            {**row, "faults": list(n.faults)} for row, n in zip(rows, lab.nodes, strict=True)
        ],
    }
    names = tuple(node.name for node in lab.nodes)
    all_well = all(node.is_on and node.answers_ssh and not node.faults for node in lab.nodes)
    code = ExitCode.OK if all_well else ExitCode.WARNING
    return Page("LabStatus", body, text, code, names, rows, (hint,) if hint else ())


def _row(node: "NodeStatus") -> dict[str, object]:
    return {
        "node": node.name,
        "role": node.role,
        "address": f"{node.address}:{node.port}",
        "power": "on" if node.is_on else "off",
        "ssh": "answers" if node.answers_ssh else "silent",
        "processes": node.process_count,
        "faults": " ".join(node.faults) or "-",
    }
