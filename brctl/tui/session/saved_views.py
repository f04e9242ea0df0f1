"""Views under a name, kept beside keys.yaml: `:save night`, `:view night`, `brctl tui --view`."""

import json
import re
import shlex
from collections.abc import Mapping
from pathlib import Path

from brctl import API_VERSION
from brctl.library.durable_files import private_dir, write_atomic
from brctl.library.schema import open_kind
from brctl.library.strict_yaml import load_document
from brctl.model.errors import ConfigError, UsageError, did_you_mean
from brctl.tui.address import Address
from brctl.tui.commands import read_command

KIND = "Views"
MOST = 100
"""More than anybody finds again; a file may not grow without end."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")


class SavedViews:
    """The file of saved views; each is the words that follow `brctl tui`."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def all(self) -> Mapping[str, Address]:
        """Every saved view by its name; none when there is no file.

        Raises:
            ConfigError: The file is no list of views; which one is wrong is said.
        """
        if not self._path.is_file():
            return {}
        found = open_kind(load_document(self._path), KIND, ("views",)).section("views")
        return {name: self._read(name, found.value(name, str)) for name in found.data}

    def one(self, name: str) -> Address:
        """The view of this name.

        Raises:
            UsageError: There is none.
        """
        known = self.all()
        if name not in known:
            raise UsageError(
                f"no saved view `{name}`; {did_you_mean(name, known)}",
                hint="in the terminal UI `:save NAME` keeps the view that is shown",
            )
        return known[name]

    def save(self, name: str, address: Address) -> None:
        """Keep a view; one of the same name is replaced."""
        if not _NAME.fullmatch(name):
            raise UsageError(f"{name!r}: a name is letters, digits, `.`, `_`, `-`, at most 40")
        known = {**self.all(), name: address}
        if len(known) > MOST:
            raise UsageError(f"{MOST} views are saved already", hint=":forget NAME")
        self._write(known)

    def forget(self, name: str) -> None:
        """Keep it no longer."""
        self.one(name)
        self._write({key: value for key, value in self.all().items() if key != name})

    def _write(self, known: Mapping[str, Address]) -> None:
        views = {name: shlex.join(address.words()) for name, address in known.items()}
        document = {"apiVersion": API_VERSION, "kind": KIND, "views": views}
        private_dir(self._path.parent)
        # JSON is YAML, and quotes every name as it must be.
        write_atomic(self._path, json.dumps(document, indent=2) + "\n")

    def _read(self, name: str, words: str) -> Address:
        command = read_command(f"tui {words}")
        if command.do != "go":
            raise ConfigError(f"{self._path}: view `{name}`: `{words}` is no view of brctl tui")
        return command.address
