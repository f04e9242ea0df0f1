"""Incidents of code, data and people on healthy machines."""

from random import Random

from brctl.model.command import Outcome
from brctl.model.fault import FaultClass as F
from tests.bench.verdicts.answers import stack, words
from tests.bench.verdicts.fleet import (
    STALL_AFTER_S,
    WAITING,
    Fleet,
    ends,
    fleet,
    slow_ranks,
    stands_still,
)
from tests.bench.verdicts.incident import Truth, nobody, place

HANGS = (F.HANG_MISMATCH, F.USER_CODE)


def _stuck(rng: Random, where: tuple[str, ...], state: str, phase: str = "") -> tuple[Fleet, Truth]:
    it = fleet(rng)
    (there,) = it.some_nodes(1)
    rank = it.rank_on(there)
    stands_still(it, [rank], where=phase)
    it.ranks[rank]["process_state"] = state
    it.stacks[rank] = where
    return it, place(HANGS, there)


def deadlock(rng: Random) -> tuple[Fleet, Truth]:
    return _stuck(rng, ("cache.py:Cache.get", "model.py:Block.forward", "train.py:main"), "S")


def endless_loop(rng: Random) -> tuple[Fleet, Truth]:
    return _stuck(rng, ("sampler.py:Sampler.next", "train.py:main", "train.py:<module>"), "R")


def sleeping_hook_for_ever(rng: Random) -> tuple[Fleet, Truth]:
    return _stuck(rng, ("hooks.py:after_backward", "train.py:main"), "S", "backward")


def stopped_by_a_person(rng: Random) -> tuple[Fleet, Truth]:
    return _stuck(rng, stack("rank-stop", "culprit"), "T")


def order_mismatch(rng: Random) -> tuple[Fleet, Truth]:
    """One rank waits in another collective than all others; its phase is the same."""
    it, truth = _stuck(rng, ("distributed_c10d.py:barrier", "trainer.py:Trainer._train_step"), "S")
    (there,) = truth.blamed
    for rank in it.job.ranks_on(there):
        it.ranks[rank]["phase"] = WAITING
    return it, truth


def stuck_before_the_node_was_asked(rng: Random) -> tuple[Fleet, Truth]:
    """A deadlock; another node's answer does not parse, as a banner stands in it."""
    it, truth = deadlock(rng)
    (other,) = it.some_nodes(1, but=truth.blamed)
    it.is_silent(other, Outcome.UNPARSABLE, "no JSON in 312 bytes")
    return it, truth


def all_stopped(rng: Random) -> tuple[Fleet, Truth]:
    """Somebody paused every process of the job."""
    it = fleet(rng)
    stands_still(it, range(it.job.world_size))
    for values in it.ranks:
        values |= {"process_state": "T", "phase": rng.choice(("forward", "backward"))}
    return it, nobody(F.HANG_MISMATCH, F.PREEMPTION_SIGTERM, F.UNKNOWN)


def shape_mismatch(rng: Random) -> tuple[Fleet, Truth]:
    """Every rank raises the same at once."""
    it = fleet(rng)
    said = _raised("RuntimeError: mat1 and mat2 shapes cannot be multiplied (512x64 and 48x256)\n")
    ends(it, range(it.job.world_size), 1, said, phase="forward")
    return it, nobody(F.USER_CODE)


def exception_on_one(rng: Random) -> tuple[Fleet, Truth]:
    it = fleet(rng)
    rank = rng.randrange(it.job.world_size)
    ends(it, [rank], 1, words("rank-crash", "culprit"))
    return it, nobody(F.USER_CODE, seen_at=[it.job.node_of(rank)])


def loader_killed(rng: Random) -> tuple[Fleet, Truth]:
    it = fleet(rng)
    said = words("loader-killed", "culprit")
    rank = rng.randrange(it.job.world_size)
    ends(it, [rank], 1, said, phase="load")
    return it, nobody(F.DATA_LOADER, F.CPU_OOM, seen_at=[it.job.node_of(rank)])


def bad_sample(rng: Random) -> tuple[Fleet, Truth]:
    it = fleet(rng)
    said = _raised(
        "UnicodeDecodeError: 'utf-8' codec can't decode byte 0x93 in position 3: invalid start\n"
    )
    rank = rng.randrange(it.job.world_size)
    ends(it, [rank], 1, said, phase="load")
    return it, nobody(F.USER_CODE, F.DATA_LOADER, seen_at=[it.job.node_of(rank)])


def gpu_oom(rng: Random) -> tuple[Fleet, Truth]:
    it = fleet(rng)
    said = _raised(
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.44 GiB. GPU 0 has a total"
        " capacity of 79.10 GiB of which 1.02 GiB is free.\n"
    )
    rank = rng.randrange(it.job.world_size)
    ends(it, [rank], 1, said)
    return it, nobody(F.GPU_OOM, seen_at=[it.job.node_of(rank)])


def killed_by_somebody(rng: Random) -> tuple[Fleet, Truth]:
    """SIGKILL of one rank, and no line of any kernel says why: only the place is known."""
    it = fleet(rng)
    (there,) = it.some_nodes(1)
    ends(it, [it.rank_on(there)], -9, "")
    return it, nobody(F.UNKNOWN, seen_at=[there])


def left_with_zero(rng: Random) -> tuple[Fleet, Truth]:
    """One rank returns early and says nothing; the others wait for it."""
    it = fleet(rng)
    rank = rng.randrange(it.job.world_size)
    ends(it, [rank], 0, "")
    return it, nobody(F.UNKNOWN, F.USER_CODE, seen_at=[it.job.node_of(rank)])


def killed_for_memory(rng: Random) -> tuple[Fleet, Truth]:
    it = fleet(rng)
    (there,) = it.some_nodes(1)
    ends(it, [it.rank_on(there)], -9, "")
    it.reads(there, "host.kernel", "host.kernel.line",
             "3,900,12290000000,-;Out of memory: Killed process 4242 (python3) total-vm:91234567kB,"
             " anon-rss:88000000kB, file-rss:0kB, shmem-rss:0kB, UID:1000")  # fmt: skip
    return it, place([F.CPU_OOM], there)


def nan_on_one(rng: Random) -> tuple[Fleet, Truth]:
    it = fleet(rng)
    (there,) = it.some_nodes(1)
    it.ranks[it.rank_on(there)] |= {"loss_finite": False, "first_nonfinite_step": 39}
    return it, place([F.NUMERIC_NAN], there)


def nan_spread_from_one(rng: Random) -> tuple[Fleet, Truth]:
    """The gradients carried it to all one step later."""
    it = fleet(rng)
    (there,) = it.some_nodes(1)
    for values in it.ranks:
        values |= {"loss_finite": False, "first_nonfinite_step": 40}
    it.ranks[it.rank_on(there)]["first_nonfinite_step"] = 39
    return it, place([F.NUMERIC_NAN], there)


def nan_on_all(rng: Random) -> tuple[Fleet, Truth]:
    it = fleet(rng)
    for values in it.ranks:
        values |= {"loss_finite": False, "first_nonfinite_step": 39}
    return it, nobody(F.NUMERIC_NAN)


def one_slow(rng: Random) -> tuple[Fleet, Truth]:
    """A hook that sleeps in every step of one rank."""
    it = fleet(rng)
    (there,) = it.some_nodes(1)
    slow_ranks(it, [it.rank_on(there)], rng.uniform(1.3, 6.0))
    return it, place([F.STRAGGLER_SLOW], there)


def two_slow(rng: Random) -> tuple[Fleet, Truth]:
    it = fleet(rng, least=6)
    both = it.some_nodes(2)
    slow_ranks(it, [it.rank_on(node) for node in both], rng.uniform(1.5, 6.0))
    return it, place([F.STRAGGLER_SLOW], *both)


def a_lie(rng: Random) -> tuple[Fleet, Truth]:
    """Phases name one node and stacks another: one of the two does not tell the truth."""
    it, _ = deadlock(rng)
    busy = next(r for r, values in enumerate(it.ranks) if values["phase"] != WAITING)
    innocent = rng.choice(
        [r for r in range(len(it.ranks)) if it.job.node_of(r) != it.job.node_of(busy)]
    )
    it.stacks[innocent], it.stacks[busy] = it.stacks[busy], it.stacks[innocent]
    return it, nobody(F.HANG_MISMATCH, F.USER_CODE, F.UNKNOWN)


def half_stuck(rng: Random) -> tuple[Fleet, Truth]:
    """Many ranks read from storage that does not answer: a common cause, no machine's."""
    it = fleet(rng, least=6)
    many = it.some_nodes(max(3, len(it.nodes) // 2))
    stands_still(it, it.ranks_of(many), where="load")
    for rank in it.ranks_of(many):
        it.ranks[rank]["process_state"] = "D"
        it.stacks[rank] = ("dataset.py:Shard.read", "train.py:main")
    return it, nobody(F.STORAGE_CHECKPOINT, F.DATA_LOADER, F.UNKNOWN, F.HANG_MISMATCH)


def told_to_stop(rng: Random) -> tuple[Fleet, Truth]:
    """The scheduler ended it at its time limit."""
    it = fleet(rng)
    said = (
        "slurmstepd: error: *** STEP 4711.0 ON gpu001 CANCELLED AT 2026-03-14T09:20:00"
        " DUE TO TIME LIMIT ***\n"
    )
    ends(it, range(it.job.world_size), -15, said)
    return it, nobody(F.PREEMPTION_SIGTERM)


def _raised(last: str) -> str:
    return (
        "[rank2]: Traceback (most recent call last):\n"
        '[rank2]:   File "/srv/site/code/train.py", line 81, in step\n'
        "[rank2]:     loss = self.model(batch)\n"
        f"[rank2]: {last}"
    )


def long_evaluation_by_one(rng: Random) -> tuple[Fleet, Truth]:
    """Rank 0 evaluates for longer than a stall takes to be one; all others wait for it."""
    it = fleet(rng)
    stands_still(it, [0], where="evaluation")
    for values in it.ranks:
        age = rng.uniform(STALL_AFTER_S * 1.05, STALL_AFTER_S * 2.5)
        values |= {"phase_age_s": age, "progress_age_s": age}
    it.stacks[0] = ("linear.py:Linear.forward", "evaluate.py:evaluate", "train.py:main")
    it.ranks[0]["process_state"] = "R"
    return it, nobody(F.NO_FAULT, F.UNKNOWN)


def long_save_by_all(rng: Random) -> tuple[Fleet, Truth]:
    it = fleet(rng)
    for rank, values in enumerate(it.ranks):
        age = rng.uniform(STALL_AFTER_S * 1.05, STALL_AFTER_S * 2.5)
        values |= {"phase": "checkpoint", "phase_age_s": age, "progress_age_s": age}
        values["process_state"] = "S"
        it.stacks[rank] = ("serialization.py:save", "checkpoint.py:write", "train.py:main")
    return it, nobody(F.NO_FAULT, F.UNKNOWN)


def sshd_hangs_and_deadlock(rng: Random) -> tuple[Fleet, Truth]:
    """The login of a node hangs, its ranks wait like all; another node's rank is in a deadlock."""
    it, truth = deadlock(rng)
    (deaf,) = it.some_nodes(1, but=truth.blamed)
    it.is_silent(deaf, Outcome.LOGIN_TIMED_OUT, "connected, no login within 10 s")
    return it, truth


def loader_waits_for_storage(rng: Random) -> tuple[Fleet, Truth]:
    """Every rank reads a file server that does not answer."""
    it = fleet(rng)
    stands_still(it, range(it.job.world_size), where="load")
    for rank, values in enumerate(it.ranks):
        values["process_state"] = "D"
        it.stacks[rank] = ("dataset.py:Shard.read", "train.py:main")
    return it, nobody(F.STORAGE_CHECKPOINT, F.DATA_LOADER, F.UNKNOWN, F.HANG_MISMATCH)


def two_left_early(rng: Random) -> tuple[Fleet, Truth]:
    """Two ranks of different nodes return before the others, by a condition on their data."""
    it = fleet(rng)
    both = it.some_nodes(2)
    ends(it, [it.rank_on(node) for node in both], 0, "")
    return it, nobody(F.UNKNOWN, F.USER_CODE, seen_at=both)


def oom_of_a_loader(rng: Random) -> tuple[Fleet, Truth]:
    """The kernel kills a loader worker of the job; its rank ends of that."""
    it = fleet(rng)
    (there,) = it.some_nodes(1)
    ends(it, [it.rank_on(there)], 1, words("loader-killed", "culprit"), phase="load")
    it.reads(there, "host.kernel", "host.kernel.line",
             "3,900,12290000000,-;Memory cgroup out of memory: Killed process 4242 (pt_data_worker)"
             " total-vm:91234567kB, anon-rss:88000000kB, UID:1000")  # fmt: skip
    return it, place([F.CPU_OOM], there)
