"""report.table: what became of each node, as a table beside the journal."""

from brctl.actions import arguments
from brctl.actions.context import RunContext
from brctl.actions.contract import ActionFailed, ActionResult, ReadOnly
from brctl.library.durable_files import write_atomic
from brctl.model.errors import did_you_mean
from brctl.model.runs.playbook import Arguments, Json
from brctl.view.fleet.node_report import COLUMNS, report_rows, report_text

FILE = "report.txt"


class ReportTable(ReadOnly):
    """One row a node of `for_each`; without it, one row for the run."""

    async def apply(self, context: RunContext, args: Arguments) -> ActionResult:
        columns = _columns(args)
        rows = report_rows(context.run.facts())
        path = context.run.folder / FILE
        write_atomic(path, report_text(rows, columns) + "\n")
        results = [str(row["result"]) for row in rows]
        say = ", ".join(f"{results.count(result)} {result}" for result in sorted(set(results)))
        out: Json = [{column: row[column] for column in columns} for row in rows]
        return ActionResult({"file": str(path), "rows": out}, changed=False, say=say)


def _columns(args: Arguments) -> tuple[str, ...]:
    wanted = arguments.texts(args, "columns")
    if not wanted:
        raise ActionFailed("`columns` is empty")
    for column in wanted:
        if column not in COLUMNS:
            raise ActionFailed(f"no column {column!r}; {did_you_mean(column, COLUMNS)}")
    return wanted
