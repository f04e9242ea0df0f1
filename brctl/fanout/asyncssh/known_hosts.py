"""known_hosts indexed once: names by dictionary, hashed names each hashed at most once per host.

asyncssh's own reader parses every key at load and hashes every entry with four calls per host: for
1,000 hosts in a hashed file, Debian's default, that is 15 s of CPU. The rules are OpenSSH's: a name
on another port than 22 is looked up as `[name]:port` first and then without the port; lines that
cannot be read are passed over, except marked ones, because a revocation must not be lost.
"""

import base64
import binascii
import hmac
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import translate
from pathlib import Path

import asyncssh

from brctl.model.errors import ConfigError

Keys = list[asyncssh.SSHKey]
_MARKERS = ("", "@cert-authority", "@revoked")
_SIZE_LIMIT_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class _KnownHost:
    """One key of the file, parsed when its host is met."""

    marker: str
    key: str


class KnownHosts:
    """Answers asyncssh's question which keys a host may show: trusted, authorities, revoked."""

    def __init__(self, files: Sequence[Path]) -> None:
        self._exact: dict[str, list[_KnownHost]] = {}
        self._patterns: list[tuple[re.Pattern[str], re.Pattern[str] | None, _KnownHost]] = []
        # Salt and hash of names not met yet; one that was met stands under its name in _exact.
        self._hashed: list[tuple[bytes, bytes, _KnownHost]] = []
        self._looked_up: set[str] = set()
        for path in files:
            for number, text in enumerate(_read(path), start=1):
                self._add(text.split(None, 4), f"{path}:{number}")

    def __call__(self, host: str, addr: str, port: int | None) -> tuple[Keys, Keys, Keys]:
        """Keys by marker for one host; empty lists mean that nothing is known of it."""
        names = [name for name in dict.fromkeys((host, addr)) if name]
        found = list(self._lines([f"[{name}]:{port}" for name in names])) if port else []
        if not any(line.marker != "@revoked" for line in found):
            found += self._lines(names)
        trusted, authorities, revoked = (
            [key for line in found if line.marker == marker for key in _import(line.key)]
            for marker in _MARKERS
        )
        return trusted, authorities, revoked

    def _add(self, fields: list[str], origin: str) -> None:
        if not fields or fields[0].startswith("#"):
            return
        marker = fields.pop(0) if fields[0].startswith("@") else ""
        if marker and (marker not in _MARKERS or len(fields) < 3):
            raise ConfigError(f"{origin}: {marker} line cannot be read; nothing was trusted")
        if len(fields) < 3:
            return
        names, line = fields[0], _KnownHost(marker, f"{fields[1]} {fields[2]}")
        if names.startswith("|1|"):
            self._add_hashed(names, line)
        elif set(names) & set("*?!"):
            self._patterns.append((*_patterns(names), line))
        else:
            for name in names.split(","):
                self._exact.setdefault(name.lower(), []).append(line)

    def _add_hashed(self, text: str, line: _KnownHost) -> None:
        try:
            salt, digest = (base64.b64decode(part, validate=True) for part in text[3:].split("|"))
        except (ValueError, binascii.Error):
            return
        self._hashed.append((salt, digest, line))

    def _lines(self, names: Iterable[str]) -> Iterator[_KnownHost]:
        for name in (name.lower() for name in names):
            self._unhash(name)
            yield from self._exact.get(name, ())
            for wanted, refused, line in self._patterns:
                if wanted.match(name) and not (refused and refused.match(name)):
                    yield line

    def _unhash(self, name: str) -> None:
        """Move the hashed lines of a name to where names are found at once."""
        if name in self._looked_up:
            return
        self._looked_up.add(name)
        raw, rest = name.encode(), []
        for entry in self._hashed:
            if hmac.digest(entry[0], raw, "sha1") == entry[1]:
                self._exact.setdefault(name, []).append(entry[2])
            else:
                rest.append(entry)
        self._hashed = rest


def _patterns(names: str) -> tuple[re.Pattern[str], re.Pattern[str] | None]:
    """Patterns that mean a host, and those with `!` that take it out again."""
    parts = names.lower().split(",")
    wanted = [part for part in parts if not part.startswith("!")]
    refused = [part[1:] for part in parts if part.startswith("!")]
    return _any_of(wanted), _any_of(refused) if refused else None


def _any_of(patterns: Iterable[str]) -> re.Pattern[str]:
    # Only * and ? are special in known_hosts; brackets belong to `[name]:port`.
    return re.compile("|".join(translate(p.replace("[", "[[]")) for p in patterns) or r"(?!)")


def _import(text: str) -> Keys:
    try:
        return [asyncssh.import_public_key(text)]
    except asyncssh.KeyImportError:
        return []  # a kind of key that this library does not know cannot be shown to it either


def _read(path: Path) -> list[str]:
    try:
        with path.open("rb") as stream:
            raw = stream.read(_SIZE_LIMIT_BYTES + 1)
    except OSError as exc:
        raise ConfigError(f"{path}: known_hosts cannot be read: {exc.strerror}") from exc
    if len(raw) > _SIZE_LIMIT_BYTES:
        raise ConfigError(f"{path}: larger than {_SIZE_LIMIT_BYTES >> 20} MiB")
    return raw.decode("utf-8", "replace").splitlines()
