"""Files to and from nodes through a command's own streams: nothing but `sh`, `cat` and `tar`."""

import io
import os
import tarfile
from pathlib import Path

from brctl.library.trusted_files import read_beginning
from brctl.model.command import Command, CommandResult, Outcome
from brctl.model.errors import UsageError

PAYLOAD_LIMIT_BYTES = 64 << 20
"""A file is held in memory once per node in flight; larger ones belong on a file system."""

IN_FLIGHT_LIMIT_BYTES = 512 << 20

# The new file stands beside the old one until it is whole, then takes its place. A folder that
# exists is only known there; the file goes into it, as with cp.
_PUT_FILE = (
    'set -e; umask 077; t="$1"; if [ -d "$t" ]; then t="${t%/}/$3"; fi; '
    'if [ -d "$t" ]; then echo "$t is a folder" >&2; exit 1; fi; '
    'p="$t.brctl-$$"; trap \'rm -f "$p"\' EXIT; cat >"$p"; chmod "$2" "$p"; mv "$p" "$t"'
)
_PUT_TREE = 'set -e; mkdir -p "$1"; tar -x -p -f - -C "$1"'


def put_command(source: Path, destination: str, deadline_s: float) -> Command:
    """The command that puts a file at a path, or a folder's content into a folder, on a node.

    Raises:
        UsageError: The source is missing or too large.
    """
    if source.is_dir():
        return Command(("sh", "-c", _PUT_TREE, "sh", destination), pack_tree(source), deadline_s)
    try:
        mode = f"{os.stat(source).st_mode & 0o777:o}"
        payload = read_beginning(source, PAYLOAD_LIMIT_BYTES + 1)
    except OSError as exc:
        raise UsageError(f"{source}: {exc.strerror}") from exc
    _refuse_large(len(payload), source)
    target = destination + source.name if destination.endswith("/") else destination
    return Command(("sh", "-c", _PUT_FILE, "sh", target, mode, source.name), payload, deadline_s)


def pack_tree(folder: Path) -> bytes:
    """A folder's content as an uncompressed tar; devices and sockets are left out."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file() or path.is_symlink() or path.is_dir():
                archive.add(path, str(path.relative_to(folder)), recursive=False)
                _refuse_large(buffer.tell(), folder)
    return buffer.getvalue()


def get_command(path: str, deadline_s: float) -> Command:
    """The command that sends one file of a node back."""
    limit = PAYLOAD_LIMIT_BYTES
    return Command(("cat", "--", path), b"", deadline_s, output_limit_bytes=limit)


def save_answer(answer: CommandResult, name: str, folder: Path) -> Path | None:
    """Write what `get_command` gave to `folder/NODE/name`; None for no whole file."""
    if answer.outcome is not Outcome.ANSWERED or answer.exit_status != 0:
        return None
    target = folder / answer.node / name
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(answer.stdout)
    return target


def bounded_fanout(payload_bytes: int, fanout: int) -> int:
    """As many nodes at once as fit in memory with a copy of the payload each."""
    return max(1, min(fanout, IN_FLIGHT_LIMIT_BYTES // max(1, payload_bytes)))


def _refuse_large(size_bytes: int, source: Path) -> None:
    if size_bytes > PAYLOAD_LIMIT_BYTES:
        limit = PAYLOAD_LIMIT_BYTES >> 20
        raise UsageError(
            f"{source}: larger than {limit} MiB", hint="use the site's file system, or rsync"
        )
