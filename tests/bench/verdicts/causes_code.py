"""Incidents of code, data and people, made from lists of causes and not from any rule.

Written, and measured once, before a rule was changed for them. `place` is where it came to light:
a report would name the rank and its node, and nobody would take that machine out.
"""

from random import Random

from brctl.model.command import Outcome
from brctl.model.fault import FaultClass as F
from tests.bench.verdicts.causes_machines import aborted_by_watchdog, any_size, one_of
from tests.bench.verdicts.fleet import (
    LOCAL_PHASES,
    STALL_AFTER_S,
    Fleet,
    ends,
    remember,
    slow_ranks,
    stands_still,
)
from tests.bench.verdicts.incident import Truth, nobody, place
from tests.bench.verdicts.oncall_machines import kernel_says, sized

HANGS = (F.HANG_MISMATCH, F.USER_CODE)


def _trace(where: str, said: str) -> str:
    return (
        "[rank2]: Traceback (most recent call last):\n"
        '[rank2]:   File "/srv/site/code/train.py", line 118, in main\n'
        "[rank2]:     run(step)\n"
        f'[rank2]:   File "/srv/site/code/{where}\n'
        f"[rank2]: {said}\n"
    )


def stopped_by_signal(rng: Random) -> tuple[Fleet, Truth]:
    """SIGSTOP of one rank; a stopped process gives no stack."""
    it = any_size(rng)
    there = one_of(it)
    rank = it.rank_on(there)
    stands_still(it, [rank])
    it.ranks[rank]["process_state"] = "T"
    del it.stacks[rank]
    return it, place(HANGS, there)


def loader_worker_gone(rng: Random) -> tuple[Fleet, Truth]:
    """A worker of one rank's loader died without a word, and the rank waits for its batch."""
    it = any_size(rng)
    there = one_of(it)
    rank = it.rank_on(there)
    stands_still(it, [rank], where="load")
    it.stacks[rank] = (
        "selectors.py:select", "connection.py:wait", "dataloader.py:_try_get_data",
        "dataloader.py:_next_data", "train.py:main",
    )  # fmt: skip
    return it, place([F.DATA_LOADER, *HANGS], there)


def memory_limit_of_one(rng: Random) -> tuple[Fleet, Truth]:
    """The control group of one rank is full; the kernel killed its loader, the rank raised."""
    it = any_size(rng)
    there = one_of(it)
    rank = it.rank_on(there)
    said = _trace(
        'data.py", line 33, in batch',
        "RuntimeError: DataLoader worker (pid 7121) is killed by signal: Killed.",
    )
    ends(it, [rank], 1, said, phase="load")
    it.reads(there, "job.cgroup", "job.cgroup.memory_pct", 99.8, f"rank:{rank}")
    it.reads(there, "job.cgroup", "job.cgroup.oom_kills", 2, f"rank:{rank}")
    return it, place([F.CPU_OOM, F.DATA_LOADER], there)


def evaluates_without_a_name(rng: Random) -> tuple[Fleet, Truth]:
    """Rank 0 validates in what its progress file calls forward; only its stack tells."""
    it = any_size(rng)
    stands_still(it, [0], where="forward")
    age = rng.uniform(STALL_AFTER_S * 1.05, STALL_AFTER_S * 2.0)
    for values in it.ranks:
        values |= {"phase_age_s": age, "progress_age_s": age}
    it.stacks[0] = ("attention.py:Attention.forward", "validation.py:validate", "train.py:main")
    it.ranks[0]["process_state"] = "R"
    return it, nobody(F.NO_FAULT, F.UNKNOWN)


def raised_and_hangs_in_teardown(rng: Random) -> tuple[Fleet, Truth]:
    """A rank raised, and its interpreter waits for a thread of its own before it may exit."""
    it = any_size(rng)
    there = one_of(it)
    rank = it.rank_on(there)
    stands_still(it, [rank], where="forward")
    it.ranks[rank]["last_words"] = _trace(
        'model.py", line 90, in forward', "ValueError: sequence of 4100 tokens does not fit 4096"
    ).replace("[rank2]", f"[rank{rank}]")
    it.stacks[rank] = ("threading.py:_wait_for_tstate_lock", "threading.py:_shutdown")
    return it, place([F.USER_CODE, F.HANG_MISMATCH], there)


def raised_on_one(rng: Random) -> tuple[Fleet, Truth]:
    it = any_size(rng)
    there = one_of(it)
    said = _trace('tokens.py", line 12, in decode', "IndexError: index 50257 is out of bounds")
    ends(it, [it.rank_on(there)], 1, said, phase="load")
    return it, place([F.USER_CODE, F.DATA_LOADER], there)


def gpu_memory_of_one(rng: Random) -> tuple[Fleet, Truth]:
    """A batch of long sequences met one rank."""
    it = any_size(rng)
    there = one_of(it)
    said = _trace(
        'model.py", line 51, in loss',
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 7.83 GiB. GPU 1 has a total"
        " capacity of 79.11 GiB of which 3.12 GiB is free.",
    )
    ends(it, [it.rank_on(there)], 1, said, phase="forward")
    return it, place([F.GPU_OOM], there)


def too_many_open_files(rng: Random) -> tuple[Fleet, Truth]:
    it = any_size(rng)
    there = one_of(it)
    said = _trace("data.py\", line 20, in open_shard",
                  "OSError: [Errno 24] Too many open files: '/data/shard-00411.tar'")  # fmt: skip
    ends(it, [it.rank_on(there)], 1, said, phase="load")
    return it, place([F.USER_CODE, F.DATA_LOADER, F.ENVIRONMENT_MISMATCH], there)


def segfault_of_one(rng: Random) -> tuple[Fleet, Truth]:
    it = any_size(rng)
    there = one_of(it)
    said = (
        "Fatal Python error: Segmentation fault\n\nCurrent thread 0x00007f2b (most recent call"
        ' first):\n  File "/srv/site/code/ops.py", line 9 in fused\n'
    )
    ends(it, [it.rank_on(there)], -11, said)
    kernel_says(it, there, "python3[4242]: segfault at 10 ip 00007f2b3c11 sp 00007ffd2 error 4 in"
                " fused_ops.so[7f2b3c000000+5000]")  # fmt: skip
    return it, place([F.USER_CODE, F.UNKNOWN], there)


def shared_memory_of_a_container(rng: Random) -> tuple[Fleet, Truth]:
    """/dev/shm of 64 MiB: the loader of one rank gets a bus error."""
    it = any_size(rng)
    there = one_of(it)
    said = (
        "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient"
        " shared memory (shm).\n"
        + _trace("data.py\", line 33, in batch",
                 "RuntimeError: DataLoader worker (pid 811) is killed by signal: Bus error.")
    )  # fmt: skip
    ends(it, [it.rank_on(there)], 1, said, phase="load")
    return it, place([F.DATA_LOADER, F.DISK_FULL, F.ENVIRONMENT_MISMATCH, F.NCCL_CONFIG], there)


def names_not_resolved(rng: Random) -> tuple[Fleet, Truth]:
    """No rank finds the master: the name service is gone."""
    it = any_size(rng)
    said = (
        "[W socket.cpp:697] [c10d] The client socket has failed to connect to"
        " [head.cluster]:29500 (errno: -3 - Temporary failure in name resolution).\n"
        "[rank2]: socket.gaierror: [Errno -3] Temporary failure in name resolution\n"
    )
    ends(it, range(it.job.world_size), 1, said)
    return it, nobody(F.NETWORK_ETH, F.ENVIRONMENT_MISMATCH, F.NCCL_CONFIG, F.USER_CODE)


def each_waits_for_the_other(rng: Random) -> tuple[Fleet, Truth]:
    """Two pipeline stages receive from each other first; all others wait in the all-reduce."""
    it = any_size(rng, least=4)
    both = it.some_nodes(2)
    ranks = [it.rank_on(node) for node in both]
    stands_still(it, ranks, where="forward")
    for rank in ranks:
        it.stacks[rank] = (
            "distributed_c10d.py:recv", "p2p.py:recv_activation", "train.py:Step.run",
            "train.py:main",
        )  # fmt: skip
    return it, place(HANGS, *both)


def retries_its_download(rng: Random) -> tuple[Fleet, Truth]:
    """One rank's object store refuses it; its client retries, sleeps and says so."""
    it = any_size(rng)
    there = one_of(it)
    rank = it.rank_on(there)
    stands_still(it, [rank], where="load")
    it.stacks[rank] = ("retry.py:Retry.sleep", "fetch.py:Fetcher.get", "train.py:main")
    it.ranks[rank]["last_words"] = "".join(
        f"WARNING Retrying (Retry(total={n})) after connection broken by"
        " 'ReadTimeoutError(\"Read timed out.\")': /bucket/shard-000812\n" for n in range(9, 3, -1)
    )  # fmt: skip
    return it, place([F.DATA_LOADER, F.STORAGE_CHECKPOINT, *HANGS], there)


def workers_fork_into_a_lock(rng: Random) -> tuple[Fleet, Truth]:
    """At the epoch's end every rank waits for loader workers that copied a held lock."""
    it = any_size(rng)
    stands_still(it, range(it.job.world_size), where="load")
    for rank in range(it.job.world_size):
        it.stacks[rank] = (
            "connection.py:Connection._poll", "dataloader.py:_try_get_data",
            "dataloader.py:_next_data", "train.py:main",
        )  # fmt: skip
    return it, nobody(F.DATA_LOADER, F.UNKNOWN, F.STORAGE_CHECKPOINT, *HANGS)


def not_started_on_one(rng: Random) -> tuple[Fleet, Truth]:
    """The launcher skipped a node: no process, no log, no progress there; the rest waits."""
    it = any_size(rng, least=3)
    there = one_of(it)
    it.past = False
    stands_still(it, ())
    for rank, values in enumerate(it.ranks):
        values["step"] = 0
        it.stacks[rank] = ("rendezvous.py:_tcp_store", "distributed_c10d.py:init_process_group",
                           "train.py:main")  # fmt: skip
    for rank in it.job.ranks_on(there):
        it.ranks[rank] = {"alive": False}
        it.stacks.pop(rank)
    return it, place([F.HANG_MISMATCH, F.UNKNOWN, F.ENVIRONMENT_MISMATCH, F.NODE_FAILURE], there)


def diverges(rng: Random) -> tuple[Fleet, Truth]:
    """A learning rate ten times too high: norms grow for a hundred steps, then all are NaN."""
    it = any_size(rng)
    it.past = True
    (home,) = [node for node in it.nodes if 0 in it.job.ranks_on(node)]
    for number, norm in enumerate((0.9, 1.4, 3.1, 9.0, 61.0)):
        it.reads(home, "job.ranks", "job.steps.grad_norm", norm, f"past:{number}")
    for values in it.ranks:
        values |= {"loss_finite": False, "first_nonfinite_step": int(values["step"]) - 2}
    return it, nobody(F.NUMERIC_NAN)


def busy_controller_and_lab(rng: Random) -> tuple[Fleet, Truth]:
    """All nodes share processors that somebody else uses: every rank is slower, in everything."""
    it = any_size(rng)
    times = rng.uniform(1.3, 2.0)
    slow_ranks(it, range(it.job.world_size), times)
    for values in it.ranks:
        values["wait_s"] = it.now_s * rng.uniform(0.05, 0.45)
        values["recent_wait_s"] = it.now_s * rng.uniform(0.15, 0.3)
    for node in it.nodes:
        it.reads(node, "host.cpu", "host.cpu.load_per_cpu", rng.uniform(6.0, 9.0))
    return it, nobody(F.UNKNOWN, F.NO_FAULT)


def collects_garbage_once(rng: Random) -> tuple[Fleet, Truth]:
    """The last step of one rank took four times as long; the dozen before did not."""
    it = any_size(rng)
    rank = rng.randrange(it.job.world_size)
    for number, values in enumerate(it.ranks):
        values |= {"step_s": it.step_s * 4.0, "wait_s": it.step_s * 3.0}
        if number == rank:
            values["wait_s"] = it.step_s * 0.02
        values["phase"] = rng.choice(LOCAL_PHASES)
    return it, nobody(F.NO_FAULT)


def last_stage_is_heavier(rng: Random) -> tuple[Fleet, Truth]:
    """The stage with the loss always works longest, as it did in all of the job's past."""
    it = sized(rng, rng.choice((4, 8, 32, 128)), rng.choice((1, 2)))
    it.past = True
    last = it.nodes[len(it.nodes) * 3 // 4 :]
    for rank, values in enumerate(it.ranks):
        heavy = it.job.node_of(rank) in last
        values["wait_s"] = it.step_s * (rng.uniform(0.01, 0.03) if heavy else rng.uniform(0.2, 0.3))
    remember(it)
    return it, nobody(F.NO_FAULT)


def killed_while_another_cannot_be_asked(rng: Random) -> tuple[Fleet, Truth]:
    """A rank raised; a node that has nothing to do with it answers no login since yesterday."""
    it = any_size(rng, least=4)
    there, deaf = it.some_nodes(2)
    said = _trace('rewards.py", line 77, in score', "AssertionError: rewards must be in [0, 1]")
    ends(it, [it.rank_on(there)], 1, said, phase="forward")
    it.is_silent(deaf, Outcome.AUTHENTICATION_FAILED, "permission denied (publickey)")
    return it, place([F.USER_CODE], there)


def computes_while_all_were_aborted(rng: Random) -> tuple[Fleet, Truth]:
    """One rank loops in its sampler; after ten minutes the watchdogs of all others end them."""
    it = any_size(rng, least=3)
    there = one_of(it)
    rank = it.rank_on(there)
    stands_still(it, [rank], where="load")
    it.stacks[rank] = ("sampler.py:Sampler.pack", "train.py:main", "train.py:<module>")
    it.ranks[rank]["process_state"] = "R"
    aborted_by_watchdog(it, [rank])
    return it, place([*HANGS, F.DATA_LOADER], there)


def ended_by_the_scheduler_on_one(rng: Random) -> tuple[Fleet, Truth]:
    """The scheduler drained one node: its ranks got SIGTERM first, all others lost their peers."""
    it = any_size(rng, least=3)
    there = one_of(it)
    said = "slurmstepd: error: *** STEP 88.0 ON {0} CANCELLED AT 2026-03-14T09:22:31 ***\n"
    ends(it, it.job.ranks_on(there), -15, said.format(there))
    return it, nobody(F.PREEMPTION_SIGTERM)


OPEN = (
    stopped_by_signal, memory_limit_of_one, raised_and_hangs_in_teardown, gpu_memory_of_one,
    segfault_of_one, names_not_resolved, retries_its_download, not_started_on_one,
    busy_controller_and_lab, last_stage_is_heavier, computes_while_all_were_aborted,
)  # fmt: skip
SET_ASIDE = (
    loader_worker_gone, evaluates_without_a_name, raised_on_one, too_many_open_files,
    shared_memory_of_a_container, each_waits_for_the_other, workers_fork_into_a_lock, diverges,
    collects_garbage_once, killed_while_another_cannot_be_asked, ended_by_the_scheduler_on_one,
)  # fmt: skip
