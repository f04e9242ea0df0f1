"""MB/s per core of the classifier beside `grep -E` and beside Python `re` line by line.

The log is made here: NCCL INFO lines, Megatron iterations, data lines, and one fault in 20,000 lines.
"""

# ruff: noqa: E501 - log lines are written whole

import random
import re
import resource
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from brctl.engine.logs.classify import Classifier
from brctl.evidence.logs.catalogue import SHIPPED, anchors_of

MIB = 1 << 20


def write_log(path: Path, size_bytes: int) -> None:
    """A plausible log of one rank, mostly lines that mean nothing."""
    rng = random.Random(7)
    with path.open("wb") as stream:
        number = 0
        while stream.tell() < size_bytes:
            number += 1
            stream.write(b"".join(_line(rng, number * 1000 + i) for i in range(1000)))


def _line(rng: random.Random, number: int) -> bytes:
    if number % 20_000 == 0:
        return b"gpu7:412:981 [3] misc/socket.cc:50 NCCL WARN socketProgress: Connection closed by remote peer gpu9<45074>\n"
    kind = rng.random()
    stamp = f"[2026-07-05 03:{number // 60 % 60:02d}:{number % 60:02d}]"
    if kind < 0.05:
        return f"{stamp} iteration {number:8d}/ 900000 | consumed samples: {number * 8} | lm loss: {2 + rng.random():.6E} | grad norm: {rng.random():.3f} |\n".encode()
    if kind < 0.5:
        return f"gpu7:412:981 [3] NCCL INFO Channel {number % 32:02d}/0 : 3[3] -> {number % 64}[2] via P2P/IPC/read\n".encode()
    return f"{stamp} rank 3 fetched batch {number} of {rng.randrange(1 << 30)} tokens in {rng.random():.3f} ms from part-{number % 999:05d}\n".encode()


def measure(name: str, size: int, work: Callable[[], object]) -> float:
    before = _cpu_s()
    work()
    spent = max(_cpu_s() - before, 1e-6)
    print(f"{name:<34}{size / 1e6 / spent:>10.1f} MB/s per core   {spent:8.2f} s CPU")
    return spent


def _cpu_s() -> float:
    own = time.process_time()
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return own + children.ru_utime + children.ru_stime


def by_line(path: Path, limit: int) -> int:
    pattern = re.compile(
        b"|".join(re.escape(a.encode()) for a in anchors_of(SHIPPED)), re.IGNORECASE
    )
    found = read = 0
    with path.open("rb") as stream:
        for line in stream:
            found += pattern.search(line) is not None
            read += len(line)
            if read > limit:
                break
    return found


def grep(path: Path, patterns: Path) -> None:
    subprocess.run(  # a pipe: into /dev/null GNU grep stops at the first match
        ["grep", "-c", "-i", "-E", "-f", str(patterns), str(path)],
        check=False, stdout=subprocess.PIPE, env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"},
    )  # fmt: skip


def print_speed(mib: int) -> int:
    with tempfile.TemporaryDirectory() as folder:
        log, sample, patterns = (
            Path(folder) / name for name in ("rank.log", "sample.log", "patterns")
        )
        write_log(log, mib * MIB)
        size = log.stat().st_size
        small = min(size, 4 * MIB)
        with log.open("rb") as whole, sample.open("wb") as part:
            part.write(whole.read(small))
        patterns.write_text("\n".join(re.escape(a) for a in anchors_of(SHIPPED)) + "\n")
        classifier = Classifier()
        print(f"{size / 1e6:.0f} MB, {len(SHIPPED)} signatures, {len(anchors_of(SHIPPED))} anchors")
        measure("brctl logs classify", size, lambda: classifier.classify_paths([log]))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"{'peak memory':<34}{peak:>10.0f} MiB")
        if shutil.which("grep"):
            measure("grep -i -E -f (same alternatives)", size, lambda: grep(log, patterns))
        measure("python re, line by line", small, lambda: by_line(sample, small))
    return 0
