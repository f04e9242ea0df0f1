"""Programs of `hooks.d`: an argument list, JSON on stdin, a deadline, no shell."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from brctl.library.programs.output import hear
from brctl.library.trusted_files import why_untrusted
from brctl.notify.http import DeliveryError

LIMIT_BYTES = 65536
GRACE_S = 0.5
_KEPT_VARIABLES = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "USER", "LOGNAME")


def programs_in(folders: Iterable[Path]) -> tuple[tuple[Path, ...], tuple[str, ...]]:
    """Executables of folders in order of name, and why others are not run."""
    found: dict[str, Path] = {}
    refused: list[str] = []
    for folder in folders:
        try:
            entries = sorted(folder.iterdir())
        except OSError as exc:
            refused.append(f"{folder}: cannot be read: {exc.strerror}")
            continue
        for path in entries:
            # Editors and packagers leave such files; run-parts skips them too.
            if path.name.startswith(".") or path.name.endswith(("~", ".bak", ".dpkg-old")):
                continue
            problem = why_untrusted(path)
            if problem:
                refused.append(f"{path}: {problem}")
            elif os.access(path, os.X_OK):
                found[path.name] = path
    return tuple(found.values()), tuple(refused)


def run_program(command: Sequence[str], text: bytes, deadline: float) -> bytes:
    """Run one program; what it says on stdout, bounded.

    Its whole process group is killed at the deadline (`time.monotonic`), so that nothing a hook
    starts outlives it.

    Raises:
        DeliveryError: It could not be started, ran too long, or ended with a status.
    """
    name = Path(command[0]).name
    try:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            start_new_session=True, env=_environment(), cwd="/",
        )  # fmt: skip
    except OSError as exc:
        raise DeliveryError(f"{name}: cannot be started: {exc.strerror}") from exc
    try:
        output = hear(process, text, LIMIT_BYTES, deadline)
    except subprocess.TimeoutExpired as exc:
        raise DeliveryError(f"{name}: not done in time, killed") from exc
    finally:
        _end(process)
    if process.returncode != 0:
        raise DeliveryError(f"{name}: ended with {process.returncode}")
    return output.stdout


def _environment() -> dict[str, str]:
    """Few variables: the environment of cron or of an operator may hold secrets."""
    return {key: os.environ[key] for key in _KEPT_VARIABLES if key in os.environ}


def _end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(GRACE_S)
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()
