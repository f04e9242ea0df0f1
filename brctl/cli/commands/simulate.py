"""`brctl simulate [FLEET]|fit|history|paper|merge`: months of faults on a made-up fleet."""

import asyncio
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer
from typer.core import TyperGroup

from brctl.cli.invocation import Invocation, new_app
from brctl.cli.options import JobArgument
from brctl.cli.progress import progress
from brctl.cli.typed import typed
from brctl.model.errors import NoConfigError, UsageError
from brctl.view.notices.page import Page

if TYPE_CHECKING:
    from typer._click import Context

    from brctl.model.jobs.job import Job
    from brctl.model.simulation import SiteHistory
    from brctl.simulate.compare import Request
    from brctl.simulate.decisions import Rules

_FLEET, _DEFAULT = "fleet", "paper-means"


class _FleetFirst(TyperGroup):
    """`brctl simulate FLEET` is short for `brctl simulate fleet FLEET`."""

    def parse_args(self, ctx: "Context", args: list[str]) -> list[str]:
        """Put the sub-command where a fleet, or nothing but its options, was typed."""
        if not args or (args[0] not in self.commands and args[0] != "--help"):
            args = [_FLEET, *args]
        return super().parse_args(ctx, args)


app = new_app(_FleetFirst)

Runs = Annotated[int, typer.Option("--runs", min=1, max=100_000, help="so many seeds")]
Seed = Annotated[int, typer.Option("--seed", min=0, help="the first; the same gives the same")]
LEAST_DAYS = 1.0
"""A rate of less history is noise."""
Since = Annotated[str, typer.Option("--since", help="90d")]
Workers = Annotated[int | None, typer.Option("--workers", min=1, max=1_024, help="default: cores")]


@app.callback()
def simulate() -> None:
    """Rehearse months of faults on a made-up fleet; no node is asked and nothing is changed."""


@app.command(_FLEET)
def fleet(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="FLEET", help="a name, or a file")] = _DEFAULT,
    policy: Annotated[list[str] | None, typer.Option("--policy", help="compared")] = None,
    runs: Runs = 20,
    days: Annotated[float | None, typer.Option("--days", min=0.01, max=3_650.0)] = None,
    seed: Seed = 7,
    trace: Annotated[
        Path | None, typer.Option("--trace", help="recorded faults instead of drawn ones")
    ] = None,
    watch: Annotated[
        Path | None, typer.Option("--watch-policy", help="of the policies watch-MODE")
    ] = None,
    sweep: Annotated[str | None, typer.Option("--sweep", help="standbys=0..12")] = None,
    shard: Annotated[str | None, typer.Option("--shard", help="only part I of N: 2/8")] = None,
    array: Annotated[
        int | None, typer.Option("--slurm-array", min=1, max=100_000, help="print a job of N parts")
    ] = None,
    workers: Workers = None,
) -> None:
    """Compare policies on the same faults: ETTR, hours lost, nodes taken, standbys missing."""
    from brctl.simulate.compare import Request, choose_policies
    from brctl.simulate.fleet_file import find_fleet
    from brctl.simulate.policies import USUAL
    from brctl.simulate.recorded import load_recorded

    invocation: Invocation = ctx.obj
    if sum(option is not None for option in (sweep, shard, array)) > 1:
        raise UsageError("give one of --sweep, --shard and --slurm-array")
    chosen = find_fleet(name)
    policies = choose_policies(policy or USUAL)
    chosen = chosen if days is None else replace(chosen, days=days)
    if watch is not None and not any(row.watches for row in policies):
        raise UsageError(
            "--watch-policy goes with --policy watch-observe, watch-propose or watch-act"
        )
    cores = workers or os.cpu_count() or 1
    rules = _rules(invocation, watch) if any(row.decides for row in policies) else None
    recorded = load_recorded(trace) if trace is not None else None
    request = Request(chosen, policies, seed, runs, cores, rules, recorded)
    if recorded is not None and (late := recorded.after(chosen.days)):
        invocation.note(
            f"{late} of {len(recorded.faults)} recorded faults come after day {chosen.days:g}"
            " and are not met; --days"
        )
    if array is not None:
        invocation.finish(_array_page(invocation, name, request, array, watch))
    if sweep is not None:
        _sweep(invocation, request, sweep)
    if shard is not None:
        _shard(invocation, request, shard)
    _compare(invocation, request)


def _rules(invocation: Invocation, watch: Path | None) -> "Rules":
    """The site's playbooks, limits and watcher's policy; built in where nothing is configured."""
    from brctl.engine.watch.policy_file import load_watch_policy

    rules = _playbooks_and_limits(invocation)
    return rules if watch is None else replace(rules, watch=load_watch_policy(watch))


def _playbooks_and_limits(invocation: Invocation) -> "Rules":
    from brctl.simulate.decisions import rules_of

    try:
        settings = invocation.settings()
    except NoConfigError:
        invocation.note(
            "nothing is configured: `site` decides by the playbooks that come with brctl"
        )
        return rules_of()
    return rules_of(settings.library_dirs, settings.guard_files)


def _compare(invocation: Invocation, request: "Request") -> NoReturn:
    from brctl.simulate.compare import compared, simulated
    from brctl.view.simulation.comparison import comparison_page

    with _counted(invocation, request.runs) as done:
        found = simulated(request, request.seeds(), done)
    invocation.finish(comparison_page(compared(request, found, request.runs)))


def _sweep(invocation: Invocation, request: "Request", text: str) -> NoReturn:
    from brctl.simulate.compare import swept
    from brctl.simulate.sweep import read_sweep
    from brctl.view.simulation.sweep import sweep_page

    name, values = read_sweep(text)
    with _counted(invocation, request.runs * len(values)) as done:
        found = swept(request, name, values, done)
    invocation.finish(sweep_page(found))


def _shard(invocation: Invocation, request: "Request", text: str) -> NoReturn:
    from brctl.simulate.compare import simulated
    from brctl.simulate.shards import parse_shard, part_of, shard_document
    from brctl.view.simulation.comparison import shard_page

    part, parts = typed("--shard", text, parse_shard)
    seeds = request.seeds(part, parts)
    if not seeds:
        raise UsageError(f"--shard {text}: {request.runs} runs do not fill it", hint="more --runs")
    with _counted(invocation, len(seeds)) as done:
        found = simulated(request, seeds, done)
    body = shard_document(part_of(request, found))
    invocation.finish(shard_page(body, len({r.seed for r in found}), len(seeds)))


def _array_page(
    invocation: Invocation, name: str, request: "Request", parts: int, watch: Path | None
) -> Page:
    """The job that makes all parts: the same command line and configuration, a part each."""
    from brctl.simulate.shards import slurm_array

    recorded = request.recorded.origin if request.recorded else None
    chosen = (
        ("--trace", recorded), ("--watch-policy", watch), ("--config", invocation.config),
        ("--context", invocation.context),
    )  # fmt: skip
    text = slurm_array(
        ("brctl", "simulate", _FLEET, name, "--policy", ",".join(p.name for p in request.policies),
         "--runs", str(request.runs), "--days", f"{request.fleet.days:g}",
         "--seed", str(request.seed), "--workers", "1",
         *(word for flag, value in chosen if value is not None for word in (flag, str(value)))),
        parts,
    )  # fmt: skip
    return Page("SlurmArray", {"text": text}, text)


@app.command()
def paper(ctx: typer.Context, runs: Runs = 60, seed: Seed = 7, workers: Workers = None) -> None:
    """Print ByteRobust's published figures beside ours; exit 1 when one lies too far off."""
    from brctl.simulate.paper import SIMULATIONS, tables
    from brctl.view.simulation.paper import paper_page

    invocation: Invocation = ctx.obj
    with _counted(invocation, runs * SIMULATIONS) as done:
        found = tables(runs, seed, workers or os.cpu_count() or 1, done)
    invocation.finish(paper_page(found))


@app.command()
def merge(
    ctx: typer.Context,
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="parts from --shard")],
) -> None:
    """Join the parts of a simulation that were made apart; exit 3 when some are missing."""
    from brctl.simulate.shards import merged, read_shard
    from brctl.view.simulation.comparison import comparison_page

    invocation: Invocation = ctx.obj
    invocation.finish(comparison_page(merged([read_shard(path) for path in files])))


@app.command()
def history(ctx: typer.Context, job: JobArgument = None, since: Since = "90d") -> None:
    """Print a job's own past incidents as a trace for --trace; verdicts that were acted on."""
    from brctl.simulate.history import trace_text
    from brctl.view.simulation.history import history_page

    invocation: Invocation = ctx.obj
    _, found = asyncio.run(_own_past(invocation, job, since))
    invocation.finish(history_page(found, trace_text(found)))


@app.command()
def fit(ctx: typer.Context, job: JobArgument = None, since: Since = "90d") -> None:
    """Print a fleet file with the rate and the symptoms of a job's own past incidents."""
    from brctl.simulate.fleet_file import find_fleet
    from brctl.simulate.history import fleet_text
    from brctl.view.simulation.history import history_page

    invocation: Invocation = ctx.obj
    chosen, found = asyncio.run(_own_past(invocation, job, since))
    text = fleet_text(found, chosen.ranks_per_node, find_fleet("paper-means"))
    invocation.finish(history_page(found, text))


async def _own_past(
    invocation: Invocation, name: str | None, since: str
) -> "tuple[Job, SiteHistory]":
    from brctl.engine.controller.wiring import open_controller
    from brctl.engine.incidents.verdict_store import load_all
    from brctl.model.units import parse_duration_s
    from brctl.simulate.history import site_history

    span = timedelta(seconds=typed("--since", since, parse_duration_s))
    async with open_controller(invocation.settings()) as controller:
        job, now = controller.job(name), controller.now()
        stored = load_all(controller.state_dir)
    found = site_history(stored, job.name, len(job.nodes), now, span)
    if found.left_out:
        invocation.note(f"left out: {found.left_out} verdicts that name no cause")
    if not found.stops:
        raise UsageError(
            f"no incident of {job.name} was acted on within {since}",
            hint="brctl verdict list; or a longer --since; or `brctl simulate llama3`",
        )
    if found.days < LEAST_DAYS:
        raise UsageError(f"only {found.days * 24:.1f} hours of history: no rate can be had of that")
    return job, found


@contextmanager
def _counted(invocation: Invocation, total: int) -> Iterator[Callable[[object], None]]:
    """Says how many runs are done, where somebody watches."""
    with progress(f"0/{total} runs", quiet=invocation.quiet) as line:
        yield line.counted(total, of="runs done")
