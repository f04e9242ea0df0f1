"""`brctl sweep`: ask every node the level's questions at once; cron's verb."""

import asyncio
import socket
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from brctl.cli.invocation import Invocation, leave, new_app
from brctl.cli.output import say
from brctl.cli.progress import progress
from brctl.cli.typed import typed
from brctl.model.errors import BrctlError, UsageError, did_you_mean
from brctl.model.exit_codes import ExitCode

if TYPE_CHECKING:
    from brctl.engine.application.sweep import SweepDone
    from brctl.sweep.exit_policy import ExitPolicy
    from brctl.view.notices.page import Page

app = new_app()


@dataclass(frozen=True, slots=True)
class _Answer:
    """How a command line wants its sweep shown."""

    invocation: Invocation
    profile: str
    policy: "ExitPolicy"
    cron: bool
    diff: bool
    lines: bool
    prom: Path | None


@app.command()
def sweep(
    ctx: typer.Context,
    level: Annotated[int, typer.Option("--level", min=1, max=4, help="1 safe beside jobs")] = 1,
    checks: Annotated[str, typer.Option("--checks", help="only checks of this pattern")] = "*",
    profile: Annotated[
        str | None, typer.Option("--profile", help="sweep, preflight, storage")
    ] = None,
    job: Annotated[str | None, typer.Option("--job", help="also ask about this job")] = None,
    cron: Annotated[bool, typer.Option("--cron", help="only new, recovered, reminders")] = False,
    diff: Annotated[bool, typer.Option("--diff", help="what changed since the last")] = False,
    lines: Annotated[bool, typer.Option("--lines", help="one line per node")] = False,
    prom: Annotated[Path | None, typer.Option("--prom", help="metrics file, atomic")] = None,
    lock: Annotated[str | None, typer.Option("--lock", help="skip, wait or fail")] = None,
    jitter: Annotated[str, typer.Option("--jitter", help="this host's slot within, 5m")] = "0s",
    max_unknown: Annotated[str | None, typer.Option("--max-unknown", help="count or 1%")] = None,
    fail_on: Annotated[str, typer.Option("--fail-on", help="warn or crit")] = "warn",
    exit_zero: Annotated[bool, typer.Option("--exit-zero", help="findings exit 0")] = False,
    beside: Annotated[bool, typer.Option("--beside-job", help="level 2+ on nodes in use")] = False,
) -> None:
    """Sweep nodes; exit 0 all well, 1 warnings, 2 a fault, 3 cannot tell.

    Without a flag, `sweep:` of the configuration says profile, max_unknown and reminder.
    """
    from brctl.engine.application.sweep import SweepRequest
    from brctl.engine.application.sweep import sweep as run_sweep
    from brctl.engine.controller.wiring import open_controller
    from brctl.engine.sweeps.cycle import LOCK_MODES, jitter_s
    from brctl.engine.sweeps.run_checks import Question
    from brctl.library.sweep_settings import parse_max_unknown
    from brctl.model.units import parse_duration_s
    from brctl.sweep.exit_policy import ExitPolicy

    invocation: Invocation = ctx.obj
    _closed("--fail-on", fail_on, ("warn", "crit"))
    mode = lock or ("skip" if cron else "wait")
    _closed("--lock", mode, LOCK_MODES)
    if max_unknown is not None:
        typed("--max-unknown", max_unknown, lambda text: parse_max_unknown(text, 1))
    wait_s = jitter_s(socket.gethostname(), typed("--jitter", jitter, parse_duration_s))
    with _one_line_for_nagios(invocation):
        settings = invocation.settings()
        question = Question(level, checks, profile or settings.sweep.profile)
        policy = ExitPolicy(max_unknown or settings.sweep.max_unknown, fail_on, exit_zero)
        request = SweepRequest(
            question, invocation.nodes, invocation.exclude, job, mode, wait_s, cron, beside,
            counts_cordons=prom is not None or invocation.output == "prom",
        )  # fmt: skip
        with progress(quiet=invocation.quiet) as line:
            done = asyncio.run(
                run_sweep(
                    settings, partial(open_controller, settings), request, line.say, line.counted
                )
            )
        _end(_Answer(invocation, question.profile, policy, cron, diff, lines, prom), done)


@contextmanager
def _one_line_for_nagios(invocation: Invocation) -> Iterator[None]:
    """A plugin always prints a line, and never exits above 3."""
    try:
        yield
    except (BrctlError, OSError, sqlite3.Error) as error:
        if invocation.output != "nagios":
            raise
        from brctl.cli.disk_trouble import disk_trouble
        from brctl.view.fleet.nagios import nagios_failure

        sys.stdout.write(nagios_failure(str(disk_trouble(error) or error)))
        leave(ExitCode.UNKNOWN)


def _closed(flag: str, word: str, known: tuple[str, ...]) -> None:
    if word not in known:
        raise UsageError(f"{flag} {word}: unknown; {did_you_mean(word, known)}")


def _end(request: _Answer, done: "SweepDone | None") -> None:
    if done is None:
        request.invocation.note("another sweep of this context is running; skipped")
        leave(ExitCode.OK)
    for run in done.expired:
        note = f"{run}: nobody approved in time, so it ends as its playbook says"
        request.invocation.note(note)
    _finish(request, done)


def _finish(request: _Answer, done: "SweepDone") -> None:
    from brctl.engine.sweeps.cycle import write_metrics
    from brctl.view.fleet.nagios import nagios_exit, nagios_lines
    from brctl.view.job.looks import job_health, job_trouble

    looks = [news.look for news in done.jobs]
    states = [node.health for node in done.sweep.nodes]
    code = request.policy.exit_code([*states, *map(job_health, looks)])
    context = done.controller.settings.context
    if request.prom is not None:
        write_metrics(request.prom, _metrics(request, done, code))
    if request.invocation.output == "nagios":
        sys.stdout.write(nagios_lines(done.sweep, code, job_trouble(looks)))
        leave(nagios_exit(code))
    if request.invocation.output == "prom":
        sys.stdout.write(_metrics(request, done, code))
        leave(code)
    page = _page(request, done)
    request.invocation.finish(replace(page, exit_code=code), context)


def _metrics(request: _Answer, done: "SweepDone", code: ExitCode) -> str:
    from brctl.engine.incidents.notify_verdicts import failure_totals
    from brctl.engine.standby.metrics import standby_totals
    from brctl.engine.sweeps.history import SweepHistory
    from brctl.view.fleet.prometheus import prometheus_text
    from brctl.view.job.looks import job_totals

    controller, result = done.controller, done.sweep
    context, looks = controller.settings.context, [news.look for news in done.jobs]
    history = SweepHistory(controller.state_dir)
    return prometheus_text(
        result,
        controller.settings.context,
        request.profile,
        code,
        {
            **history.totals(),
            **failure_totals(controller, say),
            **standby_totals(controller, say),
            **job_totals(looks, context),
            **_open_totals(done, context),
        },
        history.last_success_at(result.id),
    )


def _open_totals(done: "SweepDone", context: str) -> dict[str, float]:
    """What waits for somebody: open verdicts by class, nodes out of service."""
    from brctl.engine.incidents.verdict_store import open_verdicts
    from brctl.view.fleet.prometheus import cordon_totals, verdict_totals

    verdicts = [stored.verdict for stored in open_verdicts(done.controller.state_dir)]
    return {**verdict_totals(verdicts, context), **cordon_totals(done.cordoned, context)}


def _page(request: _Answer, done: "SweepDone") -> "Page":
    from brctl.view.fleet.changes import changes_document, changes_text
    from brctl.view.fleet.sweep import sweep_page
    from brctl.view.fleet.sweep_lines import sweep_lines
    from brctl.view.job.looks import job_look_document, job_news_text

    controller, result, changes = done.controller, done.sweep, done.changes
    documents = request.invocation.output not in ("table", "wide")
    nodes, context = controller.inventory.nodes, controller.settings.context
    page = sweep_page(result, context, documents=documents, inventory=nodes)
    jobs = [job_look_document(news.look) for news in done.jobs]
    page = replace(page, body={**page.body, "changes": changes_document(changes), "jobs": jobs})
    if request.cron:
        news = [job_news_text(each.look, each.before, each.verdicts) for each in done.jobs]
        text = "\n".join(filter(None, [changes_text(changes, controller.now()), *news]))
        return replace(page, text=text, next=())
    if request.diff:
        text = changes_text(changes, controller.now()) or "nothing changed since the sweep before"
        return replace(page, text=text)
    if request.lines:
        return replace(page, text=sweep_lines(result))
    return page
