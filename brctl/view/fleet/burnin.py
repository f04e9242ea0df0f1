"""A burn-in as people read it: one line a node, its rates below, and what comes next."""

from collections.abc import Iterable, Mapping, Sequence

from brctl.model.exit_codes import ExitCode
from brctl.model.nodeset import fold
from brctl.model.sweeps.burnin import Burnin, BurninState, NodeBurnin, Rating
from brctl.model.units import describe_duration, rfc3339
from brctl.view.notices.page import Json, Page
from brctl.view.text import columns, printable

EXIT_OF: Mapping[BurninState, ExitCode] = {
    BurninState.PASSED: ExitCode.OK,
    BurninState.FAILED: ExitCode.CRITICAL,
    BurninState.RUNNING: ExitCode.OK,
    BurninState.STOPPED: ExitCode.UNKNOWN,
    BurninState.UNFINISHED: ExitCode.UNKNOWN,
}
_WORDS: Mapping[BurninState, str] = {
    BurninState.PASSED: "ok",
    BurninState.FAILED: "FAIL",
    BurninState.RUNNING: "running",
    BurninState.STOPPED: "STOPPED",
    BurninState.UNFINISHED: "UNKNOWN",
}


def burnin_page(burnin: Burnin, context: str, *, alive: bool = True) -> Page:
    """The answer of `brctl burnin run` and `status`."""
    head = (
        f"{burnin.id}  {context}  {len(burnin.nodes)} nodes  level {burnin.level}"
        f"  {describe_duration(burnin.seconds)} of {describe_duration(burnin.duration_s)}"
    )
    dead = burnin.state is BurninState.RUNNING and not alive
    lost = [f"its process {burnin.pid} is gone; what follows is the last it wrote"] if dead else []
    rows = [_row(node) for node in burnin.nodes]
    failed = [n.node for n in burnin.nodes if n.state is BurninState.FAILED]
    return Page(
        kind="Burnin",
        body=_document(burnin, dead=dead),
        text="\n".join([head, *lost, columns(rows)]),
        exit_code=ExitCode.UNKNOWN if dead else EXIT_OF[burnin.state],
        names=tuple(failed),
        rows=tuple(_node_document(node) for node in burnin.nodes),
        next=(f"brctl dx -w {fold(failed)}",) if failed else (),
    )


def results_page(node: str, found: Sequence[tuple[Burnin, NodeBurnin]]) -> Page:
    """The answer of `brctl burnin results NODE`."""
    rows: list[Sequence[str]] = []
    for burnin, result in found:
        rows.append((burnin.id, f"level {burnin.level}", *_row(result)[1:]))
        rows += [("", "", *_rating_row(rating)) for rating in result.ratings]
    return Page(
        kind="BurninResults",
        body={"node": node, "results": [_result(b, n) for b, n in found]},
        text=columns(rows) if rows else f"{node} was never burned in from here",
        exit_code=EXIT_OF[found[0][1].state] if found else ExitCode.UNKNOWN,
        rows=tuple(_result(b, n) for b, n in found),
    )


def _row(node: NodeBurnin) -> tuple[str, ...]:
    return (
        node.node,
        _WORDS[node.state],
        f"{node.rounds} rounds",
        _fastest(node.ratings),
        printable(node.reason, 120),
    )


def _fastest(ratings: Iterable[Rating]) -> str:
    """The product rate of the slowest device: the one the job would wait for."""
    products = [r for r in ratings if r.unit == "TFLOP/s"]
    if not products:
        return ""
    slowest = min(products, key=lambda r: r.value)
    return f"{slowest.value:.4g} {slowest.unit}"


def _rating_row(rating: Rating) -> tuple[str, ...]:
    percentile = "" if rating.percentile is None else f"percentile {rating.percentile:.0f}"
    return (
        printable(rating.subject, 60),
        rating.name,
        f"{rating.value:.4g} {rating.unit}",
        percentile,
    )


def _document(burnin: Burnin, *, dead: bool) -> dict[str, Json]:
    return {
        "id": burnin.id,
        "state": BurninState.UNFINISHED.value if dead else burnin.state.value,
        "level": burnin.level,
        "checks": list(burnin.checks),
        "started_at": rfc3339(burnin.started_at),
        "duration_s": burnin.duration_s,
        "seconds": burnin.seconds,
        "nodes": [_node_document(node) for node in burnin.nodes],
    }


def _node_document(node: NodeBurnin) -> dict[str, Json]:
    return {
        "node": node.node,
        "state": node.state.value,
        "rounds": node.rounds,
        "reason": node.reason,
        "evidence": [
            {"kind": e.kind, "device": e.subject.device or None, "text": e.text, "raw": e.raw}
            for e in node.evidence
        ],
        "not_checked": [{"what": gap.what, "why": gap.why} for gap in node.gaps],
        "ratings": [
            {
                "name": r.name,
                "device": r.subject,
                "value": r.value,
                "unit": r.unit,
                "percentile": r.percentile,
            }
            for r in node.ratings
        ],
    }


def _result(burnin: Burnin, node: NodeBurnin) -> dict[str, Json]:
    return {
        "id": burnin.id,
        "level": burnin.level,
        "started_at": rfc3339(burnin.started_at),
        **_node_document(node),
    }
