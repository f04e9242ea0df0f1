"""`brctl report calibration`: whether verdicts were as often right here as they said."""

from collections.abc import Sequence

from brctl.model.exit_codes import ExitCode
from brctl.verdict.calibration import Reliability
from brctl.view.notices.page import Page
from brctl.view.text import columns

FEW = 10
"""Fewer judged verdicts of one confidence say little."""


def calibration_page(rows: Sequence[Reliability], verdicts: int) -> Page:
    """The answer of `brctl report calibration`.

    Args:
        rows: Verdicts that a person judged, by confidence.
        verdicts: How many are kept, judged or not.
    """
    documents = tuple(
        {
            "confidence": row.confidence.value,
            "judged": row.judged,
            "right": row.right,
            "stated": round(row.stated, 4),
        }
        for row in rows
    )
    body = {"calibration": list(documents), "verdicts": verdicts}
    if not rows:
        text = f"UNKNOWN  none of {verdicts} verdicts was confirmed or dismissed"
        return Page("Calibration", body, text, ExitCode.UNKNOWN, next=("brctl verdict list",))
    head = ("CONFIDENCE", "JUDGED", "RIGHT", "STATED", "HELD", "")
    table = [head, *map(_cells, rows)]
    judged = sum(row.judged for row in rows)
    text = f"{columns(table)}\n{judged} of {verdicts} verdicts were confirmed or dismissed"
    return Page("Calibration", body, text, rows=documents)


def _cells(row: Reliability) -> tuple[str, ...]:
    judged, right = str(row.judged), str(row.right)
    stated, held = f"{row.stated:.2f}", f"{row.right / row.judged:.2f}"
    return (row.confidence.value, judged, right, stated, held, "few" if row.judged < FEW else "")
