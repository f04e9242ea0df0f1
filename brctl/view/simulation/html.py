"""Simulations as one self-contained HTML page, with bars and lines as inline SVG."""

from collections.abc import Iterator, Sequence

from brctl.model.simulation import (
    Book,
    ParameterSweep,
    PolicyComparison,
    PolicyScore,
    SimulatedFleet,
)
from brctl.view import html_page

_COLOURS = {
    Book.CHECKPOINT: "#8c959f", Book.DEGRADED: "#bf8700", Book.DETECT: "#0969da",
    Book.LOCATE: "#1b7c83", Book.WAIT_HUMAN: "#8250df", Book.IDLE_NO_STANDBY: "#bf3989",
    Book.START: "#cf222e", Book.LOAD: "#bc4c00", Book.REDO: "#1a7f37",
}  # fmt: skip
_LINES = ("#0969da", "#cf222e", "#1a7f37", "#8250df", "#bc4c00", "#1b7c83")
_WIDTH, _ROW, _LEFT, _HEIGHT = 900, 28, 130, 300


def comparison_html(found: PolicyComparison) -> str:
    """The page of policies side by side."""
    head = (
        "policy",
        "ETTR %",
        "+-",
        "gained, points",
        "stops",
        "healthy out",
        "shortfalls",
        "pages",
    )
    rows = [
        (s.policy, f"{100 * s.ettr.mean:.2f}", f"{100 * s.ettr.half_width:.2f}",
         f"{100 * s.gained.mean:+.2f}" if s.gained else "", f"{s.per_run['stops']:.1f}",
         f"{s.per_run['healthy_evicted']:.1f}", f"{s.per_run['shortfalls']:.2f}",
         f"{s.per_run['pages']:.1f}")
        for s in found.scores
    ]  # fmt: skip
    parts = [
        _facts(found.fleet, found.seed), html_page.table(head, rows),
        html_page.heading("Hours lost in a run"), _bars(found.scores), _legend(),
    ]  # fmt: skip
    return html_page.page(f"Simulation of {found.fleet.name}", parts)


def sweep_html(found: ParameterSweep) -> str:
    """The page of one parameter over its values."""
    policies = [score.policy for score in found.points[0].scores]
    rows = [
        (f"{point.value:g}", *(f"{100 * s.ettr.mean:.3f}" for s in point.scores))
        for point in found.points
    ]
    parts = [
        _facts(found.fleet, found.seed),
        html_page.heading(f"ETTR % by {found.parameter}"),
        _plot(found),
        html_page.table((found.parameter, *policies), rows),
    ]
    return html_page.page(f"Simulation of {found.fleet.name} by {found.parameter}", parts)


def _facts(fleet: SimulatedFleet, seed: int) -> str:
    return html_page.facts(
        (
            ("fleet", fleet.title),
            ("nodes", fleet.nodes),
            ("days", f"{fleet.days:g}"),
            ("failures per 1,000 node-days", f"{fleet.per_1000_node_days:g}, {fleet.counts}"),
            ("first seed", seed),
        )
    )


def _bars(scores: Sequence[PolicyScore]) -> str:
    """A bar a policy, in pieces by book."""
    most = max((sum(score.lost_h.values()) for score in scores), default=0.0) or 1.0
    scale = (_WIDTH - _LEFT - 60) / most
    pieces = [piece for row, score in enumerate(scores) for piece in _bar(score, row, scale)]
    return _svg(len(scores) * _ROW + 6, pieces)


def _bar(score: PolicyScore, row: int, scale: float) -> Iterator[str]:
    top, at = row * _ROW + 4, float(_LEFT)
    yield f'<text x="0" y="{top + 15}">{html_page.cell(score.policy)}</text>'
    for book, colour in _COLOURS.items():
        hours = score.lost_h.get(book, 0.0)
        title = html_page.cell(f"{book.value} {hours:.1f} h")
        yield (
            f'<rect x="{at:.1f}" y="{top}" width="{hours * scale:.1f}" height="20"'
            f' fill="{colour}"><title>{title}</title></rect>'
        )
        at += hours * scale
    yield f'<text x="{at + 5:.1f}" y="{top + 15}">{sum(score.lost_h.values()):.1f} h</text>'


def _legend() -> str:
    pieces = [
        f'<rect x="{5 + 98 * i}" y="4" width="12" height="12" fill="{colour}"/>'
        f'<text x="{21 + 98 * i}" y="14">{html_page.cell(book.value)}</text>'
        for i, (book, colour) in enumerate(_COLOURS.items())
    ]
    return _svg(22, pieces)


def _plot(found: ParameterSweep) -> str:
    """A line a policy; the axis spans what was found."""
    means = [[point.scores[i].ettr.mean for point in found.points]
             for i in range(len(found.points[0].scores))]  # fmt: skip
    values = [point.value for point in found.points]
    low, high = min(map(min, means)), max(map(max, means))
    span, reach = (high - low) or 1e-6, (values[-1] - values[0]) or 1.0
    pieces = [
        f'<text x="0" y="14">{100 * high:.3f} %</text>',
        f'<text x="0" y="{_HEIGHT - 24}">{100 * low:.3f} %</text>',
        f'<text x="{_LEFT}" y="{_HEIGHT - 4}">{values[0]:g}</text>',
        f'<text x="{_WIDTH - 60}" y="{_HEIGHT - 4}">{values[-1]:g}</text>',
    ]
    for number, line in enumerate(means):
        colour = _LINES[number % len(_LINES)]
        points = " ".join(
            f"{_LEFT + (value - values[0]) / reach * (_WIDTH - _LEFT - 60):.1f},"
            f"{10 + (high - mean) / span * (_HEIGHT - 40):.1f}"
            for value, mean in zip(values, line, strict=True)
        )
        name = html_page.cell(found.points[0].scores[number].policy)
        pieces.append(f'<polyline points="{points}" fill="none" stroke="{colour}"/>')
        pieces.append(
            f'<text x="{_LEFT + 10}" y="{24 + 16 * number}" fill="{colour}">{name}</text>'
        )
    return _svg(_HEIGHT, pieces)


def _svg(height: int, pieces: Sequence[str]) -> str:
    return f'<svg viewBox="0 0 {_WIDTH} {height}">\n' + "\n".join(pieces) + "\n</svg>"
