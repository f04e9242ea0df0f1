"""`brctl report ettr`: where the time of a job went, on a terminal and as one HTML file."""

from collections.abc import Iterator, Sequence

from brctl.evidence.job.time_books import lost_by_cause
from brctl.model.jobs.job_time import HOUR_US, US, EttrReport, IncidentCost, moment_of
from brctl.model.simulation import Book
from brctl.model.units import describe_duration, rfc3339, utc_text
from brctl.view import html_page
from brctl.view.job.ettr_days import day_bars
from brctl.view.notices.page import Json, Page
from brctl.view.text import columns, printable

PHASES = (Book.DETECT, Book.LOCATE, Book.WAIT_HUMAN, Book.START, Book.LOAD, Book.REDO)
_WIDTH, _HEIGHT, _LEFT = 900, 220, 60


def ettr_page(report: EttrReport) -> Page:
    """The answer of `brctl report ettr`."""
    body = {
        "job": report.job,
        "from_at": _moment(report.now.from_us),
        "to_at": _moment(report.now.to_us),
        "wall_seconds": report.now.wall_us / US,
        "ettr": report.now.ettr,
        "expected_ettr": report.expected,
        "levers": dict(report.levers),
        "levers_node_hours_per_day": {n: _node_hours(report, s) for n, s in report.levers.items()},
        "usual_step_seconds": report.usual_step_us / US,
        "mttf_seconds": None if report.mttf_us is None else report.mttf_us / US,
        "mttf_expected_seconds": {n: us / US for n, us in report.expected_mttf_us.items()},
        "books_seconds": {book.value: us / US for book, us in report.now.books_us.items()},
        "causes_seconds": {cause: us / US for cause, us in lost_by_cause(report.incidents).items()},
        "sliding_hour": _points(report.hours),
        "cumulative": _points(report.cumulative),
        "incidents": [_incident(cost) for cost in report.incidents],
        "notes": list(report.notes),
    }
    return Page("Ettr", body, "\n".join(_lines(report)), html=_html(report))


def _points(rows: Sequence[tuple[int, float, float]]) -> list[Json]:
    return [{"at": _moment(at), "ettr": now, "ettr_as_known_then": then} for at, now, then in rows]


def _incident(cost: IncidentCost) -> dict[str, Json]:
    return {
        "verdict": cost.incident.name or None,
        "cause": cost.incident.cause,
        "at": _moment(cost.began_us),
        "stands": cost.stands,
        "lost_seconds": cost.lost_us / US,
        "books_seconds": {book.value: us / US for book, us in cost.books_us.items()},
    }


def _lines(report: EttrReport) -> Iterator[str]:
    yield f"{printable(report.job)}  ETTR {_percent(report.now.ettr)} of " + (
        f"{_duration(report.now.wall_us)} since {_text(report.now.from_us)}"
    )
    yield from _hours(report)
    if report.expected is not None:
        parts = [f"{name}: {price}" for name, price in _prices(report)]
        yield "; ".join([f"expected by its own rate: {_percent(report.expected)}", *parts])
    yield _mttf(report)
    rows = [("BOOK", "TIME", "SHARE")]
    rows += [
        (book.value, _duration(us), _percent(us / report.now.wall_us))
        for book, us in report.now.books_us.items()
        if us
    ]
    yield columns(rows)
    if report.incidents:
        yield columns([("CAUSE", "LOST", "SHARE"), *_causes(report)])
        yield columns([("INCIDENT", "CAUSE", "AT", *(b.value.upper() for b in PHASES)),
                       *map(_row, report.incidents)])  # fmt: skip
    yield from (f"unseen: {printable(note, 200)}" for note in report.notes)


def _hours(report: EttrReport) -> Iterator[str]:
    """The newest hour, and the one of which least was productive; nothing of a younger job."""
    whole = [row for row in report.hours if row[0] - report.now.from_us >= HOUR_US]
    if whole:
        at_us, now, then = min(whole, key=lambda row: row[1])
        known = "" if _percent(then) == _percent(now) else f", {_percent(then)} as known then"
        lowest = f"lowest {_percent(now)} to {_text(at_us)}{known}"
        yield f"last hour {_percent(whole[-1][1])}; {lowest}"


def _causes(report: EttrReport) -> list[tuple[str, str, str]]:
    found = lost_by_cause(report.incidents).items()
    return [(cause, _duration(us), _percent(us / report.now.wall_us)) for cause, us in found]


def _prices(report: EttrReport) -> Iterator[tuple[str, str]]:
    """What each lever would give, as a share and as what it is worth a day."""
    for name, share in report.levers.items():
        hours = _node_hours(report, share)
        worth = f" ({hours:+.1f} node hours a day)" if hours is not None else ""
        yield name, _percent(share) + worth


def _node_hours(report: EttrReport, share: float) -> float | None:
    """Productive hours of all nodes that a lever gives a day; None where nobody counted nodes."""
    if report.expected is None or not report.nodes:
        return None
    return (share - report.expected) * 24 * report.nodes


def _mttf(report: EttrReport) -> str:
    """Measured beside expected: a job that fails oftener than its size explains has a reason."""
    measured = "none in this time" if report.mttf_us is None else _duration(report.mttf_us)
    rates = [f"{_duration(us)} by {name}" for name, us in report.expected_mttf_us.items()]
    beside = f"; {report.nodes} nodes expect {', '.join(rates)}" if rates else ""
    return f"MTTF {measured}{beside}"


def _row(cost: IncidentCost) -> tuple[str, ...]:
    incident = cost.incident
    phases = (_duration(cost.books_us.get(book, 0)) for book in PHASES)
    return (incident.name or "-", incident.cause, _text(cost.began_us), *phases)


def _html(report: EttrReport) -> str:
    head = ("incident", "cause", "at", *(book.value for book in PHASES))
    books = [
        (book.value, _duration(us), _percent(us / report.now.wall_us))
        for book, us in report.now.books_us.items()
        if us
    ]
    parts = [
        html_page.facts(
            (
                ("job", report.job),
                ("from", _text(report.now.from_us)),
                ("to", _text(report.now.to_us)),
                ("ETTR", _percent(report.now.ettr)),
                ("expected from its own rate and times", _percent(report.expected)),
                *_prices(report),
                ("mean time between incidents", _mttf(report)),
            )
        ),
        html_page.heading("Sliding hour"),
        _curve(report, report.hours),
        html_page.heading("Cumulative"),
        _curve(report, report.cumulative),
        html_page.heading("Day by day (UTC)"),
        day_bars(report.days),
        html_page.heading("Where the time went"),
        html_page.table(("book", "time", "share"), books),
        html_page.heading("Lost by cause"),
        html_page.table(("cause", "lost", "share"), _causes(report)),
        html_page.heading("Incidents"),
        html_page.table(head, map(_row, report.incidents)),
    ]
    return html_page.page(f"ETTR of {report.job}", parts)


def _curve(report: EttrReport, rows: Sequence[tuple[int, float, float]]) -> str:
    """Two lines and what they are; an incident is a mark below them."""
    span = report.now.wall_us or 1

    def across(at_us: int) -> float:
        return _LEFT + (at_us - report.now.from_us) / span * (_WIDTH - _LEFT - 10)

    pieces = [
        f'<text x="0" y="{y}">{label}</text>' for y, label in ((18, "100 %"), (_HEIGHT - 24, "0"))
    ]
    for number, colour, text in ((2, "#8c959f", "as known then"), (1, "#0969da", "as known now")):
        pieces.append(
            f'<text x="{_WIDTH - 110 * number}" y="10" style="fill:{colour}">{text}</text>'
        )
        points = " ".join(
            f"{across(row[0]):.1f},{12 + (1 - row[number]) * (_HEIGHT - 40):.1f}" for row in rows
        )
        pieces.append(f'<polyline points="{points}" fill="none" stroke="{colour}"/>')
    for cost in report.incidents:
        title = html_page.cell(f"{cost.incident.name} {cost.incident.cause}")
        pieces.append(
            f'<rect x="{across(cost.began_us):.1f}" y="{_HEIGHT - 20}" width="3" height="14"'
            f' fill="#cf222e"><title>{title}</title></rect>'
        )
    return f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}">\n' + "\n".join(pieces) + "\n</svg>"


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.2f} %"


def _duration(us: int) -> str:
    return describe_duration(us / US)


def _moment(us: int) -> str:
    return rfc3339(moment_of(us))


def _text(us: int) -> str:
    return utc_text(moment_of(us))
