"""Healthy fleets, red herrings, answers that are missing, and slowness that is everybody's."""

from random import Random

from brctl.model.command import Outcome
from brctl.model.fault import FaultClass as F
from brctl.model.sweeps.report import CheckResult, ProbeStatus
from tests.bench.verdicts.fleet import Fleet, _leave, fleet, slow_ranks
from tests.bench.verdicts.incident import Truth, nobody, place

HERE, LONG_AGO = 12_290_000_000, 1_000_000
"""Microseconds since boot: a moment ago, and right after it."""


def healthy(rng: Random) -> tuple[Fleet, Truth]:
    return fleet(rng, most=512), nobody(F.NO_FAULT)


def healthy_at_any_pace(rng: Random) -> tuple[Fleet, Truth]:
    """Steps vary with the length of their sequences."""
    it = fleet(rng)
    for values in it.ranks:
        values["wait_s"] = it.step_s * rng.uniform(0.01, 0.3)
        values["recent_wait_s"] = values["wait_s"]
    return it, nobody(F.NO_FAULT)


def ended_well(rng: Random) -> tuple[Fleet, Truth]:
    it = fleet(rng)
    for values in it.ranks:
        age = rng.uniform(100.0, 2000.0)
        values |= {"phase": "done", "phase_age_s": age, "progress_age_s": age}
        _leave(values, 0, "training is done\n")
    return it, nobody(F.NO_FAULT)


def _line(it: Fleet, check: str, usec: int, text: str) -> Fleet:
    (node,) = it.some_nodes(1)
    it.reads(node, check, f"{check}.line", f"3,901,{usec},-;{text}")
    return it


def corrected_errors(rng: Random) -> tuple[Fleet, Truth]:
    it = fleet(rng)
    text = rng.choice(
        (
            "EDAC MC0: 1 CE memory read error on CPU_SrcID#0_MC#0_Chan#1_DIMM#0 (channel:1 slot:0)",
            "pcieport 0000:00:01.0: AER: Corrected error received: 0000:3b:00.0",
            "mce: [Hardware Error]: Machine check events logged",
        )
    )
    return _line(it, "host.kernel", HERE, text), nobody(F.NO_FAULT)


def corrected_memory_error(rng: Random) -> tuple[Fleet, Truth]:
    text = (
        "NVRM: Xid (PCI:0000:2a:00): 63, pid='<unknown>', name=<unknown>, Row Remapper: New row"
        " (0x0000000000aa10c2) marked for remapping, reset gpu to activate."
    )
    return _line(fleet(rng), "gpu.xid", LONG_AGO, text), nobody(F.NO_FAULT, F.GPU_MEMORY_ECC)


def another_tenants_oom(rng: Random) -> tuple[Fleet, Truth]:
    text = (
        "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0-1,"
        "oom_memcg=/system.slice/backup.service,task_memcg=/system.slice/backup.service,"
        "task=restic,pid=991,uid=0"
    )
    it = _line(fleet(rng), "host.kernel", HERE, text)
    return it, nobody(F.NO_FAULT)


def an_users_xid(rng: Random) -> tuple[Fleet, Truth]:
    """A process of another job touched a bad address; this one goes on."""
    text = (
        "NVRM: Xid (PCI:0000:2a:00): 31, pid=99121, name=python3, Ch 00000008, intr 00000000."
        " MMU Fault"
    )
    return _line(fleet(rng), "gpu.xid", HERE, text), nobody(F.NO_FAULT, F.USER_CODE)


def print_of_cuda_error(rng: Random) -> tuple[Fleet, Truth]:
    """Training code tells of an error it had caught, and goes on."""
    it = fleet(rng)
    said = rng.choice(
        (
            "retrying after CUDA error: an illegal memory access was encountered (attempt 1)\n",
            "warning: caught NCCL error: unhandled system error, rebuilding the communicator\n",
            "RuntimeError: CUDA error: unspecified launch failure -- ignored by the test harness\n",
        )
    )
    rank = rng.randrange(it.job.world_size)
    it.ranks[rank]["last_words"] = said + "".join(f"step {n} loss 2.1\n" for n in range(9))
    return it, nobody(F.NO_FAULT)


def one_warm_gpu(rng: Random) -> tuple[Fleet, Truth]:
    it = fleet(rng)
    (node,) = it.some_nodes(1)
    gpu = "gpu:GPU-00000000-0000-0000-0000-000000000000"
    it.reads(node, "gpu.clocks", "gpu.clocks.temperature_c", rng.randrange(52, 66), gpu)
    return it, nobody(F.NO_FAULT)


def clock_little(rng: Random) -> tuple[Fleet, Truth]:
    return _clock(rng, rng.choice((-1, 1)) * rng.uniform(2.0, 8.0))


def clock_far(rng: Random) -> tuple[Fleet, Truth]:
    return _clock(rng, rng.choice((-1, 1)) * rng.uniform(20.0, 7200.0))


def _clock(rng: Random, off_s: float) -> tuple[Fleet, Truth]:
    it = fleet(rng)
    (node,) = it.some_nodes(1)
    it.clock_off_s[node] = off_s
    return it, place([F.ENVIRONMENT_MISMATCH], node)


_CLOSED = (
    (Outcome.REFUSED, "connection refused"),
    (Outcome.CONNECT_TIMED_OUT, "no TCP connection within 5 s"),
)
_NO_USE = (
    (Outcome.UNPARSABLE, "no JSON in 312 bytes"),
    (Outcome.AUTHENTICATION_FAILED, "permission denied"),
    (Outcome.OUTPUT_OVER_LIMIT, "more than 16 MiB"),
)


def silent_but_training(rng: Random) -> tuple[Fleet, Truth]:
    it = fleet(rng)
    (node,) = it.some_nodes(1)
    it.is_silent(node, *rng.choice(_CLOSED))
    return it, nobody(F.UNKNOWN)


def unreadable(rng: Random) -> tuple[Fleet, Truth]:
    """A node answers with something else than asked for."""
    it = fleet(rng)
    (node,) = it.some_nodes(1)
    it.is_silent(node, *rng.choice(_NO_USE))
    return it, nobody(F.UNKNOWN)


def check_timed_out(rng: Random) -> tuple[Fleet, Truth]:
    it = fleet(rng)
    (node,) = it.some_nodes(1)
    check = rng.choice(("host.disk", "host.kernel", "fabric.eth", "host.services"))
    it.lost_checks[node, check] = CheckResult(check, ProbeStatus.TIMED_OUT)
    return it, nobody(F.UNKNOWN)


def ranks_not_read(rng: Random) -> tuple[Fleet, Truth]:
    """No progress file can be read on any node."""
    it = fleet(rng)
    for values in it.ranks:
        for name in ("step", "phase", "phase_age_s", "progress_age_s", "wait_s", "step_s"):
            values.pop(name, None)
    return it, nobody(F.UNKNOWN)


SLOW = (F.UNKNOWN, F.STRAGGLER_SLOW, F.GPU_SLOW, F.NETWORK_LINK, F.NETWORK_ETH, F.NETWORK_SWITCH,
        F.STORAGE_CHECKPOINT, F.DATA_LOADER)  # fmt: skip


def all_slow_in_collectives(rng: Random) -> tuple[Fleet, Truth]:
    """The network lost its pace: everybody waits, and long."""
    it = fleet(rng)
    times = rng.uniform(2.0, 6.0)
    slow_ranks(it, (), times)
    return it, nobody(*SLOW)


def all_slow_in_loading(rng: Random) -> tuple[Fleet, Truth]:
    """Storage lost its pace: everybody loads, and nobody waits for anybody."""
    it = fleet(rng)
    times = rng.uniform(1.3, 5.0)
    slow_ranks(it, range(it.job.world_size), times)
    for values in it.ranks:
        values |= {"phase": "load", "recent_load_s": it.step_s * (times - 1.0)}
    it.longer_in_load = True
    return it, nobody(*SLOW)


def a_hint_that_proves_little(rng: Random) -> tuple[Fleet, Truth]:
    """A GPU is held back a little by heat while steps go on."""
    it = fleet(rng)
    (node,) = it.some_nodes(1)
    gpu = "gpu:GPU-00000000-0000-0000-0000-000000000000"
    it.reads(node, "gpu.clocks", "gpu.clocks.temperature_margin_c", rng.randrange(1, 4), gpu)
    it.reads(node, "gpu.clocks", "gpu.clocks.event_reasons", 0x20, gpu)
    return it, place([F.THERMAL_POWER], node)
