"""`brctl report lemons`: nodes that fail again and again, with what each count is made of."""

from collections.abc import Iterator, Sequence

from brctl.evidence.lemons import RULES, LemonSignal, NodePast
from brctl.model.exit_codes import ExitCode
from brctl.model.nodeset import fold
from brctl.view.notices.page import Json, Page
from brctl.view.text import columns, printable

_HEADS = {
    LemonSignal.EXCLUDED_JOBS: "MOVED", LemonSignal.XIDS: "XIDS", LemonSignal.TICKETS: "TICKETS",
    LemonSignal.OUTS: "OUT", LemonSignal.MULTI_NODE_FAILS: "MULTI",
    LemonSignal.SINGLE_NODE_FAILS: "SINGLE", LemonSignal.SINGLE_NODE_RATE: "A DAY",
}  # fmt: skip


def lemons_page(
    pasts: Sequence[NodePast], nodes: int, looked_through: tuple[int, int, int], since: str
) -> Page:
    """The answer of `brctl report lemons`.

    Args:
        pasts: Nodes that a signal speaks against, the worst first.
        nodes: How many they were compared with.
        looked_through: Sweeps, verdicts and runs; none of them means that nothing is known.
        since: How far back, as it was typed.
    """
    sweeps, verdicts, runs = looked_through
    rows = tuple(_row(past) for past in pasts)
    body = {"lemons": list(rows), "nodes": nodes, "sweeps": sweeps, "verdicts": verdicts,
            "runs": runs, "since": since}  # fmt: skip
    if not any(looked_through):
        text = f"UNKNOWN  nothing was recorded in the last {printable(since)}"
        return Page("Lemons", body, text, ExitCode.UNKNOWN, next=("brctl sweep --cron",))
    seen = f"{nodes} nodes, {sweeps} sweeps, {verdicts} verdicts and {runs} runs"
    last = f"{seen} of the last {printable(since)}"
    proposed = tuple(past.node for past in pasts if past.is_lemon)
    text = "\n".join([*_lines(pasts), last]) if pasts else f"no node stands out: {last}"
    move = (f'brctl cordon {fold(proposed)} -m "lemon, to repair: brctl report lemons"',)
    return Page("Lemons", body, text, names=proposed, rows=rows, next=move if proposed else ())


def _row(past: NodePast) -> dict[str, Json]:
    return {
        "node": past.node,
        "lemon": past.is_lemon,
        "signals": {signal.value: count for signal, count in past.counts.items()},
        "against": [signal.value for signal in past.against],
        "evidence": {signal.value: list(whats) for signal, whats in past.evidence.items()},
    }


def _lines(pasts: Sequence[NodePast]) -> Iterator[str]:
    table = [("NODE", "LEMON", *_HEADS.values())]
    for past in pasts:
        counts = (f"{past.counts[signal]:.2g}" for signal in _HEADS)
        table.append((past.node, "yes" if past.is_lemon else "look", *counts))
    yield columns(table)
    for past in pasts:
        for signal in past.against:
            whats = ", ".join(printable(what, 40) for what in past.evidence.get(signal, ())[:6])
            if whats:
                yield f"{past.node}  {RULES[signal].title}: {whats}"
