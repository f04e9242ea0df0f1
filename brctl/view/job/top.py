"""`brctl top`: ranks and nodes of a job at one moment, and what was not measured."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from brctl.evidence.job.top import NUMBERS, TopLook, TopNode, own_s
from brctl.model.jobs.job_status import RankView
from brctl.model.jobs.trends import TREND_METRICS
from brctl.model.nodeset import fold
from brctl.model.units import describe_duration, rfc3339
from brctl.view.job.job import job_exit, process_words, standing_line
from brctl.view.notices.page import Json, Page
from brctl.view.text import columns, printable

TITLES = {
    "temperature_c": "TEMP C", "power_w": "POWER W", "ecc_errors": "ECC", "link_errors": "LINKS",
}  # fmt: skip
RANK_EXTRAS = ("FOR", "WAITS", "S/STEP", "PROCESS", "LOSS")
NODE_EXTRAS = ("POWER W", "LINKS", "ECC", "TEMP C")
"""What a narrow terminal goes without, the first of them first."""

OLD_S = 30.0
"""An answer that nothing renewed for so long is marked."""


def top_page(look: TopLook, first: TopLook, rows: int, width: int | None = None) -> Page:
    """One look; counters beside what they were at the first one.

    Args:
        look: What is shown.
        first: What counters are compared with.
        rows: Ranks, and nodes, that are shown at most.
        width: Columns of the terminal: what matters least is left out of a narrow one.
    """
    status = look.status
    ranks = tuple(_rank_row(view) for view in look.ranks)
    nodes = tuple(_node_row(node) for node in look.nodes)
    body: dict[str, Json] = {
        "job": status.job.name,
        "at": rfc3339(look.at),
        "stalled": status.stalled,
        "step": status.step,
        "step_seconds": status.history.step_s,
        "usual_step_seconds": status.history.usual_step_s,
        "loss": status.history.last.loss if status.history.last else None,
        "placement_trouble": look.placement_trouble or None,
        "ranks": list(ranks),
        "nodes": list(nodes),
        "not_measured": list(_not_measured(look)),
    }
    stamp = {"job": status.job.name, "at": rfc3339(look.at)}
    lines = [
        {**stamp, "row": kind, **each}
        for kind, found in (("rank", ranks), ("node", nodes))
        for each in found
    ]
    return Page(
        "JobTop", body, "\n".join(_lines(look, first, rows, width)), job_exit(status),
        (status.job.name,), tuple(lines), table=ranks,
    )  # fmt: skip


def _lines(look: TopLook, first: TopLook, rows: int, width: int | None) -> Iterator[str]:
    yield f"{printable(look.status.job.name)}  {standing_line(look.status)}"
    if look.placement_trouble:
        text = f"placement unknown: {look.placement_trouble}; shown where it ran last"
        yield printable(text, 300)
    head = ("RANK", "NODE", "PROCESS", "PHASE", "FOR", "STEP", "S/STEP", "OWN", "WAITS", "LOSS")
    yield _narrowed([head, *map(_rank_cells, look.ranks[:rows])], width, RANK_EXTRAS)
    yield from _left_out(rows, len(look.ranks), "ranks, the slowest first")
    before = {node.node: node.numbers for node in first.nodes}
    shown = [_node_cells(node, before.get(node.node, {})) for node in look.nodes[:rows]]
    titles = ("NODE", *(_title(name) for name in NUMBERS), "ANSWER")
    yield _narrowed([titles, *shown], width, NODE_EXTRAS)
    yield from _left_out(rows, len(look.nodes), "nodes, silent ones and the hottest first")
    for gap in _not_measured(look):
        yield printable(f"not measured on {gap['folded']}: {gap['what']}: {gap['why']}", 300)


def _narrowed(rows: Sequence[Sequence[str]], width: int | None, extras: Sequence[str]) -> str:
    """The table, without the columns that matter least where it is too wide."""
    left = list(extras)
    text = columns(rows)
    while width is not None and left and max(map(len, text.splitlines())) > width:
        at = rows[0].index(left.pop(0))
        rows = [[*row[:at], *row[at + 1 :]] for row in rows]
        text = columns(rows)
    return text


def _left_out(rows: int, found: int, what: str) -> Iterator[str]:
    if found > rows:
        yield f"{rows} of {found} {what}"


def _title(name: str) -> str:
    return TITLES.get(name, TREND_METRICS[name].title.upper())


def _rank_cells(view: RankView) -> Sequence[str]:
    return (
        str(view.rank), printable(view.node, 60), process_words(view),
        printable(view.phase or "-", 30),
        "-" if view.phase_age_s is None else describe_duration(view.phase_age_s),
        "-" if view.step is None else str(view.step),
        _seconds(view.step_s), _seconds(own_s(view)), _seconds(view.wait_s), _loss(view),
    )  # fmt: skip


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"


def _loss(view: RankView) -> str:
    """Its own loss before any exchange: whether it is a number, and since when not."""
    if view.loss_finite is None:
        return "-"
    since = "" if view.first_nonfinite_step is None else f" since {view.first_nonfinite_step}"
    return "finite" if view.loss_finite else f"NaN{since}"


def _node_cells(node: TopNode, before: Mapping[str, float]) -> Sequence[str]:
    numbers = (_number(name, node.numbers, before) for name in NUMBERS)
    return (printable(node.node, 60), *numbers, _answer(node))


def _number(name: str, numbers: Mapping[str, float], before: Mapping[str, float]) -> str:
    value = numbers.get(name)
    if value is None:
        return "-"
    if not TREND_METRICS[name].counts:
        return f"{value:.0f}"
    grown = value - before.get(name, value)
    return f"{value:.0f} +{grown:.0f}" if grown > 0 else f"{value:.0f}"


def _answer(node: TopNode) -> str:
    if node.age_s is None:
        return f"SILENT: {printable(node.silent, 80)}"
    return "now" if node.age_s < OLD_S else f"OLD: {describe_duration(node.age_s)}"


def _not_measured(look: TopLook) -> Iterator[Mapping[str, Json]]:
    """What was asked and not told, with the nodes it is missing of."""
    gaps: dict[tuple[str, str], list[str]] = {}
    for node in look.nodes:
        if node.silent:
            gaps.setdefault(("anything", node.silent), []).append(node.node)
            continue
        for what, why in _gaps(node):
            gaps.setdefault((what, why), []).append(node.node)
    for (what, why), nodes in gaps.items():
        yield {"what": what, "why": why, "nodes": nodes, "folded": fold(nodes)}


def _gaps(node: TopNode) -> Iterable[tuple[str, str]]:
    """Checks that failed; where none did and a number is missing still, the number."""
    if node.missing:
        return node.missing
    absent = [TREND_METRICS[name].title for name in NUMBERS if name not in node.numbers]
    return [(", ".join(absent), "no such reading")] if absent else []


def _rank_row(view: RankView) -> Mapping[str, Json]:
    return {
        "rank": view.rank,
        "node": view.node,
        "alive": view.alive,
        "exit_status": view.exit_status,
        "phase": view.phase,
        "phase_age_seconds": view.phase_age_s,
        "step": view.step,
        "step_seconds": view.step_s,
        "own_seconds": own_s(view),
        "wait_seconds": view.wait_s,
        "loss_finite": view.loss_finite,
        "first_nonfinite_step": view.first_nonfinite_step,
    }


def _node_row(node: TopNode) -> Mapping[str, Json]:
    return {
        "node": node.node,
        **{name: node.numbers.get(name) for name in NUMBERS},
        "age_seconds": node.age_s,
        "silent": node.silent or None,
    }
