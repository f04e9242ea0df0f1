"""YAML as data: a 1.2-like core loader that keeps line numbers and refuses everything odd.

Only null, booleans spelt `true`/`false`, decimal numbers and strings exist: `on`, `no`, `0012` and
`12:30` stay text, so a node name is never turned into a number. Tags, duplicate keys, tabs and
oversized files are errors that name file and line.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from brctl.library.trusted_files import read_whole
from brctl.model.errors import ConfigError

SIZE_LIMIT_BYTES = 1 << 20
"""No file a person writes for brctl is larger; junk is refused before it is parsed."""

DEPTH_LIMIT = 64
"""Deeper nesting is an attack on the parser's stack, not a playbook."""

VALUE_LIMIT = 100_000
"""Aliases of aliases multiply; a file that expands to more values than this is refused."""

Path_ = tuple[str | int, ...]

_BRACES = "`{{` breaks YAML; a value from elsewhere is written $(...)"

_CORE = {
    "tag:yaml.org,2002:null": (r"(?:null|~|)$", "~n\0"),
    "tag:yaml.org,2002:bool": (r"(?:true|false)$", "tf"),
    "tag:yaml.org,2002:int": (r"(?:0|-?[1-9][0-9]*)$", "-0123456789"),
    "tag:yaml.org,2002:float": (
        r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)(?:[eE][-+]?[0-9]+)?$",
        "-0123456789",
    ),
}


class _CoreLoader(yaml.SafeLoader):
    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012


for _tag, (_pattern, _first) in _CORE.items():
    _CoreLoader.add_implicit_resolver(
        _tag, re.compile(_pattern), [c if c != "\0" else "" for c in _first]
    )

try:

    class _FastLoader(yaml.CSafeLoader):
        yaml_implicit_resolvers = _CoreLoader.yaml_implicit_resolvers

except AttributeError:  # PyYAML without libyaml
    _FastLoader = _CoreLoader  # type: ignore[assignment, misc]

_ALLOWED_TAGS = {*_CORE, *(f"tag:yaml.org,2002:{name}" for name in ("str", "seq", "map"))}


@dataclass(frozen=True, slots=True)
class Document:
    """One YAML document with the line of every value.

    Attributes:
        data: Plain dicts, lists, strings, numbers, booleans and None.
        lines: Line (from 1) of each value by its path, `("steps", 2, "uses")`; for a mapping key
            the line of the key.
    """

    path: str
    data: Any
    lines: Mapping[Path_, int] = field(repr=False)

    def line(self, *path: str | int) -> int | None:
        """The line of a value, or of the nearest thing around it that has one."""
        while path not in self.lines and path:
            path = path[:-1]
        return self.lines.get(path)

    def error(self, problem: str, *path: str | int, hint: str | None = None) -> ConfigError:
        """The error that names this file and the line of a value."""
        return ConfigError.at(self.path, self.line(*path), problem, hint=hint)


def load_document(path: Path, *, shipped: bool = False) -> Document:
    """Read one file that must hold exactly one YAML document.

    Args:
        path: The file.
        shipped: It came with brctl, so libyaml may read it, ten times as fast: the two parsers
            differ on odd files, and nesting without end would overflow libyaml's stack.

    Raises:
        ConfigError: The file is missing, unreadable, too large, not UTF-8, or not plain YAML.
    """
    raw = read_whole(path, SIZE_LIMIT_BYTES)
    return parse_document(raw, str(path), shipped=shipped)


def parse_document(raw: bytes, path: str, *, shipped: bool = False) -> Document:
    """Parse bytes that must hold exactly one YAML document; `path` names them in errors."""
    documents = list(parse_documents(raw, path, _FastLoader if shipped else _CoreLoader))
    if len(documents) != 1:
        raise ConfigError.at(path, 1, f"holds {len(documents)} YAML documents, wanted 1")
    return documents[0]


def parse_documents(raw: bytes, path: str, loader: Any = _CoreLoader) -> Iterator[Document]:
    """Parse all documents of a file, `---` between them."""
    if len(raw) > SIZE_LIMIT_BYTES:
        raise ConfigError.at(path, 1, f"larger than {SIZE_LIMIT_BYTES >> 20} MiB")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as exc:
        line = raw.count(b"\n", 0, exc.start) + 1
        raise ConfigError.at(path, line, f"not UTF-8 at byte {exc.start}") from exc
    _refuse_deep_flow(text, path)
    try:
        for node in yaml.compose_all(text, Loader=loader):
            lines: dict[Path_, int] = {}
            yield Document(path, _build(node, (), lines, path), lines)
    except yaml.MarkedYAMLError as exc:
        mark = exc.problem_mark or exc.context_mark
        problem = exc.problem or exc.context or "not YAML"
        if "'\\t'" in problem:
            problem = "a tab cannot indent YAML; use spaces"
        elif mark is not None and "{{" in "".join(text.splitlines()[mark.line : mark.line + 1]):
            problem = _BRACES
        raise ConfigError.at(path, mark.line + 1 if mark else None, problem) from exc
    except yaml.reader.ReaderError as exc:
        line = text.count("\n", 0, exc.position) + 1
        raise ConfigError.at(path, line, f"character {exc.character!r} is not allowed") from exc
    except RecursionError as exc:
        raise ConfigError.at(path, 1, f"nested deeper than {DEPTH_LIMIT} levels") from exc


def _refuse_deep_flow(text: str, path: str) -> None:
    """Refuse `[[[[...`: the parser would exhaust its stack before we see a node."""
    match = re.search(rf"[\[{{]\s*(?:[\[{{]\s*){{{DEPTH_LIMIT}}}", text)
    if match:
        line = text.count("\n", 0, match.start()) + 1
        raise ConfigError.at(path, line, f"nested deeper than {DEPTH_LIMIT} levels")


def _build(node: yaml.Node, at: Path_, lines: dict[Path_, int], path: str) -> Any:
    line = node.start_mark.line + 1
    lines.setdefault(at, line)
    if len(lines) > VALUE_LIMIT:
        raise ConfigError.at(path, line, f"expands to more than {VALUE_LIMIT} values")
    if len(at) > DEPTH_LIMIT:
        raise ConfigError.at(path, line, f"nested deeper than {DEPTH_LIMIT} levels")
    if node.tag not in _ALLOWED_TAGS:
        raise ConfigError.at(path, line, f"tag {node.tag!r} is not allowed; brctl reads plain data")
    if isinstance(node, yaml.MappingNode):
        return _build_mapping(node, at, lines, path)
    if isinstance(node, yaml.SequenceNode):
        return [_build(item, (*at, i), lines, path) for i, item in enumerate(node.value)]
    try:
        return _build_scalar(node)
    except ValueError as exc:
        problem = f"{str(node.value)[:40]!r} is not a number that makes sense"
        raise ConfigError.at(path, line, problem) from exc


def _build_mapping(
    node: yaml.MappingNode, at: Path_, lines: dict[Path_, int], path: str
) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key_node, value_node in node.value:
        line = key_node.start_mark.line + 1
        if not isinstance(key_node, yaml.ScalarNode):
            braces = isinstance(key_node, yaml.MappingNode)
            problem = _BRACES if braces else "a key must be plain text"
            raise ConfigError.at(path, line, problem)
        key = str(key_node.value)
        if key in result:
            first = lines[(*at, key)]
            raise ConfigError.at(path, line, f"duplicate key {key!r}; first on line {first}")
        lines[(*at, key)] = line
        result[key] = _build(value_node, (*at, key), lines, path)
    return result


_DIGITS_LIMIT = 20
"""More than any number of 64 bits has; Python refuses 5,000 with an error of its own."""


def _build_scalar(node: yaml.Node) -> str | int | float | bool | None:
    kind = node.tag.rsplit(":", 1)[-1]
    text = str(node.value)
    if kind == "null":
        return None
    if kind == "bool":
        return text == "true"
    if kind == "int":
        if len(text) > _DIGITS_LIMIT:
            raise ValueError(f"{len(text)} digits")
        return int(text)
    return float(text) if kind == "float" else text
