"""Batches of one rank from a process that may die: replaced inside the rank, or not at all.

    loader = SupervisedLoader(make_source, on_loader="shadow")
    for batch in loader:
        ...
        progress.finish_step(step, ..., batch=loader.ledger_entry())
    torch.save({"loader": loader.state_dict(), ...}, path)
    loader.save_position(checkpoint, rank, world_size)

A worker that dies or falls silent is replaced by one that goes on from the last snapshot. The new
one first makes batches anew that the rank already had, and their digests must be the same: with
that its position is proved, no sample comes twice and none is left out. Where they differ, or no
state can be had, the rank ends with `PositionError` instead: a silent gap is worse than a restart.

`on_loader`: `respawn` starts a process then; `shadow` keeps one parked that has opened the source
already, and gives up when that dies as well; `fail` gives up at once.
Standard library only, whatever the batches are.
"""

import pickle
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from multiprocessing.util import Finalize
from pathlib import Path
from uuid import uuid4

from brctl.training.loader_positions import save_position
from brctl.training.loader_process import (
    Item,
    NoMore,
    Recipe,
    Source,
    SourceState,
    digest_of_pickle,
    produce,
)
from brctl.training.pipe_messages import receive_message

POLICIES = ("respawn", "shadow", "fail")
START_METHODS = ("fork", "spawn")
SILENT_AFTER_S = START_WITHIN_S = 300.0
"""A worker that sends no whole batch for so long is taken for dead; before its first new batch it
may open its sources and make batches anew."""

END_WITHIN_S = 5.0
"""A killed process that is not gone by then waits for a file server or a device, and is left."""


_BEFORE_DAEMONS = 20
"""Of multiprocessing's priorities at exit; it ends daemons after all that are not below zero."""


class LoaderError(RuntimeError):
    """No batch comes any more; the rank has to end and be started again."""


class PositionError(LoaderError):
    """What a loader gave after a restart is not what it had given before."""


@dataclass(frozen=True, slots=True)
class FailOver:
    """One worker replaced.

    Attributes:
        at: Position of the last batch that the rank had.
        replayed: Batches made anew to prove the position.
    """

    why: str
    at: int
    by: str
    replayed: int
    seconds: float


class _Maker:
    """One process, parked until it is told where to begin."""

    def __init__(self, recipe: Recipe, prefetch: int, start_method: str) -> None:
        context = get_context(start_method)
        orders, self._orders = context.Pipe(duplex=False)
        self._items, out = context.Pipe(duplex=False)
        self._room = context.Semaphore(prefetch)
        self._process = context.Process(  # type: ignore[attr-defined]  # every context has it
            target=produce, args=(recipe, orders, out, self._room), daemon=True
        )
        self._process.start()
        # Before multiprocessing's own end of a daemon, which waits for what SIGTERM does not end.
        self._kill = Finalize(self, _kill, (self._process,), exitpriority=_BEFORE_DAEMONS)
        self._has_sent = False
        orders.close()
        out.close()

    @property
    def pid(self) -> int:
        return int(self._process.pid or 0)

    def go(self, snapshot: SourceState) -> None:
        """Begin after a snapshot; one that is dead is found out when nothing comes."""
        try:
            self._orders.send_bytes(pickle.dumps(snapshot))
        except OSError:
            return

    def take(self, within_s: float) -> Item | NoMore | str:
        """The next message, or why there is none."""
        within_s = within_s if self._has_sent else max(within_s, START_WITHIN_S)
        try:
            received = receive_message(self._items, within_s)
            message: Item | NoMore = pickle.loads(received)  # noqa: S301  our own child's
        except TimeoutError:
            return f"sent nothing for {within_s:g} s"
        except (EOFError, OSError):
            self._process.join(1.0)
            return f"died (status {self._process.exitcode})"
        self._has_sent = True
        self._room.release()
        return message

    def end(self) -> None:
        """End it, also where it is stopped; one in state D dies when its wait ends."""
        self._kill()
        self._orders.close()
        self._items.close()


def _kill(process: BaseProcess) -> None:
    process.kill()
    process.join(END_WITHIN_S)


class SupervisedLoader:
    """An iterator of batches that outlives the process that makes them."""

    def __init__(
        self,
        make_source: Callable[[], Source],
        *,
        on_loader: str = "respawn",
        state: Mapping[str, object] | None = None,
        given_before: Mapping[int, str] | None = None,
        digest: Callable[[object], str] = digest_of_pickle,
        snapshot_every: int = 1,
        prefetch: int = 4,
        silent_after_s: float = SILENT_AFTER_S,
        start_method: str = "fork",
    ) -> None:
        """Start a worker, and a shadow where one is wanted.

        Args:
            make_source: Opens the rank's data, in each process anew.
            on_loader: What to do when a worker dies: respawn, shadow or fail.
            state: What `state_dict` gave when the checkpoint was made.
            given_before: Digests by position of a ledger, to say how far a wrong position is off.
            digest: Of a batch; equal for equal batches, in any process.
            snapshot_every: Batches between two states; what lies between is replayed.
            prefetch: Batches made ahead.
            silent_after_s: Seconds without a batch after which a worker is replaced; the attribute
                may be changed while batches are taken.
            start_method: Of multiprocessing: fork or spawn.

        Raises:
            ValueError: `on_loader` is no policy, or the worker would be no child of the rank.
        """
        if on_loader not in POLICIES:
            raise ValueError(f"on_loader {on_loader!r} is not one of {', '.join(POLICIES)}")
        if start_method not in START_METHODS:
            raise ValueError(
                f"start_method {start_method!r} is not one of {', '.join(START_METHODS)}: only a"
                " child of the rank ends with it"
            )
        self.fail_overs: list[FailOver] = []
        self._policy, self.silent_after_s = on_loader, silent_after_s
        recipe = Recipe(make_source, digest, snapshot_every)
        self._start: Callable[[], _Maker] = lambda: _Maker(recipe, prefetch, start_method)
        self._given_before = given_before or {}
        self._snapshots = [SourceState(0)]
        self._digests: dict[int, str] = {}
        self._position = 0
        self._id = uuid4().hex[:16]
        if state is not None:
            self._resume(state)
        self._maker = self._start()
        self._shadow = self._start() if on_loader == "shadow" else None
        self._maker.go(self._proof)
        if state is not None:
            self._prove(self._maker)

    @property
    def _proof(self) -> SourceState:
        """The newest state from before the last batch: from there that batch is made anew."""
        earlier = [s for s in self._snapshots if s.position < self._position]
        return earlier[-1] if earlier else self._snapshots[0]

    @property
    def _start_within_s(self) -> float:
        """Behind what took over nobody stands: slowness must not end the rank."""
        return max(self.silent_after_s, START_WITHIN_S)

    def _resume(self, state: Mapping[str, object]) -> None:
        position, digests = state.get("position"), state.get("digests")
        at = state.get("at")
        if type(position) is not int or type(at) is not int or not isinstance(digests, Mapping):
            raise PositionError("the saved state of the loader is none of this loader's")
        self._position, self._id = at, str(state.get("loader", self._id))
        self._snapshots = [SourceState(position, state.get("source"))]
        self._digests = {int(number): str(digest) for number, digest in digests.items()}

    def __iter__(self) -> Iterator[object]:
        return self

    def __next__(self) -> object:
        message = self._maker.take(self.silent_after_s)
        if isinstance(message, str):
            message = self._fail_over(message)
        if isinstance(message, NoMore):
            if message.error:
                raise LoaderError(f"the data source raised:\n{message.error}")
            raise StopIteration
        self._keep(message)
        return message.batch

    def _keep(self, item: Item) -> None:
        if item.position != self._position + 1:
            raise PositionError(
                f"batch {item.position} came where {self._position + 1} was expected"
            )
        self._position = item.position
        self._digests[item.position] = item.digest
        if item.state is not None:
            self._snapshots.append(SourceState(item.position, item.state))
        proof = self._proof
        self._snapshots = [s for s in self._snapshots if s.position >= proof.position]
        self._digests = {n: d for n, d in self._digests.items() if n > proof.position}

    def _fail_over(self, why: str) -> Item | NoMore:
        """The next batch from another process, whose position is proved."""
        began, dead, pid = time.monotonic(), self._maker, self._maker.pid
        by = self._shadow if self._policy == "shadow" else None
        dead.end()
        if self._policy == "fail":
            raise LoaderError(f"data-loader worker {pid} {why}; on_loader=fail: restart the rank")
        self._shadow = None
        self._maker = by or self._start()
        self._maker.go(self._proof)
        replayed = self._prove(self._maker)
        message = self._maker.take(self._start_within_s)
        if isinstance(message, str):
            raise self._second_death(pid, message)
        who = f"shadow {self._maker.pid}" if by else f"worker {self._maker.pid}"
        done = FailOver(why, self._position, who, replayed, time.monotonic() - began)
        self.fail_overs.append(done)
        self._shadow = self._start() if self._policy == "shadow" else None
        sys.stderr.write(
            f"brctl: data-loader worker {pid} {why} after batch {done.at}: {who} went on in"
            f" {done.seconds:.2f} s, {replayed} batches made anew and found equal\n"
        )
        return message

    def _second_death(self, pid: int, why: str) -> LoaderError:
        return LoaderError(
            f"what took over from data-loader worker {pid} at batch {self._position} {why} as well:"
            " the rank ends, restart it; where it dies on this node alone, suspect the node"
        )

    def _prove(self, maker: _Maker) -> int:
        """Take the batches the rank already had, and compare; the number of them."""
        first = self._proof.position + 1
        for number in range(first, self._position + 1):
            message = maker.take(self._start_within_s)
            if isinstance(message, str):
                raise self._second_death(maker.pid, message)
            if isinstance(message, NoMore):
                raise PositionError(f"the data ends before batch {number}, which was given before")
            if message.digest != self._digests.get(number):
                raise PositionError(self._how_far(number, message.digest))
        return self._position + 1 - first

    def _how_far(self, number: int, digest: str) -> str:
        at = [n for n, d in self._given_before.items() if d == digest]
        head = f"batch {number} is not what it was before"
        if not at:
            return f"{head}: the loader's position cannot be proved; go back a checkpoint"
        off = number - at[0]
        word = "repeated" if off > 0 else "skipped"
        return f"{head} but batch {at[0]}: {abs(off)} batches would be {word}; go back a checkpoint"

    def state_dict(self) -> dict[str, object]:
        """What a checkpoint keeps of the loader: enough to go on, and to prove it."""
        proof = self._proof
        return {
            "loader": self._id, "at": self._position,
            "position": proof.position, "source": proof.state,
            "digests": {str(number): digest for number, digest in self._digests.items()},
        }  # fmt: skip

    def ledger_entry(self) -> dict[str, object]:
        """The last batch, for `Progress.finish_step(batch=...)`."""
        return {"position": self._position, "digest": self._digests.get(self._position)}

    def save_position(
        self,
        checkpoint: Path,
        rank: int,
        of: int,
        *,
        samples: int | None = None,
        global_batch: int | None = None,
        since_step: int | None = None,
    ) -> None:
        """Write this rank's position into a checkpoint, where `brctl ckpt` compares them.

        Args:
            checkpoint: Its directory.
            rank: Among the ranks that read data of their own.
            of: Number of those ranks.
            samples: How many this rank was given since `since_step`.
            global_batch: How many all ranks are given in a step; with both the sums are compared.
            since_step: The step after which all steps have this global batch and these ranks; not
                told, the checkpoints before are asked for another global batch.

        Raises:
            OSError: It cannot be written.
        """
        sums = {"samples": samples, "global_batch": global_batch, "since_step": since_step}
        told = {name: count for name, count in sums.items() if count is not None}
        save_position(checkpoint, rank, of, {**self.ledger_entry(), "loader": self._id, **told})

    def worker_pids(self) -> tuple[int, ...]:
        """The worker, and the shadow where there is one."""
        return tuple(m.pid for m in (self._maker, self._shadow) if m is not None)

    def close(self) -> None:
        """End worker and shadow."""
        for maker in (self._maker, self._shadow):
            if maker is not None:
                maker.end()
        self._shadow = None
