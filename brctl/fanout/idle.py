"""Which kept connections nobody uses, so that a large fleet does not keep one for each node."""

from collections import Counter
from collections.abc import Sequence


class Idle:
    """Users of each connection by node name, and the unused ones in the order they became so.

    Args:
        keep: How many unused ones stay.
    """

    def __init__(self, keep: int) -> None:
        self._keep = keep
        self._users: Counter[str] = Counter()
        self._unused: dict[str, None] = {}

    def claim(self, name: str) -> None:
        """One more uses the connection; those behind a jump host use it as long as it lives."""
        self._users[name] += 1
        self._unused.pop(name, None)

    def shared(self, name: str) -> bool:
        """Whether more than one uses it."""
        return self._users[name] > 1

    def release(self, name: str) -> Sequence[str]:
        """One less uses it; the names of the connections that are too many now."""
        self._users[name] -= 1
        if self._users[name] > 0:
            return ()
        del self._users[name]
        self._unused[name] = None
        surplus = list(self._unused)[: max(0, len(self._unused) - self._keep)]
        for each in surplus:
            del self._unused[each]
        return surplus
