"""Where we have been: back, forward, and the last view; pure."""

from brctl.tui.address import Address

KEPT = 100


class NavigationHistory:
    """Visited addresses, and which of them is shown."""

    def __init__(self) -> None:
        self._been: list[Address] = []
        self._at = -1

    @property
    def here(self) -> Address | None:
        """The address we are at."""
        return self._been[self._at] if self._been else None

    def arrive(self, address: Address) -> None:
        """Note a view that was opened; what lay ahead is forgotten."""
        if address != self.here:
            self._been = [*self._been[: self._at + 1], address][-KEPT:]
            self._at = len(self._been) - 1

    def step(self, by: int) -> Address | None:
        """The view before or after; None at either end."""
        if not 0 <= self._at + by < len(self._been):
            return None
        self._at += by
        return self.here

    def last(self) -> Address | None:
        """The view we came from; called twice it leads back here."""
        if self._at < 1:
            return None
        before = self._been[self._at - 1]
        self.arrive(before)
        return before
