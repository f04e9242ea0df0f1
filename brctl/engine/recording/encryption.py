"""Incident files encrypted for one reader, by the programs `age` and `gpg` themselves."""

import io
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from brctl.engine.recording.archive import UNPACKED_LIMIT, IncidentFile, read, read_from
from brctl.library.programs.output import ProgramOutput, hear
from brctl.model.errors import ConfigError, UnavailableError, UsageError

DEADLINE_S = 300.0
_ENCRYPT = {
    "age": ("age", "--encrypt", "--recipient"),
    "gpg": ("gpg", "--batch", "--no-tty", "--yes", "--trust-model", "always", "--encrypt",
            "--recipient"),
}  # fmt: skip
_AGE = (b"age-encryption.org/v1\n", b"-----BEGIN AGE ENCRYPTED FILE-----")
_GPG_SUFFIXES = (".gpg", ".pgp", ".asc")
_ZSTD = b"\x28\xb5\x2f\xfd"


def encrypted_suffix(reader: str) -> str:
    """What the file's name ends with, "" where it is for everybody."""
    program = reader.partition(":")[0]
    return f".{program}" if program in _ENCRYPT else ""


def encrypted(raw: bytes, reader: str) -> bytes:
    """The file as only this reader opens it: `age:age1...` or `gpg:KEY`.

    Raises:
        UsageError: The reader is not written so, or the program does not know him.
        UnavailableError: The program is not installed.
    """
    program, _, key = reader.partition(":")
    if program not in _ENCRYPT or not key or key.startswith("-"):
        raise UsageError(f"--encrypt {reader}: not a reader", hint="age:age1... or gpg:KEY")
    status, done = _run((*_ENCRYPT[program], key), raw)
    if status:
        raise UsageError(f"--encrypt {reader}: {program} refused: {_said(status, done)}")
    return done.stdout


def read_any(path: Path, identity: Path | None = None) -> IncidentFile:
    """An incident file, decrypted first where it has to be.

    Raises:
        ConfigError: It is none, damaged, or encrypted for somebody else.
        UsageError: It is encrypted with age, and nobody said with which identity.
        UnavailableError: The program is not installed.
    """
    begin = _begin(path)
    if begin.startswith(_AGE):
        if identity is None:
            raise UsageError(f"{path} is encrypted with age", hint="name the key: --identity FILE")
        return _decrypted(path, ("age", "--decrypt", "--identity", str(identity.absolute())))
    if path.suffix in _GPG_SUFFIXES and not begin.startswith(_ZSTD):
        # gpg unpacks what it decrypts: a few bytes may be a bomb.
        bound = ("--max-output", str(UNPACKED_LIMIT))
        return _decrypted(path, ("gpg", "--batch", "--no-tty", "--quiet", *bound, "--decrypt"))
    return read(path)


def is_encrypted(path: Path) -> bool:
    """Whether only its reader can open it.

    Raises:
        ConfigError: There is no such file.
    """
    begin = _begin(path)
    return begin.startswith(_AGE) or (path.suffix in _GPG_SUFFIXES and not begin.startswith(_ZSTD))


def _begin(path: Path) -> bytes:
    if not path.is_file():
        raise ConfigError(f"{path}: no such file")
    with path.open("rb") as stream:
        return stream.read(64)


def _decrypted(path: Path, argv: Sequence[str]) -> IncidentFile:
    if path.stat().st_size > UNPACKED_LIMIT:
        raise ConfigError(f"{path}: more than {UNPACKED_LIMIT} bytes")
    status, done = _run(argv, path.read_bytes())
    if done.cut:
        raise ConfigError(f"{path}: it decrypts to more than {UNPACKED_LIMIT} bytes")
    if status:
        raise ConfigError(f"{path}: {argv[0]} does not open it: {_said(status, done)}")
    return read_from(path, io.BytesIO(done.stdout), len(done.stdout))


def _run(argv: Sequence[str], raw: bytes) -> tuple[int, ProgramOutput]:
    """Exit status and output, of which no more than an incident file may have is kept."""
    try:
        with subprocess.Popen(  # noqa: S603 - two programs, arguments that begin with no hyphen
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as process:
            try:
                said = hear(process, raw, UNPACKED_LIMIT, time.monotonic() + DEADLINE_S)
            finally:
                process.kill()
    except FileNotFoundError as exc:
        raise UnavailableError(f"{argv[0]} is not installed", hint=f"install {argv[0]}") from exc
    except subprocess.TimeoutExpired as exc:
        raise UnavailableError(f"{argv[0]} did not end within {DEADLINE_S:.0f} s") from exc
    return process.returncode, said


def _said(status: int, done: ProgramOutput) -> str:
    lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
    return lines[0][:200] if lines else f"exit {status}"
