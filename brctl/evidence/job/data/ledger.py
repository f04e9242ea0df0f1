"""The newest steps of a rank as its node sent them: hostile until they are numbers in a row."""

from brctl.evidence.operators import is_number
from brctl.model.foreign_json import ForeignJsonError, read_foreign_json
from brctl.model.jobs.rank_history import RankHistory

STEPS_LIMIT = 1000


def read_ledger(text: str) -> RankHistory | None:
    """The steps of one rank; None where it does not time them, or what it sent is none."""
    try:
        found = read_foreign_json(text) if text else None
    except ForeignJsonError:
        return None
    if not isinstance(found, dict) or type(first := found.get("first")) is not int:
        return None
    load_s, compute_s, wait_s = (_series(found.get(name)) for name in ("load", "compute", "wait"))
    cost, source = _series(found.get("cost")), found.get("source")
    if not compute_s or not len(load_s) == len(compute_s) == len(wait_s):
        return None
    if len(cost) != len(compute_s):
        cost = ()
    return RankHistory(
        first, load_s, compute_s, wait_s, cost, source if isinstance(source, str) else ""
    )


def _series(values: object) -> tuple[float, ...]:
    """Numbers that are no less than nothing; one that is not spoils its series."""
    rows = values[:STEPS_LIMIT] if isinstance(values, list) else []
    found = tuple(float(v) for v in rows if is_number(v) and 0 <= float(v) < 1e12)
    return found if len(found) == len(rows) else ()
