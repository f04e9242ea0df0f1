"""More that a rank may do wrong, or only seem to: saboteur.py looks here for what it has not."""

import ctypes
import re
import sys
import time

import torch

from brctl.training import trainer as plain

FOR_EVER_S = 3600
SAVE_S = 18.0
"""Longer than a stall, and shorter than peers wait in a collective."""


def holds_the_gil(_: plain.Trainer) -> None:
    """A call into C that keeps the interpreter: no thread of the rank does anything any more."""
    ctypes.PyDLL(None).sleep(FOR_EVER_S)


def regex_never_ends(_: plain.Trainer) -> None:
    """Tries every way to cut sixty letters into words, of which none fits."""
    re.fullmatch(r"(\w+\s?)+", "a" * 60 + "!")


def leaks(_: plain.Trainer) -> None:
    """Touches what it takes, until somebody stops it."""
    kept = []
    while True:
        kept.append(b"x" * (8 << 20))
        time.sleep(0.02)


def unused_parameter(rank: plain.Trainer) -> None:
    """A branch that this rank did not take: its gradient is shorter than that of the others."""
    rank._model.blocks[1].down.weight.requires_grad_(False)


def data_ends_early(_: plain.Trainer) -> None:
    """Its shard had fewer samples than those of the others."""
    next(iter(()))


def breakpoint_left_in(_: plain.Trainer) -> None:
    breakpoint()


def gradient_overflows(rank: plain.Trainer) -> None:
    """The loss is a number, and a gradient is none: too large for its type."""
    rank._model.head.weight.register_hook(lambda gradient: gradient * 1e38 * 1e38)


def cholesky(_: plain.Trainer) -> None:
    """A covariance that has lost its definiteness, as second-order optimizers meet it."""
    torch.linalg.cholesky(torch.diag(torch.tensor([1.0, 2.0, -1e-6])))


def saves_for_long(rank: plain.Trainer) -> None:
    """A store that is busy, and done in the end; the phase is the one that is told."""
    rank._progress.enter("checkpoint", int(rank._step.item()))
    time.sleep(SAVE_S)


def logs_much(rank: plain.Trainer) -> None:
    """Somebody left the debug level on: sixty kilobytes a step, in which nothing is wrong."""
    line = (
        f"[DEBUG] rank {rank._environment.rank} bucket {{}}: all_reduce queued, 0 errors,"
        " 0 retries, 0 timeouts, overflow=False, nan=False, evicted=0, failed=0, last_error=None\n"
    )
    sys.stdout.write("".join(line.format(bucket) for bucket in range(400)))
