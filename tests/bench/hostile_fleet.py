"""A fleet of 64 of which somebody owns three, over real SSH: what every command makes of it.

Each shape of an answer is given once, by a node that carries a rank of the job, beside two other
shapes on such nodes. A line a fleet: commands, the slowest, the most memory one took, the highest
exit code, healthy nodes that were reported as they are, and innocents that a verdict named.
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
    SOUND,
    Seen,
    innocents,
    may_end,
    over_ssh,
    run_command,
    seen,
    write_fleet,
    wronged,
)
from tests.hostile.shapes import SHAPES

PATIENCE_S = 60.0
"""64 logins and shells on one busy machine; whoever says nothing costs as much at every look."""
LEAST_PATIENCE_S = 15.0
PATIENCE_FACTOR = 4
"""Of the slowest command over the fleet that nobody owns: that is what this machine takes now."""


@dataclass(slots=True)
class Commands:
    """What the commands over one fleet cost, and how they ended."""

    slowest_s: float = 0.0
    most_bytes: int = 0
    highest_exit: int = 0
    problems: list[str] = field(default_factory=list)


def try_fleets() -> int:
    """Print a line a fleet; how many problems there were."""
    print(
        f"\n{'fleet of 64, 3 owned by':66} {'commands':>8} {'slowest':>8} {'memory':>8} {'exit':>4}"
        f" {'healthy right':>13} {'innocents named':>15}"
    )
    with tempfile.TemporaryDirectory(prefix="brctl-hostile-") as name, _reached(Path(name)) as ssh:
        folder = Path(name)
        well, done = _try_fleet(folder / "well", (), ssh, None, PATIENCE_S)
        patience_s = max(LEAST_PATIENCE_S, min(PATIENCE_S, PATIENCE_FACTOR * done.slowest_s))
        problems = len(done.problems)
        names = list(SHAPES)
        for start in range(0, len(names), len(OWNED)):
            shapes = names[start : start + len(OWNED)]
            done = _try_fleet(folder / str(start), shapes, ssh, well, patience_s)[1]
            problems += len(done.problems)
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
    folder: Path,
    shapes: Sequence[str],
    ssh: tuple[str, int],
    well: Seen | None,
    patience_s: float,
) -> tuple[Seen, Commands]:
    config, done = write_fleet(folder, shapes, *ssh), Commands()
    for words in COMMANDS:
        _run_one(config, words, done, f"{patience_s:.0f}s")
    found = seen(folder / "state")
    changed, named = wronged(well or found, found), innocents(found)
    done.problems += [*changed, *named]
    print(
        f"{', '.join(shapes) or 'nobody':66.66} {len(COMMANDS):8} {done.slowest_s:6.1f} s"
        f" {done.most_bytes / 2**20:4.0f} MiB {done.highest_exit:4}"
        f" {len(SOUND) + 1 - len(changed):7} of {len(SOUND) + 1} {len(named):15}",
        flush=True,
    )
    print("".join(f"  {problem}\n" for problem in done.problems), end="", flush=True)
    return found, done


def _run_one(config: Path, words: Sequence[str], done: Commands, patience: str) -> None:
    """One command in a process of its own, so that its memory is its own."""
    began = time.monotonic()
    pid = os.fork()
    if pid == 0:
        log = os.open(config.parent / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(log, 1)
        os.dup2(log, 2)
        code = 99
        try:
            code = run_command(config, words, run, patience)
        finally:
            os._exit(code)
    _, status, used = os.wait4(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    done.slowest_s = max(done.slowest_s, time.monotonic() - began)
    done.most_bytes = max(done.most_bytes, used.ru_maxrss << 10)
    done.highest_exit = max(done.highest_exit, code)
    if not may_end(code):
        done.problems.append(f"{' '.join(words)} ended with {code}")
