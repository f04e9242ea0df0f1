"""Read plain data into typed values, with an error that names file, line and the nearest key."""

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, TypeVar

from brctl.library.strict_yaml import Document, Path_
from brctl.model import API_VERSION
from brctl.model.errors import ConfigError, did_you_mean
from brctl.model.units import parse_duration_s

T = TypeVar("T")
_NAMES = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}
_NAMES |= {list: "a list", dict: "a mapping"}


class Section:
    """One mapping of a document; every access checks the type and remembers the place."""

    def __init__(self, document: Document, data: Any, at: Path_ = ()) -> None:
        if not isinstance(data, dict):
            raise document.error(f"{_place(at)} must be a mapping, not {_kind(data)}", *at)
        self._document = document
        self.data: Mapping[str, Any] = data
        self.at = at

    def allow(self, known: Collection[str]) -> None:
        """Refuse any key that is not known, naming the nearest one."""
        for error in self.unknown(known):
            raise error

    def unknown(self, known: Collection[str]) -> Iterator[ConfigError]:
        """An error for each key that is not known, naming the nearest one."""
        where = f" in {_place(self.at)}" if self.at else ""
        for key in self.data:
            if key not in known:
                yield self.error(f"unknown key {key!r}{where}; {did_you_mean(key, known)}", key)

    def error(self, problem: str, *path: str | int, hint: str | None = None) -> ConfigError:
        """The error at a place below this section."""
        return self._document.error(problem, *self.at, *path, hint=hint)

    def line(self, *path: str | int) -> int | None:
        """The line of a place below this section."""
        return self._document.line(*self.at, *path)

    def origin(self, *path: str | int) -> str:
        """`file:line` of a place below this section, for messages long after reading."""
        return f"{self._document.path}:{self.line(*path) or 1}"

    def value(self, key: str, kind: type[T], default: T | None = None) -> T:
        """The value of a key; an error when it is missing without default or of another type."""
        if key not in self.data:
            if default is None:
                raise self.error(f"{_place(self.at)} needs the key {key!r}")
            return default
        value = self.data[key]
        if kind is float and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise self.error(f"{key!r} must be {_NAMES[kind]}, not {_kind(value)}", key)
        return value

    def optional(self, key: str, kind: type[T]) -> T | None:
        """The value of a key, or None when it is absent."""
        return self.value(key, kind) if key in self.data else None

    def choice(self, key: str, known: Collection[str], default: str | None = None) -> str:
        """Text from a closed list."""
        value = self.value(key, str, default)
        if value not in known:
            raise self.error(f"{key!r}: unknown {value!r}; {did_you_mean(value, known)}", key)
        return value

    def duration_s(self, key: str, default: str | None = None) -> float:
        """Seconds of a duration such as `30s`."""
        text = self.value(key, str, default)
        return self.read(key, lambda: parse_duration_s(text))

    def texts(self, key: str, default: tuple[str, ...] | None = None) -> tuple[str, ...]:
        """A list of texts."""
        values = self.value(key, list, list(default) if default is not None else None)
        for index, value in enumerate(values):
            if not isinstance(value, str):
                raise self.error(f"{key!r} must hold text, not {_kind(value)}", key, index)
        return tuple(values)

    def section(self, key: str) -> "Section":
        """The mapping under a key; empty when the key is absent."""
        return Section(self._document, self.data.get(key, {}), (*self.at, key))

    def sections(self, key: str) -> list["Section"]:
        """The mappings listed under a key."""
        values = self.value(key, list)
        return [Section(self._document, v, (*self.at, key, i)) for i, v in enumerate(values)]

    def read(self, key: str, parse: Callable[[], T]) -> T:
        """Run a parser; its ValueError or ConfigError becomes an error at this key."""
        try:
            return parse()
        except ValueError as exc:
            raise self.error(f"{key!r}: {exc}", key) from exc


class Mistakes:
    """Reads on after a mistake, so that one look at a file names them all."""

    def __init__(self) -> None:
        self._found: list[str] = []

    def take(self, read: Callable[[], T], instead: T) -> T:
        """What is read; `instead` where that is a mistake, which is kept."""
        try:
            return read()
        except ConfigError as exc:
            self._found.append(str(exc))
            return instead

    def allow(self, section: Section, known: Collection[str]) -> None:
        """Keep a mistake for each key that is not known."""
        self._found += map(str, section.unknown(known))

    def refuse(self) -> None:
        """Raise when there was any.

        Raises:
            ConfigError: One line a mistake, `file:line: problem`.
        """
        if self._found:
            raise ConfigError("\n".join(dict.fromkeys(self._found)))


def open_kind(document: Document, kind: str, known: Collection[str]) -> Section:
    """The top of a brctl file: apiVersion and kind must be right, other keys known."""
    top = Section(document, document.data)
    top.allow({"apiVersion", "kind", *known})
    if top.value("apiVersion", str) != API_VERSION:
        raise top.error(f"apiVersion must be {API_VERSION!r}", "apiVersion")
    if top.value("kind", str) != kind:
        raise top.error(f"kind must be {kind!r}", "kind")
    return top


def _place(at: Path_) -> str:
    if not at:
        return "the file"
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in at).lstrip(".")


def _kind(value: object) -> str:
    return "nothing" if value is None else _NAMES.get(type(value), type(value).__name__)
