"""Which ranks wait for their next batch: by the frames of their loader, else by their word."""

import re
from collections.abc import Sequence
from itertools import pairwise

from brctl.model.jobs.job_status import RankView

LOAD_PHASE = "load"
_IN_LOADER = re.compile(
    r"(?:dataloader\.py:(?:\w+\.)?(?:_try_get_data|_get_data|_next_data|__next__)"
    r"|supervised_loader\.py:(?:\w+\.)?(?:__next__|take))$"
)
_FETCHES = re.compile(r"(?:fetch(?:er)?s?\.py:(?:\w+\.)?fetch|loader_process\.py:_make_batches)$")
_WORKER_LOOP = re.compile(r"(?:worker\.py:_worker_loop|loader_process\.py:produce)$")
_TAKES_FROM_QUEUE = re.compile(r"queues\.py:(?:\w+\.)?get$")
_STANDS_BY = re.compile(r"loader_process\.py:_wait_for_(?:room|orders)$")
WORKER_LOOPS = ("_worker_loop", "_make_batches")
"""The functions below which a worker's frames are those of the job: PyTorch's, and brctl's own."""


def waits_for_data(view: RankView) -> bool:
    """A living rank that stands in its loader; a stopped process stands wherever it was stopped.

    Without a stack its own word counts: it says that it loads.
    """
    if not view.alive or view.stopped_by:
        return False
    return in_loader(view.stack) if view.stack else view.phase == LOAD_PHASE


def in_loader(stack: Sequence[str]) -> bool:
    """Whether a rank asks its loader for a batch."""
    return any(_IN_LOADER.search(frame) for frame in stack)


def fetches(stack: Sequence[str]) -> bool:
    """Whether a process makes a batch: such a worker is at work, or stuck."""
    return any(_FETCHES.search(frame) for frame in stack)


def is_worker(stack: Sequence[str]) -> bool:
    """Whether a process is a worker of PyTorch's loader, or of a supervised one."""
    return any(_WORKER_LOOP.search(frame) for frame in stack)


def is_idle(stack: Sequence[str]) -> bool:
    """A worker that waits for its next order, or for room: never the culprit."""
    return any(map(_STANDS_BY.search, stack)) or any(
        _TAKES_FROM_QUEUE.search(inner) and _WORKER_LOOP.search(outer)
        for inner, outer in pairwise(stack)
    )
