"""The tools brctl is measured beside, installed where they are not: PyPI, and Debian for pdsh."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

_FROM_PYPI = ("ClusterShell", "parallel-ssh", "ansible-core")


def install_peers(folder: Path) -> None:
    """Put the peers first on PATH, from a virtual environment that is made once."""
    python = folder / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        subprocess.run([str(python), "-m", "pip", "-q", "install", *_FROM_PYPI], check=True)
    if shutil.which("pdsh") is None and os.geteuid() == 0:
        subprocess.run(["apt-get", "-qq", "install", "-y", "pdsh"], check=False)
    os.environ["PATH"] = f"{folder}/bin:{os.environ['PATH']}"
    os.environ["BRCTL_BENCH_PSSH"] = str(python)
