"""What a loader's failure costs, policy by policy: `python -m tests.bench.loaders [--deaths N]`.

One source with two shards, mixture weights and a shuffle buffer of 256; its process is killed, and
then stopped as a hanging one stands, after the same steps for every policy. Printed are the seconds
without a new step per failure, batches trained on twice and never, and whether a model would have
learned the same, bit by bit. A rank that ends is started again for real, as a process that imports
PyTorch, goes back to a checkpoint at most 10 steps old and trains the steps since again: a job adds
its scheduler and the load of its weights. `no state` begins the source anew, as a loader does that
cannot be resumed. Where nobody notices, somebody comes after `PATIENCE_S`, and `>` stands before.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from heapq import nlargest
from statistics import fmean
from types import FrameType
from typing import Protocol

from torch.utils.data import DataLoader, IterableDataset

from brctl.training.mixed_source import MixedSource
from brctl.training.supervised_loader import LoaderError, SupervisedLoader
from tests.training.mixed_source import loss_of

STEPS, STEP_S, CHECKPOINT_EVERY = 200, 0.01, 10
SILENT_AFTER_S, WATCHDOG_S, PATIENCE_S = 2.0, 4.0, 8.0
STOPS = 2
"""Of failures in which nothing dies: each is waited for."""

State = Mapping[str, object]


class StandsStillError(Exception):
    """No step came for longer than somebody outside of the rank allows."""


class Loader(Protocol):
    """Batches of a process that may fail, and where they are."""

    def __next__(self) -> object: ...

    def state_dict(self) -> dict[str, object]: ...

    def worker_pids(self) -> tuple[int, ...]: ...

    def close(self) -> None: ...


class TorchLoader:
    """PyTorch's own: to go on after so many batches its source makes all of them anew."""

    def __init__(self, timeout_s: float, state: State | None) -> None:
        self._given = int(str(state["at"])) if state else 0
        data = DataLoader(
            _Batches(self._given), batch_size=None, num_workers=1, timeout=timeout_s,
            multiprocessing_context="fork",
        )  # fmt: skip
        self._batches = iter(data)

    def __next__(self) -> object:
        batch = next(self._batches)
        self._given += 1
        return batch

    def state_dict(self) -> dict[str, object]:
        return {"at": self._given}

    def worker_pids(self) -> tuple[int, ...]:
        return tuple(worker.pid for worker in self._batches._workers)  # it has no other

    def close(self) -> None:
        for worker in self._batches._workers:  # as above
            # Killed, for it may be stopped; and PyTorch tells of that death as well.
            with suppress(RuntimeError):
                worker.kill()
                worker.join()
        del self._batches


class _Batches(IterableDataset):  # type: ignore[misc]  # torch is not type-checked here
    def __init__(self, after: int) -> None:
        self._after = after

    def __iter__(self) -> Iterator[list[int]]:
        made = source()
        for _ in range(self._after):
            next(made)
        return iter(lambda: next(made, None), None)


@dataclass(frozen=True, slots=True)
class Policy:
    """What happens when a loader fails.

    Attributes:
        begin: Opens the loader, from a checkpoint's state or at the beginning.
        notice_s: After so long without a step somebody outside ends the rank.
        keeps_state: Whether a new start of the rank goes back to a checkpoint.
    """

    name: str
    begin: Callable[[State | None], Loader]
    notice_s: float = PATIENCE_S
    keeps_state: bool = True


@dataclass(frozen=True, slots=True)
class Outcome:
    """One policy over all failures: seconds without a step for each, and what was given."""

    stall_s: float
    repeated: int
    skipped: int
    equal: bool
    waited_for: bool


def source() -> MixedSource:
    """The data of the one rank."""
    return MixedSource(batches=STEPS)


def supervised(**options: object) -> Callable[[State | None], Loader]:
    options = {"prefetch": 1, "silent_after_s": SILENT_AFTER_S, **options}
    return lambda state: SupervisedLoader(source, state=state, **options)  # type: ignore[arg-type]  # by name


POLICIES = (
    Policy("none", lambda state: TorchLoader(0, state)),
    Policy(f"timeout={SILENT_AFTER_S:g}", lambda state: TorchLoader(SILENT_AFTER_S, state)),
    Policy(f"watchdog of {WATCHDOG_S:g} s", lambda state: TorchLoader(0, state), WATCHDOG_S),
    Policy("fail", supervised(on_loader="fail")),
    Policy("respawn, no state", supervised(on_loader="fail"), keeps_state=False),
    Policy("respawn", supervised(on_loader="respawn")),
    Policy("respawn, state every 10", supervised(on_loader="respawn", snapshot_every=10)),
    Policy("shadow", supervised(on_loader="shadow")),
    Policy("shadow, prefetch 8", supervised(on_loader="shadow", prefetch=8)),
)


def run(kills: Sequence[int], policy: Policy, number: signal.Signals) -> Outcome:
    """Train with one policy and count."""
    loader, waited_for = policy.begin(None), False
    given: list[list[int]] = []
    waits: list[float] = []
    state, saved_at = None, 0
    stepped_at = time.monotonic()
    while len(given) < STEPS:
        try:
            with alarm(policy.notice_s):
                given.append(next(loader))  # type: ignore[arg-type]  # lists of ids
            waits.append(time.monotonic() - stepped_at)
            time.sleep(STEP_S)
            stepped_at = time.monotonic()
            if len(given) % CHECKPOINT_EVERY == 0:
                state, saved_at = loader.state_dict(), len(given)
            if len(given) in kills:
                os.kill(loader.worker_pids()[0], number)
        # PyTorch tells of a death from a signal handler: wherever the rank is just then.
        except (LoaderError, RuntimeError, StandsStillError) as exc:
            waited_for |= isinstance(exc, StandsStillError) and policy.notice_s == PATIENCE_S
            loader.close()
            loader = _start_again(policy, state, len(given) - saved_at)
    loader.close()
    return _outcome(given, nlargest(len(kills), waits), waited_for=waited_for)


@contextmanager
def alarm(seconds: float) -> Iterator[None]:
    """Somebody outside who looks whether steps come."""

    def ring(_: int, frame: FrameType | None) -> None:
        raise StandsStillError

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _start_again(policy: Policy, state: State | None, steps_since: int) -> Loader:
    if not policy.keeps_state:
        return policy.begin(None)
    subprocess.run([sys.executable, "-c", "import torch.distributed"], check=True)
    loader = policy.begin(state)
    for _ in range(steps_since):
        next(loader)
        time.sleep(STEP_S)
    return loader


def _outcome(given: Sequence[list[int]], stalls: Sequence[float], *, waited_for: bool) -> Outcome:
    made = source()
    usual = [next(made) for _ in range(STEPS)]
    counts = Counter(map(tuple, given))
    return Outcome(
        fmean(stalls),
        sum(count - 1 for count in counts.values()),
        len(set(map(tuple, usual)) - set(counts)),
        loss_of(list(given)) == loss_of(usual),
        waited_for,
    )


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--deaths", type=int, default=5)
    deaths = max(1, min(parser.parse_args().deaths, STEPS // 20))
    moments = sorted(random.Random(11).sample(range(5, STEPS - 15), deaths))
    for number, kills in ((signal.SIGKILL, moments), (signal.SIGSTOP, moments[:STOPS])):
        print(f"{number.name} after steps {kills} of {STEPS}, a step takes {STEP_S:g} s")
        print(f"{'policy':<26}{'stall s':>9}{'repeated':>10}{'skipped':>9}  loss")
        for policy in POLICIES:
            print(_row(kills, policy, number), flush=True)


def _row(kills: Sequence[int], policy: Policy, number: signal.Signals) -> str:
    try:
        found = run(kills, policy, number)
    except (RuntimeError, StandsStillError) as exc:
        # As where a limit meant for a hanging loader runs out on a busy host during a new start.
        return f"{policy.name:<26}  ABORTED: {type(exc).__name__}: {exc}"
    stall = f"{'>' * found.waited_for}{found.stall_s:.3f}"
    same = "equal" if found.equal else "DIFFERS"
    return f"{policy.name:<26}{stall:>9}{found.repeated:>10}{found.skipped:>9}  {same}"


if __name__ == "__main__":
    main()
