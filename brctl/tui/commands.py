"""`:` takes the command line's own words: views, dialogs, and for the rest the terminal itself."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from brctl.model.errors import UsageError
from brctl.tui.address import VIEW_NAMES, Address

HOME = Address()


@dataclass(frozen=True, slots=True)
class TypedCommand:
    """What a typed command means here.

    Attributes:
        do: `go`, `fix`, `sweep`, `diagnose`, `leave`, `help` or `terminal`.
        words: The rest, for `terminal` the whole command.
    """

    do: str
    address: Address = HOME
    words: tuple[str, ...] = ()


def read_command(text: str) -> TypedCommand:
    """What a command means.

    Raises:
        UsageError: It cannot be read.
    """
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"{text!r}: {error}") from error
    if words[:1] == ["brctl"]:
        words = words[1:]
    if not words:
        raise UsageError("an empty command; try `ls @rack:r1`, `why`, `fix`, `q`")
    word, rest = words[0], words[1:]
    if word == "tui" and rest:
        word, rest = rest[0], rest[1:]
    reader = _VIEWS.get(word)
    if reader is not None:
        return reader(rest)
    return TypedCommand("terminal", words=tuple(words))


def _go_to(view_name: str) -> Callable[[Sequence[str]], TypedCommand]:
    def command(rest: Sequence[str]) -> TypedCommand:
        item, wanted = "", ""
        words = iter(rest)
        for word in words:
            if word in ("--filter", "-w", "--nodes"):
                wanted = next(words, "")
            elif not word.startswith("-"):
                item = word
        if view_name == "fleet" and item:
            item, wanted = "", item
        return TypedCommand("go", Address(view_name, item, wanted))

    return command


_SHOWING = ("list", "show", "explain", "history", "latest")


def _noun(word: str, view_name: str) -> Callable[[Sequence[str]], TypedCommand]:
    """`play show R-1` is a view; `play run X` is not, and goes to the terminal."""
    go_to = _go_to(view_name)

    def command(rest: Sequence[str]) -> TypedCommand:
        if not rest or rest[0].startswith("-"):
            return go_to(rest)
        if rest[0] in _SHOWING:
            return go_to(rest[1:])
        return TypedCommand("terminal", words=(word, *rest))

    return command


def _simple(do: str) -> Callable[[Sequence[str]], TypedCommand]:
    return lambda rest: TypedCommand(do, words=tuple(rest))


_VIEWS: Mapping[str, Callable[[Sequence[str]], TypedCommand]] = {
    **{view_name: _go_to(view_name) for view_name in VIEW_NAMES},
    "ls": _go_to("fleet"), "nodes": _go_to("fleet"), "status": _go_to("fleet"),
    "verdict": _noun("verdict", "verdicts"), "v": _noun("verdict", "verdicts"),
    "why": _go_to("verdicts"), "play": _noun("play", "runs"),
    "ckpt": _noun("ckpt", "standby"), "incident": _noun("incident", "incidents"),
    "fix": _simple("fix"), "sweep": _simple("sweep"),
    "dx": _simple("diagnose"), "diagnose": _simple("diagnose"), "help": _simple("help"),
    "q": _simple("leave"), "quit": _simple("leave"), "q!": _simple("leave"),
}  # fmt: skip
"""First words that are answered here; everything else is the command line's."""
