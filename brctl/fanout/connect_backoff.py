"""How long to wait for a connection to a node that gave none a moment ago."""

from dataclasses import dataclass

AGAIN_S = (1.5, 0.5)
"""The second wait, and every further one. A living kernel answers within milliseconds; a lost first
SYN is repeated after one second, which the second wait leaves room for."""

REMEMBER_S = 60.0

SAME_S = 2.0
"""Who was silent again is not asked a further time within this: a run that stops a job looks at its
nodes three times within a second, and one of these waits tells as much as three."""

CROWD = 32
"""So many nodes that let the whole deadline pass, and none that gave a word: it is the way to them
(own). The others are asked all the same, in the shorter waits: 500 more cost seconds, not minutes.
"""


@dataclass(frozen=True)
class _SilentNode:
    """A node that let the whole deadline pass.

    Attributes:
        since: When that ended, in seconds of a clock that only rises.
        asked: How often it was asked, the first time included.
        last: When the last of these waits ended.
        said: That wait in words.
    """

    since: float
    attempts: int
    last: float
    detail: str


class ConnectBackoff:
    """Which nodes just took the whole connect deadline without a word.

    A run asks a dead node again and again: for evidence, to stop its ranks, to see whether they
    stopped. Only the first of these waits the whole deadline, and again every `REMEMBER_S`.

    Args:
        deadline_s: The connect deadline for a node nobody knows anything of.
    """

    def __init__(self, deadline_s: float) -> None:
        self._deadline_s = deadline_s
        self._silent: dict[str, _SilentNode] = {}
        self._in_a_row = 0
        self._newest = float("-inf")

    def deadline_s(self, name: str, now: float) -> float:
        """How long to wait for this node."""
        known = self._silent.get(name)
        if known is None or now - known.since >= REMEMBER_S:
            return self._first_wait_s(now)
        again_s = AGAIN_S[min(known.attempts, len(AGAIN_S)) - 1]
        return min(again_s, self._first_wait_s(now))

    def _first_wait_s(self, now: float) -> float:
        """The deadline; where a crowd took it in vain, what a living kernel needs."""
        if self._in_a_row < CROWD or now - self._newest >= REMEMBER_S:
            return self._deadline_s
        return min(AGAIN_S[0] if self._in_a_row < 3 * CROWD else AGAIN_S[1], self._deadline_s)

    def remember(self, name: str, since: float) -> None:
        """Another process let the whole deadline pass, twice, and ended so."""
        detail = f"within {self._deadline_s:g} s"
        self._silent[name] = _SilentNode(since, len(AGAIN_S), float("-inf"), detail)

    def keep(self, name: str, waited_s: float, now: float) -> str:
        """Remember that it was silent for so long; the words for a person."""
        known, detail = self._silent.get(name), f"within {waited_s:g} s"
        if known is None:
            self._in_a_row, self._newest = self._in_a_row + 1, now
        if known is None and waited_s < self._deadline_s:
            return f"{detail}, nor did {self._in_a_row - 1} nodes before it give one"
        if known is None or waited_s >= self._deadline_s:
            known = _SilentNode(now, 0, now, "")
        else:
            detail += f", nor within {self._deadline_s:g} s, {now - known.since:.0f} s ago"
        self._silent[name] = _SilentNode(known.since, known.attempts + 1, now, detail)
        return detail

    def meanwhile(self, name: str, asked_at: float) -> str:
        """The words of a wait that ended after somebody else asked, who need not wait again."""
        known = self._silent.get(name)
        if known is None:
            return ""
        same_s = SAME_S if known.attempts > len(AGAIN_S) else 0.0
        return known.detail if known.last >= asked_at - same_s else ""

    def forget(self, name: str) -> None:
        """It took a connection, or refused one: something out there answers."""
        self._silent.pop(name, None)
        self._in_a_row = 0
