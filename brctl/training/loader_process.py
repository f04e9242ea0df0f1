"""The process that makes a rank's batches, or stands by to: what it is told, and what it sends.

A message is one whole pickle in a pipe. Tensors travel in it by value: handed over by file
descriptor, a worker that dies in the middle ends its rank with a bare EOFError.
"""

import ctypes
import pickle
import signal
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Semaphore
from typing import Protocol

from brctl.training.pipe_messages import send_message

_PR_SET_PDEATHSIG = 1


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
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    try:
        source = recipe.make_source()
        snapshot: SourceState = pickle.loads(orders.recv_bytes())  # noqa: S301  our own parent's
        _make_batches(recipe, source, snapshot, out, room)
    except EOFError:
        return
    except Exception:  # noqa: BLE001  whatever it is, the rank has to hear of it
        send_message(out, pickle.dumps(NoMore(traceback.format_exc())))


def _make_batches(
    recipe: Recipe, source: Source, start: SourceState, out: Connection, room: Semaphore
) -> None:
    if start.state is not None:
        source.load_state_dict(start.state)
    position = start.position
    while True:
        room.acquire()
        try:
            batch = next(source)
        except StopIteration:
            send_message(out, pickle.dumps(NoMore()))
            return
        position += 1
        state = source.state_dict() if position % recipe.snapshot_every == 0 else None
        item = Item(position, recipe.digest(batch), batch, state)
        send_message(out, pickle.dumps(item))
