"""How the app talks to the person: sentences in the corner, the clipboard, and the way out."""

from collections.abc import Callable
from datetime import datetime, timedelta

from textual.app import App

from brctl.tui.rows.row import safe

TWICE_S = 2.0
"""Two ctrl+c within this time leave."""


class NotifyingApp(App[None]):
    """An app that says what it did; nothing it says is ever markup."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        super().__init__()
        self.clock = now
        self._interrupted_at: datetime | None = None

    def say(self, text: str, *, bad: bool = False) -> None:
        """One sentence in the corner; never markup."""
        self.notify(safe(text, 600), severity="error" if bad else "information", markup=False)

    def copy(self, text: str) -> None:
        """Put a text on the clipboard of the person's terminal (OSC 52)."""
        self.copy_to_clipboard(text)
        self.say(f"copied: {text}")

    def action_interrupt(self) -> None:
        """Ctrl-C twice leaves; once only says so, because hands expect it to copy."""
        now_at = self.clock()
        before = self._interrupted_at
        if before is not None and now_at - before < timedelta(seconds=TWICE_S):
            self.exit()
            return
        self._interrupted_at = now_at
        self.say("ctrl+c again leaves; runs go on")
