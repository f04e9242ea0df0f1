"""`brctl report flappers`: what comes and goes, most often first."""

from collections.abc import Sequence

from brctl.model.exit_codes import ExitCode
from brctl.view.notices.page import Page
from brctl.view.text import columns, printable


def flappers_page(found: Sequence[tuple[str, str, int]], sweeps: int, since: str) -> Page:
    """The answer of `brctl report flappers`.

    Args:
        found: Node, check and how often it began to fail.
        sweeps: How many sweeps were looked at; none means that nothing is known.
        since: How far back, as it was typed.
    """
    rows = tuple({"node": node, "check": check, "times": times} for node, check, times in found)
    body = {"flappers": list(rows), "sweeps": sweeps, "since": since}
    names = tuple(dict.fromkeys(node for node, _, _ in found))
    if not sweeps:
        text = f"UNKNOWN  no sweep was recorded in the last {printable(since)}"
        return Page("Flappers", body, text, ExitCode.UNKNOWN, next=("brctl sweep --cron",))
    if not found:
        text = f"nothing comes and goes: {sweeps} sweeps in the last {printable(since)}"
        return Page("Flappers", body, text)
    table = [("NODE", "CHECK", "TIMES")]
    table += [(node, printable(check, 60), str(times)) for node, check, times in found]
    text = columns(table) + f"\n{sweeps} sweeps in the last {printable(since)}"
    next_ = (f"brctl nodes show {names[0]} --history {printable(since)}",)
    return Page("Flappers", body, text, names=names, rows=rows, next=next_)
