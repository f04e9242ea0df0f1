"""Incidents of kinds that no other set has; what is right was written before any was concluded on.

Other jobs and people on a node, what is left when watchdogs have ended the rest, two causes beside
each other.
"""

from random import Random

from brctl.model.fault import FaultClass as F
from tests.bench.verdicts.causes_machines import aborted_by_watchdog, any_size, one_of
from tests.bench.verdicts.fleet import Fleet, ends, slow_ranks, stands_still
from tests.bench.verdicts.incident import Truth, machine, place
from tests.bench.verdicts.unseen_jobs import HANGS, _trace

STRAGGLER = (F.STRAGGLER_SLOW,)


def another_job_on_one_node(rng: Random) -> tuple[Fleet, Truth]:
    """Somebody's processes share the GPUs and the cores of one node."""
    it = any_size(rng, least=4)
    there = one_of(it)
    slow_ranks(it, it.job.ranks_on(there), rng.uniform(1.4, 2.5))
    it.reads(there, "host.cpu", "host.cpu.load_per_cpu", rng.uniform(2.0, 5.0))
    it.reads(there, "gpu.processes", "gpu.processes.leftover_count", 1, "gpu:0")
    return it, place((*STRAGGLER, F.ENVIRONMENT_MISMATCH), there)


def save_hangs_beside_good_loaders(rng: Random) -> tuple[Fleet, Truth]:
    """The mount for checkpoints does not answer on one node; the one for data does."""
    it = any_size(rng, least=3)
    there = one_of(it)
    rank = it.rank_on(there)
    stands_still(it, [rank], where="checkpoint")
    it.ranks[rank] |= {"process_state": "D", "kernel_wait": "rpc_wait_bit_killable"}
    it.ranks[rank] |= {"phase_longest_s": 3.0}
    it.stacks[rank] = ("serialization.py:save", "train.py:save_checkpoint", "train.py:main")
    it.reads(there, "host.mounts", "host.mounts.hangs", value=True, subject="mount:/ckpt")
    it.reads(there, "host.mounts", "host.mounts.hangs", value=False, subject="mount:/data")
    return it, place((F.STORAGE_CHECKPOINT,), there)


def two_hang_in_two_places(rng: Random) -> tuple[Fleet, Truth]:
    """One waits for a lock in its forward pass, another reads a pipe; they know nothing of it."""
    it = any_size(rng, least=12)
    one, other = it.some_nodes(2)
    first, second = it.rank_on(one), it.rank_on(other)
    stands_still(it, [first, second])
    for rank, phase, frame in (
        (first, "forward", "cache.py:Cache.lock"), (second, "load", "pipes.py:Reader.next"),
    ):  # fmt: skip
        it.ranks[rank] |= {"phase": phase, "process_state": "S"}
        it.stacks[rank] = (frame, "train.py:Step.run", "train.py:main")
    return it, place(HANGS, one, other)


def evaluates_while_all_were_aborted(rng: Random) -> tuple[Fleet, Truth]:
    """A validation that was longer than the watchdogs of the others are patient."""
    it = any_size(rng, least=3)
    there = one_of(it)
    rank = it.rank_on(there)
    stands_still(it, [rank], where="evaluation")
    it.ranks[rank]["process_state"] = "R"
    it.stacks[rank] = ("linear.py:Linear.forward", "train.py:evaluate", "train.py:main")
    aborted_by_watchdog(it, [rank])
    return it, place((F.UNKNOWN, *HANGS), there)


def loaders_of_two_nodes(rng: Random) -> tuple[Fleet, Truth]:
    """Two nodes share a cache that is slow; everybody else waits for their batches."""
    it = any_size(rng, least=8)
    it.past = True
    one, other = it.some_nodes(2)
    slow = it.ranks_of((one, other))
    times = rng.uniform(1.6, 3.0)
    slow_ranks(it, slow, times)
    for rank in slow:
        it.ranks[rank] |= {"recent_load_s": it.step_s * (times - 1.0), "phase": "load"}
    return it, place((F.DATA_LOADER,), one, other)


def two_slow_and_one_writes(rng: Random) -> tuple[Fleet, Truth]:
    """Two ranks lost pace, and one of them writes its files just when somebody looks."""
    it = any_size(rng, least=6)
    it.past = True
    one, other = it.some_nodes(2)
    first, second = it.rank_on(one), it.rank_on(other)
    slow_ranks(it, (first, second), rng.uniform(1.6, 3.0))
    it.ranks[first] |= {"process_state": "D", "kernel_wait": "folio_wait_bit_common"}
    return it, place(STRAGGLER, one, other)


def starter_stopped_and_rank_killed(rng: Random) -> tuple[Fleet, Truth]:
    """Nobody collects what is left of it: a zombie, and no word of how it ended."""
    it = any_size(rng, least=3)
    there = one_of(it)
    rank = it.rank_on(there)
    stands_still(it, [rank], where="backward")
    it.ranks[rank] |= {"alive": False, "process_state": "Z"}
    del it.stacks[rank]
    return it, place((F.UNKNOWN, F.USER_CODE, F.CPU_OOM), there)


def power_capped_gpu(rng: Random) -> tuple[Fleet, Truth]:
    """Somebody lowered the power limit of one node's boards."""
    it = any_size(rng, least=4)
    bad = one_of(it)
    slow_ranks(it, it.job.ranks_on(bad), rng.uniform(1.3, 2.0))
    for name, value in (("event_reasons", 4), ("power_limit_w", 300.0), ("sm_mhz", 900)):
        it.reads(bad, "gpu.clocks", f"gpu.clocks.{name}", value, "gpu:0")
    it.reads(bad, "gpu.clocks", "gpu.clocks.default_power_limit_w", 700.0, "gpu:0")
    return it, machine_or_slow(bad)


def machine_or_slow(node: str) -> Truth:
    classes = frozenset({F.STRAGGLER_SLOW, F.THERMAL_POWER, F.GPU_SLOW})
    return Truth(classes, frozenset({node}), frozenset({node}))


def pinned_to_one_core(rng: Random) -> tuple[Fleet, Truth]:
    """A wrong binding: all ranks of a node share one core, which its load does not show."""
    it = any_size(rng, least=4)
    it.past = True
    there = one_of(it)
    slow_ranks(it, it.job.ranks_on(there), rng.uniform(1.5, 4.0))
    return it, place(STRAGGLER, there)


def two_left_over_by_watchdogs(rng: Random) -> tuple[Fleet, Truth]:
    """Both loop in the same sampler since the same bad sample."""
    it = any_size(rng, least=12)
    one, other = it.some_nodes(2)
    left = [it.rank_on(one), it.rank_on(other)]
    stands_still(it, left, where="load")
    for rank in left:
        it.ranks[rank]["process_state"] = "R"
        it.stacks[rank] = ("sampler.py:Sampler.pack", "train.py:main")
    aborted_by_watchdog(it, left)
    return it, place((*HANGS, F.DATA_LOADER), one, other)


def bad_memory_and_all_aborted(rng: Random) -> tuple[Fleet, Truth]:
    """A GPU with an uncorrectable error hung its rank; watchdogs ended the others."""
    it = any_size(rng, least=3)
    bad = one_of(it)
    rank = it.rank_on(bad)
    it.has(bad, "gpu-ecc")
    stands_still(it, [rank], where="backward")
    it.ranks[rank]["process_state"] = "R"
    aborted_by_watchdog(it, [rank])
    return it, machine(F.GPU_MEMORY_ECC, bad)


def mount_gone_since_a_reboot(rng: Random) -> tuple[Fleet, Truth]:
    """One node came back without its data mount; its rank finds no file."""
    it = any_size(rng, least=3)
    there = one_of(it)
    said = _trace(
        'data.py", line 19, in open_shard',
        "FileNotFoundError: [Errno 2] No such file or directory: '/data/shard-00017.tar'",
    )
    ends(it, [it.rank_on(there)], 1, said, phase="load")
    it.reads(there, "host.mounts", "host.mounts.present", value=False, subject="mount:/data")
    classes = (F.ENVIRONMENT_MISMATCH, F.STORAGE_CHECKPOINT, F.USER_CODE, F.DATA_LOADER)
    return it, place(classes, there)


def one_core_for_all_of_a_node(rng: Random) -> tuple[Fleet, Truth]:
    """A launcher bound every rank of one node to one core; their waits look like everybody's."""
    it = any_size(rng, least=4)
    it.past = True
    there = one_of(it)
    slow_ranks(it, range(it.job.world_size), rng.uniform(1.6, 3.0))
    for rank in it.job.ranks_on(there):
        it.reads(there, "job.cpu", "job.cpu.allowed", 1, f"rank:{rank}")
        it.reads(there, "job.cpu", "job.cpu.waits_pct", rng.uniform(45, 90), f"rank:{rank}")
    return it, place(STRAGGLER, there)


OPEN = (
    one_core_for_all_of_a_node,
    another_job_on_one_node, save_hangs_beside_good_loaders, two_hang_in_two_places,
    evaluates_while_all_were_aborted, loaders_of_two_nodes, two_slow_and_one_writes,
)  # fmt: skip
SET_ASIDE = (
    starter_stopped_and_rank_killed, power_capped_gpu, pinned_to_one_core,
    two_left_over_by_watchdogs, bad_memory_and_all_aborted, mount_gone_since_a_reboot,
)  # fmt: skip
