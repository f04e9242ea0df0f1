"""The checkpoints of a job as people read them."""

from collections.abc import Mapping, Sequence

from brctl.evidence.job.kept_steps import KeptSteps
from brctl.model.exit_codes import ExitCode
from brctl.model.jobs.job import Job
from brctl.view.job.kept_steps import kept_steps_document, kept_steps_lines
from brctl.view.notices.page import Json, Page
from brctl.view.text import age_text, columns, printable


def checkpoints_page(
    job: Job,
    node: str,
    rows: Sequence[Mapping[str, Json]],
    remarks: Sequence[str] = (),
    kept: KeptSteps | None = None,
    lost: Sequence[str] = (),
) -> Page:
    """The answer of `ckpt latest|verify`: the newest whole one first named, then all.

    `kept` is what the job keeps in memory, if it does; `lost` are nodes that are imagined gone.
    """
    whole = next((row for row in rows if row["complete"] is True), None)
    shown = [
        [str(row["step"]), {True: "whole", False: "BROKEN", None: "UNKNOWN"}[_flag(row)],
         "checked" if row["verified"] else "-", age_text(row["age_seconds"]),
         printable(str(row["problem"] or row["loader"] or ""))]
        for row in rows
    ]  # fmt: skip
    head = f"restart from {whole['path']}" if whole else "no checkpoint is whole"
    table = columns([["STEP", "STATE", "CONTENT", "AGE", ""], *shown])
    body: dict[str, Json] = {
        "job": job.name,
        "read_from": node,
        "latest": whole,
        "layout": job.checkpoint_layout,
        "checkpoints": list(rows),
        "remarks": list(remarks),
        "memory": kept_steps_document(kept, lost) if kept else None,
    }
    remains = whole or (kept is not None and kept.newest(lost) is not None)
    code = ExitCode.OK if remains else ExitCode.CRITICAL
    memory = kept_steps_lines(kept, lost) if kept else []
    seen = f"  (seen from {node})" if node else ""
    text = "\n".join([*memory, f"{head}{seen}", table, *map(printable, remarks)])
    names = (str(whole["path"]),) if whole else ()
    return Page("Checkpoints", body, text, code, names, tuple(rows))


def _flag(row: Mapping[str, Json]) -> bool | None:
    value = row["complete"]
    return value if isinstance(value, bool) else None
