"""`brctl inventory show|validate|sources|trust`: who is there, and who said so."""

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from brctl.cli.invocation import Invocation, new_app

if TYPE_CHECKING:
    from collections.abc import Iterable

    from brctl.inventory.facts import InventorySource
    from brctl.view.fleet.inventory import Origins

app = new_app()


@app.command("show")
def show(
    ctx: typer.Context,
    origin: Annotated[bool, typer.Option("--origin", help="which source said what")] = False,
) -> None:
    """Show the nodes and groups of the context; no node is asked."""
    from brctl.engine.controller.reach import choose
    from brctl.inventory.facts import build_inventory
    from brctl.inventory.load import load_sources
    from brctl.view.fleet.inventory import inventory_page

    invocation: Invocation = ctx.obj
    settings = invocation.settings()
    sources = load_sources(settings)
    inventory = build_inventory(sources)
    chosen = choose(settings, invocation.nodes, invocation.exclude, inventory)
    names = asyncio.run(chosen).names
    origins = _origins(sources) if origin else None
    invocation.finish(inventory_page(inventory, names, origins), settings.context)


@app.command("validate")
def validate(ctx: typer.Context) -> None:
    """Read every source; say what they disagree about."""
    from brctl.inventory.load import load_inventory, load_sources
    from brctl.view.fleet.inventory import conflicts
    from brctl.view.notices.page import Page

    invocation: Invocation = ctx.obj
    settings = invocation.settings()
    inventory = load_inventory(settings)
    found = conflicts(_origins(load_sources(settings)))
    head = (
        f"ok  {len(inventory.nodes)} nodes, {len(inventory.groups)} groups from {inventory.origin}"
    )
    text = "\n".join([head, *(f"conflict  {line}" for line in found)])
    body = {"nodes": len(inventory.nodes), "conflicts": found}
    invocation.finish(Page("InventoryCheck", body, text), settings.context)


@app.command("sources")
def sources(ctx: typer.Context) -> None:
    """List the sources in the order in which later ones win."""
    from brctl.inventory.load import load_sources
    from brctl.view.notices.page import Page
    from brctl.view.text import columns

    invocation: Invocation = ctx.obj
    settings = invocation.settings()
    rows = [
        {"source": source.name, "nodes": len(source.nodes), "groups": len(source.groups)}
        for source in load_sources(settings)
    ]
    table = [("SOURCE", "NODES", "GROUPS"), *(tuple(str(v) for v in row.values()) for row in rows)]
    page = Page("InventorySources", {"sources": rows}, columns(table), rows=tuple(rows))
    invocation.finish(page, settings.context)


@app.command("trust")
def trust(
    ctx: typer.Context,
    yes: Annotated[bool, typer.Option("--yes", help="add the new keys to known_hosts")] = False,
) -> None:
    """Show the host keys of nodes; with --yes keep the new ones. A changed key is never kept."""
    from brctl.engine.controller.reach import choose, must_name
    from brctl.engine.controller.trust import add_lines, known_hosts_file, look_at_keys
    from brctl.view.host_keys import host_keys_page

    invocation: Invocation = ctx.obj
    settings = invocation.settings()
    wanted = must_name(invocation.nodes)
    chosen = asyncio.run(choose(settings, wanted, invocation.exclude))
    shown = asyncio.run(look_at_keys(settings, chosen))
    rows = [(key.node, key.state.value, key.kind, key.fingerprint, key.detail) for key in shown]
    lines = [key.line for key in shown if key.state.value == "new"]
    if yes:
        add_lines(known_hosts_file(settings), lines)
    page = host_keys_page(rows, str(known_hosts_file(settings)), written=yes)
    invocation.finish(page, settings.context)


def _origins(sources: "Iterable[InventorySource]") -> "Origins":
    from brctl.inventory.facts import merge

    return {
        node: {key: (fact.value, fact.origin, fact.overruled) for key, fact in facts.items()}
        for node, facts in merge(sources).items()
    }
