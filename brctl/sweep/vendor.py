"""The part of pynvml that a set of probes uses, as source to send along.

Compiling all of pynvml takes 100 ms of a node's CPU in every sweep; the part that probes reach is a
tenth of it. Nothing here is imported or run: the file is read as text and cut by its syntax tree.
"""

import ast
import functools
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from brctl.model.errors import UnavailableError

_ALWAYS = ("NVMLError", "NVML_SUCCESS")
_ALWAYS_PREFIX = "NVML_ERROR_"
"""pynvml makes its exception classes from these constants by name."""


@functools.cache
def pynvml_source(probe_sources: tuple[str, ...]) -> str:
    """The part of pynvml that the probes name, and what that part needs, in its own words."""
    source = _installed_source()
    wanted = {name for probe in probe_sources for name in _names(ast.parse(probe))}
    definitions = _closure(ast.parse(source).body, wanted | set(_ALWAYS))
    lines = source.splitlines(keepends=True)
    return "".join(_text(node, lines) for node in definitions)


def preload_modules(probe_sources: Iterable[str]) -> list[str]:
    """Modules of the standard library that probes import when they are loaded, sorted."""
    found = {name for source in probe_sources for name in _imported(source)}
    return sorted(name for name in found if name.partition(".")[0] in sys.stdlib_module_names)


@functools.cache
def _imported(probe_source: str) -> frozenset[str]:
    """Cached as the cut is: a program that stays packs the same probes for every sweep."""
    found: set[str] = set()
    for node in ast.parse(probe_source).body:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module)
    return frozenset(found)


def _text(node: ast.stmt, lines: list[str]) -> str:
    """The statement's own lines; `ast.unparse` could use newer syntax than the nodes read."""
    decorators = getattr(node, "decorator_list", [])
    first = min([node.lineno, *(decorator.lineno for decorator in decorators)])
    return "".join(lines[first - 1 : node.end_lineno])


def _installed_source() -> str:
    from importlib import metadata

    for file in metadata.files("nvidia-ml-py") or ():
        if file.name == "pynvml.py":
            return Path(str(file.locate())).read_text(encoding="utf-8")
    raise UnavailableError(
        "nvidia-ml-py is not installed beside brctl", hint="pip install nvidia-ml-py"
    )


def _names(node: ast.AST) -> Iterator[str]:
    """Everything that could name something: identifiers, attributes, and plain strings."""
    for part in ast.walk(node):
        if isinstance(part, ast.Name):
            yield part.id
        elif isinstance(part, ast.Attribute):
            yield part.attr
        elif isinstance(part, ast.Constant) and isinstance(part.value, str):
            yield part.value


def _defines(node: ast.stmt) -> tuple[str, ...]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return (node.name,)
    if isinstance(node, ast.Assign):
        return tuple(part.id for target in node.targets for part in ast.walk(target)
                     if isinstance(part, ast.Name))  # fmt: skip
    return ()


def _closure(body: list[ast.stmt], wanted: set[str]) -> list[ast.stmt]:
    """Statements that define wanted names, whatever those need, and all that define nothing."""
    definitions: dict[str, list[ast.stmt]] = {}
    for node in body:
        for name in _defines(node):
            definitions.setdefault(name, []).append(node)
    wanted |= {name for name in definitions if name.startswith(_ALWAYS_PREFIX)}
    queue = [node for node in body if not _defines(node)]
    queue += _defining(definitions, wanted)
    keep: set[int] = set()
    while queue:
        node = queue.pop()
        if id(node) not in keep:
            keep.add(id(node))
            queue += _defining(definitions, _names(node))
    return [node for node in body if id(node) in keep]


def _defining(definitions: dict[str, list[ast.stmt]], names: Iterable[str]) -> list[ast.stmt]:
    return [node for name in names for node in definitions.get(name, ())]
