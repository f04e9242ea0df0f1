"""The man pages: `brctl.1` and one a command, from the commands' own help.

Text goes through `escaped`, so that no word of a help text is an instruction to roff.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import typer.main

from brctl.cli.invocation import COMMON_HELP
from brctl.cli.words import ALIASES, GROUPS, WORDS, Word
from brctl.view.help import TOPICS

Command = Any  # Typer's own copy of click has no public types
SEE_ALSO = "The reference is printed by `brctl help PAGE`; `brctl help` lists the pages."


def man_pages() -> dict[str, str]:
    """The text of every page by its file's name."""
    return {"brctl.1": _top(), **{f"brctl-{word}.1": _page(word, WORDS[word]) for word in WORDS}}


def escaped(text: str) -> str:
    """The text as roff prints it unchanged."""
    plain = (
        text.replace("\\", "\\e").replace("-", "\\-").replace("`", "\\(ga").replace("'", "\\(aq")
    )
    plain = plain.replace("~", "\\(ti").replace("^", "\\(ha")
    return "\n".join(f"\\&{line}" if line.startswith(".") else line for line in plain.split("\n"))


def _top() -> str:
    lines = _head("brctl", "find what stops a large GPU training job, and bring the job back")
    lines += [".SH SYNOPSIS", ".B brctl", escaped("[FLAGS] COMMAND ...")]
    lines += [".SH DESCRIPTION", "Without a command: the status screen."]
    for title, words in GROUPS.items():
        lines.append(f".SS {escaped(title)}")
        for word in words:
            lines += [".TP", f".BR brctl\\-{escaped(word)} (1)", escaped(WORDS[word].help)]
    short = ", ".join(f"{alias} for {word}" for alias, word in ALIASES.items())
    lines += [".SH COMMON FLAGS", *_as_is(COMMON_HELP), f"Short words: {escaped(short)}."]
    lines += [".SH EXIT STATUS", *_as_is(TOPICS["exit-codes"])]
    lines += [".SH SELECTORS", *_as_is(TOPICS["selectors"])]
    lines += [".SH OUTPUT", *_as_is(TOPICS["output"])]
    lines += [".SH ENVIRONMENT", *_as_is(TOPICS["environment"])]
    return _text([*lines, ".SH SEE ALSO", escaped(SEE_ALSO)])


def _page(word: str, entry: Word) -> str:
    command = typer.main.get_command(entry.load())
    if entry.verb:
        command = _children(command)[entry.verb]
    lines = _head(f"brctl-{word}", entry.help)
    lines += [".SH SYNOPSIS"]
    leaves = list(_leaves(f"brctl {word}", command))
    for number, (name, leaf) in enumerate(leaves):
        lines += [*([".br"] if number else []), *_synopsis(name, leaf)]
    if not _children(command) or command.help:
        lines += [".SH DESCRIPTION", *_paragraphs(command.help or entry.help)]
    for name, leaf in leaves:
        own = name != f"brctl {word}"
        lines += [f".SH {escaped(name.upper())}", *_paragraphs(leaf.help or "")] if own else []
        lines += _parameters(leaf, heading=not own)
    lines += [".SH EXIT STATUS", "As in", ".BR brctl (1)."]
    return _text([*lines, ".SH SEE ALSO", ".BR brctl (1),", "which also has the common flags."])


def _head(name: str, about: str) -> list[str]:
    title = escaped(name.upper())
    return [
        f'.TH {title} 1 "" brctl "brctl manual"',
        ".SH NAME",
        rf"{escaped(name)} \- {escaped(about)}",
    ]


def _children(command: Command) -> Mapping[str, Command]:
    return getattr(command, "commands", {})


def _leaves(name: str, command: Command) -> Iterator[tuple[str, Command]]:
    """The command itself where it can be run alone, then its sub-commands."""
    children = _children(command)
    if not children or command.invoke_without_command:
        yield name, command
    for word, child in children.items():
        if not child.hidden:
            yield from _leaves(f"{name} {word}", child)


def _synopsis(name: str, leaf: Command) -> list[str]:
    arguments = [_argument(param) for param in leaf.params if not _is_option(param)]
    options = ["[OPTIONS]"] if any(_is_option(param) for param in leaf.params) else []
    return [
        f".B {escaped(name)}",
        *([escaped(" ".join([*options, *arguments]))] * bool(options or arguments)),
    ]


def _is_option(param: Command) -> bool:
    return any(flag.startswith("-") for flag in param.opts)


def _argument(param: Command) -> str:
    name = param.name.upper().replace("_", "-") + ("..." if param.nargs == -1 else "")
    return name if param.required else f"[{name}]"


def _parameters(leaf: Command, *, heading: bool) -> list[str]:
    rows = [line for param in leaf.params if not param.hidden for line in _parameter(param)]
    return [*([".SH OPTIONS"] if heading and rows else []), *rows]


def _parameter(param: Command) -> list[str]:
    about = escaped(param.help or "") + _default(param)
    if not _is_option(param):
        return [".TP", f".I {escaped(_argument(param))}", about]
    flags = ", ".join(escaped(flag) for flag in (*param.opts, *param.secondary_opts))
    takes = "" if param.is_flag else f" \\fI{_kind(param)}\\fR"
    return [".TP", f"\\fB{flags}\\fR{takes}", about]


def _kind(param: Command) -> str:
    kind = str(param.metavar or param.type.name)
    return escaped({"str": "text", "int": "number", "float": "number"}.get(kind, kind).upper())


def _default(param: Command) -> str:
    plain = isinstance(param.default, str | int | float) and not isinstance(param.default, bool)
    return f" (default {escaped(str(param.default))})" if plain and param.default != "" else ""


def _paragraphs(text: str) -> list[str]:
    parts = [" ".join(part.split()) for part in text.split("\n\n") if part.strip()]
    return [line for part in parts for line in (".PP", escaped(part))][1:]


def _as_is(text: str) -> list[str]:
    return [".PP", ".nf", escaped(text.strip("\n")), ".fi"]


def _text(lines: Sequence[str]) -> str:
    return "\n".join(lines) + "\n"
