"""Which nodes an OpenSSH client configuration says anything about that only `ssh` does exactly.

Nothing is interpreted beyond `Host` patterns: a node that any keyword of weight could touch is
given to the OpenSSH client, which then reads the file itself.
"""

import glob
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from brctl.model.errors import ConfigError

SIZE_LIMIT_BYTES = 1 << 20
INCLUDE_DEPTH = 16  # as ssh's own limit

# Keywords that change nothing about who is reached and how we prove who we are.
WEIGHTLESS = frozenset({
    "addkeystoagent", "batchmode", "checkhostip", "compression", "connectionattempts",
    "connecttimeout", "controlmaster", "controlpath", "controlpersist", "escapechar",
    "forwardagent", "forwardx11", "forwardx11timeout", "forwardx11trusted",
    "gssapiauthentication", "gssapidelegatecredentials", "hashknownhosts", "ipqos", "loglevel",
    "passwordauthentication", "permitlocalcommand", "sendenv", "serveralivecountmax",
    "serveraliveinterval", "stricthostkeychecking", "tcpkeepalive", "updatehostkeys",
    "visualhostkey",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class HostBlock:
    """Keywords that hold for some hosts; no patterns means that it cannot be told for which."""

    patterns: tuple[str, ...] | None
    keyword: str
    origin: str

    def touches(self, host: str) -> bool:
        """Whether the keyword may hold for a host; a `!pattern` takes hosts out again."""
        if self.patterns is None:
            return True
        wanted = [p for p in self.patterns if not p.startswith("!")]
        refused = [p[1:] for p in self.patterns if p.startswith("!")]
        return _any(host, wanted) and not _any(host, refused)


def _any(host: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(host.lower(), pattern.lower()) for pattern in patterns)


def load_ssh_config(path: Path) -> tuple[HostBlock, ...]:
    """The keywords of weight in a file and in what it includes.

    Raises:
        ConfigError: The file cannot be read, is too large, or includes itself.
    """
    return tuple(_read(path, ("*",), 0))


def listed_hosts(path: Path) -> tuple[str, ...]:
    """The hosts a file and what it includes name one by one, without wildcards, in their order.

    Raises:
        ConfigError: The file cannot be read, is too large, or includes itself.
    """
    return tuple(dict.fromkeys(h for h in _hosts(path, 0) if not set(h) & set("*?!")))


def _hosts(path: Path, depth: int) -> Iterator[str]:
    if depth > INCLUDE_DEPTH:
        raise ConfigError(f"{path}: Include goes deeper than {INCLUDE_DEPTH} files")
    for line in _lines(path):
        keyword, values = _split(line)
        if keyword == "host":
            yield from values
        elif keyword == "include":
            for included in _included(values, path):
                yield from _hosts(included, depth + 1)


def why_openssh(blocks: Iterable[HostBlock], host: str) -> str:
    """Why a host needs the OpenSSH client, naming keyword and line; "" when it does not."""
    found = next((block for block in blocks if block.touches(host)), None)
    return f"{found.keyword} at {found.origin}" if found else ""


def _read(path: Path, patterns: tuple[str, ...] | None, depth: int) -> Iterator[HostBlock]:
    if depth > INCLUDE_DEPTH:
        raise ConfigError(f"{path}: Include goes deeper than {INCLUDE_DEPTH} files")
    for number, line in enumerate(_lines(path), start=1):
        keyword, values = _split(line)
        if keyword == "host":
            patterns = tuple(values)
        elif keyword == "match":
            patterns = ("*",) if [w.lower() for w in values] == ["all"] else None
        elif keyword == "include":
            for included in _included(values, path):
                yield from _read(included, patterns, depth + 1)
        elif keyword and keyword not in WEIGHTLESS:
            yield HostBlock(patterns, keyword, f"{path}:{number}")


def _lines(path: Path) -> list[str]:
    try:
        with path.open("rb") as stream:
            raw = stream.read(SIZE_LIMIT_BYTES + 1)
    except OSError as exc:
        raise ConfigError(f"{path}: cannot be read: {exc.strerror}") from exc
    if len(raw) > SIZE_LIMIT_BYTES:
        raise ConfigError.at(path, 1, f"larger than {SIZE_LIMIT_BYTES >> 20} MiB")
    return raw.decode("utf-8", "replace").splitlines()


def _split(line: str) -> tuple[str, list[str]]:
    text = line.strip()
    if not text or text.startswith("#"):
        return "", []
    words = text.replace("=", " ", 1).split()
    return words[0].lower(), [word.strip('"') for word in words[1:]]


def _included(patterns: Iterable[str], path: Path) -> Iterator[Path]:
    for pattern in patterns:
        origin = Path(os.path.expanduser(pattern))
        where = origin if origin.is_absolute() else path.parent / origin
        yield from (Path(found) for found in sorted(glob.glob(str(where))))
