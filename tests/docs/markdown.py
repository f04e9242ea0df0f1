"""Markdown for the generated parts of a page."""

from collections.abc import Iterable


def markdown(head: str, rows: Iterable[Iterable[str]]) -> str:
    """A table; `head` names the columns, separated by `|`."""
    names = [name.strip() for name in head.split("|")]
    lines = [names, ["---"] * len(names), *([_cell(cell) for cell in row] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def code(words: Iterable[str]) -> str:
    """Words as code, separated by commas."""
    return ", ".join(f"`{word}`" for word in words)
