"""What became of each node of a run, as rows."""

from collections.abc import Mapping, Sequence

from brctl.model.nodeset import fold, natural_key
from brctl.model.runs.playbook import Json
from brctl.playbook.node_runs import ONLY, instance_of
from brctl.playbook.run_record import RunRecord
from brctl.view.notices.contents import RunFacts
from brctl.view.redact import redact
from brctl.view.text import columns as aligned
from brctl.view.text import printable

COLUMNS = ("node", "result", "failed_step", "why", "ticket", "seconds")


def report_rows(facts: RunFacts) -> list[Mapping[str, Json]]:
    """One row a node, in the order people count them."""
    record = facts.run.record
    if set(record.node_runs) <= {ONLY}:
        return [_whole_run(facts)]
    return [_row(record, node) for node in sorted(record.node_runs, key=natural_key)]


def _whole_run(facts: RunFacts) -> Mapping[str, Json]:
    events, record = facts.run.events, facts.run.record
    seconds = (events[-1].at - events[0].at).total_seconds() if events else 0.0
    return {
        "node": fold(facts.run.nodes) or "-",
        "result": facts.result,
        "failed_step": record.failed_step or "-",
        "why": facts.why or "-",
        "ticket": _ticket(record, ONLY),
        "seconds": round(seconds, 1),
    }


def _row(record: RunRecord, node: str) -> Mapping[str, Json]:
    node_run = record.node_runs[node]
    return {
        "node": node,
        "result": node_run.result or "not reached",
        "failed_step": node_run.failed_step or "-",
        "why": node_run.why or node_run.failed_error or "-",
        "ticket": _ticket(record, node),
        "seconds": round(node_run.seconds, 1),
    }


def _ticket(record: RunRecord, node: str) -> str:
    steps = (record.steps.get(instance_of(step_id, node)) for step_id in record.step_ids)
    found = [str(step.out["ticket"]) for step in steps if step is not None and "ticket" in step.out]
    return " ".join(found) or "-"


def report_text(rows: Sequence[Mapping[str, Json]], columns: Sequence[str]) -> str:
    """The table; what nodes said is made harmless."""
    body = [[printable(redact(str(row[column])), 100) for column in columns] for row in rows]
    return aligned([[column.upper() for column in columns], *body])
