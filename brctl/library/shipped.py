"""Where the checks, playbooks and completions that come with brctl are."""

from functools import cache
from pathlib import Path

KINDS = ("checks", "playbooks", "completions")


def shipped_dir(name: str) -> Path:
    """The folder of one kind of shipped file: inside the installed package, or the source tree.

    Raises:
        ValueError: The kind does not exist.
        FileNotFoundError: The installation lacks the folder.
    """
    if name not in KINDS:
        raise ValueError(f"{name!r}: not a kind of shipped file; known: {', '.join(KINDS)}")
    package = Path(__file__).resolve().parent.parent
    for candidate in (package / "_shipped" / name, package.parent / name):
        if candidate.is_dir():
            return candidate
    raise FileNotFoundError(f"this installation of brctl lacks its {name} folder")


@cache
def node_program(path: str) -> str:
    """The text of a program that runs on nodes, by its path below `checks`: `_runner.py`.

    Raises:
        OSError: The installation lacks it.
    """
    return (shipped_dir("checks") / path).read_text(encoding="utf-8")
