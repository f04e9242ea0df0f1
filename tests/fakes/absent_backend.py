"""A scheduler whose API goes away for a while."""

from collections.abc import Callable
from typing import Any

from brctl.backends.contract import Backend
from brctl.model.errors import UnreachableError


class AbsentBackend:
    """Another backend that does not answer while `is_away` says so.

    The first change that meets the outage is made, and only its answer is lost.
    """

    def __init__(self, backend: Backend, is_away: Callable[[], bool]) -> None:
        self._backend = backend
        self._is_away = is_away
        self.refused = 0

    name = "absent"

    def __getattr__(self, method: str) -> Any:
        ask = getattr(self._backend, method)

        async def asked(*args: object, **options: object) -> object:
            if self._is_away():
                self.refused += 1
                if self.refused == 1:
                    await ask(*args, **options)
                raise UnreachableError("the connection to the server was refused")
            return await ask(*args, **options)

        return asked
