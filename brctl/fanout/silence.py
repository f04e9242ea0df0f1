"""How long to wait for a connection to a node that gave none a moment ago."""

AGAIN_S = 1.5
"""A living kernel answers within milliseconds; a lost first SYN is repeated after one second."""

REMEMBER_S = 60.0


class Silence:
    """Which nodes just took the whole connect deadline without a word.

    A run asks a dead node again and again: for evidence, to stop its ranks, to see whether they
    stopped. Only the first of these waits the whole deadline, and again every `REMEMBER_S`.

    Args:
        deadline_s: The connect deadline for a node nobody knows anything of.
    """

    def __init__(self, deadline_s: float) -> None:
        self._deadline_s = deadline_s
        self._since: dict[str, float] = {}

    def deadline_s(self, name: str, now: float) -> float:
        """How long to wait for this node; `now` is in seconds of a clock that only rises."""
        silent_at = self._since.get(name)
        if silent_at is None or now - silent_at >= REMEMBER_S:
            return self._deadline_s
        return min(AGAIN_S, self._deadline_s)

    def keep(self, name: str, waited_s: float, now: float) -> str:
        """Remember that it was silent for so long; the words for a person."""
        said = f"within {waited_s:g} s"
        if waited_s < self._deadline_s:
            return f"{said}, nor within {self._deadline_s:g} s, {now - self._since[name]:.0f} s ago"
        self._since[name] = now
        return said

    def forget(self, name: str) -> None:
        """It took a connection."""
        self._since.pop(name, None)
