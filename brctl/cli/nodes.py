"""`brctl ls`: nodes with state, check and reason, from the last sweep."""

import asyncio
from typing import Annotated

import typer

from brctl.cli.invocation import Invocation, new_app
from brctl.cli.survey_lines import known_lines
from brctl.model.errors import UsageError, did_you_mean
from brctl.model.sweep import Health

app = new_app()


@app.command("list")
def list_nodes(
    ctx: typer.Context,
    state: Annotated[str, typer.Option("--state", help="ok,warn,crit,unknown")] = "",
    cordoned: Annotated[bool, typer.Option("--cordoned", help="only cordoned nodes")] = False,
    reasons: Annotated[bool, typer.Option("-R", "--reasons", help="who cordoned, why")] = False,
) -> None:
    """List nodes; nothing is asked of them."""
    from brctl.engine.survey import survey
    from brctl.engine.sweeping import choose_nodes
    from brctl.engine.wiring import open_world
    from brctl.view.nodes import nodes_page

    invocation: Invocation = ctx.obj
    settings = invocation.settings()
    wanted = _states(state)

    async def run() -> None:
        async with open_world(settings) as world:
            names = choose_nodes(world, invocation.nodes, invocation.exclude)
            known = await survey(world, names)
        lines = [
            line
            for line in known_lines(known)
            if (not wanted or (line.health is not None and line.health.health in wanted))
            and (not cordoned or line.cordon is not None)
        ]
        invocation.finish(nodes_page(lines, known.age_s, reasons=reasons), settings.context)

    asyncio.run(run())


def _states(text: str) -> frozenset[Health]:
    names = [name for name in text.split(",") if name]
    known = [health.value for health in Health]
    for name in names:
        if name not in known:
            raise UsageError(f"--state {name}: unknown; {did_you_mean(name, known)}")
    return frozenset(map(Health, names))
