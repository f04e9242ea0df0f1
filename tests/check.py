"""The one command: make an environment, format, lint, type-check, check the layers, test.

    python3 tests/check.py          everything; what CI runs
    python3 tests/check.py --fix    repair format and lint first
    python3 tests/check.py --quick  without the tiers that start daemons or training jobs
    python3 tests/check.py --deep   also the minutes-long tests, ten minutes more

All steps run; the failed ones are named at the end. Tests of up to five files that fail beside
others run once more alone; what passes then is named as FLAKY (decisions 0434, 0449). Interrupted,
it ends what the tests started; killed, the next run does. As root on Debian it installs the
packages the real-component tests need; elsewhere it says which are missing. The oldest Python that
nodes may have comes from uv where the machine has none. Under CI=true a skipped tier fails.
"""

import os
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv-check"
STAMP = VENV / "requirements.txt"
CONSTRAINTS = ROOT / "tests" / "constraints.txt"
PYTHONS = VENV / "pythons"
OLDEST = "3.8"

# program that proves the package is there -> Debian package
DEBIAN = {
    "sshd": "openssh-server",
    "ssh": "openssh-client",
    "ip": "iproute2",
    "nft": "nftables",
    "cc": "gcc",
    "unshare": "util-linux",
    "tmux": "tmux",
    "ping": "iputils-ping",
    "systemd-analyze": "systemd",
    "slurmctld": "slurmctld",
    "slurmd": "slurmd",
    "sinfo": "slurm-client",
    "kubectl": "kubernetes-client",
    "groff": "groff-base",
    "visudo": "sudo",
    "zsh": "zsh",
    "fish": "fish",
    "age": "age",
    "gpg": "gnupg",
}
HEAVY = "ssh or netns or torch or slurm or system or gpu"
# What a fresh checkout has not compiled yet, each of the workers would compile, at the same time.
# Collecting does it once, on the core that mypy leaves; what it fails at, the tests fail at too. So
# pip need not: it would compile four times as many files, on one core, with nothing beside it.
COMPILE = ["pytest", "--collect-only", "-p", "no:terminal", "-p", "no:cacheprovider"]
COMPILE += ["-o", "addopts="]

sys.path.insert(0, str(ROOT))
from tests import alone, own_processes  # noqa: E402  # this file is run by its path


def main(arguments: list[str]) -> int:
    """Run every step, and leave nothing running that a test started."""
    own_processes.adopt_orphans()
    own_processes.raise_when_told_to_end()
    name_ended("left behind by a run that was killed", own_processes.end_leftovers(ROOT))
    try:
        return check(arguments)
    except own_processes.Interrupted as interrupted:
        print(f"interrupted by {interrupted}")
        return 128 + interrupted.number
    finally:
        name_ended("left behind by the tests", own_processes.end_own())


def name_ended(which: str, ended: list[str]) -> None:
    """Say what had to be killed."""
    if ended:
        print(f"processes {which}, now ended: {', '.join(ended)}", flush=True)


def check(arguments: list[str]) -> int:
    """Run every step; 0 when all of them passed."""
    if not install_debian_packages() and os.environ.get("CI") == "true":
        print("FAILED: packages above are missing and cannot be installed")
        return 1
    make_environment()
    install_oldest_python()
    if "--fix" in arguments:
        run("ruff", "format")
        run("ruff", "check", "--fix", "--quiet")
    # Four workers on two cores: the tests of real nodes mostly wait for them.
    pytest = ["pytest", "-n", "4", "--dist", "loadgroup", "-q", "--durations", "15"]
    pytest += ["--cache-clear"]
    # In the order of tests/conftest.py: the dear ones first.
    pytest += ["--no-loadscope-reorder"]
    if "--quick" in arguments:
        pytest += ["-m", f"not ({HEAVY}) and not deep"]
    elif "--deep" in arguments:
        pytest += ["--hypothesis-profile", "new examples"]
    else:
        pytest += ["-m", "not deep"]
    steps = {
        "format": ["ruff", "format", "--check", "--quiet"],
        "lint": ["ruff", "check", "--quiet"],
        "types": ["mypy"],
        "layers": ["lint-imports", "--no-logo"],
        "probes run on Python 3.8": ["vermin", "--quiet", "-t=3.8-", "--no-tips", "checks"],
        "tests": pytest,
    }
    beside = {"types": [COMPILE]}
    failed = [
        name for name, command in steps.items() if not timed(name, command, beside.get(name, []))
    ]
    if "tests" in failed and passed_alone(alone.failed_tests(ROOT)):
        failed.remove("tests")
    print(f"FAILED: {', '.join(failed)}" if failed else "all steps passed")
    return 1 if failed else 0


def install_debian_packages() -> bool:
    """Install what is missing, or say it; whether everything is there."""
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    missing = sorted({p for program, p in DEBIAN.items() if not shutil.which(program, path=path)})
    if not missing:
        return True
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        print("missing Debian packages, their tests will be skipped:", *missing)
        return False
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    quiet = ["apt-get", "-qq", "-o", "Dpkg::Use-Pty=0"]
    subprocess.run([*quiet, "update"], env=environment, check=False)
    install = [*quiet, "install", "-y", "--no-install-recommends", *missing]
    return subprocess.run(install, env=environment, check=False).returncode == 0


def make_environment() -> None:
    """A virtual environment with brctl editable, torch for the CPU, and the test tools."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wanted: list[str] = [*project["project"]["optional-dependencies"]["lab"]]
    wanted += project["dependency-groups"]["test"]
    # The console script and the metadata of the editable install follow pyproject.toml.
    told = [path.read_text() for path in (ROOT / "pyproject.toml", CONSTRAINTS)]
    fingerprint = "\n".join([sys.version, *wanted, *told])
    if STAMP.exists() and STAMP.read_text() == fingerprint:
        return
    if not (VENV / "bin" / "python").exists():
        subprocess.run([sys.executable, "-m", "venv", str(VENV)], check=True)
    install = ["pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]
    install += ["-c", str(CONSTRAINTS)]
    python = str(VENV / "bin" / "python")
    subprocess.run([python, "-m", *install, *wanted, "-e", str(ROOT)], check=True)
    STAMP.write_text(fingerprint)


def install_oldest_python() -> None:
    """Have uv fetch the oldest Python of nodes unless the machine has one, or say that none is."""
    if run("python", "-m", "tests.fakes.pythons"):
        return
    run("python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "uv")
    run("uv", "python", "install", "--no-bin", "--install-dir", str(PYTHONS), OLDEST)
    if not run("python", "-m", "tests.fakes.pythons"):
        print(
            f"no Python {OLDEST}: neither pyenv, uv nor PATH has one and uv cannot fetch it. The"
            " tests that run what is sent to nodes on it will be skipped. Next: pyenv install"
            f" {OLDEST}, or UV_PYTHON_INSTALL_MIRROR=<mirror of python-build-standalone>"
            " python3 tests/check.py"
        )


def passed_alone(tests: list[str]) -> bool:
    """Whether the few tests that failed beside others pass with the machine to themselves."""
    if not alone.are_few(tests):
        return False
    passed = timed("the failed tests, alone", ["pytest", "-q", *tests])
    if passed:
        print("FLAKY: failed beside other tests and passed alone; each is a defect to mend:")
        print("\n".join(f"  {name}" for name in tests))
    return passed


def timed(name: str, command: list[str], beside: Sequence[list[str]] = ()) -> bool:
    """Run one step, with what is only to be done meanwhile, and say how long it took."""
    print(f"--- {name}", flush=True)
    started = time.monotonic()
    passed = run(*command, beside=beside)
    print(f"--- {name}: {'ok' if passed else 'FAILED'} {time.monotonic() - started:.0f} s")
    return passed


def run(tool: str, *arguments: str, beside: Sequence[list[str]] = ()) -> bool:
    """Whether a tool of the environment exits 0."""
    path = f"{VENV / 'bin'}:{os.environ.get('PATH', '')}:/usr/sbin:/sbin:{own_processes.mark(ROOT)}"
    environment = {**os.environ, "PATH": path, "VIRTUAL_ENV": str(VENV)}
    # The tests start brctl some thousand times; uncompiled each start takes three times as long.
    for name in ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE"):
        environment.pop(name, None)
    command, *others = (
        [str(VENV / "bin" / name), *rest] for name, *rest in ([tool, *arguments], *beside)
    )
    return own_processes.run(command, ROOT, environment, others) == 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
