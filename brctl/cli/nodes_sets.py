"""`brctl nodes fold|expand|count`: names folded, spelled out, counted, as `nodeset` does."""

import asyncio
from typing import Annotated

import typer

from brctl.cli.invocation import Invocation
from brctl.cli.stdin_names import nodes_text
from brctl.library.config import Settings
from brctl.model.errors import UsageError
from brctl.model.nodeset import expand, needs_inventory
from brctl.view.fleet.node_sets import counted_page, expanded_page, folded_page

Sets = Annotated[
    list[str] | None,
    typer.Argument(help="nodes, added up; - reads stdin; default -w", metavar="NODES"),
]


def fold_names(ctx: typer.Context, nodes: Sets = None) -> None:
    """Print nodes as one folded set; names of no inventory are fine."""
    names, context = _named(ctx.obj, nodes)
    ctx.obj.finish(folded_page(_some(names, nodes)), context)


def expand_names(
    ctx: typer.Context,
    nodes: Sets = None,
    separator: Annotated[str, typer.Option("-S", "--separator", help="default a line each")] = "",
) -> None:
    """Print every name of a set, one a line; names of no inventory are fine."""
    names, context = _named(ctx.obj, nodes)
    ctx.obj.finish(expanded_page(_some(names, nodes), separator or "\n"), context)


def count_names(ctx: typer.Context, nodes: Sets = None) -> None:
    """Print how many nodes a set means; 0 is an answer."""
    names, context = _named(ctx.obj, nodes)
    ctx.obj.finish(counted_page(names), context)


def _named(invocation: Invocation, nodes: list[str] | None) -> tuple[tuple[str, ...], str]:
    """The names, and the context that was asked; "" where the text alone says it."""
    texts = [nodes_text(text) for text in nodes or []]
    include = ",".join([*texts, *([invocation.nodes] if invocation.nodes else [])])
    if not include:
        raise UsageError("which nodes? brctl nodes fold n1 n2, or -w NODES, or - for stdin")
    exclude = invocation.exclude or ""
    if not (needs_inventory(include) or needs_inventory(exclude)):
        taken = set(expand(exclude)) if exclude else set()
        return tuple(name for name in expand(include) if name not in taken), ""
    settings = invocation.settings()
    return asyncio.run(_ask(settings, include, exclude)), settings.context


async def _ask(settings: Settings, include: str, exclude: str) -> tuple[str, ...]:
    from brctl.engine.controller.reach import names_of_the_past

    names = await names_of_the_past(settings, include)
    taken = set(await names_of_the_past(settings, exclude)) if exclude else set()
    return tuple(name for name in names if name not in taken)


def _some(names: tuple[str, ...], nodes: list[str] | None) -> tuple[str, ...]:
    if not names:
        raise UsageError(f"{','.join(nodes or [])}: matched 0 of the nodes it could mean")
    return names
