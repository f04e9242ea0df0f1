"""What a loader's death costs, policy by policy: `python -m tests.bench.loaders [--deaths N]`.

One source with two shards, mixture weights and a shuffle buffer of 256; its process is killed
after the same steps for every policy. Printed are the seconds without a new batch per death,
batches given twice and never, and whether a model would have learned the same, bit by bit.
`restart` resumes from checkpoints 10 steps apart and trains the steps since again, without the
minutes that a job takes to start; `no state` begins the source anew, as a loader does that cannot
be resumed.
"""

import argparse
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest
from statistics import fmean

from brctl.training.supervised_loader import LoaderError, SupervisedLoader
from tests.training.mixed_source import MixedSource, loss_of

STEPS, STEP_S, CHECKPOINT_EVERY = 200, 0.01, 10

State = Mapping[str, object]
Options = Mapping[str, object]
Restart = Callable[[Options, State | None, int], SupervisedLoader]


@dataclass(frozen=True, slots=True)
class Outcome:
    """One policy over all deaths: seconds without a batch for each, and what was given."""

    stall_s: float
    repeated: int
    skipped: int
    equal: bool


def source() -> MixedSource:
    """The data of the one rank."""
    return MixedSource(batches=STEPS)


def from_checkpoint(options: Options, state: State | None, steps_since: int) -> SupervisedLoader:
    """As a new start of the rank does: what was trained since the checkpoint is trained again."""
    loader = open_loader(options, state)
    for _ in range(steps_since):
        next(loader)
        time.sleep(STEP_S)
    return loader


def from_scratch(options: Options, state: State | None, steps_since: int) -> SupervisedLoader:
    """Without state the source can only begin again."""
    return open_loader(options, None)


def open_loader(options: Options, state: State | None) -> SupervisedLoader:
    """A loader of the source."""
    return SupervisedLoader(source, state=state, **options)  # type: ignore[arg-type]  # by name


POLICIES: tuple[tuple[str, Options, Restart], ...] = (
    ("restart", {"on_loader": "fail"}, from_checkpoint),
    ("respawn, no state", {"on_loader": "fail"}, from_scratch),
    ("respawn", {"on_loader": "respawn"}, from_checkpoint),
    ("respawn, state every 10", {"on_loader": "respawn", "snapshot_every": 10}, from_checkpoint),
    ("shadow", {"on_loader": "shadow"}, from_checkpoint),
    ("shadow, prefetch 8", {"on_loader": "shadow", "prefetch": 8}, from_checkpoint),
)


def run(kills: Sequence[int], options: Options, restart: Restart) -> Outcome:
    """Train with one policy and count."""
    options = {"prefetch": 1, **options}
    loader = open_loader(options, None)
    given: list[list[int]] = []
    waits: list[float] = []
    state, saved_at = None, 0
    stepped_at = time.monotonic()
    while len(given) < STEPS:
        try:
            given.append(next(loader))  # type: ignore[arg-type]  # lists of ids
        except LoaderError:
            loader.close()
            loader = restart(options, state, len(given) - saved_at)
            continue
        waits.append(time.monotonic() - stepped_at)
        time.sleep(STEP_S)
        if len(given) % CHECKPOINT_EVERY == 0:
            state, saved_at = loader.state_dict(), len(given)
        if len(given) in kills:
            os.kill(loader.worker_pids()[0], signal.SIGKILL)
        stepped_at = time.monotonic()
    loader.close()
    return _outcome(given, nlargest(len(kills), waits))


def _outcome(given: Sequence[list[int]], stalls: Sequence[float]) -> Outcome:
    made = source()
    usual = [next(made) for _ in range(STEPS)]
    counts = Counter(map(tuple, given))
    return Outcome(
        fmean(stalls),
        sum(count - 1 for count in counts.values()),
        len(set(map(tuple, usual)) - set(counts)),
        loss_of(list(given)) == loss_of(usual),
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--deaths", type=int, default=5)
    deaths = max(1, min(parser.parse_args().deaths, STEPS // 20))
    kills = sorted(random.Random(11).sample(range(5, STEPS - 15), deaths))
    print(f"{deaths} deaths in {STEPS} steps of {STEP_S:g} s, after steps {kills}")
    print(f"{'policy':<26}{'stall s':>9}{'repeated':>10}{'skipped':>9}  loss")
    for name, options, restart in POLICIES:
        found = run(kills, options, restart)
        same = "equal" if found.equal else "DIFFERS"
        print(f"{name:<26}{found.stall_s:>9.3f}{found.repeated:>10}{found.skipped:>9}  {same}")


if __name__ == "__main__":
    main()
