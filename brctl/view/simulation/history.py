"""A job's own past incidents, as a file for `brctl simulate`."""

from collections.abc import Mapping

from brctl.model.simulation import PastStop, SiteHistory
from brctl.model.units import rfc3339
from brctl.view.notices.page import Json, Page


def history_page(found: SiteHistory, text: str) -> Page:
    """The file as text, what it is made of as keys."""
    rate, low, high = found.per_1000_node_days
    rows = tuple(_stop_document(stop) for stop in found.stops)
    body: dict[str, Json] = {
        "job": found.job,
        "nodes": found.nodes,
        "began_at": rfc3339(found.began_at),
        "days": round(found.days, 4),
        "failures_per_1000_node_days": round(rate, 6),
        "rate_low_95": round(low, 6),
        "rate_high_95": round(high, 6),
        "stops": list(rows),
        "left_out": found.left_out,
        "text": text,
    }
    return Page("SiteHistory", body, text, table=rows)


def _stop_document(stop: PastStop) -> Mapping[str, Json]:
    return {
        "at": rfc3339(stop.at),
        "symptom": stop.symptom,
        "cause": stop.cause or None,
        "nodes": list(stop.nodes),
    }
