"""`brctl nodes list|show|diff` and `brctl ls`: what the last sweeps say; no node is asked."""

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from brctl.cli.invocation import Invocation, new_app
from brctl.cli.nodes_label import label
from brctl.cli.nodes_sets import count_names, expand_names, fold_names
from brctl.cli.options import OneNode
from brctl.cli.survey_lines import known_lines
from brctl.cli.typed import typed
from brctl.model.errors import UsageError, did_you_mean
from brctl.model.sweeps.sweep import Health

if TYPE_CHECKING:
    from brctl.engine.controller.wiring import Controller
    from brctl.view.fleet.nodes import NodeLine
    from brctl.view.notices.page import Page

app = new_app()

State = Annotated[str, typer.Option("--state", help="ok,warn,crit,unknown")]
Cordoned = Annotated[bool, typer.Option("--cordoned", help="only cordoned nodes")]
Reasons = Annotated[bool, typer.Option("-R", "--reasons", help="who cordoned, why")]


Sort = Annotated[str, typer.Option("--sort", help="column to order by")]
Columns = Annotated[str, typer.Option("--columns", help="only these: state,node,rack")]


@app.callback(invoke_without_command=True)
def nodes(
    ctx: typer.Context,
    state: State = "",
    cordoned: Cordoned = False,
    reasons: Reasons = False,
    sort: Sort = "",
    columns: Columns = "",
) -> None:
    """List nodes, or show one, or say who is different; nothing is asked of them."""
    if ctx.invoked_subcommand is None:
        list_nodes(ctx, state, cordoned, reasons, sort, columns)


@app.command("list")
def list_nodes(
    ctx: typer.Context,
    state: State = "",
    cordoned: Cordoned = False,
    reasons: Reasons = False,
    sort: Sort = "",
    columns: Columns = "",
) -> None:
    """List nodes; nothing is asked of them."""
    if reasons and (sort or columns):
        raise UsageError("-R has columns of its own: leave out --sort and --columns")
    chosen = _Chosen(_states(state), cordoned, reasons, sort, columns)
    asyncio.run(_list(ctx.obj, chosen))


@dataclass(frozen=True, slots=True)
class _Chosen:
    """Which nodes are listed, and how."""

    states: frozenset[Health]
    cordoned: bool
    reasons: bool
    sort: str
    columns: str

    def takes(self, line: "NodeLine") -> bool:
        health = line.health.health if line.health is not None else None
        return (not self.states or health in self.states) and (
            not self.cordoned or line.cordon is not None
        )


async def _list(invocation: Invocation, chosen: _Chosen) -> None:
    from brctl.engine.controller.selection import select_nodes
    from brctl.engine.controller.wiring import open_controller
    from brctl.engine.sweeps.survey import survey
    from brctl.view.fleet.nodes import nodes_page
    from brctl.view.fleet.nodes_table import read_table

    settings = invocation.settings()
    async with open_controller(settings) as controller:
        names = await select_nodes(controller, invocation.nodes, invocation.exclude)
        labels = {label for node in controller.inventory.nodes.values() for label in node.labels}
        table = read_table(chosen.columns, chosen.sort, labels)
        known = await survey(controller, names)
    lines = [line for line in known_lines(known) if chosen.takes(line)]
    page = nodes_page(lines, known.age_s, reasons=chosen.reasons, table=table)
    invocation.finish(page, settings.context)


def _states(text: str) -> frozenset[Health]:
    names = [name for name in text.split(",") if name]
    known = [health.value for health in Health]
    for name in names:
        if name not in known:
            raise UsageError(f"--state {name}: unknown; {did_you_mean(name, known)}")
    return frozenset(map(Health, names))


app.command("label")(label)
app.command("fold")(fold_names)
app.command("expand")(expand_names)
app.command("count")(count_names)


@app.command("show")
def show(
    ctx: typer.Context,
    node: OneNode,
    history: Annotated[str | None, typer.Option("--history", help="what changed: 7d")] = None,
) -> None:
    """Show one node: facts, what stands against it, what is not known, what changed."""
    asyncio.run(_show(ctx.obj, node, history))


async def _show(invocation: Invocation, node: str, history: str | None) -> None:
    from brctl.engine.controller.wiring import open_controller
    from brctl.model.units import parse_duration_s

    back_s = typed("--history", history, parse_duration_s) if history is not None else None
    settings = invocation.settings()
    async with open_controller(settings) as controller:
        page = await _node_page(controller, node, back_s)
    invocation.finish(page, settings.context)


async def _node_page(controller: "Controller", node: str, back_s: float | None) -> "Page":
    from brctl.engine.controller.reach import only
    from brctl.engine.controller.selection import select_nodes
    from brctl.engine.sweeps.history import SweepHistory
    from brctl.engine.sweeps.survey import survey
    from brctl.view.fleet.node import node_page

    node = only(node, await select_nodes(controller, node))
    (line,) = known_lines(await survey(controller, [node]))
    if back_s is None:
        return node_page(line, None, controller.now())
    since_at = controller.now() - timedelta(seconds=back_s)
    past = SweepHistory(controller.state_dir).of_node(node, since_at)
    return node_page(line, past, controller.now())


@app.command("diff")
def diff(
    ctx: typer.Context,
    nodes: Annotated[
        str | None, typer.Argument(help="nodes; default -w, or all", metavar="NODES")
    ] = None,
) -> None:
    """Say who is different from the majority, and in what; exit 1 when someone is."""
    asyncio.run(_diff(ctx.obj, nodes))


async def _diff(invocation: Invocation, nodes: str | None) -> None:
    from brctl.engine.controller.selection import select_nodes
    from brctl.engine.controller.wiring import open_controller
    from brctl.engine.sweeps.survey import survey
    from brctl.sweep.differences import compare_nodes
    from brctl.view.fleet.differences import differences_page
    from brctl.view.fleet.nodes import age_text

    if nodes is not None and invocation.nodes is not None:
        raise UsageError("name the nodes once: as an argument or with -w")
    settings = invocation.settings()
    async with open_controller(settings) as controller:
        names = await select_nodes(controller, nodes or invocation.nodes, invocation.exclude)
        known = await survey(controller, names)
    reports = [known.health[name].report for name in names if name in known.health]
    never = [(name, "not swept") for name in names if name not in known.health]
    page = differences_page(compare_nodes(reports), never, age_text(known.age_s))
    invocation.finish(page, settings.context)
