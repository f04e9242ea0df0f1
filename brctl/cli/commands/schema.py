"""`brctl schema list|show`: JSON Schemas of documents and files."""

import json
from typing import Annotated

import typer

from brctl.cli.invocation import Invocation, new_app
from brctl.model.errors import UsageError, did_you_mean
from brctl.view.notices.page import Page
from brctl.view.schemas.kinds import DOCUMENTS
from brctl.view.text import columns

app = new_app()


@app.command("list")
def list_kinds(ctx: typer.Context) -> None:
    """List the kinds of documents."""
    invocation: Invocation = ctx.obj
    rows = [(name, (kind.__doc__ or "").split("\n")[0]) for name, kind in DOCUMENTS.items()]
    kinds = [{"kind": name, "what": what} for name, what in rows]
    names = tuple(name for name, _ in rows)
    invocation.finish(Page("SchemaList", {"kinds": kinds}, columns(rows), names=names))


@app.command()
def show(
    ctx: typer.Context, kind: Annotated[str, typer.Argument(help="Verdict, Sweep ...")]
) -> None:
    """Print the JSON Schema of one kind."""
    import msgspec

    invocation: Invocation = ctx.obj
    if kind not in DOCUMENTS:
        raise UsageError(f"no document `{kind}`; {did_you_mean(kind, DOCUMENTS)}")
    schema = msgspec.json.schema(DOCUMENTS[kind])
    invocation.finish(Page("Schema", {"schema": schema}, json.dumps(schema, indent=2)))
