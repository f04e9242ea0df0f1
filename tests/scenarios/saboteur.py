"""The lab's training job with a bug of somebody's making: run as a rank in place of brctl.training.

Reads `mischief.json` beside the checkpoints at every step; `ranks` says whom it means, `do` what
happens: one of the functions of this file or of saboteur_later.py. It strikes once, at `from_step`,
unless it is said to last.
"""

import ctypes
import gc
import json
import os
import resource
import signal
import socket
import ssl
import sys
import tempfile
import threading
import time
import traceback
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor

from brctl.lab.site import TRAINER
from brctl.training import trainer as plain
from brctl.training.__main__ import main
from tests.scenarios import saboteur_later

FOR_EVER_S = 3600.0


def deadlock(_: "Trainer") -> None:
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()


def loops(_: "Trainer") -> None:
    while True:
        sum(range(10_000))


def sleeps(_: "Trainer") -> None:
    time.sleep(FOR_EVER_S)


def waits_for_an_event(_: "Trainer") -> None:
    threading.Event().wait(FOR_EVER_S)


def reads_a_pipe(_: "Trainer") -> None:
    """Nobody writes to it."""
    reading, _writing = os.pipe()
    os.read(reading, 1)


def barrier(_: "Trainer") -> None:
    dist.barrier()


def broadcast(_: "Trainer") -> None:
    dist.broadcast(torch.zeros(1), src=0)


def receives(rank: "Trainer") -> None:
    """From the next of the two, which does the same."""
    dist.recv(torch.zeros(1), src=(rank.number + 1) % dist.get_world_size())


def value_error(_: "Trainer") -> None:
    raise ValueError("sequence of 4100 tokens does not fit 4096 positions")


def key_error(_: "Trainer") -> None:
    {"lr": 0.1}["warmup"]


def assertion(_: "Trainer") -> None:
    raise AssertionError("rewards must be in [0, 1]")


def recursion(_: "Trainer") -> None:
    recursion(_)


def division(_: "Trainer") -> None:
    1 / (os.getpid() - os.getpid())


def not_unicode(_: "Trainer") -> None:
    b"\x93".decode()


def no_such_file(_: "Trainer") -> None:
    Path("/data/shard-00411.tar").read_bytes()


def wrong_shapes(_: "Trainer") -> None:
    torch.zeros(512, 64) @ torch.zeros(48, 256)


def out_of_gpu_memory(_: "Trainer") -> None:
    raise torch.OutOfMemoryError(
        "CUDA out of memory. Tried to allocate 7.83 GiB. GPU 1 has a total capacity of 79.11 GiB"
        " of which 3.12 GiB is free."
    )


def too_many_files(_: "Trainer") -> None:
    raise OSError(24, "Too many open files", "/data/shard-7.tar")


def leaves_with_zero(_: "Trainer") -> None:
    sys.exit(0)


def leaves_at_once(_: "Trainer") -> None:
    os._exit(0)


def leaves_with_three(_: "Trainer") -> None:
    os._exit(3)


def aborts(_: "Trainer") -> None:
    os.abort()


def segfaults(_: "Trainer") -> None:
    ctypes.string_at(0)


def raises_and_stays(_: "Trainer") -> None:
    """A thread that is no daemon keeps the interpreter from its end."""
    threading.Thread(target=time.sleep, args=(FOR_EVER_S,)).start()
    raise RuntimeError("the tokenizer gave an empty batch")


def kills_its_loader(_: "Trainer") -> None:
    own = f"/proc/self/task/{os.getpid()}/children"
    for child in Path(own).read_text().split():
        os.kill(int(child), signal.SIGKILL)


def half_a_second(_: "Trainer") -> None:
    time.sleep(0.5)


def a_fifth_of_a_second(_: "Trainer") -> None:
    time.sleep(0.2)


def three_seconds(_: "Trainer") -> None:
    time.sleep(3.0)


def evaluate(_: "Trainer") -> None:
    """A validation that takes longer than a stall."""
    until = time.monotonic() + 20.0
    while time.monotonic() < until:
        torch.zeros(64, 64) @ torch.zeros(64, 64)


def prints_a_cuda_error(_: "Trainer") -> None:
    sys.stdout.write(
        "caught RuntimeError: CUDA error: an illegal memory access was encountered; retrying\n"
    )


def prints_an_nccl_error(_: "Trainer") -> None:
    sys.stdout.write(
        "warning: caught NCCL error: unhandled system error, the communicator is made anew\n"
    )


def prints_out_of_memory(_: "Trainer") -> None:
    sys.stdout.write("skipped a batch: CUDA out of memory. Tried to allocate 2.00 GiB\n")


def prints_a_traceback(_: "Trainer") -> None:
    try:
        key_error(_)
    except KeyError:
        traceback.print_exc()


def computes_longer(_: "Trainer") -> None:
    """As a GPU does whose power is capped: busy, and later than the others."""
    until = time.monotonic() + 0.25
    while time.monotonic() < until:
        torch.zeros(64, 64) @ torch.zeros(64, 64)


def works_hard(_: "Trainer") -> None:
    """Half of a core for the whole step, so that a rank without its core is late."""
    until = time.thread_time() + 0.04
    while time.thread_time() < until:
        torch.zeros(64, 64) @ torch.zeros(64, 64)


def collects_garbage(_: "Trainer") -> None:
    """A million cycles at once."""
    cycles: list[list[object]] = [[] for _ in range(1_000_000)]
    for cycle in cycles:
        cycle.append(cycle)
    del cycles
    gc.collect()


def asks_for_a_name(_: "Trainer") -> None:
    with suppress(OSError):
        socket.getaddrinfo("shards.example", 443)


def writes_to_a_full_pipe(_: "Trainer") -> None:
    """Nobody reads it."""
    _reading, writing = os.pipe()
    os.write(writing, bytes(1 << 20))


def fills_its_address_space(_: "Trainer") -> None:
    """A limit that somebody set, and a list that grows."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * os.sysconf("SC_PAGE_SIZE") + (256 << 20)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    kept = []
    while True:
        kept.append(bytearray(16 << 20))


def multiplies_its_weights(rank: "Trainer") -> None:
    rank.multiply_weights(40.0)


def spills_to_scratch(_: "Trainer") -> None:
    """What does not fit into memory goes where the node has room for it, or has none."""
    with tempfile.TemporaryFile(dir="/var/tmp") as scratch:
        scratch.write(bytes(1 << 20))
        scratch.flush()


def certificate_expired(_: "Trainer") -> None:
    raise ssl.SSLCertVerificationError(
        1, "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: certificate has expired"
    )


def no_more_watches(_: "Trainer") -> None:
    """The number of a full disk, said of something else."""
    raise OSError(28, "inotify watch limit reached")


def stale_handle(_: "Trainer") -> None:
    raise OSError(116, "Stale file handle", "/data/shards/00417.tar")


def damaged_shard(_: "Trainer") -> None:
    packed = bytearray(zlib.compress(bytes(range(256)) * 64))
    packed[-1] ^= 1
    zlib.decompress(bytes(packed))


def quota_is_used_up(_: "Trainer") -> None:
    raise OSError(122, "Disk quota exceeded", "/ckpt/step-00000040/rank-2.pt")


def nothing(_: "Trainer") -> None:
    """A sound job."""


Deed = Callable[["Trainer"], None]


class Trainer(plain.Trainer):
    """A rank that does what the file says, where the file says."""

    def __init__(self, options: plain.Options, environment: plain.RankEnvironment) -> None:
        super().__init__(options, environment)
        self.number = environment.rank
        self._file = Path(os.environ["BRCTL_CHECKPOINT_DIR"]).parent / "mischief.json"
        self._struck = False

    def _strike(self, where: str) -> None:
        try:
            told = json.loads(self._file.read_text())
        except (OSError, ValueError):
            return
        mine = self.number in told["ranks"] and told["where"] == where
        # The step under way; the counter moves on when its weights are updated.
        mine = mine and int(self._step.item()) + 1 >= told["from_step"]
        if mine and (told["lasts"] or not self._struck):
            self._struck = True
            deed: Deed = globals().get(told["do"]) or getattr(saboteur_later, told["do"])
            deed(self)
            sys.stdout.flush()

    def _load_batch(self) -> Tensor:
        self._strike("load")
        return super()._load_batch()

    def _forward(self, step: int, tokens: Tensor) -> Tensor:
        self._strike("forward")
        return super()._forward(step, tokens)

    def _backward(self, loss: Tensor) -> Tensor:
        self._strike("backward")
        return super()._backward(loss)

    def _all_reduce(self, gradient: Tensor) -> tuple[Tensor, float]:
        self._strike("all_reduce")
        return super()._all_reduce(gradient)

    def _save(self, step: int, loss: float) -> None:
        self._strike("save")
        super()._save(step, loss)

    def multiply_weights(self, factor: float) -> None:
        self._weights.mul_(factor)
        self._show_weights()


if __name__ == "__main__":
    sys.argv.remove(TRAINER)
    plain.Trainer = Trainer  # type: ignore[misc]  # the rank that `train` makes
    main()
