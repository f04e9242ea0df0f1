"""Values of flags read with the error that names the flag, and the counter people watch."""

import sys
from collections.abc import Callable
from typing import TypeVar

from brctl.model.errors import UsageError

T = TypeVar("T")


def typed(flag: str, text: str, parse: Callable[[str], T]) -> T:
    """The value a flag's text means.

    Raises:
        UsageError: Names flag and text.
    """
    try:
        return parse(text)
    except ValueError as exc:
        raise UsageError(f"{flag}: {exc}") from exc


def counter() -> Callable[[int, int], None] | None:
    """Writes `done/total` over itself on a terminal's stderr; None when nobody watches."""
    if not sys.stderr.isatty():
        return None

    def show(done: int, total: int) -> None:
        ending = "\r\x1b[K" if done == total else ""
        sys.stderr.write(f"\r{done}/{total} nodes{ending}")
        sys.stderr.flush()

    return show
