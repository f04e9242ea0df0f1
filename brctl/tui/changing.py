"""What a person decides in a dialog: a fix, an answer, a rollback, a note."""

from collections.abc import Awaitable, Callable

from textual import work

from brctl.model.errors import BrctlError
from brctl.playbook.run import Run
from brctl.tui.rows.confirmations import (
    Confirmation,
    confirm_answer,
    confirm_fix,
    confirm_rollback,
)
from brctl.tui.screens.dialogs import ConfirmDialog, NoteDialog
from brctl.tui.session.messages import Busy, WorkDone, WorkFailed
from brctl.tui.target import Target, waiting_run
from brctl.tui.working import WorkingApp


class ChangingApp(WorkingApp):
    """An app that changes something, after a person said yes to it."""

    _planning = False

    @property
    def dialog_width(self) -> int:
        """Cells of text in a dialog."""
        return max(min(self.size.width - 8, 108), 40)

    def open_fix(self, target: Target) -> None:
        """Plan the fix in the background, then show it; nothing is changed."""
        if target.verdict and not self.busy:
            self._propose(target.verdict)
        elif not target.verdict:
            self.say("no verdict names this; x diagnoses it", bad=True)

    def stop_planning(self) -> bool:
        """Forget a plan that is being made, so that no dialog opens on somebody who left."""
        if not self._planning:
            return False
        self.workers.cancel_group(self, "plan")
        self._planning, self.busy = False, ""
        self.redraw()
        return True

    @work(exclusive=True, group="plan", exit_on_error=False)
    async def _propose(self, verdict_id: str) -> None:
        self._planning = True
        self.handle_busy(Busy(f"planning the fix of {verdict_id}"))
        try:
            proposal = await self.engine.propose(verdict_id)
        except (BrctlError, OSError) as error:
            self.post_message(WorkFailed(str(error)))
            return
        finally:
            self._planning = False
        self.handle_busy(Busy(""))
        readonly = self.facts is None or self.facts.readonly
        question = confirm_fix(proposal, self.dialog_width, readonly=readonly)
        if await self.push_screen_wait(ConfirmDialog(question)):
            self.post_message(Busy("starting the run"))
            await self._doing(
                self.engine.start(proposal), lambda run: WorkDone(f"{run} started", "runs", run)
            )

    def open_approval(self, target: Target, *, yes: bool) -> None:
        """Answer a run that waits."""
        run = waiting_run(target, self.facts) if self.facts else None
        if run is None:
            return
        try:
            refused = self.engine.why_not_approve(run.name) if yes else ""
        except (BrctlError, OSError) as error:
            self.say(str(error), bad=True)
            return
        times = self.times.since(run.began_at)
        question = confirm_answer(run, self.dialog_width, yes=yes, times=times, refused=refused)
        answer = self.engine.approve if yes else lambda name, _typed: self.engine.deny(name)
        self._ask(question, run.name, answer)

    def open_rollback(self, target: Target) -> None:
        """Take back what a run changed."""
        run = self.facts.run(target.run) if self.facts else None
        if isinstance(run, Run):
            times = self.times.since(run.began_at)
            question = confirm_rollback(run, self.dialog_width, times)
            self._ask(question, run.name, lambda name, _typed: self.engine.rollback(name))

    @work(exclusive=True, group="ask", exit_on_error=False)
    async def _ask(
        self, question: Confirmation, run: str, act: Callable[[str, str], Awaitable[None]]
    ) -> None:
        typed = await self.push_screen_wait(ConfirmDialog(question))
        if typed:
            await self._doing(
                act(run, typed), lambda _: WorkDone(f"{run}: {question.command}", "runs", run)
            )

    @work(exclusive=True, group="ask", exit_on_error=False)
    async def open_note(self, incident: str) -> None:
        """Ask for a note and keep it."""
        text = await self.push_screen_wait(NoteDialog(incident))
        if not text:
            return
        try:
            self.reader.add_note(incident, text)
        except (BrctlError, OSError) as error:
            self.say(str(error), bad=True)
        self._read_state()

    def export(self, name: str, text: str) -> None:
        """Write a file and say where it is."""
        try:
            self.say(f"written: {self.reader.export(name, text)}")
        except OSError as error:
            self.say(f"cannot write {name}: {error}", bad=True)
