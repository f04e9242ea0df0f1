"""Interpreters that nodes may have, as pyenv, uv, Debian or a search path offers them.

As a program it says whether the oldest of them is here.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

OLDEST = "3.8"
"""What the probe contract promises. Debian has none; pyenv and uv install one, and so does
`tests/check.py` in its own environment."""

# Read once: a test's own home has no interpreters.
_HOME = Path.home()
_ASK = "import sys; print('%d.%d' % sys.version_info[:2])"


def find_python(version: str) -> str | None:
    """An interpreter of exactly this version that runs."""
    for path in _candidates(version):
        done = subprocess.run([path, "-I", "-S", "-c", _ASK], capture_output=True, check=False)
        if done.stdout.decode().strip() == version:
            return path
    return None


def _candidates(version: str) -> list[str]:
    pyenv = Path(os.environ.get("PYENV_ROOT", _HOME / ".pyenv")) / "versions"
    folders = sorted(pyenv.glob(f"{version}.*"))
    for uv in (Path(sys.prefix) / "pythons", _HOME / ".local/share/uv/python"):
        folders += sorted(uv.glob(f"cpython-{version}.*"))
    found = [str(folder / "bin" / f"python{version}") for folder in folders]
    on_path = shutil.which(f"python{version}", path=f"{os.environ.get('PATH', '')}:/usr/bin")
    return [path for path in (*found, on_path) if path and os.access(path, os.X_OK)]


OLDEST_PYTHON = find_python(OLDEST)

needs_oldest = pytest.mark.skipif(
    OLDEST_PYTHON is None,
    reason=f"no Python {OLDEST} here: `pyenv install {OLDEST}` or `uv python install {OLDEST}`",
)


def oldest() -> str:
    """The oldest interpreter; only for tests marked with `needs_oldest`."""
    if OLDEST_PYTHON is None:
        raise AssertionError(f"no Python {OLDEST}")
    return OLDEST_PYTHON


if __name__ == "__main__":
    sys.exit(OLDEST_PYTHON is None)
