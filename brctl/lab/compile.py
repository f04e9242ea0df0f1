"""Build the lab's three small C libraries with the system compiler, once per content."""

import hashlib
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from brctl.model.errors import UnavailableError

HERE = Path(__file__).parent
_FLAGS = ("-shared", "-fPIC", "-O1", "-fvisibility=default", "-pthread", "-D_GNU_SOURCE", "-w")
COMPILE_DEADLINE_S = 60.0


_NVML, _CLOCK = HERE / "nvml" / "fake_nvml.c", HERE / "fake_clock.c"
_PYTHON = HERE / "python_entry.c"
BUILDS_KEPT = 4
"""Of each library, newest first: labs of several versions of brctl may run beside each other."""


@dataclass(frozen=True, slots=True)
class Libraries:
    """The built libraries.

    Attributes:
        nvml_dir: Directory for LD_LIBRARY_PATH; it holds `libnvidia-ml.so.1`.
        clock: Library for LD_PRELOAD that shifts a node's wall clock.
        python: Library for LD_PRELOAD that lets torch compute wrongly on a node.
    """

    nvml_dir: Path
    clock: Path
    python: Path


def build_libraries(into: Path) -> Libraries:
    """Build what is not there yet and say where it is.

    Raises:
        UnavailableError: There is no C compiler, it fails, or `into` cannot be written.
    """
    nvml = _build(_NVML, into, "libnvidia-ml.so.1", ("-ldl",))
    return Libraries(
        nvml.parent,
        _build(_CLOCK, into, "libbrctl-clock.so", ("-ldl",)),
        _build(_PYTHON, into, "libbrctl-python.so", ("-ldl",)),
    )


def forget_libraries(into: Path) -> None:
    """Remove every build of them; a lab that still runs finds none for its next process."""
    for source in (_NVML, _CLOCK, _PYTHON):
        for build in into.glob(f"{source.stem}-*"):
            shutil.rmtree(build, ignore_errors=True)


def _build(source: Path, into: Path, name: str, libraries: tuple[str, ...]) -> Path:
    digest = hashlib.sha256(source.read_bytes()).hexdigest()[:16]
    target = into / f"{source.stem}-{digest}" / name
    if target.exists():
        return target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as exc:
        raise UnavailableError(
            f"{into}: the lab's libraries cannot be kept here: {exc.strerror}",
            hint="set XDG_CACHE_HOME to a directory you may write",
        ) from exc
    partial = target.with_suffix(f".{os.getpid()}")
    _compile(source, partial, libraries)
    partial.replace(target)
    builds = sorted(into.glob(f"{source.stem}-*"), key=lambda build: build.stat().st_mtime)
    for old in builds[:-BUILDS_KEPT]:
        shutil.rmtree(old, ignore_errors=True)
    return target


def _compile(source: Path, target: Path, libraries: tuple[str, ...]) -> None:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise UnavailableError(
            "the lab needs a C compiler to build its fake NVML library; found neither cc nor gcc",
            hint="apt-get install gcc libc6-dev",
        )
    done = subprocess.run(
        [compiler, *_FLAGS, "-o", str(target), str(source), *libraries],
        capture_output=True,
        text=True,
        check=False,
        start_new_session=True,  # Ctrl-C is for us to act on, not for the compiler
        timeout=COMPILE_DEADLINE_S,
    )
    if done.returncode != 0:
        raise UnavailableError(
            f"{compiler} could not build {source.name}",
            cause=done.stderr.strip()[:2000],
            hint="apt-get install gcc libc6-dev",
        )
