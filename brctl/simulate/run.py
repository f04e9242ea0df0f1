"""Runs: each draws one trace and lets every policy meet it; many runs share the machine's cores."""

import multiprocessing
import os
import signal
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from itertools import islice
from threading import Thread

from brctl.model.simulation import SimulatedRun
from brctl.simulate.answers import NOW
from brctl.simulate.deciding import Deciding
from brctl.simulate.decisions import Rules, rules_of, with_blast_radius
from brctl.simulate.fleet import Fleet
from brctl.simulate.policies import SimulatedPolicy
from brctl.simulate.recorded import RecordedFaults
from brctl.simulate.response import Published
from brctl.simulate.trace import draw
from brctl.simulate.watching import SimulatedWatch, with_breaker
from brctl.simulate.world import Response, World

WORTH_PROCESSES = 20
"""Fewer runs are over before processes have started."""


@dataclass(frozen=True, slots=True)
class Task:
    """What is to be simulated: policies on the traces of these seeds, drawn or recorded."""

    fleet: Fleet
    policies: tuple[SimulatedPolicy, ...]
    seeds: tuple[int, ...]
    days: float
    rules: Rules | None = None
    recorded: RecordedFaults | None = None


def run_seed(task: Task, seed: int) -> list[SimulatedRun]:
    """Every policy on the same faults."""
    trace = (
        draw(task.fleet, seed, task.days)
        if task.recorded is None
        else task.recorded.trace(task.fleet, seed, task.days)
    )
    return [
        World(task.fleet, policy, trace, _response_of(policy, task.rules)).run()
        for policy in task.policies
    ]


def _response_of(policy: SimulatedPolicy, rules: Rules | None) -> Response:
    if not policy.decides:
        return Published()
    chosen = rules or rules_of()
    if policy.most_nodes is not None:
        chosen = with_blast_radius(chosen, policy.most_nodes)
    if policy.watches is None:
        return Deciding(chosen)
    watch = chosen.watch
    if policy.breaker_percent is not None:
        watch = with_breaker(watch, policy.breaker_percent)
    return Deciding(chosen, SimulatedWatch(watch, policy.watches, NOW))


def run_all(task: Task, workers: int = 1) -> Iterator[list[SimulatedRun]]:
    """Every seed, as they are done; what a run gives does not depend on where it is made."""
    if workers < 2 or len(task.seeds) < WORTH_PROCESSES:
        yield from (run_seed(task, seed) for seed in task.seeds)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context, initializer=_be_a_worker) as executor:
        try:
            yield from _side_by_side(executor, task, workers)
        finally:
            executor.shutdown(wait=False, cancel_futures=True)


def _be_a_worker() -> None:
    """Leave ctrl+c to the parent, which keeps what is finished, and end with it however it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_the_parent, daemon=True).start()


def _end_with_the_parent() -> None:
    """A worker waits for ever for its next task: it holds the queue's other end itself."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _side_by_side(
    executor: ProcessPoolExecutor, task: Task, workers: int
) -> Iterator[list[SimulatedRun]]:
    """A few seeds for each worker at a time: an interrupt then waits for little."""
    left = iter(task.seeds)
    going: set[Future[list[SimulatedRun]]] = set()
    while True:
        going |= {
            executor.submit(run_seed, task, seed) for seed in islice(left, 4 * workers - len(going))
        }
        if not going:
            return
        done, going = wait(going, return_when=FIRST_COMPLETED)
        for future in done:
            yield future.result()
