"""Where all ranks of a job stand, as one merged tree, from the newest stacks on disk."""

from textual import work

from brctl.model.errors import BrctlError
from brctl.tui.address import Address
from brctl.tui.rows.row import Row, Tone, cut, row, safe
from brctl.tui.rows.stack_rows import stack_rows
from brctl.tui.screens.one_list import OneListScreen
from brctl.tui.session.facts import Facts
from brctl.tui.target import Target


class StacksScreen(OneListScreen):
    """`r` takes stacks anew, in the terminal."""

    view_name = "stacks"
    unavailable = frozenset(
        {"rollback", "colour", "sort", "sort_back", "detail", "evidence", "why", "fix", "ssh"}
    )

    def __init__(self, address: Address | None = None) -> None:
        super().__init__(address)
        self._rows: list[Row] = [row(("reading the newest stacks ...", Tone.DIM))]

    def on_mount(self) -> None:
        super().on_mount()
        self._read()

    def show(self, facts: Facts) -> None:
        self.listing.show(cut(self._rows))

    @property
    def job(self) -> str:
        """The job that is shown: the one asked for, or the only one."""
        return self.address.item or self.brctl.only_job()

    @work(thread=True, exclusive=True, group="stacks", exit_on_error=False)
    def _read(self) -> None:
        try:
            rows = stack_rows(self.brctl.reader.stacks(self.job), max(self.width - 4, 40))
        except (BrctlError, OSError) as error:
            hint = (
                f"   take them: {error.hint}"
                if isinstance(error, BrctlError) and error.hint
                else ""
            )
            rows = [row((safe(f"{error}{hint}"), Tone.WARN))]
        self.app.call_from_thread(self._show_rows, rows)

    def _show_rows(self, rows: list[Row]) -> None:
        self._rows = rows
        self.redraw()

    def action_refresh(self) -> None:
        self.brctl.leave_for(["stacks", "dump", "--job", self.job])

    def target(self) -> Target:
        return Target(job=self.job)
