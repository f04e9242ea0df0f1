"""What the keys of a view do: the app does it, a view only says on what."""

from typing import TYPE_CHECKING, cast

from textual.dom import DOMNode

from brctl.tui.address import Address
from brctl.tui.target import Target

if TYPE_CHECKING:
    from brctl.tui.app import BrctlApp


class ViewActions(DOMNode):
    """Actions that are the same in every view."""

    @property
    def brctl(self) -> "BrctlApp":
        """The app, by its own type."""
        return cast("BrctlApp", self.app)

    def target(self) -> Target:
        """What the cursor stands on."""
        raise NotImplementedError

    def action_detail(self) -> None:
        target = self.target()
        if target.opens:
            self.brctl.go(target.opens)
        elif target.run:
            self.brctl.go(Address("runs", target.run))
        elif len(target.nodes) == 1:
            self.brctl.go(Address("node", target.nodes[0]))
        elif target.verdict:
            self.brctl.go(Address("verdicts", target.verdict))
        elif target.nodes:
            self.brctl.go(Address("fleet", filter=target.folded))

    def action_why(self) -> None:
        if self.target().verdict:
            self.brctl.go(Address("verdicts", self.target().verdict))

    def action_timeline(self) -> None:
        self.brctl.go(Address("incidents", self.target().verdict))

    def action_stacks(self) -> None:
        self.brctl.go(Address("stacks", self.target().job))

    def action_diagnose(self) -> None:
        self.brctl.diagnose(self.target())

    def action_fix(self) -> None:
        self.brctl.open_fix(self.target())

    def action_actions(self) -> None:
        self.brctl.open_actions(self.target())

    def action_approve(self) -> None:
        self.brctl.open_approval(self.target(), yes=True)

    def action_deny(self) -> None:
        self.brctl.open_approval(self.target(), yes=False)

    def action_rollback(self) -> None:
        self.brctl.open_rollback(self.target())

    def action_ssh(self) -> None:
        if self.target().nodes:
            self.brctl.leave_for(["ssh", self.target().nodes[0]])

    def action_logs(self) -> None:
        job = self.target().job or self.brctl.only_job()
        self.brctl.leave_for(["logs", "classify", "--job", job])

    def action_evidence(self) -> None:
        self.action_why()

    def action_refresh(self) -> None:
        self.brctl.sweep(self.target())

    def action_reread(self) -> None:
        self.brctl.reread()

    def action_help(self) -> None:
        self.brctl.open_help()

    def action_freeze(self) -> None:
        self.brctl.toggle_freeze()

    def action_copy_line(self) -> None:
        self.brctl.copy_line()

    def action_copy_nodes(self) -> None:
        self.brctl.copy_nodes(self.target())

    def action_history(self, by: int) -> None:
        self.brctl.step_history(by)

    def action_last(self) -> None:
        self.brctl.go_last()

    def action_times(self) -> None:
        self.brctl.next_times()

    def action_colour(self) -> None:
        """Only the heatmap has colours to choose."""

    def action_sort(self) -> None:
        """Only tables have columns to sort by."""

    def action_sort_back(self) -> None:
        """Only tables have an order to turn round."""
