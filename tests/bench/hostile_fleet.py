"""A fleet of 64 of which somebody owns three, over real SSH: what every command makes of it.

Each shape of an answer is given by a node that carries a rank of the job, with two other shapes on
nodes beside it. A line a fleet: commands, the slowest, the most memory one took, those that ended
above an answer, and healthy nodes that were reported otherwise or named by a verdict.
"""

import contextlib
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from brctl.cli.main import run
from tests.contract.transport_sites import SSHD
from tests.hostile.fleet import (
    COMMANDS,
    OWNED,
    Seen,
    may_end,
    over_ssh,
    run_command,
    seen,
    write_fleet,
    wronged,
)
from tests.hostile.shapes import SHAPES

PATIENCE = "60s"
"""64 logins and shells on one busy machine; whoever says nothing costs as much at every look."""


@dataclass(slots=True)
class Commands:
    """What the commands over one fleet cost, and how they ended."""

    slowest_s: float = 0.0
    most_bytes: int = 0
    problems: list[str] = field(default_factory=list)


def try_fleets() -> int:
    """Print a line a fleet; how many problems there were."""
    names = list(SHAPES)
    print(
        f"\n{'fleet of 64, owned by':58} {'commands':>8} {'slowest':>8} {'memory':>8} {'wrong':>6}"
    )
    with tempfile.TemporaryDirectory(prefix="brctl-hostile-") as name, _reached(Path(name)) as ssh:
        folder = Path(name)
        well = _try_fleet(folder / "well", (), ssh, None)[0]
        problems = 0
        for number in range(len(names)):
            shapes = tuple(names[(number + i) % len(names)] for i in range(len(OWNED)))
            problems += len(_try_fleet(folder / str(number), shapes, ssh, well)[1])
    return problems


@contextlib.contextmanager
def _reached(folder: Path) -> Iterator[tuple[str, int]]:
    """Real SSH where there is a server; the nodes are processes in any case."""
    if SSHD is None:
        yield "transport: local", 22
        return
    with over_ssh(folder) as reached:
        yield reached


def _try_fleet(
    folder: Path, shapes: Sequence[str], ssh: tuple[str, int], well: Seen | None
) -> tuple[Seen, list[str]]:
    config, done = write_fleet(folder, shapes, *ssh), Commands()
    for words in COMMANDS:
        _run_one(config, words, done)
    found = seen(folder / "state")
    done.problems += wronged(well, found) if well else []
    print(
        f"{', '.join(shapes) or 'nobody':58.58} {len(COMMANDS):8} {done.slowest_s:6.1f} s"
        f" {done.most_bytes / 2**20:4.0f} MiB {len(done.problems):6}",
        flush=True,
    )
    print("".join(f"  {problem}\n" for problem in done.problems), end="", flush=True)
    return found, done.problems


def _run_one(config: Path, words: Sequence[str], done: Commands) -> None:
    """One command in a process of its own, so that its memory is its own."""
    began = time.monotonic()
    pid = os.fork()
    if pid == 0:
        log = os.open(config.parent / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(log, 1)
        os.dup2(log, 2)
        code = 99
        try:
            code = run_command(config, words, run, PATIENCE)
        finally:
            os._exit(code)
    _, status, used = os.wait4(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    done.slowest_s = max(done.slowest_s, time.monotonic() - began)
    done.most_bytes = max(done.most_bytes, used.ru_maxrss << 10)
    if not may_end(words, code):
        done.problems.append(f"{' '.join(words)} ended with {code}")
