"""Machines that are only slow, and jobs that only look ill: the open half.

What real clusters see on any day and no other set has. Written before any rule was changed for it;
which family is open was tossed by a coin for each before one was written. The other half is
`clusters_set_aside`.
"""

from random import Random

from brctl.model.fault import FaultClass as F
from brctl.model.sweeps.report import CheckResult, ProbeStatus
from tests.bench.verdicts.fleet import WAITING, Fleet, fleet, remember, slow_ranks, stands_still
from tests.bench.verdicts.incident import Tell, Truth, machine, nobody, place
from tests.bench.verdicts.oncall_machines import kernel_says

_UPTIME_S = 12251.3
_GPUS = tuple(f"gpu:GPU-0000000{n}-0000-0000-0000-000000000000" for n in range(2))
_DISK_WAIT = "folio_wait_bit_common"


def _at(it: Fleet, node: str, ago_s: float, text: str, check: str = "host.kernel") -> None:
    """A line of a node's kernel, so many seconds ago."""
    moment = int((_UPTIME_S - ago_s) * 1e6)
    it.reads(node, check, f"{check}.line", f"3,{moment % 9000},{moment},-;{text}")


def cpu_capped_by_power_profile(rng: Random) -> tuple[Fleet, Truth]:
    """Its firmware was set to save power: cores at 800 MHz, a GPU that waits for its launches."""
    it = fleet(rng, most=64)
    (bad,) = it.some_nodes(1)
    slow_ranks(it, it.ranks_of([bad]), rng.uniform(1.25, 2.2))
    for node in it.nodes:
        governor = "powersave" if node == bad else "performance"
        it.reads(node, "host.cpu", "host.cpu.governor", governor)
    for gpu in _GPUS:
        it.reads(bad, "gpu.clocks", "gpu.clocks.busy_pct", rng.randrange(45, 75), gpu)
        it.reads(bad, "gpu.clocks", "gpu.clocks.power_w", rng.uniform(240, 330), gpu)
    classes = frozenset({F.STRAGGLER_SLOW, F.THERMAL_POWER, F.ENVIRONMENT_MISMATCH})
    return it, Truth(classes, frozenset({bad}), frozenset({bad}))


def one_gpu_at_x8_gen1(rng: Random) -> tuple[Fleet, Truth]:
    """A link that trained down under load; elsewhere an idle GPU rests at the same speed."""
    it = fleet(rng, most=64)
    bad, other = it.some_nodes(2)
    slow_ranks(it, it.ranks_of([bad]), rng.uniform(1.15, 2.0))
    it.reads(bad, "gpu.pcie", "gpu.pcie.width", 8, _GPUS[0])
    it.reads(bad, "gpu.pcie", "gpu.pcie.generation", 1, _GPUS[0])
    if it.job.ranks_per_node == 1:
        it.reads(other, "gpu.pcie", "gpu.pcie.generation", 1, _GPUS[1])
        it.reads(other, "gpu.pcie", "gpu.pcie.busy_pct", 0, _GPUS[1])
        it.reads(other, "gpu.clocks", "gpu.clocks.busy_pct", 0, _GPUS[1])
    return it, machine(F.PCIE, bad)


def clock_steps_in_a_sound_run(rng: Random) -> tuple[Fleet, Truth]:
    """It jumped ahead between a rank's last row and the look: all its files seem old at once."""
    it = fleet(rng, most=64)
    it.step_s = it.now_s = round(rng.uniform(0.2, 0.9), 2)
    (there,) = it.some_nodes(1)
    for values in it.ranks:
        age = rng.uniform(0.0, it.step_s)
        values |= {"step_s": it.step_s, "wait_s": it.step_s * 0.05}
        values |= {"progress_age_s": age, "phase_age_s": age}
    remember(it)
    it.ranks_later = [{**values, "step": int(values["step"]) + 1} for values in it.ranks]
    jump = rng.uniform(20.0, 900.0)
    it.clock_off_s[there] = jump
    for rank in it.job.ranks_on(there):
        for name in ("progress_age_s", "phase_age_s"):
            it.ranks[rank][name] = float(it.ranks[rank][name]) + jump
    return it, place([F.ENVIRONMENT_MISMATCH], there)


def numa_misbound(rng: Random) -> tuple[Fleet, Truth]:
    """Its ranks run beside the other socket's memory: nothing that is read tells, but the pace."""
    it = fleet(rng, most=64)
    (bad,) = it.some_nodes(1)
    slow_ranks(it, it.ranks_of([bad]), rng.uniform(1.15, 1.6))
    for node in it.nodes:
        for rank in it.job.ranks_on(node):
            it.reads(node, "job.cpu", "job.cpu.allowed", 32, f"rank:{rank}")
    return it, machine(F.STRAGGLER_SLOW, bad)


def swap_thrash(rng: Random) -> tuple[Fleet, Truth]:
    """No memory is left and nothing is killed: every page is read again."""
    it = fleet(rng, most=64)
    (there,) = it.some_nodes(1)
    mine = it.job.ranks_on(there)
    slow_ranks(it, mine, rng.uniform(3.0, 9.0))
    for rank in mine:
        it.ranks[rank] |= {"process_state": "D", "kernel_wait": _DISK_WAIT}
        it.reads(there, "job.cgroup", "job.cgroup.memory_pct", 99.6, f"rank:{rank}")
        it.reads(there, "job.cpu", "job.cpu.waits_pct", rng.uniform(5, 30), f"rank:{rank}")
    it.reads(there, "host.memory", "host.memory.available_pct", rng.uniform(0.3, 1.4))
    it.reads(there, "host.memory", "host.memory.available_bytes", 190_000_000)
    it.reads(there, "host.cpu", "host.cpu.load_per_cpu", rng.uniform(2.0, 5.0))
    it.reads(there, "host.leftovers", "host.leftovers.blocked_count", len(mine) + 3)
    it.lost_checks[there, "host.disk"] = CheckResult("host.disk", ProbeStatus.TIMED_OUT)
    return it, place([F.STRAGGLER_SLOW, F.CPU_OOM, F.HOST_KERNEL], there)


def file_server_stalls_and_comes_back(rng: Random) -> tuple[Fleet, Truth]:
    """Every node waited for half a minute some minutes ago, and training went on."""
    it = fleet(rng, most=64)
    ago = rng.uniform(120.0, 900.0)
    for node in it.nodes:
        _at(it, node, ago, "nfs: server 10.9.0.4 not responding, still trying")
        _at(it, node, ago - rng.uniform(25.0, 60.0), "nfs: server 10.9.0.4 OK")
    return it, nobody(F.NO_FAULT, F.STORAGE_CHECKPOINT)


_COMPILES = (
    "subproc_pool.py:SubprocPool.submit", "async_compile.py:AsyncCompile.wait",
    "compile_fx.py:fx_codegen_and_compile", "compile_fx.py:compile_fx_inner",
    "output_graph.py:OutputGraph.call_user_compiler", "convert_frame.py:_compile",
    "eval_frame.py:_TorchDynamoContext.__call__.._fn", "module.py:Module._call_impl",
    "train.py:Step.run", "train.py:main", "train.py:<module>",
)  # fmt: skip


def recompiles_in_mid_run(rng: Random) -> tuple[Fleet, Truth]:
    """A length nobody has had yet reaches one rank, which compiles for it; all others wait."""
    it = fleet(rng, most=64)
    (there,) = it.some_nodes(1)
    rank = it.rank_on(there)
    stands_still(it, [rank], where="forward")
    for values in it.ranks:
        age = 17.0 + rng.uniform(0.0, 20.0) if values is it.ranks[0] else None
        age = age or float(it.ranks[0]["phase_age_s"]) + rng.uniform(0.0, 0.4)
        values |= {"phase_age_s": age, "progress_age_s": age}
    it.stacks[rank] = _COMPILES
    it.ranks[rank]["process_state"] = rng.choice("RS")
    return it, nobody(F.NO_FAULT, F.UNKNOWN, seen_at=[there])


def save_slow_on_one_node(rng: Random) -> tuple[Fleet, Truth]:
    """The disk below one rank's shard answers late; all others wait until it is written."""
    it = fleet(rng, most=64)
    (bad,) = it.some_nodes(1)
    rank = it.rank_on(bad)
    age = stands_still(it, [rank], where="checkpoint")
    it.ranks[rank] |= {"process_state": "D", "kernel_wait": _DISK_WAIT}
    it.stacks[rank] = (
        "serialization.py:_open_zipfile_writer_file.__exit__", "serialization.py:save",
        "train.py:save_shard", "train.py:Step.run", "train.py:main",
    )  # fmt: skip
    for values in it.ranks:
        values["phase_longest_s"] = rng.uniform(6.0, 9.0)
    kernel_says(
        it, bad, "nvme nvme1: I/O 471 (Write) QID 12 timeout, completion polled",
        "nvme nvme1: I/O 118 (Write) QID 12 timeout, aborting",
    )  # fmt: skip
    _at(it, bad, age / 3, "nvme nvme1: I/O 471 (Write) QID 12 timeout, aborting")
    classes = frozenset({F.STORAGE_CHECKPOINT, F.HOST_KERNEL, F.STRAGGLER_SLOW})
    return it, Truth(classes, frozenset({bad}), frozenset({bad}))


def _resumes(it: Fleet, steps: int, times: float) -> None:
    """All ranks go on from an older checkpoint; so few steps are done since."""
    back = int(it.ranks[0]["step"]) - it.rng.randrange(20, 39)
    it.now_s = it.step_s * times
    for values in it.ranks:
        values |= {"step": back, "step_s": it.now_s * it.rng.uniform(0.98, 1.02)}
    remember(it)
    for values in it.ranks:
        values["recent_steps"] = steps


def resumed_with_a_high_loss(rng: Random) -> tuple[Fleet, Truth]:
    """From before a change of the data or without the optimizer's state: it comes down again."""
    it = fleet(rng, most=64)
    it.past = True
    _resumes(it, rng.randrange(4, 12), 1.0)
    it.losses_now = 2.3 * rng.uniform(1.15, 1.8)
    return it, nobody(F.NO_FAULT, F.UNKNOWN)


def warms_up_after_a_resume(rng: Random) -> tuple[Fleet, Truth]:
    """Caches, kernels and the loaders' queues fill: the first steps take longer everywhere."""
    it = fleet(rng, most=64)
    _resumes(it, rng.randrange(2, 6), rng.uniform(1.5, 4.0))
    it.longer_in_load = rng.random() < 0.5
    for values in it.ranks:
        values["phase"] = rng.choice(("load", "forward", WAITING))
        longer = it.now_s - it.step_s if it.longer_in_load else 0.0
        values["recent_load_s"] = it.step_s * 0.02 + longer
    return it, nobody(F.NO_FAULT, F.UNKNOWN)


TOLD: tuple[Tell, ...] = (
    cpu_capped_by_power_profile, one_gpu_at_x8_gen1, clock_steps_in_a_sound_run, numa_misbound,
    swap_thrash, file_server_stalls_and_comes_back, recompiles_in_mid_run, save_slow_on_one_node,
    resumed_with_a_high_loss, warms_up_after_a_resume,
)  # fmt: skip
