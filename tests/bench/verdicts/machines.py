"""Incidents of machines, links and switches."""

from random import Random

from brctl.model.command import Outcome
from brctl.model.fault import FaultClass as F
from brctl.model.sweeps.report import CheckResult, ProbeStatus
from tests.bench.verdicts.answers import words
from tests.bench.verdicts.fleet import Fleet, ends, fleet, slow_ranks, stands_still
from tests.bench.verdicts.incident import Truth, machine, place

DEAD = (
    (Outcome.CONNECT_TIMED_OUT, "no TCP connection within 5 s"),
    (Outcome.UNREACHABLE, "no route to host"),
)
FROZEN = (
    (Outcome.LOGIN_TIMED_OUT, "connected, no login within 10 s"),
    (Outcome.COMMAND_TIMED_OUT, "logged in, no answer within 30 s"),
)
SLOWED = (F.STRAGGLER_SLOW,)


def _dies_of(rng: Random, fault: str, as_class: F) -> tuple[Fleet, Truth]:
    it = fleet(rng)
    (bad,) = it.some_nodes(1)
    it.has(bad, fault)
    ends(it, [it.rank_on(bad)], 1, words(fault, "culprit"))
    return it, machine(as_class, bad)


def gpu_ecc(rng: Random) -> tuple[Fleet, Truth]:
    return _dies_of(rng, "gpu-ecc", F.GPU_MEMORY_ECC)


def gpu_lost(rng: Random) -> tuple[Fleet, Truth]:
    return _dies_of(rng, "gpu-lost", F.GPU_LOST)


def _advances_with(rng: Random, fault: str, as_class: F) -> tuple[Fleet, Truth]:
    it = fleet(rng)
    (bad,) = it.some_nodes(1)
    it.has(bad, fault)
    return it, machine(as_class, bad)


def row_remap(rng: Random) -> tuple[Fleet, Truth]:
    return _advances_with(rng, "row-remap-failure", F.GPU_MEMORY_ECC)


def nvlink(rng: Random) -> tuple[Fleet, Truth]:
    return _advances_with(rng, "nvlink-down", F.NVLINK)


def _slows(rng: Random, fault: str, as_class: F) -> tuple[Fleet, Truth]:
    it = fleet(rng)
    (bad,) = it.some_nodes(1)
    it.has(bad, fault)
    slow_ranks(it, [it.rank_on(bad)], rng.uniform(1.3, 6.0))
    return it, machine(as_class, bad)


def pcie(rng: Random) -> tuple[Fleet, Truth]:
    return _slows(rng, "pcie-degraded", F.PCIE)


def thermal(rng: Random) -> tuple[Fleet, Truth]:
    return _slows(rng, "thermal", F.THERMAL_POWER)


def disk_full(rng: Random) -> tuple[Fleet, Truth]:
    it = fleet(rng)
    (bad,) = it.some_nodes(1)
    it.has(bad, "disk-full")
    if rng.random() < 0.5:
        said = "OSError: [Errno 28] No space left on device: '/srv/site/job/scratch/shard-7'\n"
        ends(it, [it.rank_on(bad)], 1, _raised(said), phase="load")
    return it, place([F.DISK_FULL], bad)


def read_only_directory(rng: Random) -> tuple[Fleet, Truth]:
    """One node sees a file system of the job read-only; the others write to it."""
    it = fleet(rng)
    (bad,) = it.some_nodes(1)
    it.reads(
        bad,
        "host.disk",
        "host.disk.read_only",
        value=True,
        subject="disk:/srv/site/lab/job/checkpoints",
    )
    said = "OSError: [Errno 30] Read-only file system: '/srv/site/job/checkpoints/step-00000040'\n"
    ends(it, [it.rank_on(bad)], 1, _raised(said), phase="checkpoint")
    return it, place([F.STORAGE_CHECKPOINT, F.HOST_KERNEL], bad)


def _raised(last: str) -> str:
    return (
        "[rank2]: Traceback (most recent call last):\n"
        '[rank2]:   File "/srv/site/code/train.py", line 81, in step\n'
        "[rank2]:     save(state)\n"
        f"[rank2]: {last}"
    )


def node_dead(rng: Random) -> tuple[Fleet, Truth]:
    it = fleet(rng)
    (bad,) = it.some_nodes(1)
    stands_still(it, ())
    it.is_silent(bad, *rng.choice(DEAD))
    return it, Truth(
        frozenset({F.NODE_FAILURE, F.NETWORK_LINK, F.NETWORK_ETH}),
        frozenset({bad}),
        frozenset({bad}),
    )


def node_frozen(rng: Random) -> tuple[Fleet, Truth]:
    it = fleet(rng)
    (bad,) = it.some_nodes(1)
    stands_still(it, ())
    it.is_silent(bad, *rng.choice(FROZEN))
    return it, machine(F.NODE_FAILURE, bad)


def dead_and_peers_ended(rng: Random) -> tuple[Fleet, Truth]:
    """A node lost its power; the ranks of all others ended of lost connections."""
    it = fleet(rng)
    (bad,) = it.some_nodes(1)
    ends(it, (), 1, "")
    it.is_silent(bad, *DEAD[0])
    return it, machine(F.NODE_FAILURE, bad)


def two_dead(rng: Random) -> tuple[Fleet, Truth]:
    """Two nodes of different leaves at once."""
    it = fleet(rng, least=12)
    first, second = it.nodes[0], it.nodes[-1]
    stands_still(it, ())
    for node in (first, second):
        it.is_silent(node, *DEAD[0])
    return it, machine(F.NODE_FAILURE, first, second)


def leaf_off(rng: Random) -> tuple[Fleet, Truth]:
    """Every node behind one leaf is off the network, and they are few."""
    it = fleet(rng, least=6)
    leaf = rng.choice(sorted(set(it.leaves.values())))
    stands_still(it, ())
    for node in (n for n, where in it.leaves.items() if where == leaf):
        it.is_silent(node, *DEAD[0])
    return it, Truth(frozenset({F.NETWORK_SWITCH}))


def pair_behind_leaf_off(rng: Random) -> tuple[Fleet, Truth]:
    """Two nodes, which are all there are behind their leaf."""
    it = fleet(rng, least=8)
    pair = it.some_nodes(2)
    it.leaves |= dict.fromkeys(pair, "leaf-odd")
    stands_still(it, ())
    for node in pair:
        it.is_silent(node, *rng.choice(DEAD))
    return it, Truth(frozenset({F.NETWORK_SWITCH}))


def ecc_and_deadlock(rng: Random) -> tuple[Fleet, Truth]:
    """Two faults at once: a GPU with bad memory, and a rank of another node stuck in its code."""
    it = fleet(rng)
    bad, stuck = it.some_nodes(2)
    stands_still(it, [it.rank_on(stuck)])
    it.has(bad, "gpu-ecc")
    return it, Truth(
        frozenset({F.GPU_MEMORY_ECC, F.HANG_MISMATCH, F.USER_CODE}),
        frozenset({bad, stuck}), frozenset({bad}),
    )  # fmt: skip


def nvlink_and_hang(rng: Random) -> tuple[Fleet, Truth]:
    it = fleet(rng)
    bad, stuck = it.some_nodes(2)
    stands_still(it, [it.rank_on(stuck)])
    it.has(bad, "nvlink-down")
    return it, Truth(
        frozenset({F.NVLINK, F.HANG_MISMATCH, F.USER_CODE}),
        frozenset({bad, stuck}), frozenset({bad}),
    )  # fmt: skip


def dead_and_stuck(rng: Random) -> tuple[Fleet, Truth]:
    """A node died while a rank of another stood in its own code."""
    it = fleet(rng, least=6)
    bad, stuck = it.some_nodes(2)
    stands_still(it, [it.rank_on(stuck)])
    it.is_silent(bad, *DEAD[0])
    return it, Truth(
        frozenset({F.NODE_FAILURE, F.HANG_MISMATCH, F.USER_CODE}),
        frozenset({bad, stuck}), frozenset({bad}),
    )  # fmt: skip


def ecc_and_thermal(rng: Random) -> tuple[Fleet, Truth]:
    it = fleet(rng)
    bad, hot = it.some_nodes(2)
    it.has(hot, "thermal")
    it.has(bad, "gpu-ecc")
    ends(it, [it.rank_on(bad)], 1, words("gpu-ecc", "culprit"))
    return it, machine(F.GPU_MEMORY_ECC, bad, hot)


def lost_and_disk_full(rng: Random) -> tuple[Fleet, Truth]:
    it = fleet(rng)
    bad, full = it.some_nodes(2)
    it.has(full, "disk-full")
    it.has(bad, "gpu-lost")
    ends(it, [it.rank_on(bad)], 1, words("gpu-lost", "culprit"))
    return it, Truth(frozenset({F.GPU_LOST, F.DISK_FULL}), frozenset({bad, full}), frozenset({bad}))


def nan_of_a_bad_gpu(rng: Random) -> tuple[Fleet, Truth]:
    it = fleet(rng)
    (bad,) = it.some_nodes(1)
    it.has(bad, "gpu-ecc")
    it.ranks[it.rank_on(bad)] |= {"loss_finite": False, "first_nonfinite_step": 39}
    return it, machine(F.GPU_MEMORY_ECC, bad)


def frozen_and_looping(rng: Random) -> tuple[Fleet, Truth]:
    """A node froze, and a rank of another loops in its own code."""
    it = fleet(rng, least=6)
    bad, loops = it.some_nodes(2)
    stuck = it.rank_on(loops)
    stands_still(it, [stuck])
    it.ranks[stuck]["process_state"] = "R"
    it.is_silent(bad, Outcome.CONNECT_TIMED_OUT, "no TCP connection within 5 s")
    return it, Truth(
        frozenset({F.NODE_FAILURE, F.HANG_MISMATCH, F.USER_CODE}),
        frozenset({bad, loops}), frozenset({bad}),
    )  # fmt: skip


def driver_hangs(rng: Random) -> tuple[Fleet, Truth]:
    """The driver of a node answers nobody, and the rank there waits in its kernel."""
    it = fleet(rng)
    (bad,) = it.some_nodes(1)
    rank = it.rank_on(bad)
    stands_still(it, [rank])
    it.ranks[rank]["process_state"] = "D"
    for check in ("gpu.devices", "gpu.ecc", "gpu.clocks", "gpu.pcie", "gpu.nvlink"):
        it.lost_checks[bad, check] = CheckResult(check, ProbeStatus.TIMED_OUT)
    return it, machine(F.DRIVER_FIRMWARE, bad)


def crash_a_moment_ago(rng: Random) -> tuple[Fleet, Truth]:
    """A rank has just died of its GPU; the others are still on their way to the all-reduce."""
    it = fleet(rng)
    (bad,) = it.some_nodes(1)
    it.has(bad, "gpu-lost")
    rank = it.rank_on(bad)
    it.ranks[rank] |= {"alive": False, "exit_status": 1, "phase": "forward"}
    it.ranks[rank]["last_words"] = words("gpu-lost", "culprit")
    return it, machine(F.GPU_LOST, bad)
