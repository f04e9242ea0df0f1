"""The key of our journals: who has it not can alter a journal, but not so that it fits.

It lies with the operator's configuration and not with the state, so that a state directory that
is shared, copied or restored carries no key. BRCTL_JOURNAL_KEY names another file, for people who
share one. Whoever can read the key can write journals: it guards against everybody else.
"""

import hashlib
import hmac
import logging
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from brctl.library.config import user_config_dir
from brctl.library.durable_files import PRIVATE, private_dir, set_aside, sync_folder
from brctl.library.trusted_files import read_beginning

NAME = "journal.key"
VARIABLE = "BRCTL_JOURNAL_KEY"
_BYTES = 32
_SIZE_LIMIT = 1024
_SECRET = re.compile(rb"[0-9a-f]{%d}" % (2 * _BYTES))
_HEAD = (
    b"# Signs brctl's journals. Keep it private; keep a copy: without it they cannot be verified.\n"
)


@dataclass(frozen=True, slots=True)
class ChainKey:
    """A secret, never shown, and the name that lines carry: a digest that does not give it away."""

    secret: bytes

    @property
    def id(self) -> str:
        return hashlib.sha256(b"brctl journal key\0" + self.secret).hexdigest()[:16]

    def __repr__(self) -> str:
        return f"ChainKey({self.id})"

    def mac(self, line: bytes) -> str:
        """What proves that a line was written with this key."""
        return hmac.new(self.secret, line, hashlib.sha256).hexdigest()


def key_file(environ: Mapping[str, str] = os.environ) -> Path:
    """Where this operator's key lies."""
    named = environ.get(VARIABLE)
    return Path(named) if named else user_config_dir(environ) / NAME


def read_key(path: Path) -> ChainKey | None:
    """The key of a file; None when there is none.

    Raises:
        ValueError: It holds no key.
        OSError: It cannot be read.
    """
    try:
        raw = read_beginning(path, _SIZE_LIMIT)
    except FileNotFoundError:
        return None
    lines = [line for line in raw.split(b"\n") if line and not line.startswith(b"#")]
    if len(lines) != 1 or not _SECRET.fullmatch(lines[0]):
        raise ValueError(f"{path}: holds no journal key")
    return ChainKey(bytes.fromhex(lines[0].decode()))


def own_key(environ: Mapping[str, str] = os.environ) -> ChainKey | None:
    """The key to verify with; None without one that can be read, which `play verify` says."""
    with suppress(OSError, ValueError):
        return read_key(key_file(environ))
    return None


def own_or_new_key(environ: Mapping[str, str] = os.environ) -> ChainKey | None:
    """The key to write with, made when there is none.

    What is wrong with its file is said and stops nothing: a journal without key is better at night
    than no run. `play verify` tells such lines.
    """
    path = key_file(environ)
    try:
        key = read_key(path)
    except ValueError:
        set_aside(path)
        key = None
    except OSError as exc:
        _warn(path, exc)
        return None
    try:
        return key or _new_key(path)
    except (OSError, ValueError) as exc:
        _warn(path, exc)
        return None


def _warn(path: Path, exc: Exception) -> None:
    why = getattr(exc, "strerror", None) or exc
    text = "warning: %s: %s; the journal is written without a key"
    logging.getLogger(__name__).warning(text, path, why)


def _new_key(path: Path) -> ChainKey | None:
    """Of several processes that make one at once, one makes it and all use it."""
    private_dir(path.parent)
    part = path.with_name(f".{path.name}.{os.urandom(6).hex()}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(part, flags, PRIVATE)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(_HEAD + os.urandom(_BYTES).hex().encode() + b"\n")
            stream.flush()
            os.fsync(descriptor)
        with suppress(FileExistsError):
            os.link(part, path)
    finally:
        part.unlink()
    sync_folder(path.parent)
    return read_key(path)
