"""Where the checks, playbooks and completions that come with brctl are."""

import re
from collections.abc import Iterable
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


# Gives each part the name it is imported by; a probe's process ends with the probe. One that the
# process before the fork has loaded is not read again.
_LOADER = """\
import sys, types
def _load(parts):
    for name, text in parts:
        if getattr(sys.modules.get(name), "source", None) == text:
            continue
        module = sys.modules[name] = types.ModuleType(name)
        module.source = text
        exec(compile(text, name, "exec"), module.__dict__)
        package, _, leaf = name.rpartition(".")
        setattr(sys.modules.setdefault(package, types.ModuleType(package)), leaf, module)
"""
_IMPORT = re.compile(
    r"^from checks\.(_\w+)(?:\.(\w+))? import (\([^()]*\)|[^\n()]*)$", re.MULTILINE
)


def joined_program(text: str) -> str:
    """A program for nodes and the shared parts below `checks` that it imports, as one text.

    Raises:
        OSError: The installation lacks a part.
    """
    return loading_of([text]) + text


def loading_of(texts: Iterable[str]) -> str:
    """A program that loads what these programs import from below `checks`; "" for nothing.

    Raises:
        OSError: The installation lacks a part.
    """
    parts: dict[str, str] = {}
    for text in texts:
        _collect(text, parts)
    return f"{_LOADER}_load({list(parts.items())!r})\n" if parts else ""


def _collect(text: str, parts: dict[str, str]) -> None:
    """What a text imports, after what that imports."""
    for package, module, names in _IMPORT.findall(text):
        for name in [module] if module else re.findall(r"\w+", names):
            if f"checks.{package}.{name}" not in parts:
                part = node_program(f"{package}/{name}.py")
                _collect(part, parts)
                parts[f"checks.{package}.{name}"] = part
