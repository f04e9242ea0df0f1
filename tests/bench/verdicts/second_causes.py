"""Incidents in which something beside the cause excuses it, from a review of the rules.

Written before any was concluded on, by somebody who had read the rules: a pipe that sounds like a
receive, a file of another time, a warm GPU beside a wedged driver, a file server that came back,
statuses that launchers leave. The halves are drawn by a hash of the names, as an adversary's are.
"""

import hashlib
from random import Random

from brctl.model.command import Outcome
from brctl.model.fault import FaultClass as F
from brctl.model.sweeps.report import CheckResult, ProbeStatus
from tests.bench.verdicts.adversary_machines import (
    GPU_CHECKS,
    HANGS,
    NO_ROUTE,
    OWN_LOCK,
    RECEIVES,
    broken,
    in_stages,
    some_size,
    stuck_beside,
)
from tests.bench.verdicts.causes_machines import aborted_by_watchdog, one_of
from tests.bench.verdicts.fleet import WAITING, Fleet, ends, stands_still
from tests.bench.verdicts.incident import Tell, Truth, machine, nobody, place
from tests.bench.verdicts.oncall_machines import kernel_says
from tests.bench.verdicts.unseen_jobs import _trace

REFUSED = (Outcome.REFUSED, "connection refused")
PIPE = ("connection.py:Connection._recv", "connection.py:Connection.recv", "train.py:main")
REQUEST = ("adapters.py:HTTPAdapter.send", "sessions.py:Session.request", "train.py:main")
EIO = _trace(
    'data.py", line 40, in open_shard',
    "OSError: [Errno 5] Input/output error: '/data/shard-00017.tar'",
)
OWN_ERROR = _trace('model.py", line 77, in forward', "KeyError: 'decoder.17'")


def _wedged(it: Fleet, node: str) -> None:
    """Every question to this node's driver hangs."""
    for check in GPU_CHECKS:
        it.lost_checks[node, check] = CheckResult(check, ProbeStatus.TIMED_OUT)


def _warm(it: Fleet, node: str) -> None:
    """A GPU that slowed down for a moment: a hint that explains no job that stands still."""
    it.reads(node, "gpu.clocks", "gpu.clocks.event_reasons", 32, "gpu:0")
    it.reads(node, "gpu.clocks", "gpu.clocks.temperature_margin_c", 2, "gpu:0")


def pipe_while_ssh_is_refused(rng: Random) -> tuple[Fleet, Truth]:
    """A rank waits for a process of its own that is gone; sshd of another node was restarted."""
    it = some_size(rng, least=4)
    there, other = it.some_nodes(2)
    stuck_beside(it, there, PIPE)
    it.is_silent(other, *REFUSED)
    return it, place((*HANGS, F.DATA_LOADER), there)


def request_while_another_answers_late(rng: Random) -> tuple[Fleet, Truth]:
    """A rank asks a tracking server that never answers; logins of another node hang."""
    it = some_size(rng, least=4)
    there, other = it.some_nodes(2)
    stuck_beside(it, there, REQUEST)
    it.is_silent(other, Outcome.LOGIN_TIMED_OUT, "TCP connected, no login within 10 s")
    return it, place(HANGS, there)


def file_from_before_a_rollback(rng: Random) -> tuple[Fleet, Truth]:
    """One rank's file is of steps that were taken back; another rank hangs."""
    it = some_size(rng, least=4)
    there, full = it.some_nodes(2)
    stuck_beside(it, there)
    rank = it.rank_on(full)
    it.ranks[rank] |= {"step": int(it.ranks[rank]["step"]) + 5000, "phase": "forward"}
    it.ranks[rank] |= {"phase_age_s": 9000.0, "progress_age_s": 9000.0}
    return it, place(HANGS, there)


def file_of_the_only_one_who_waits(rng: Random) -> tuple[Fleet, Truth]:
    """A stage hangs, its pipelines receive, and of those that say they wait most files are old."""
    it = in_stages(rng)
    there, *_ = it.nodes[: len(it.nodes) // 2]
    stands_still(it, it.job.ranks_on(there), where="forward")
    old = it.rank_on(it.nodes[-1])
    for rank, values in enumerate(it.ranks):
        node = it.job.node_of(rank)
        if node == there:
            it.stacks[rank] = OWN_LOCK
        elif node in it.nodes[: len(it.nodes) - 1]:
            values["phase"] = "forward"
            it.stacks[rank] = RECEIVES
    it.ranks[old] |= {"step": 3, "phase_age_s": 9000.0, "progress_age_s": 9000.0}
    return it, place(HANGS, there)


def wedged_driver_beside_a_warm_gpu(rng: Random) -> tuple[Fleet, Truth]:
    """The driver of a node hangs with the kernels of the job; elsewhere a GPU was warm."""
    it = some_size(rng, least=4)
    bad, warm = it.some_nodes(2)
    stands_still(it, ())
    _wedged(it, bad)
    _warm(it, warm)
    return it, machine(F.DRIVER_FIRMWARE, bad)


def wedged_driver_beside_a_refusal(rng: Random) -> tuple[Fleet, Truth]:
    """As before, and one node's sshd is down for its own reasons."""
    it = some_size(rng, least=4)
    bad, other = it.some_nodes(2)
    stands_still(it, ())
    _wedged(it, bad)
    it.is_silent(other, *REFUSED)
    return it, machine(F.DRIVER_FIRMWARE, bad)


def wedged_driver_on_a_dead_nodes_neighbour(rng: Random) -> tuple[Fleet, Truth]:
    """A node is dead; a loaded one answers no question to its driver in time."""
    it = some_size(rng, least=4)
    bad, late = it.some_nodes(2)
    stands_still(it, ())
    it.is_silent(bad, *NO_ROUTE)
    _wedged(it, late)
    return it, broken((F.NODE_FAILURE, F.NETWORK_LINK, F.NETWORK_ETH), bad)


def io_error_and_the_server_is_back(rng: Random) -> tuple[Fleet, Truth]:
    """A soft mount gave up while its server was away; the server answers again."""
    it = some_size(rng, least=3)
    there = one_of(it)
    ends(it, [it.rank_on(there)], 1, EIO, phase="load")
    lines = ("nfs: server 10.9.0.4 not responding, timed out", "nfs: server 10.9.0.4 OK")
    kernel_says(it, there, *lines)
    return it, Truth(frozenset({F.STORAGE_CHECKPOINT}), frozenset({there}))


def _all_end(it: Fleet, status: int, but: int, own: int, said: str, phase: str) -> None:
    """Every rank ended by a signal of its launcher, one otherwise."""
    stands_still(it, ())
    for rank, values in enumerate(it.ranks):
        values |= {"alive": False, "exit_status": status, "last_words": ""}
        values |= {"phase": it.rng.choice((WAITING, "forward", "backward"))}
        values.pop("process_state", None)
        it.stacks.pop(rank, None)
    it.ranks[but] |= {"exit_status": own, "last_words": said, "phase": phase}


def fifteen_seven_times_and_one(rng: Random) -> tuple[Fleet, Truth]:
    """Its launcher told all others when one rank raised."""
    it = some_size(rng, least=2)
    there = one_of(it)
    told = rng.choice((-15, 143))
    _all_end(it, told, it.rank_on(there), 1, OWN_ERROR, "forward")
    return it, nobody(F.USER_CODE, seen_at=[there])


def one_without_words_among_the_told(rng: Random) -> tuple[Fleet, Truth]:
    """As before, but its log is lost: status 1 is all that is left of it."""
    it = some_size(rng, least=2)
    there = one_of(it)
    _all_end(it, rng.choice((-15, 143)), it.rank_on(there), 1, "", "forward")
    return it, nobody(F.USER_CODE, F.UNKNOWN, seen_at=[there])


def killed_among_the_told(rng: Random) -> tuple[Fleet, Truth]:
    """One rank was killed and its launcher told the others: 137 among 143."""
    it = some_size(rng, least=2)
    there = one_of(it)
    _all_end(it, 143, it.rank_on(there), 137, "", "forward")
    return it, nobody(F.UNKNOWN, F.CPU_OOM, seen_at=[there])


def all_told_and_all_killed_for_staying(rng: Random) -> tuple[Fleet, Truth]:
    """A time limit: half left when they were told, half were killed after the grace."""
    it = some_size(rng, least=4)
    _all_end(it, 143, 0, 143, "", "forward")
    for rank in it.ranks[::2]:
        rank["exit_status"] = 137
    return it, nobody(F.PREEMPTION_SIGTERM, F.UNKNOWN)


def pipe_left_over_beside_a_refusal(rng: Random) -> tuple[Fleet, Truth]:
    """Watchdogs ended all but a rank that waits in a pipe, and those of a node without sshd."""
    it = some_size(rng, least=4)
    there, other = it.some_nodes(2)
    aborted_by_watchdog(it, [stuck_beside(it, there, PIPE)])
    it.is_silent(other, *REFUSED)
    return it, place((*HANGS, F.DATA_LOADER), there)


def stage_in_torchs_own_pipeline(rng: Random) -> tuple[Fleet, Truth]:
    """A stage hangs; the others of its pipeline wait in torch's own schedule for its sends."""
    it = in_stages(rng)
    there = one_of(it)
    stuck_beside(it, there)
    first = it.nodes.index(there) // 4 * 4
    for rank in it.ranks_of(it.nodes[first : first + 4]):
        if it.job.node_of(rank) != there:
            it.ranks[rank]["phase"] = "forward"
            it.stacks[rank] = ("schedules.py:_wait_batch_p2p", "schedules.py:step", "train.py:main")
    return it, place(HANGS, there)


_TOLD: tuple[Tell, ...] = (
    pipe_while_ssh_is_refused, request_while_another_answers_late, file_from_before_a_rollback,
    file_of_the_only_one_who_waits, wedged_driver_beside_a_warm_gpu,
    wedged_driver_beside_a_refusal, wedged_driver_on_a_dead_nodes_neighbour,
    io_error_and_the_server_is_back, fifteen_seven_times_and_one, one_without_words_among_the_told,
    killed_among_the_told, all_told_and_all_killed_for_staying, pipe_left_over_beside_a_refusal,
    stage_in_torchs_own_pipeline,
)  # fmt: skip


def _is_open(tell: Tell) -> bool:
    return hashlib.sha256(tell.__name__.encode()).digest()[0] % 2 == 0


OPEN = tuple(tell for tell in _TOLD if _is_open(tell))
SET_ASIDE = tuple(tell for tell in _TOLD if not _is_open(tell))
