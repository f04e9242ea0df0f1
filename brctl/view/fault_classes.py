"""`brctl help classes`: the table of faults, with the first move of the tree on each."""

from brctl.model.exit_codes import ExitCode
from brctl.model.fault import FaultClass
from brctl.model.fault_catalogue import CATALOGUE
from brctl.model.verdict import Confidence
from brctl.playbook.tree import Case, Move, next_move
from brctl.view.notices.page import Json, Page
from brctl.view.text import columns

CLASSES = "classes"
_FOOT = """\
FIRST MOVE: for a sure verdict on a job, before anything was tried; `brctl why` says it for yours.
-o json adds what each class means, what it explains and what acting on it wrongly costs."""


def classes_page() -> Page:
    """One row a class, in the order of the table."""
    head = ("CLASS", "ORIGIN", "BRANCH", "FIRST MOVE", "WHAT")
    table = [head, *(_row(fault) for fault in CATALOGUE)]
    documents = tuple(_document(fault) for fault in CATALOGUE)
    text = f"{columns(table)}\n{_FOOT}"
    body = {"topic": CLASSES, "text": text, "classes": list(documents)}
    names = tuple(fault.value for fault in CATALOGUE)
    return Page("Help", body, text, ExitCode.OK, names, documents)


def _row(fault: FaultClass) -> tuple[str, ...]:
    row, move = CATALOGUE[fault], _first_move(fault)
    return fault.value, row.origin.value, row.branch.value, move.do.value, row.title


def _first_move(fault: FaultClass) -> Move:
    return next_move(Case(fault, Confidence.HIGH, nodes=CATALOGUE[fault].per_node))


def _document(fault: FaultClass) -> dict[str, Json]:
    row, move = CATALOGUE[fault], _first_move(fault)
    return {
        "class": fault.value,
        "title": row.title,
        "words": row.words,
        "origin": row.origin.value,
        "branch": row.branch.value,
        "per_node": row.per_node,
        "explains": sorted(fault.value for fault in row.explains),
        "explains_elsewhere": sorted(fault.value for fault in row.everywhere),
        "cost_if_wrong": row.cost_if_wrong or None,
        "first_move": {"do": move.do.value, "playbook": move.playbook or None, "say": move.say},
    }
