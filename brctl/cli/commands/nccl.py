"""`brctl nccl`: which node, link or switch fails collectives, and what NCCL says of a hang."""

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from brctl.cli.invocation import Invocation, leave, new_app
from brctl.cli.options import Repetitions, RoundDeadline, SearchBudget
from brctl.cli.progress import CommandProgress, progress
from brctl.localise.problem import BANDWIDTH_BAR
from brctl.model.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from brctl.engine.application.search import SearchRequest
    from brctl.engine.search.recorded import Recorded
    from brctl.model.localisation import RoundReport

app = new_app()

_OPS = ("all_reduce", "all_gather", "all_to_all")
_UNITS = ("node", "gpu", "rail")


@app.callback()
def nccl() -> None:
    """Collectives on subsets of nodes."""


@app.command()
def bisect(
    ctx: typer.Context,
    job: Annotated[str | None, typer.Option("--job", help="the nodes of this job")] = None,
    runner: Annotated[
        str, typer.Option("--runner", help="torch, nccl-tests, or exec:COMMAND")
    ] = "torch",
    op: Annotated[str, typer.Option("--op", help="all_reduce, all_gather, all_to_all")] = _OPS[0],
    size: Annotated[str, typer.Option("--size", help="bytes a rank sends, 1G")] = "1G",
    reps: Repetitions = 8,
    budget: SearchBudget = "10m",
    round_deadline: RoundDeadline = "5m",
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
    from brctl.engine.application.search import SearchRequest

    invocation: Invocation = ctx.obj
    request = SearchRequest(
        invocation.nodes, invocation.exclude, job, runner, op, size, reps, budget, round_deadline,
        bar, golden, by, per_node, leaf, max_groups, span, prior, seed, prove,
        invocation.is_readonly,
    )  # fmt: skip
    _bisect(invocation, request)


@app.command()
def ras(
    ctx: typer.Context,
    job: Annotated[str | None, typer.Argument(help="job name", metavar="JOB")] = None,
    running: Annotated[
        bool, typer.Option("--running", help="ask although the job takes steps")
    ] = False,
    ask_old_nccl: Annotated[
        bool,
        typer.Option("--ask-old-nccl", help="also before 2.29.2; the question can crash the job"),
    ] = False,
) -> None:
    """Ask NCCL of a stalled job which ranks lag and which processes are gone.

    Stacks are captured first. The question runs inside the job: a job that takes steps, starts, or
    has a release that dies of it is not asked.
    """
    from brctl.engine.application.nccl_ras import RasRequest, ask_nccl
    from brctl.view.job.ras import ras_page

    invocation: Invocation = ctx.obj
    settings = invocation.settings()
    request = RasRequest(job, running=running, old_too=ask_old_nccl)
    with progress("what the ranks do", quiet=invocation.quiet) as line:
        found = asyncio.run(ask_nccl(settings, request, line.tell))
    invocation.finish(ras_page(found), settings.context)


def _bisect(invocation: Invocation, request: "SearchRequest") -> None:
    from brctl.engine.application.search import search

    with live_rounds(invocation) as live:
        done = asyncio.run(search(invocation.settings, request, live.note, live.also, live.show))
    live.finish(done.found, done.context)


@contextmanager
def live_rounds(invocation: Invocation) -> Iterator["Live"]:
    """A search while it goes on; objects on stdout have no line of ours between them."""
    quiet = invocation.quiet or invocation.output == "ndjson"
    with progress("the first groups", quiet=quiet) as line:
        yield Live(invocation, line)


class Live:
    """Rounds as they end: lines for people, or objects with `-o ndjson`."""

    def __init__(self, invocation: Invocation, line: CommandProgress) -> None:
        self._invocation, self._line = invocation, line
        form = invocation.output
        self._shows_lines = form in ("table", "wide") and invocation.out is None
        self.also = (sys.stdout,) if form == "ndjson" else ()

    def note(self, text: str) -> None:
        if not self._invocation.quiet:
            self._line.say(text)

    def show(self, report: "RoundReport") -> None:
        from brctl.view.job.bisect import round_lines

        if self._shows_lines:
            self._line.show("\n".join(round_lines(report)))
        self._line.tell("the next groups")

    def finish(self, found: "Recorded", context: str) -> NoReturn:
        """The answer, unless its lines were written already; next is to act on its verdicts."""
        from brctl.view.job.bisect import bisection_page

        page = bisection_page(found.result, with_rounds=not self._shows_lines)
        if self.also:
            leave(page.exit_code)
        if found.verdict_ids:
            ids = list(found.verdict_ids)
            body = {**page.body, "stored_verdicts": ids}
            following = (f"brctl why {ids[0]}", f"brctl fix {ids[0]}")
            page = replace(page, body=body, next=following)
        self._invocation.finish(page, context)
