"""A view as plain text, for `--once`: the same rows the screen draws, without a terminal."""

from collections.abc import Sequence
from functools import partial

from brctl.model.errors import UsageError, did_you_mean
from brctl.tui.address import Address
from brctl.tui.rows.attention import attention_rows
from brctl.tui.rows.bisect_rows import bisect_list, bisect_rows
from brctl.tui.rows.filters import node_matcher, row_matcher
from brctl.tui.rows.job_rows import job_list, job_rows
from brctl.tui.rows.row import Row, Tone, fitted, safe
from brctl.tui.rows.run_rows import run_list, run_rows
from brctl.tui.rows.sorting import in_order, titles_of
from brctl.tui.rows.times import Times
from brctl.tui.rows.verdict_rows import verdict_list, verdict_rows
from brctl.tui.rows.watch_rows import watch_rows
from brctl.tui.screens.standby import standby_rows
from brctl.tui.screens.timeline import incident_list, incidents_of, timeline_rows
from brctl.tui.session.facts import Facts, NodeFact
from brctl.tui.widgets.grid import by_health, layout
from brctl.tui.widgets.header import header_rows
from brctl.tui.widgets.palette import in_ascii


def once_text(facts: Facts, address: Address, *, width: int, ascii_only: bool) -> str:
    """The view's text.

    Raises:
        UsageError: The filter means nothing, there is no such column, or the view has no text form.
    """
    rows = header_rows(facts, facts.read_at)
    body = (
        _fleet(facts, address, width)
        if address.view_name == "fleet"
        else _other(facts, address, width)
    )
    wanted = row_matcher(address.filter if address.view_name != "fleet" else "")
    text = "\n".join(line.text.rstrip() for line in [*rows, *body] if not line.key or wanted(line))
    return in_ascii(text) if ascii_only else text


def _fleet(facts: Facts, address: Address, width: int) -> Sequence[Row]:
    if address.sort:
        raise UsageError(f"--sort {address.sort}: the fleet has no columns to sort by")
    wanted = node_matcher(address.filter, facts)
    shown = [fact for fact in facts.nodes if wanted(fact)]
    by_name = {fact.name: fact for fact in shown}
    lines = [
        Row(
            (
                (fitted(safe(line.label), 9) + " ", Tone.PLAIN),
                (_letters(by_name, line.names), Tone.PLAIN),
            )
        )
        for line in layout(shown, width)
    ]
    return [*lines, Row(()), *attention_rows(facts, shown, width)]


def _letters(by_name: dict[str, NodeFact], names: Sequence[str]) -> str:
    return "".join(by_health(by_name[name])[0] for name in names)


def _other(facts: Facts, address: Address, width: int) -> Sequence[Row]:
    times, listed = Times(), partial(_ordered, sort=address.sort)
    if address.view_name == "verdicts":
        stored = facts.verdict(address.item)
        return (
            verdict_rows(stored, width, times)
            if stored
            else listed(verdict_list(facts.verdicts, times))
        )
    if address.view_name == "runs":
        run = facts.run(address.item)
        return run_rows(run, width, times) if run else listed(run_list(facts.runs, times))
    if address.view_name == "incidents":
        found = incidents_of(facts)
        one = next((i for i in found if i.id == address.item), None)
        return timeline_rows(one, width, times) if one else listed(incident_list(found, times))
    if address.view_name == "bisect":
        search = next((b for b in facts.bisects if b.id == address.item), None)
        return bisect_rows(search, width) if search else listed(bisect_list(facts.bisects))
    if address.view_name == "jobs":
        job = facts.job(address.item)
        return (
            job_rows(job, facts, width, facts.read_at)
            if job
            else listed(job_list(facts, facts.read_at))
        )
    if address.view_name == "watch":
        return watch_rows(facts, width, times, facts.read_at)
    if address.view_name == "standby":
        return listed(standby_rows(facts, times))
    raise UsageError(f"{address.view_name} has no text form", hint="open it without --once")


def _ordered(rows: list[Row], sort: str) -> list[Row]:
    """A list as it is asked for; one without a line has no columns that a title could be one of."""
    title, titles = sort.removeprefix("-").upper(), titles_of(rows)
    if title and titles and title not in titles:
        raise UsageError(f"--sort {sort}: no such column; {did_you_mean(title, titles)}")
    return in_order(rows, sort)
