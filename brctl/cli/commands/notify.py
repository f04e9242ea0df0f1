"""`brctl notify list|render|test`: who is told outside, with which words, and does it work."""

from typing import Annotated
from urllib.parse import urlsplit

import typer

from brctl.cli.invocation import Invocation, new_app
from brctl.cli.the_verdict import one_verdict
from brctl.engine.controller.clock import now
from brctl.library.config import Settings
from brctl.library.notify_settings import Sink
from brctl.model.errors import UsageError, did_you_mean
from brctl.model.notice import NoticeState
from brctl.notify.ledger import Failures
from brctl.notify.notifier import Notifier
from brctl.notify.sinks import problems_of
from brctl.view.notices.notice import trial_notice, verdict_notice
from brctl.view.notices.sinks import KINDS, SinkRow, render_page, sink_list_page, trial_page

app = new_app()
Id = Annotated[str | None, typer.Argument(help="verdict; default the only open one")]


@app.command("list")
def list_sinks(ctx: typer.Context) -> None:
    """List who is told what, and what keeps a sink from working."""
    invocation: Invocation = ctx.obj
    settings = invocation.settings()
    failures = Notifier(settings.notify, settings.state_dir, now).ledger.failures()
    rows = [_row(sink, failures.get(sink.kind)) for sink in settings.notify.sinks]
    ticket_program = settings.notify.ticket
    ticket = ticket_program.command[0] if ticket_program.command else _host(ticket_program.url)
    invocation.finish(sink_list_page(rows, ticket), settings.context)


def _row(sink: Sink, failures: Failures | None) -> SinkRow:
    target = sink.channel or _host(sink.url) or " ".join(map(str, sink.folders))
    return SinkRow(
        kind=sink.kind,
        target=target,
        when=tuple(sorted(sink.when)),
        failures=failures.count if failures else 0,
        last_failure=failures.why if failures else "",
        wrong=tuple(problems_of(sink)),
    )


def _host(url: str) -> str:
    return urlsplit(url).netloc if url else ""


@app.command()
def render(
    ctx: typer.Context,
    verdict_id: Id = None,
    to: Annotated[str, typer.Option("--to", help=", ".join(KINDS))] = "slack",
) -> None:
    """Show the exact body a verdict would send; send nothing."""
    invocation: Invocation = ctx.obj
    _known(to, KINDS)
    settings = invocation.settings()
    verdict = one_verdict(invocation, settings, verdict_id).verdict
    notice = verdict_notice(
        verdict, settings.context, verdict.decided_at, runbook=settings.notify.runbook
    )
    invocation.finish(render_page(notice, to), settings.context)


@app.command("test")
def trial(
    ctx: typer.Context,
    to: Annotated[str | None, typer.Option("--to", help="only this sink")] = None,
) -> None:
    """Send a notice marked TEST, and its end; exit 69 when a sink could not be told."""
    invocation: Invocation = ctx.obj
    settings = invocation.settings()
    kinds = [sink.kind for sink in settings.notify.sinks]
    _refuse_none(settings)
    if to is not None:
        _known(to, kinds)
    notifier = Notifier(settings.notify, settings.state_dir, now)
    rows = []
    for state in (NoticeState.FIRING, NoticeState.RESOLVED):
        notice = trial_notice(settings.context, now(), state)
        found = notifier.notify(notice, kinds if to is None else [to])
        rows += [(d.sink, d.state.value, d.why or state.value) for d in found]
    invocation.finish(trial_page(rows), settings.context)


def _known(name: str, known: tuple[str, ...] | list[str]) -> None:
    if name not in known:
        raise UsageError(f"--to {name}: unknown; {did_you_mean(name, known)}")


def _refuse_none(settings: Settings) -> None:
    if not settings.notify.sinks:
        raise UsageError(
            "no notifier configured",
            hint="add `notify:` to config.yaml; `brctl help notifications`",
        )
