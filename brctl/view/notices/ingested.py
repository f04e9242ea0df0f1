"""What became of alerts from outside."""

from collections.abc import Iterator

from brctl.model.alert import AlertIncident, Ingested
from brctl.model.nodeset import fold
from brctl.view.notices.page import Json, Page
from brctl.view.redact import redact
from brctl.view.text import columns, printable


def ingested_document(taken: Ingested) -> dict[str, Json]:
    """The keys of an Ingested document; whoever posted the alerts reads it, too."""
    return {
        "opened": [_row(incident) for incident in taken.opened],
        "repeated": [_row(incident) for incident in taken.repeated],
        "closed": [_row(incident) for incident in taken.closed],
        "ignored": len(taken.ignored),
    }


def _row(incident: AlertIncident) -> dict[str, Json]:
    return {
        "id": incident.id,
        "alert": printable(incident.name, 100),
        "folded": fold(incident.nodes),
        "job": incident.job or None,
    }


def ingested_page(taken: Ingested) -> Page:
    """The answer of `brctl ingest alertmanager`."""
    text = columns(list(_lines(taken))) or "no alert that is news"
    names = tuple(incident.id for incident in taken.opened)
    steps = (f"brctl incident show {names[0]}",) if names else ()
    return Page("Ingested", ingested_document(taken), text, names=names, next=steps)


def _lines(taken: Ingested) -> Iterator[tuple[str, ...]]:
    groups = (("opened", taken.opened), ("known", taken.repeated), ("closed", taken.closed))
    for word, incidents in groups:
        for incident in incidents:
            where = fold(incident.nodes) or incident.job or "-"
            summary = printable(redact(incident.summary), 120)
            yield word, incident.id, printable(incident.name, 40), where, summary
    if taken.ignored:
        yield "ignored", "-", f"{len(taken.ignored)} resolved", "-", "nothing was open under them"
