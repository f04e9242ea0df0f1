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
        do: `go`, `fix`, `sweep`, `diagnose`, `leave`, `help`, `terminal`, or of the saved views
            `save`, `view`, `forget`.
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
    found = _HERE[word](rest) if word in _HERE else None
    return found or TypedCommand("terminal", words=tuple(words))


Reader = Callable[[Sequence[str]], TypedCommand | None]
"""What the words after the first one mean here; None leaves them to the command line."""


def _go_to(view_name: str) -> Reader:
    """A view with its item and filter; a flag that no view has is the command line's."""

    def command(rest: Sequence[str]) -> TypedCommand | None:
        items: list[str] = []
        given: dict[str, str] = {}
        words = iter(rest)
        for word in words:
            flag, inline, value = word.partition("=")
            if flag in _FLAGS:
                given[_FLAGS[flag]] = value if inline else next(words, "")
            elif word.startswith("-"):
                return None
            else:
                items.append(word)
        if view_name == "fleet" and items:
            given.setdefault("filter", ",".join(items))
        item = items[-1] if items and view_name != "fleet" else ""
        return TypedCommand("go", Address(view_name, item, **given))

    return command


_FLAGS = {"--filter": "filter", "-w": "filter", "--nodes": "filter", "--sort": "sort"}
_SHOWING = ("list", "show", "explain", "history", "latest")


def _noun(view_name: str, item_view: str = "", showing: Sequence[str] = _SHOWING) -> Reader:
    """`play show R-1` is a view; `play run X` is not, and goes to the terminal.

    Args:
        view_name: Where its list is.
        item_view: Where one item is shown, if that is another view.
        showing: Second words that only show something.
    """

    def command(rest: Sequence[str]) -> TypedCommand | None:
        if not rest or rest[0].startswith("-"):
            return _go_to(view_name)(rest)
        if rest[0] not in showing:
            return None
        shown = item_view if item_view and rest[0] == "show" else view_name
        return _go_to(shown)(rest[1:])

    return command


def _simple(do: str) -> Reader:
    return lambda rest: TypedCommand(do, words=tuple(rest))


def _plain(do: str, most: int = 1) -> Reader:
    """Done here with a name or none; with a flag it is the command line's."""

    def command(rest: Sequence[str]) -> TypedCommand | None:
        if len(rest) > most or any(word.startswith("-") for word in rest):
            return None
        return TypedCommand(do, words=tuple(rest))

    return command


_HERE: Mapping[str, Reader] = {
    **{view_name: _go_to(view_name) for view_name in VIEW_NAMES},
    "ls": _go_to("fleet"), "nodes": _noun("fleet", "node"), "status": _go_to("fleet"),
    "verdict": _noun("verdicts"), "v": _noun("verdicts"), "why": _go_to("verdicts"),
    "play": _noun("runs"), "job": _noun("jobs"), "standby": _noun("standby"),
    "watch": _noun("watch", showing=("status",)),
    "stacks": _noun("stacks"), "ckpt": _noun("standby", showing=("latest",)),
    "incident": _noun("incidents"), "fix": _plain("fix"), "sweep": _plain("sweep", 0),
    "dx": _plain("diagnose"), "diagnose": _plain("diagnose"), "help": _plain("help", 0),
    "save": _plain("save"), "view": _plain("view"), "forget": _plain("forget"),
    "q": _simple("leave"), "quit": _simple("leave"), "q!": _simple("leave"),
}  # fmt: skip
"""First words that are answered here; everything else is the command line's."""
