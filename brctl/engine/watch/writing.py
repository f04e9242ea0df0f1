"""A disk that takes nothing ends no watcher; it is told once, not every second."""

from collections.abc import Callable


class Writing:
    """Something that is written again and again.

    Attributes:
        trouble: Why the last try failed; "" when it went well.
    """

    def __init__(self, say: Callable[[str], None], consequence: str) -> None:
        self._say, self._consequence = say, consequence
        self.trouble = ""

    def went_well(self, write: Callable[[], None]) -> bool:
        """Write, and whether all of it was written."""
        try:
            write()
        except OSError as exc:
            if str(exc) != self.trouble:
                self._say(f"error  {self._consequence}: {exc}")
            self.trouble = str(exc)
            return False
        self.trouble = ""
        return True
