"""Screen 7: the training jobs, where they stand and how their steps went."""

from brctl.tui.rows.job_rows import job_list, job_rows
from brctl.tui.rows.row import Row
from brctl.tui.screens.list_screen import ListScreen
from brctl.tui.session.facts import Facts


class JobsScreen(ListScreen):
    """`r` looks at the jobs now; it does so by itself every few seconds."""

    view_name = "jobs"
    kind = "job"
    unavailable = frozenset({"colour", "rollback", "ssh"})

    def list_rows(self, facts: Facts) -> list[Row]:
        return job_list(facts, self.brctl.clock())

    def detail_rows(self, facts: Facts, item: str, width: int) -> list[Row] | None:
        job = facts.job(item)
        return job_rows(job, facts, width, self.brctl.clock()) if job else None

    def action_refresh(self) -> None:
        self.brctl.look_at_jobs()
