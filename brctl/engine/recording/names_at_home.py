"""The key and the names behind pseudonyms: in the state directory, in no file that leaves it."""

import os
from contextlib import AbstractContextManager
from pathlib import Path

import msgspec

from brctl.journal.locks import exclusive
from brctl.library.durable_files import private_dir, write_atomic
from brctl.model.errors import ConfigError
from brctl.view.recorded.pseudonyms import NameKind, Profile, Pseudonyms

KEY_BYTES = 32


class NamesAtHome(msgspec.Struct, frozen=True):
    """What is kept: a key, and every pseudonym that was given."""

    key: str
    names: dict[NameKind, dict[str, str]]


def names_path(state_dir: Path) -> Path:
    """Where they lie."""
    return state_dir / "pseudonyms.json"


def names_held(state_dir: Path) -> AbstractContextManager[None]:
    """One process at a time goes from the names it opens to those it keeps.

    Two at once would give one pseudonym to two nodes.

    Raises:
        UnavailableError: Another process holds them and does not go on.
    """
    return exclusive(names_path(state_dir).with_suffix(".lock"), "another `brctl incident redact`")


def open_names(state_dir: Path, profile: Profile) -> Pseudonyms:
    """The pseudonyms given so far; with a new key where there is none.

    Raises:
        ConfigError: The file is damaged; a new key would give everything another name.
    """
    path = names_path(state_dir)
    if not path.exists():
        return Pseudonyms(os.urandom(KEY_BYTES), profile)
    try:
        kept = msgspec.json.decode(path.read_bytes(), type=NamesAtHome)
        return Pseudonyms(bytes.fromhex(kept.key), profile, kept.names)
    except (OSError, ValueError) as exc:
        raise ConfigError(
            f"{path}: the names behind pseudonyms cannot be read: {exc}",
            hint="restore it, or move it away: names get other pseudonyms then",
        ) from exc


def keep_names(state_dir: Path, names: Pseudonyms) -> None:
    """Remember what was given, before a file with it leaves."""
    private_dir(state_dir)
    write_atomic(
        names_path(state_dir), msgspec.json.encode(NamesAtHome(names.key.hex(), names.names))
    )
