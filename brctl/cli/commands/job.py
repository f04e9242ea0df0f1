"""`brctl job init|show|data|place|start|stop|watch|update|updates`."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from brctl.cli.invocation import Invocation, new_app
from brctl.cli.job_code import update, updates
from brctl.cli.options import DryRun, JobArgument, LowRiskYes
from brctl.cli.output import say
from brctl.cli.progress import progress
from brctl.cli.running import Consent, finish_run, run_playbook
from brctl.engine.application.job import job_name, job_progress, wait_for_steps
from brctl.engine.application.runs import find_playbook
from brctl.engine.controller.clock import now
from brctl.engine.controller.people import person
from brctl.engine.sweeps.trend_store import TrendStore
from brctl.model.errors import UsageError
from brctl.model.runs.playbook import Json
from brctl.view.job.job import job_page

app = new_app()
app.command()(update)
app.command()(updates)

RANK_ORDER = "rank-order"
"""What `job place --apply` takes, and the playbook that `--now` runs."""
KEEP_ORDER = "none"

Typed = Annotated[str | None, typer.Option("--confirm", help="what to type: stop")]


@app.command()
def show(ctx: typer.Context, job: JobArgument = None) -> None:
    """Show where a job runs, what its ranks say and its health over time.

    Exit 0 progress, 2 stalled, 3 unknown. Trends are what `brctl watch` and `sweep --cron` kept.
    """
    invocation: Invocation = ctx.obj
    settings = invocation.settings()

    with progress("asking the ranks", quiet=invocation.quiet) as line:
        found, status = asyncio.run(job_progress(settings, job, line.say))
    store = TrendStore(settings.state_dir, settings.context)
    trends = store.read((found.name, *found.nodes), now())
    invocation.finish(job_page(found, status, trends), settings.context)


@app.command()
def data(ctx: typer.Context, job: JobArgument = None) -> None:
    """Show what each rank was given and how long it took; exit 1 if any is late, 3 unknown."""
    from brctl.evidence.job.data.slow_ranks import told_apart
    from brctl.view.job.data import job_data_page

    invocation: Invocation = ctx.obj
    settings = invocation.settings()
    with progress("asking the ranks", quiet=invocation.quiet) as line:
        _, status = asyncio.run(job_progress(settings, job, line.say))
    invocation.finish(job_data_page(status, told_apart(status)), settings.context)


@app.command()
def place(
    ctx: typer.Context,
    job: JobArgument = None,
    level: Annotated[
        str, typer.Option("--level", help="label of the domains, default the widest")
    ] = "",
    apply: Annotated[
        str, typer.Option("--apply", help="rank-order: at the next restart; none: forget it")
    ] = "",
    at_once: Annotated[
        bool, typer.Option("--now", help="rank-order: restart the job for it")
    ] = False,
    dry_run: DryRun = False,
    confirm: Annotated[
        str | None, typer.Option("--confirm", help='what to type: "rank 368"')
    ] = None,
) -> None:
    """Show whether parallel groups are split over domains; exit 1 if an order is better, 3 unknown.

    Domains come from labels of the inventory; no node is asked. --apply rank-order waits for the
    next run that restarts the job; with --now such a run is begun, which asks first.
    """
    from brctl.engine.application.job_place import (
        forget_rank_order,
        job_placement,
        rank_order_inputs,
        want_rank_order,
    )
    from brctl.view.job.placement import placement_page

    invocation: Invocation = ctx.obj
    settings = invocation.settings()
    if apply not in ("", RANK_ORDER, KEEP_ORDER):
        raise UsageError(f"--apply {apply}: only {RANK_ORDER} can be applied")
    if (at_once or dry_run) and apply != RANK_ORDER:
        raise UsageError(f"--now and -n go with --apply {RANK_ORDER}")
    found = asyncio.run(job_placement(settings, job, level))
    if apply == KEEP_ORDER:
        forget_rank_order(settings, found)
        found = replace(found, waiting=None)
    elif apply and not (at_once or dry_run):
        found = replace(found, waiting=want_rank_order(settings, found, person()))
    elif apply:
        values = rank_order_inputs(found)
        _act(
            invocation, RANK_ORDER, found.job.name, values, Consent(typed=confirm, dry_run=dry_run)
        )
    page = placement_page(
        found.job, found.domains, found.advice, found.gone, found.uptime_s, found.rate_source,
        movable=found.orders_ranks, price=found.price, waiting=found.waiting,
    )  # fmt: skip
    invocation.finish(page, settings.context)


@app.command()
def init(
    ctx: typer.Context,
    slurm: Annotated[str, typer.Option("--slurm", help="number of a Slurm job")] = "",
    k8s: Annotated[str, typer.Option("--k8s", help="a Kubernetes Job or pod")] = "",
    pid: Annotated[int | None, typer.Option("--pid", min=2, help="a process on one node")] = None,
    match: Annotated[str, typer.Option("--match", help="a part of its command line")] = "",
    name: Annotated[str, typer.Option("--name", help="name of the job")] = "",
    file: Annotated[Path, typer.Option("--file", help="where to write")] = Path("job.yaml"),
) -> None:
    """Write a job.yaml from a running job (`-w` where to look); says what it could not know."""
    from brctl.engine.application.job_init import JobInitRequest, init_job
    from brctl.engine.controller.reach import choose
    from brctl.engine.controller.wiring import open_controller
    from brctl.view.job.new_job import job_init_page

    invocation: Invocation = ctx.obj
    settings = invocation.settings()

    async def run() -> None:
        nodes: tuple[str, ...] = ()
        if invocation.nodes is not None:
            nodes = (await choose(settings, invocation.nodes, invocation.exclude)).names
        request = JobInitRequest(file, name, nodes, slurm, k8s, pid, match)
        async with open_controller(settings) as controller:
            written = await init_job(controller, request)
        invocation.finish(job_init_page(written), settings.context)

    asyncio.run(run())


@app.command()
def start(
    ctx: typer.Context,
    job: JobArgument = None,
    checkpoint: Annotated[str, typer.Option("--from", help="checkpoint directory")] = "",
) -> None:
    """Start the ranks of a job that does not run."""
    _act(ctx.obj, "start-job", job, {"checkpoint": checkpoint}, Consent(yes=True))


@app.command()
def stop(
    ctx: typer.Context, job: JobArgument = None, confirm: Typed = None, yes: LowRiskYes = False
) -> None:
    """End every rank of a job; asks first."""
    _act(ctx.obj, "stop-job", job, {}, Consent(yes=yes, typed=confirm))


def _act(
    invocation: Invocation,
    playbook: str,
    name: str | None,
    values: dict[str, Json],
    consent: Consent,
) -> None:
    settings = invocation.settings()
    chosen = find_playbook(settings.library_dirs, playbook)
    values["job"] = asyncio.run(job_name(settings, name))
    run = asyncio.run(run_playbook(invocation, settings, chosen, values, None, consent))
    finish_run(invocation, settings, run)


@app.command()
def watch(
    ctx: typer.Context,
    job: JobArgument = None,
    until_progress: Annotated[int, typer.Option("--until-progress", help="new steps")] = 1,
) -> None:
    """Wait for new steps; exit 0 when they came, 2 when a rank ended, 3 on `--timeout` (10m)."""
    invocation: Invocation = ctx.obj
    settings = invocation.settings()
    limit_s = invocation.timeout_s or 600.0
    found, status, code = asyncio.run(wait_for_steps(settings, job, until_progress, limit_s, say))
    invocation.finish(replace(job_page(found, status), exit_code=code), settings.context)
