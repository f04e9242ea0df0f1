"""Put a file or a line on disk, so that it is there on return and nobody ever sees half of it."""

import logging
import os
from contextlib import suppress
from pathlib import Path

PRIVATE = 0o600
PRIVATE_DIR = 0o700
DAMAGED = ".damaged-"
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
# A pipe in its place is an error; opening it would wait for whoever may read it.
_END = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY


def write_atomic(path: Path, content: str | bytes, *, mode: int = PRIVATE) -> None:
    """Replace a file, or make it; a link in its place is replaced and never followed.

    Readers, and whoever comes after a crash, find the old content or the new one: it is written
    beside its target, under a name that nobody can have put there before, and renamed over it.

    Args:
        path: The file; its folder exists.
        content: All of it; text becomes UTF-8.
        mode: Exactly what the file gets, whatever the umask; readable by its owner only unless
            somebody else has to read it.

    Raises:
        OSError: It cannot be written; the old content stands, and no part is left behind.
    """
    raw = content.encode() if isinstance(content, str) else content
    # A dot in front keeps it out of the patterns by which stores list their files.
    part = path.with_name(f".{path.name}.{os.urandom(6).hex()}")
    descriptor = os.open(part, _NEW, PRIVATE)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(raw)
            stream.flush()
            os.fchmod(descriptor, mode)
            os.fsync(descriptor)
        os.replace(part, path)
    except BaseException as error:
        with suppress(OSError):
            part.unlink()
        if isinstance(error, OSError):
            raise _about(error, path) from None
        raise
    sync_folder(path.parent)


def append_line(path: Path, line: str) -> None:
    """Add a line to a private file; it is whole and on disk when this returns.

    Raises:
        OSError: It cannot be written; nothing of it is left, unless another process wrote behind.
    """
    descriptor = os.open(path, _END, PRIVATE)
    raw = line.encode() + b"\n"
    written = 0
    try:
        # A disk that becomes full takes a part and says so only at the next write.
        while written < len(raw):
            written += os.write(descriptor, raw[written:])
        os.fsync(descriptor)
    except OSError as error:
        _cut(descriptor, raw[:written])
        raise _about(error, path) from None
    finally:
        os.close(descriptor)


def _cut(descriptor: int, part: bytes) -> None:
    """Take back the beginning of a line, if it still is the end of the file."""
    with suppress(OSError):
        size = os.fstat(descriptor).st_size
        end = os.lseek(descriptor, 0, os.SEEK_CUR)
        if part and end == size:
            os.ftruncate(descriptor, size - len(part))


def _about(error: OSError, path: Path) -> OSError:
    """The same error with the file's name, which a write to an open file does not know."""
    error.filename = error.filename or str(path)
    return error


def private_dir(path: Path) -> Path:
    """A folder only its owner may enter, made with its parents if need be."""
    # Step by step: with `parents` the folders above would be as open as the umask lets them be.
    for missing in reversed([p for p in (path, *path.parents) if not p.exists()]):
        missing.mkdir(mode=PRIVATE_DIR, exist_ok=True)
    return path


def sync_folder(path: Path) -> None:
    """A name that was added or replaced is only on disk once its folder is."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def set_aside(path: Path) -> int:
    """Rename a file that cannot be read, so that it stops nothing, and say so on stderr.

    Returns:
        How many files of this name were set aside by now.
    """
    number = 1
    while path.with_name(f"{path.name}{DAMAGED}{number}").exists():
        number += 1
    aside = path.with_name(f"{path.name}{DAMAGED}{number}")
    path.rename(aside)
    sync_folder(path.parent)
    logging.getLogger(__name__).warning("%s: damaged; set aside as %s", path, aside.name)
    return number
