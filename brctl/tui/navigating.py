"""Where the app is: the views that are open, and the way between them."""

from collections.abc import Callable, Mapping
from datetime import datetime

from brctl.tui.address import ROOTS, Address
from brctl.tui.navigation_history import NavigationHistory
from brctl.tui.screens.node import NodeScreen
from brctl.tui.screens.stacks import StacksScreen
from brctl.tui.screens.view_screen import ViewScreen
from brctl.tui.speech import NotifyingApp

DETAILS: Mapping[str, Callable[[Address], ViewScreen]] = {
    "node": NodeScreen,
    "stacks": StacksScreen,
}


class NavigatingApp(NotifyingApp):
    """An app that opens views and remembers which."""

    def __init__(self, now: Callable[[], datetime], start: Address | None) -> None:
        super().__init__(now)
        self._start = start
        self._history = NavigationHistory()

    def open_start(self) -> None:
        """Open what was asked for, or stay on what needs attention."""
        if self._start is not None:
            self.go(self._start)
        else:
            self._history.arrive(Address())

    def redraw(self) -> None:
        """Draw the visible view from the facts."""
        view = self.view
        if view is not None:
            view.redraw()

    @property
    def view(self) -> ViewScreen | None:
        """The visible view, dialogs left aside."""
        return next((s for s in reversed(self.screen_stack) if isinstance(s, ViewScreen)), None)

    def go(self, address: Address, *, remember: bool = True) -> None:
        """Open a view."""
        if remember:
            self._history.arrive(address)
        if address.view_name in DETAILS:
            self.push_screen(DETAILS[address.view_name](address))
            return
        self.switch_mode(address.view_name)
        while len(self.screen_stack) > 1:
            self.pop_screen()
        if isinstance(self.screen, ViewScreen):
            self.screen.open(address)

    def go_root(self, number: int) -> None:
        """Open one of the numbered screens as it was left."""
        view_name = ROOTS[number - 1]
        self.switch_mode(view_name)
        view = self.view
        if view is not None:
            self._history.arrive(view.address)
            view.redraw()

    def back(self, *, leave: bool = False) -> None:
        """Close this view; at the top leave if asked to."""
        if len(self.screen_stack) > 1:
            self.pop_screen()
        elif self.current_mode != "fleet":
            self.go_root(1)
        elif leave:
            self.exit()

    def step_history(self, by: int) -> None:
        """Along the history of views."""
        address = self._history.step(by)
        if address is not None:
            self.go(address, remember=False)

    def go_last(self) -> None:
        """Back to the view we came from."""
        address = self._history.last()
        if address is not None:
            self.go(address, remember=False)
