"""The half of `clusters` that was put aside, by coins tossed before a family was written."""

from random import Random

from brctl.model.fault import FaultClass as F
from tests.bench.verdicts.fleet import (
    WAITING,
    Fleet,
    _address,
    _leave,
    fleet,
    remember,
    slow_ranks,
    stands_still,
)
from tests.bench.verdicts.incident import Tell, Truth, nobody, place
from tests.bench.verdicts.oncall_machines import kernel_says

_GPU = "gpu:GPU-00000001-0000-0000-0000-000000000000"


def slow_nvme_under_one_loader(rng: Random) -> tuple[Fleet, Truth]:
    """The disk with one node's shards reads at a tenth of its pace; its kernel may say nothing."""
    it = fleet(rng, most=64)
    (bad,) = it.some_nodes(1)
    mine = it.job.ranks_on(bad)
    slow_ranks(it, mine, rng.uniform(1.4, 4.0))
    for rank in mine:
        it.ranks[rank] |= {"phase": "load", "process_state": "S", "kernel_wait": "do_sys_poll"}
        it.ranks[rank]["recent_load_s"] = it.now_s - it.step_s * 0.98
    if rng.random() < 0.5:
        kernel_says(it, bad, "nvme nvme1: I/O 88 (Read) QID 3 timeout, completion polled")
    classes = frozenset({F.STRAGGLER_SLOW, F.DATA_LOADER, F.STORAGE_CHECKPOINT})
    return it, Truth(classes, frozenset({bad}), frozenset({bad}))


def daemon_on_a_core(rng: Random) -> tuple[Fleet, Truth]:
    """A monitoring agent went wild on the core of one rank's main thread."""
    it = fleet(rng, most=64)
    (there,) = it.some_nodes(1)
    rank = it.rank_on(there)
    slow_ranks(it, [rank], rng.uniform(1.3, 2.0))
    it.reads(there, "job.cpu", "job.cpu.waits_pct", rng.uniform(55, 95), f"rank:{rank}")
    it.reads(there, "host.cpu", "host.cpu.load_per_cpu", rng.uniform(0.5, 0.7))
    return it, place([F.STRAGGLER_SLOW], there)


def names_fail_at_the_start(rng: Random) -> tuple[Fleet, Truth]:
    """One node cannot resolve the first node's name; the others give up after a time."""
    it = fleet(rng, most=64)
    (bad,) = it.some_nodes(1)
    world, mine = it.job.world_size, set(it.job.ranks_on(bad))
    it.past = False
    ended_ago = rng.uniform(20.0, 200.0)
    for rank, values in enumerate(it.ranks):
        for name in [name for name in values if name.startswith("recent_") or name == "step"]:
            del values[name]
        values |= {"phase": "start", "phase_age_s": ended_ago, "progress_age_s": ended_ago}
        said = (
            f"torch.distributed.DistStoreError: Timed out after 301 seconds waiting for clients."
            f" {world - len(mine)}/{world} clients joined.\n"
        )
        if rank in mine:
            said = (
                "socket.gaierror: [Errno -3] Temporary failure in name resolution\n"
                "torch.distributed.DistNetworkError: The client socket has failed to connect to"
                f" any network address of ({it.nodes[0]}, 29500)\n"
            )
        _leave(values, 1, f"Traceback (most recent call last):\n{said}")
    classes = {F.ENVIRONMENT_MISMATCH, F.NETWORK_LINK, F.NETWORK_ETH, F.NCCL_CONFIG}
    return it, Truth(frozenset(classes), frozenset({bad}), frozenset({bad}))


def evaluation_by_rank_0_while_others_stand_in_a_barrier(rng: Random) -> tuple[Fleet, Truth]:
    it = fleet(rng, most=64)
    home = next(node for node in it.nodes if 0 in it.job.ranks_on(node))
    stands_still(it, [0], where=rng.choice(("evaluation", "forward")))
    for rank in range(1, it.job.world_size):
        it.stacks[rank] = (
            "distributed_c10d.py:barrier", "c10d_logger.py:_exception_logger..wrapper",
            "train.py:evaluate_and_wait", "train.py:main", "train.py:<module>",
        )  # fmt: skip
    it.stacks[0] = (
        "linear.py:Linear.forward", "module.py:Module._call_impl", "model.py:Block.forward",
        "evaluate.py:perplexity", "train.py:evaluate_and_wait", "train.py:main",
    )  # fmt: skip
    it.ranks[0]["process_state"] = "R"
    return it, nobody(F.NO_FAULT, F.UNKNOWN, seen_at=[home])


def leaf_with_loss(rng: Random) -> tuple[Fleet, Truth]:
    """All who send through one leaf send again, and every step takes longer."""
    it = fleet(rng, least=8, most=64)
    leaf = rng.choice(sorted(set(it.leaves.values())))
    slow_ranks(it, range(it.job.world_size), rng.uniform(1.4, 3.0))
    for values in it.ranks:
        values |= {"phase": WAITING, "wait_s": it.now_s - it.step_s, "process_state": "S"}
        values["recent_wait_s"] = values["wait_s"]
    for here, node in enumerate(it.nodes):
        there = (here + 1) % len(it.nodes)
        if leaf in (it.leaves[node], it.leaves[it.nodes[there]]):
            peer = f"peer:{_address(there)}"
            it.reads(node, "fabric.tcp", "fabric.tcp.lost", rng.randrange(200, 900), peer)
            it.reads(node, "fabric.tcp", "fabric.tcp.lost_now", rng.randrange(1, 5), peer)
    return it, nobody(F.NETWORK_SWITCH, F.NETWORK_LINK, F.NETWORK_ETH)


def long_sequences_go_round(rng: Random) -> tuple[Fleet, Truth]:
    """In every step another rank has the longest batch, so no rank is late more than its share."""
    it = fleet(rng, most=64)
    last = rng.randrange(it.job.world_size)
    for rank, values in enumerate(it.ranks):
        values["recent_wait_s"] = it.step_s * rng.uniform(0.12, 0.25)
        values["wait_s"] = it.step_s * (0.01 if rank == last else rng.uniform(0.15, 0.3))
        values["phase"] = rng.choice(("forward", "backward")) if rank == last else WAITING
    return it, nobody(F.NO_FAULT)


def loader_worker_killed_parent_lives(rng: Random) -> tuple[Fleet, Truth]:
    """The kernel kills a worker for its memory, and the rank waits for its batch for ever."""
    it = fleet(rng, most=64)
    (there,) = it.some_nodes(1)
    rank = it.rank_on(there)
    stands_still(it, [rank], where="load")
    it.stacks[rank] = (
        "connection.py:Connection._recv", "connection.py:Connection.recv_bytes",
        "queues.py:SimpleQueue.get", "pool.py:next_shard", "train.py:next_batch", "train.py:main",
    )  # fmt: skip
    it.ranks[rank] |= {"process_state": "S", "kernel_wait": "pipe_read"}
    it.reads(there, "job.cgroup", "job.cgroup.oom_kills", 1, f"rank:{rank}")
    kernel_says(
        it, there,
        "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=job,mems_allowed=0-1,"
        "oom_memcg=/job,task_memcg=/job,task=pt_data_worker,pid=5151,uid=1000",
        "Memory cgroup out of memory: Killed process 5151 (pt_data_worker) total-vm:91234567kB,"
        " anon-rss:61234567kB, file-rss:0kB, shmem-rss:1024kB, UID:1000",
    )  # fmt: skip
    return it, place([F.DATA_LOADER, F.CPU_OOM], there)


def smaller_cpuset(rng: Random) -> tuple[Fleet, Truth]:
    """The container of one node was started with four cores and not with all."""
    it = fleet(rng, most=64)
    (there,) = it.some_nodes(1)
    mine = it.job.ranks_on(there)
    slow_ranks(it, mine, rng.uniform(1.3, 2.5))
    for rank in mine:
        it.reads(there, "job.cpu", "job.cpu.allowed", 4, f"rank:{rank}")
        it.reads(there, "job.cpu", "job.cpu.waits_pct", rng.uniform(20, 70), f"rank:{rank}")
    return it, place([F.STRAGGLER_SLOW, F.ENVIRONMENT_MISMATCH], there)


def two_jobs_on_one_node(rng: Random) -> tuple[Fleet, Truth]:
    """Somebody else's process computes on a GPU of the job, and takes its share of it."""
    it = fleet(rng, most=64)
    (there,) = it.some_nodes(1)
    slow_ranks(it, it.job.ranks_on(there), rng.uniform(1.5, 2.2))
    it.reads(there, "gpu.processes", "gpu.processes.count", 2, _GPU)
    it.reads(there, "gpu.processes", "gpu.processes.leftover_count", 1, _GPU)
    it.reads(there, "gpu.processes", "gpu.processes.leftovers", "40412 python3", _GPU)
    return it, place([F.STRAGGLER_SLOW, F.ENVIRONMENT_MISMATCH, F.GPU_SLOW], there)


def many_saves_in_background(rng: Random) -> tuple[Fleet, Truth]:
    """Checkpoints are written while training goes on: some ranks are in the kernel for a moment."""
    it = fleet(rng, most=64)
    it.now_s = it.step_s * rng.uniform(1.0, 1.06)
    for values in it.ranks:
        values["step_s"] = it.now_s * rng.uniform(0.99, 1.01)
        if rng.random() < 0.3:
            values |= {"process_state": "D", "kernel_wait": "folio_wait_bit_common"}
    remember(it)
    for node in it.some_nodes(2):
        it.reads(node, "host.leftovers", "host.leftovers.blocked_count", 2)
        it.reads(node, "host.cpu", "host.cpu.load_per_cpu", rng.uniform(0.8, 1.3))
    return it, nobody(F.NO_FAULT)


TOLD: tuple[Tell, ...] = (
    slow_nvme_under_one_loader, daemon_on_a_core, names_fail_at_the_start,
    evaluation_by_rank_0_while_others_stand_in_a_barrier, leaf_with_loss, long_sequences_go_round,
    loader_worker_killed_parent_lives, smaller_cpuset, two_jobs_on_one_node,
    many_saves_in_background,
)  # fmt: skip
