"""The process that makes a rank's batches, or stands by to: what it is told, and what it sends.

A message is one whole pickle in a pipe. Tensors travel in it by value: handed over by file
descriptor, a worker that dies in the middle ends its rank with a bare EOFError.
"""

import ctypes
import multiprocessing
import os
import pickle
import signal
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Semaphore
from typing import Protocol

from brctl.training.pipe_messages import send_message

_PR_SET_PDEATHSIG = 1
_FOR_THE_RANK = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
"""What terminals and schedulers send to all processes of a job; only a rank has an answer."""


class Source(Protocol):
    """A rank's data, which knows where it is: the same state gives the same batches."""

    def __next__(self) -> object: ...

    def state_dict(self) -> object: ...

    def load_state_dict(self, state: object) -> None: ...


@dataclass(frozen=True, slots=True)
class SourceState:
    """The state of a source after so many batches; None stands for its very beginning."""

    position: int
    state: object = None


@dataclass(frozen=True, slots=True)
class Item:
    """A batch, the first has position 1.

    Attributes:
        state: The source's state after it; None where none was taken.
    """

    position: int
    digest: str
    batch: object
    state: object


@dataclass(frozen=True, slots=True)
class NoMore:
    """No batch follows; with the traceback where the source raised."""

    error: str = ""


def digest_of_pickle(batch: object) -> str:
    """A batch in sixteen characters; give an own digest where pickles of equal batches differ."""
    return sha256(pickle.dumps(batch)).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Recipe:
    """How batches are made.

    Attributes:
        snapshot_every: Batches between two states that are sent along.
    """

    make_source: Callable[[], Source]
    digest: Callable[[object], str] = digest_of_pickle
    snapshot_every: int = 1


def produce(recipe: Recipe, orders: Connection, out: Connection, room: Semaphore) -> None:
    """Open the source, wait for the snapshot to go on from, and make batches until they end."""
    _live_and_die_with_the_rank()
    try:
        source = recipe.make_source()
        snapshot = _wait_for_orders(orders)
        _make_batches(recipe, source, snapshot, out, room)
    except EOFError:
        return
    except Exception:  # noqa: BLE001  whatever it is, the rank has to hear of it
        send_message(out, pickle.dumps(NoMore(traceback.format_exc())))


def _live_and_die_with_the_rank() -> None:
    """Ended by the rank or with it, and by nothing that was meant for it.

    A fork has the rank's handlers as well: one that saves a checkpoint would run here, too.
    """
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    rank = multiprocessing.parent_process()
    if rank is not None and os.getppid() != rank.pid:
        os._exit(1)
    signal.set_wakeup_fd(-1)
    for number in _FOR_THE_RANK:
        # Not SIG_IGN, which programs that a source starts would inherit.
        signal.signal(number, _leave_to_the_rank)
    if "torch" in sys.modules:
        # Threads that the rank's products use are not there in a fork, which would wait for them.
        sys.modules["torch"].set_num_threads(1)


def _leave_to_the_rank(number: int, frame: object) -> None:
    """Nothing to do."""


def _wait_for_orders(orders: Connection) -> SourceState:
    """A stack with this function is of a process that stands by."""
    snapshot: SourceState = pickle.loads(orders.recv_bytes())  # noqa: S301  our own parent's
    return snapshot


def _make_batches(
    recipe: Recipe, source: Source, start: SourceState, out: Connection, room: Semaphore
) -> None:
    if start.state is not None:
        source.load_state_dict(start.state)
    position = start.position
    while True:
        _wait_for_room(room)
        try:
            batch = next(source)
        except StopIteration:
            send_message(out, pickle.dumps(NoMore()))
            return
        position += 1
        state = source.state_dict() if position % recipe.snapshot_every == 0 else None
        item = Item(position, recipe.digest(batch), batch, state)
        send_message(out, pickle.dumps(item))


def _wait_for_room(room: Semaphore) -> None:
    """A stack with this function is of a process that has made its batches, and is idle."""
    room.acquire()
