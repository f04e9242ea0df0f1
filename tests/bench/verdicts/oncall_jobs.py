"""Another hand's incidents of code, data and people, and fleets with nothing wrong.

Written like `oncall_machines`, before any rule of brctl was read by their author.
"""

from random import Random

from brctl.model.fault import FaultClass as F
from tests.bench.verdicts.fleet import WAITING, Fleet, _leave, ends, fleet, slow_ranks, stands_still
from tests.bench.verdicts.incident import Truth, nobody, place
from tests.bench.verdicts.oncall_machines import kernel_says, sized

_LOADER = (
    "connection.py:_poll", "connection.py:Connection.poll", "queues.py:Queue.get",
    "dataloader.py:_MultiProcessingDataLoaderIter._try_get_data",
    "dataloader.py:_MultiProcessingDataLoaderIter._next_data",
    "dataloader.py:_BaseDataLoaderIter.__next__", "train.py:next_batch", "train.py:main",
)  # fmt: skip


def _traceback(file: str, line: int, where: str, code: str, said: str) -> str:
    return (
        "[rank2]: Traceback (most recent call last):\n"
        f'[rank2]:   File "/home/lee/llm/{file}", line {line}, in {where}\n'
        f"[rank2]:     {code}\n[rank2]: {said}\n"
    )


def one_waits_for_its_loader(rng: Random) -> tuple[Fleet, Truth]:
    it = fleet(rng)
    (there,) = it.some_nodes(1)
    rank = it.rank_on(there)
    stands_still(it, [rank], where="load")
    it.stacks[rank] = _LOADER
    it.ranks[rank] |= {"process_state": "S", "kernel_wait": "do_sys_poll"}
    return it, place([F.DATA_LOADER, F.HANG_MISMATCH], there)


def all_ranks_of_a_node_killed(rng: Random) -> tuple[Fleet, Truth]:
    """SIGKILL and no line of a kernel: it happened there, by whom nobody can tell."""
    it = fleet(rng)
    (there,) = it.some_nodes(1)
    ends(it, it.job.ranks_on(there), -9, "")
    return it, nobody(F.UNKNOWN, seen_at=[there])


def clock_off_in_a_good_run(rng: Random) -> tuple[Fleet, Truth]:
    it = fleet(rng)
    (there,) = it.some_nodes(1)
    it.clock_off_s[there] = rng.choice((-1, 1)) * rng.uniform(20.0, 400.0)
    return it, place([F.ENVIRONMENT_MISMATCH], there)


def finished_with_noise(rng: Random) -> tuple[Fleet, Truth]:
    """A job that ended well, with what Python prints while it is torn down."""
    it = fleet(rng)
    said = (
        "step 20000 loss 1.8123\nsaved the last checkpoint\n"
        "[rank2]:[W314 09:21:10.1 ProcessGroupNCCL.cpp:1538] Warning: WARNING:"
        " destroy_process_group() was not called before program exit, which can leak resources.\n"
        "Exception ignored in: <function _MultiProcessingDataLoaderIter.__del__ at 0x7f12>\n"
        "AssertionError: can only test a child process\n"
    )
    for rank, values in enumerate(it.ranks):
        age = rng.uniform(60.0, 90.0)
        values |= {"phase": "done", "phase_age_s": age, "progress_age_s": age}
        _leave(values, 0, said.replace("rank2", f"rank{rank}"))
    return it, nobody(F.NO_FAULT)


def started_again_a_minute_ago(rng: Random) -> tuple[Fleet, Truth]:
    """From a checkpoint: the step went back, and the first steps were slow."""
    it = fleet(rng)
    it.past = True
    back = rng.randrange(100, 160)
    for values in it.ranks:
        values |= {"step": back, "recent_steps": 4, "step_s": it.step_s * rng.uniform(1.0, 1.1)}
    return it, nobody(F.NO_FAULT, F.UNKNOWN)


def first_step_compiles(rng: Random) -> tuple[Fleet, Truth]:
    """Started a moment ago: no step is done yet, everybody compiles."""
    it = fleet(rng)
    it.past = False
    for values in it.ranks:
        age = rng.uniform(2.0, 10.0)
        values |= {"step": 0, "phase": "compile", "phase_age_s": age, "progress_age_s": age}
        for name in ("wait_s", "step_s", "recent_steps", "recent_wait_s", "recent_step_s"):
            del values[name]
        del values["recent_load_s"]
    return it, nobody(F.NO_FAULT, F.UNKNOWN)


def two_nodes_one_loops(rng: Random) -> tuple[Fleet, Truth]:
    it = sized(rng, 2, rng.choice((1, 2, 4)))
    (there,) = it.some_nodes(1)
    rank = it.rank_on(there)
    stands_still(it, [rank], where="forward")
    it.stacks[rank] = ("sampler.py:pack", "train.py:Step.run", "train.py:main")
    it.ranks[rank]["process_state"] = "R"
    return it, place([F.USER_CODE, F.HANG_MISMATCH], there)


def nan_gradient_of_one_first(rng: Random) -> tuple[Fleet, Truth]:
    it = fleet(rng)
    (there,) = it.some_nodes(1)
    rank = it.rank_on(there)
    step = int(it.ranks[0]["step"]) - 3
    for number, values in enumerate(it.ranks):
        mine = number == rank
        values |= {
            "loss_finite": False, "first_nonfinite_step": step + 1, "grad_finite": False,
            "first_nonfinite_grad_step": step if mine else step + 1,
        }  # fmt: skip
    return it, place([F.NUMERIC_NAN, F.SILENT_CORRUPTION], there)


def loss_spike(rng: Random) -> tuple[Fleet, Truth]:
    it = fleet(rng)
    it.past = True
    (home,) = [node for node in it.nodes if 0 in it.job.ranks_on(node)]
    for window in ("recent", "last"):
        it.reads(home, "job.ranks", "job.steps.loss", rng.uniform(20.0, 90.0), window)
    return it, nobody(F.UNKNOWN, F.NUMERIC_NAN, F.USER_CODE)


def exception_on_all(rng: Random) -> tuple[Fleet, Truth]:
    it = fleet(rng)
    said = _traceback("data.py", 88, "collate", 'ids = row["input_ids"]', "KeyError: 'input_ids'")
    ends(it, range(it.job.world_size), 1, said, phase="load")
    return it, nobody(F.USER_CODE, F.DATA_LOADER)


def gpu_memory_runs_out_on_all(rng: Random) -> tuple[Fleet, Truth]:
    it = fleet(rng)
    said = _traceback(
        "model.py", 412, "forward", "x = self.mlp(x)",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.50 GiB. GPU 0 has a total"
        " capacity of 79.11 GiB of which 2.11 GiB is free.",
    )  # fmt: skip
    ends(it, range(it.job.world_size), 1, said, phase="forward")
    return it, nobody(F.GPU_OOM)


def bad_address_of_a_kernel(rng: Random) -> tuple[Fleet, Truth]:
    """A CUDA kernel of the job reads past its buffer; Xid 31 follows."""
    it = fleet(rng)
    (there,) = it.some_nodes(1)
    said = _traceback(
        "kernels.py", 57, "fused_rope", "return _rope.apply(q, k)",
        "torch.AcceleratorError: CUDA error: an illegal memory access was encountered",
    )  # fmt: skip
    ends(it, [it.rank_on(there)], 1, said)
    kernel_says(
        it, there,
        "NVRM: Xid (PCI:0000:2a:00): 31, pid=4242, name=python, Ch 00000008, intr 00000000. MMU"
        " Fault: ENGINE GRAPHICS GPCCLIENT_T1_0 faulted @ 0x7f2c_10000000. Fault is of type"
        " FAULT_PDE ACCESS_TYPE_VIRT_READ",
        check="gpu.xid",
    )  # fmt: skip
    return it, place([F.USER_CODE], there)


def held_by_a_debugger(rng: Random) -> tuple[Fleet, Truth]:
    it = fleet(rng)
    (there,) = it.some_nodes(1)
    rank = it.rank_on(there)
    stands_still(it, [rank], where="forward")
    it.ranks[rank] |= {"process_state": "t", "kernel_wait": "ptrace_stop"}
    return it, place([F.HANG_MISMATCH, F.UNKNOWN, F.USER_CODE], there)


def one_stopped(rng: Random) -> tuple[Fleet, Truth]:
    """State T, no stack to be had: a stopped process answers nobody."""
    it = fleet(rng)
    (there,) = it.some_nodes(1)
    rank = it.rank_on(there)
    stands_still(it, [rank], where="backward")
    it.ranks[rank]["process_state"] = "T"
    del it.stacks[rank]
    return it, place([F.HANG_MISMATCH, F.UNKNOWN, F.USER_CODE], there)


def preempted(rng: Random) -> tuple[Fleet, Truth]:
    it = fleet(rng)
    said = (
        "slurmstepd: error: *** STEP 8812.0 ON n1 CANCELLED AT 2026-03-14T09:20:11 DUE TO"
        " PREEMPTION ***\n"
    )
    ends(it, range(it.job.world_size), -15, said)
    return it, nobody(F.PREEMPTION_SIGTERM)


def watchdog_ends_all_but_one(rng: Random) -> tuple[Fleet, Truth]:
    """All wait until their watchdog ends them; the one they waited for still computes."""
    it = fleet(rng)
    (there,) = it.some_nodes(1)
    absent = it.rank_on(there)
    stands_still(it, [absent], where="forward")
    for rank, values in enumerate(it.ranks):
        if rank != absent:
            _leave(
                values, -6,
                f"[rank{rank}]:[E314 09:24:10.4 ProcessGroupNCCL.cpp:629] [Rank {rank}] Watchdog"
                " caught collective operation timeout: WorkNCCL(SeqNum=4411, OpType=ALLREDUCE,"
                " NumelIn=1048576, NumelOut=1048576, Timeout(ms)=600000) ran for 600019"
                " milliseconds before timing out.\n",
            )  # fmt: skip
    return it, place([F.HANG_MISMATCH, F.USER_CODE], there)


def all_wait_for_all(rng: Random) -> tuple[Fleet, Truth]:
    """A collective that hangs with everybody in it: no node is told apart."""
    it = fleet(rng)
    stands_still(it, [])
    for rank in rng.sample(range(it.job.world_size), it.job.world_size // 2):
        del it.stacks[rank]
    return it, nobody(F.UNKNOWN, F.HANG_MISMATCH)


def held_back_by_a_cpu_limit(rng: Random) -> tuple[Fleet, Truth]:
    it = fleet(rng)
    (there,) = it.some_nodes(1)
    slow_ranks(it, it.job.ranks_on(there), rng.uniform(1.4, 3.0))
    for rank in it.job.ranks_on(there):
        it.reads(there, "job.cgroup", "job.cgroup.cpu_limit", 4, f"rank:{rank}")
        it.reads(there, "job.cgroup", "job.cgroup.throttled_pct", rng.uniform(60, 100),
                 f"rank:{rank}")  # fmt: skip
    return it, place([F.STRAGGLER_SLOW], there)


def large_and_sound_with_its_usual_noise(rng: Random) -> tuple[Fleet, Truth]:
    it = sized(rng, 256, 2)
    gpu = "gpu:GPU-00000001-0000-0000-0000-000000000000"
    one, two, three = it.some_nodes(3)
    it.reads(one, "gpu.ecc", "gpu.ecc.volatile_corrected", 12, gpu)
    it.reads(two, "fabric.eth", "fabric.eth.rx_dropped", 311, "nic:eth0")
    kernel_says(it, three, "pcieport 0000:00:01.0: AER: Corrected error received: 0000:3b:00.0")
    return it, nobody(F.NO_FAULT)


def one_in_a_collective_of_its_own(rng: Random) -> tuple[Fleet, Truth]:
    """One rank took the branch with a broadcast while the others reduce."""
    it = fleet(rng)
    (there,) = it.some_nodes(1)
    rank = it.rank_on(there)
    stands_still(it, [rank], where=WAITING)
    it.stacks[rank] = (
        "distributed_c10d.py:broadcast", "c10d_logger.py:_exception_logger..wrapper",
        "train.py:sync_scaler", "train.py:Step.run", "train.py:main",
    )  # fmt: skip
    return it, place([F.HANG_MISMATCH, F.USER_CODE], there)


def slow_because_all_wait_for_data(rng: Random) -> tuple[Fleet, Truth]:
    it = fleet(rng)
    it.past = True
    it.now_s, it.longer_in_load = it.step_s * rng.uniform(1.8, 4.0), True
    for values in it.ranks:
        values |= {"step_s": it.now_s, "recent_step_s": it.now_s, "phase": "load"}
        values |= {"recent_load_s": it.now_s - it.step_s, "phase_age_s": 0.1}
    return it, nobody(F.DATA_LOADER)
