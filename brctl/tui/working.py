"""What the app asks of the engine in the background, and how it tells of it."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from textual import on, work

from brctl.model.errors import BrctlError
from brctl.model.sweeps.sweep import NodeHealth
from brctl.tui.address import Address
from brctl.tui.refreshing import RefreshingApp
from brctl.tui.screens.fleet import FleetScreen
from brctl.tui.session.messages import Busy, WorkDone, WorkFailed
from brctl.tui.target import Target

Result = TypeVar("Result")


class WorkingApp(RefreshingApp):
    """An app with something going on."""

    @on(Busy)
    def handle_busy(self, message: Busy) -> None:
        self.busy = message.text
        self.redraw()

    @on(WorkFailed)
    def handle_work_failed(self, message: WorkFailed) -> None:
        self.busy = ""
        self.say(message.text, bad=True)
        self.redraw()

    @on(WorkDone)
    def handle_work_done(self, message: WorkDone) -> None:
        self.busy = ""
        if not self.screen_stack:
            return  # It was done while the app ends.
        self.say(message.text)
        self._ask_placement()
        if message.view_name:
            self.go(Address(message.view_name, message.item))
        self._read_state()
        if self._look_every_s > 0:
            self.look_at_jobs()

    def sweep(self, target: Target) -> None:
        """Sweep the marked nodes, the node shown, or everything the filter lets through."""
        facts, view = self.facts, self.view
        if facts is None or self.busy:
            return
        names = target.nodes if view and view.view_name == "node" else ()
        if isinstance(view, FleetScreen):
            shown = [fact.name for fact in view.shown(facts)]
            names = tuple(view.heatmap.marks) or tuple(shown)
        self._sweep(names or tuple(facts.inventory.nodes))

    @work(exclusive=True, group="look", exit_on_error=False)
    async def _sweep(self, names: Sequence[str]) -> None:
        done = 0

        def count(node: NodeHealth) -> None:
            nonlocal done
            done += 1
            self.post_message(Busy(f"sweep {done}/{len(names)}"))

        self.post_message(Busy(f"sweep 0/{len(names)}"))
        await self._doing(self.engine.sweep(names, count), lambda sweep: WorkDone(f"{sweep}: done"))

    def diagnose(self, target: Target) -> None:
        """Diagnose the job, or the nodes; reading only."""
        if not self.busy:
            self._diagnose(target)

    @work(exclusive=True, group="look", exit_on_error=False)
    async def _diagnose(self, target: Target) -> None:
        self.post_message(Busy(f"diagnosing {target.job or target.folded or 'the job'}"))
        await self._doing(
            self.engine.diagnose(target.nodes, target.job),
            lambda ids: WorkDone(f"verdict {ids[0]}", "verdicts", ids[0]),
        )

    async def _doing(self, work_: Awaitable[Result], done: Callable[[Result], WorkDone]) -> None:
        try:
            result = await work_
        except (BrctlError, OSError) as error:
            hint = getattr(error, "hint", None)
            self.post_message(WorkFailed(f"{error}{f'; {hint}' if hint else ''}"))
            return
        self.post_message(done(result))
