"""When what failed is tried again: by a monotonic clock, and after a longer wait each time."""

from collections.abc import Container

FIRST_S, LONGEST_S = 30.0, 600.0


class Retries:
    """What failed and waits; none of it outlives the watcher, which then tries at once."""

    def __init__(self) -> None:
        self._waits: dict[str, tuple[float, float]] = {}

    def failed(self, key: str, seconds: float) -> float:
        """Note a failure; the seconds until it is tried again."""
        before_s, _ = self._waits.get(key, (FIRST_S / 2, 0.0))
        wait_s = min(2 * before_s, LONGEST_S)
        self._waits[key] = (wait_s, seconds + wait_s)
        return wait_s

    def must_wait(self, key: str, seconds: float) -> bool:
        """Whether it failed, and its time has not come yet."""
        _, due_s = self._waits.get(key, (0.0, seconds))
        return seconds < due_s

    def forget(self, key: str) -> None:
        """It went well."""
        self._waits.pop(key, None)

    def keep_only(self, keys: Container[str]) -> None:
        """Forget what is of no interest any more."""
        self._waits = {key: wait for key, wait in self._waits.items() if key in keys}
