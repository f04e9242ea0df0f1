"""`brctl nccl bisect`: which of many nodes, links or switches fails or slows collectives."""

import asyncio
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TextIO

import typer

from brctl.cli.invocation import Invocation, new_app
from brctl.localise.problem import BANDWIDTH_BAR
from brctl.model.errors import UsageError, did_you_mean

app = new_app()

_OPS = ("all_reduce", "all_gather", "all_to_all")
_UNITS = ("node", "gpu", "rail")


@app.callback()
def nccl() -> None:
    """Collectives on subsets of nodes."""


@dataclass(frozen=True, slots=True)
class Search:
    """The options of one search, as typed."""

    job: str | None
    runner: str
    op: str
    size: str
    reps: int
    budget: str
    round_deadline: str
    bar: float
    golden: str
    by: str
    per_node: int
    leaf: Path | None
    max_groups: int | None
    span: int
    prior: Path | None
    seed: int
    prove: bool


@app.command()
def bisect(
    ctx: typer.Context,
    job: Annotated[str | None, typer.Option("--job", help="the nodes of this job")] = None,
    runner: Annotated[
        str, typer.Option("--runner", help="torch, nccl-tests, or exec:COMMAND")
    ] = "torch",
    op: Annotated[str, typer.Option("--op", help="all_reduce, all_gather, all_to_all")] = _OPS[0],
    size: Annotated[str, typer.Option("--size", help="bytes a rank sends, 1G")] = "1G",
    reps: Annotated[int, typer.Option("--reps", min=1, max=256, help="in one set-up")] = 8,
    budget: Annotated[str, typer.Option("--budget", help="for the whole search")] = "10m",
    round_deadline: Annotated[str, typer.Option("--round-deadline", help="for one round")] = "5m",
    bar: Annotated[
        float, typer.Option("--bar", min=0.1, max=0.999, help="share of the usual bandwidth")
    ] = BANDWIDTH_BAR,
    golden: Annotated[
        str, typer.Option("--golden", help="nodes to test against first", metavar="NODES")
    ] = "",
    by: Annotated[str, typer.Option("--by", help="node, gpu or rail")] = "node",
    per_node: Annotated[int, typer.Option("--per-node", min=1, help="GPUs or rails a node")] = 8,
    leaf: Annotated[Path | None, typer.Option("--leaf", help="CSV: node,leaf")] = None,
    max_groups: Annotated[int | None, typer.Option("--max-groups", min=1, help="at once")] = None,
    span: Annotated[int, typer.Option("--span", min=1, help="smallest group that runs")] = 1,
    prior: Annotated[Path | None, typer.Option("--prior", help="CSV: node,odds")] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="of the groups' shuffling")] = 0,
    prove: Annotated[bool, typer.Option("--prove", help="run the rest of the fleet whole")] = False,
) -> None:
    """Find what fails collectives; exit 0 clean, 2 found, 3 not reproduced or undecidable."""
    for value, known, flag in ((op, _OPS, "--op"), (by, _UNITS, "--by")):
        if value not in known:
            raise UsageError(f"{flag} {value}: unknown; {did_you_mean(value, known)}")
    search = Search(
        job, runner, op, size, reps, budget, round_deadline, bar, golden, by, per_node, leaf,
        max_groups, span, prior, seed, prove,
    )  # fmt: skip
    _bisect(ctx.obj, search)


def _bisect(invocation: Invocation, search: Search) -> None:
    from brctl.cli.nccl_set_up import prepared
    from brctl.engine.controller.clock import now
    from brctl.engine.search.bisect import bisect as run_search
    from brctl.view.job.bisect import bisection_page

    live = Live(invocation)

    async def run() -> None:
        async with prepared(invocation, search) as ready:
            live.begin(ready.problem.nodes, ready.runner.name, ready.state_dir)
            result = await run_search(
                ready.problem, ready.options, ready.runner, now, live.show, ready.before
            )
            page = bisection_page(result, with_rounds=not live.shows_lines)
            page = ready.keep(result, page)
        live.end(page.body, int(page.exit_code))
        if invocation.output == "ndjson":
            raise typer.Exit(int(page.exit_code))
        invocation.finish(page, ready.context)

    asyncio.run(run())


class Live:
    """Rounds as they end: lines for people, objects with `-o ndjson` and for whoever follows."""

    def __init__(self, invocation: Invocation) -> None:
        self.form = invocation.output
        self.shows_lines = self.form in ("table", "wide") and invocation.out is None
        self.number = 0
        self.trail: TextIO | None = None

    def begin(self, nodes: tuple[str, ...], runner: str, state_dir: Path | None = None) -> None:
        """Start the stream; with a state directory it is written there too, for the TUI."""
        from brctl import __version__
        from brctl.engine.search.bisect_store import open_trail

        if state_dir is not None:
            self.trail = open_trail(state_dir)
        self._write({"type": "version", "events": "1.0", "brctl": __version__})
        self._write({"type": "bisect.start", "nodes": list(nodes), "runner": runner})

    def show(self, report: object) -> None:
        from brctl.model.localisation import RoundReport
        from brctl.view.job.bisect import round_document, round_lines

        if not isinstance(report, RoundReport):
            return
        self._write({"type": "round", **round_document(report)})
        if self.shows_lines:
            print("\n".join(round_lines(report)), flush=True)  # noqa: T201

    def end(self, body: Mapping[str, object], code: int) -> None:
        rest = {key: value for key, value in body.items() if key != "round_log"}
        self._write({"type": "result", **rest})
        self._write({"type": "end", "exit_code": code, "result": body["ended"]})
        if self.trail is not None:
            self.trail.close()

    def _write(self, line: Mapping[str, object]) -> None:
        self.number += 1
        numbered = {"type": line["type"], "seq": self.number, **line}
        text = json.dumps(numbered, allow_nan=False) + "\n"
        followers = [self.trail] if self.trail is not None else []
        for stream in [*followers, *([sys.stdout] if self.form == "ndjson" else [])]:
            stream.write(text)
            stream.flush()
