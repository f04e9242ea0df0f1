"""What was typed: values of flags, and one sentence for a line that cannot be meant."""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from brctl.cli.words import WORDS, Word
from brctl.model.errors import UsageError

if TYPE_CHECKING:
    import typer

    from brctl.cli.invocation import Invocation

T = TypeVar("T")

_NOT_TAKEN = "nothing takes "
_IN_OUR_WORDS = (
    (re.compile(r"is not a valid int(?: range)?$"), "is no whole number"),
    (re.compile(r"is not a valid float(?: range)?$"), "is no number"),
    (re.compile(r"Got unexpected extra argument\(s\) \((.*)\)"), rf"{_NOT_TAKEN}`\1`"),
)
_NO_COMMAND = re.compile(r"No such command '.*'")  # a near one is named by Typer itself


def typed(flag: str, text: str, parse: Callable[[str], T]) -> T:
    """The value a flag's text means.

    Raises:
        UsageError: Names flag and text.
    """
    try:
        return parse(text)
    except ValueError as exc:
        raise UsageError(f"{flag}: {exc}") from exc


def refuse_idle_selection(
    word: str, entry: Word, verbs: Mapping[str, object], rest: Sequence[str], given: "Invocation"
) -> None:
    """Refuse names of nodes that nobody would read: `fix V-1 -x n2` would still take n2.

    Raises:
        UsageError: -w or -x is given, and this sub-command chooses no nodes by it.
    """
    verb = next((text for text in rest if text in verbs), "")
    obeyed = (
        ("-w", given.nodes, (*entry.selects, *entry.only_w)),
        ("-x", given.exclude, entry.selects),
    )
    for flag, names, verbs_of_flag in obeyed:
        if names is not None and verb not in verbs_of_flag and "--help" not in rest:
            command = f"brctl {word} {verb}".rstrip()
            raise UsageError(f"`{command}` chooses no nodes by {flag}", hint=f"{command} --help")


def refuse_no_file(flag: str, path: Path | None) -> None:
    """Refuse a path at which no file can be, before the work whose result it is to hold.

    Raises:
        UsageError: It is a folder, or its own folder is none or takes no file.
    """
    if path is None:
        return
    hint = f"{flag} FILE, in a folder that is there"
    if path.is_dir():
        raise UsageError(f"{flag} {path}: a folder; name a file in it", hint=hint)
    if not path.parent.is_dir():
        raise UsageError(f"{flag} {path}: no folder {path.parent}", hint=f"mkdir -p {path.parent}")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise UsageError(f"{flag} {path}: you may write no file in {path.parent}", hint=hint)


def usage_error(error: "typer.TyperException", word: str) -> UsageError:
    """What Typer refused, in our words, with the help of the very command."""
    context = getattr(error, "ctx", None)
    text = error.format_message() if hasattr(error, "format_message") else str(error)
    message = text.rstrip(".")
    for pattern, ours in _IN_OUR_WORDS:
        message = pattern.sub(ours, message)
    verbs = list(getattr(context.command, "commands", {})) if context else []
    hint = f"{context.command_path if context else f'brctl {word}'} --help"
    if _NO_COMMAND.fullmatch(message):
        message += f"; known: {', '.join(verbs)}"
    elif message == "Missing command":
        message += f"; one of: {', '.join(verbs)}"
    elif context and message.startswith(_NOT_TAKEN):
        hint = _where_nodes_go(context, WORDS[word])
    return UsageError(message, hint=hint)


def _where_nodes_go(context: "typer.Context", entry: Word) -> str:
    """What one more word on a line most often is: a node."""
    path, verb = context.command_path, context.info_name if context.parent else ""
    if any(getattr(param, "metavar", "") == "NODES" for param in context.command.params):
        return f"several nodes are one word, as in {path} 'n[1-2],n7'; {path} --help"
    if verb in (*entry.selects, *entry.only_w):
        return f"nodes stand behind -w, as in {path} -w n7; {path} --help"
    return f"{path} --help"
