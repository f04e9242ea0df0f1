"""What both halves of `today` tell their incidents with."""

from collections.abc import Mapping
from dataclasses import replace

from brctl.model.sweeps.report import CheckResult, Measurement, ProbeStatus, Value
from tests.bench.verdicts.answers import healthy
from tests.bench.verdicts.clusters_later import _not_begun
from tests.bench.verdicts.fleet import Fleet, _leave

GPUS = tuple(f"gpu:GPU-0000000{n}-0000-0000-0000-000000000000" for n in range(2))
_JOINS = ("rendezvous.py:_create_c10d_store", "distributed_c10d.py:init_process_group",
          "train.py:main")  # fmt: skip
SAID_BY_NCCL = (
    "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:3353, {what}, NCCL"
    " version 2.21.5\n"
)
KILLED_FOR_MEMORY = (
    "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=job,mems_allowed=0-1,"
    "oom_memcg=/job/{rank},task_memcg=/job/{rank},task=python3,pid=4242,uid=1000",
    "Memory cgroup out of memory: Killed process 4242 (python3) total-vm:401234567kB,"
    " anon-rss:251234567kB, file-rss:0kB, shmem-rss:1024kB, UID:1000",
)
READ_PAST_ITS_END = (
    "NVRM: Xid (PCI:0000:2a:00): 31, pid=4242, name=python3, Ch 00000008, intr 00000000. MMU"
    " Fault: ENGINE GRAPHICS GPCCLIENT_T1_0 faulted @ 0x7f2c_10000000. Fault is of type"
    " FAULT_PDE ACCESS_TYPE_VIRT_READ",
    "NVRM: Xid (PCI:0000:2a:00): 43, pid=4242, name=python3, Ch 00000008",
)
FIRMWARE_IS_DEAD = (
    "mlx5_core 0000:98:00.1: poll_health:825:(pid 0): device's health compromised - reached miss"
    " count",
    "mlx5_core 0000:98:00.1: print_health_info:424:(pid 0): synd 0x8: unrecoverable hardware error",
)
WIDE_SLOT = (
    "mlx5_core 0000:98:00.0: 504.112 Gb/s available PCIe bandwidth (32.0 GT/s PCIe x16 link)"
)
NARROW_SLOT = (
    "mlx5_core 0000:98:00.0: 63.008 Gb/s available PCIe bandwidth, limited by 8.0 GT/s PCIe x8 link"
    " at 0000:97:01.0 (capable of 504.112 Gb/s with 32.0 GT/s PCIe x16 link)"
)
CAUGHT = (
    "wandb: Network error (ReadTimeout), entering retry loop.\n",
    "requests.exceptions.HTTPError: 503 Server Error: Service Unavailable\nRetry 1/5 in 2 s\n",
    "validation error: 0.031, errors: 0, oom=0, number of nan iterations: 0\n",
    "Traceback (most recent call last):\n"
    '  File "/srv/site/code/metrics.py", line 9, in push\n    sock.sendall(row)\n'
    "BrokenPipeError: [Errno 32] Broken pipe\nmetrics: dropped 12 rows, go on\n",
    "h:71:71 [0] NCCL INFO NET/Plugin : No plugin found (libnccl-net.so)\n",
)


def gpus_read(it: Fleet, node: str, **values: Value) -> None:
    """What `gpu.clocks` reads of every GPU of a node."""
    for gpu in GPUS:
        for name, value in values.items():
            it.reads(node, "gpu.clocks", f"gpu.clocks.{name}", value, gpu)


def answers(
    it: Fleet, node: str, check: str, rows: Mapping[str, Mapping[str, Value]], *notes: str
) -> None:
    """All that a check of a node reads, by subject, in place of what the recorded one did."""
    read = tuple(
        Measurement(f"{check}.{name}", subject, value)
        for subject, values in rows.items()
        for name, value in values.items()
    )
    it.lost_checks[node, check] = CheckResult(check, ProbeStatus.MEASURED, read, notes)


def port(state: str = "ACTIVE", **others: Value) -> dict[str, Value]:
    """An InfiniBand port with a partner."""
    return {"state": state, "physical": "LinkUp", "gbit_per_s": 400.0, "link_downed": 0, **others}


def starts(it: Fleet) -> None:
    """Every rank waits for all others to join; none has done a step."""
    age = it.rng.uniform(25.0, 120.0)
    _not_begun(it, [age + it.rng.uniform(0.0, 1.0) for _ in it.ranks])
    for rank, values in enumerate(it.ranks):
        values["process_state"] = "S"
        it.stacks[rank] = _JOINS


def leaves(it: Fleet, rank: int, status: int, said: str) -> None:
    """A rank that has ended has words and a status, and no stack."""
    _leave(it.ranks[rank], status, said)
    it.stacks.pop(rank, None)


def windows() -> tuple[str, ...]:
    """The parts of a job's own past, and its newest steps."""
    return (*(f"past:{n}" for n in range(5)), "recent", "last")


def has_one_gpu(it: Fleet, node: str) -> None:
    """What a node reads whose second GPU neither its bus nor its driver knows."""
    counts = {"gpu.devices.pci_count": 1, "gpu.devices.nvml_count": 1}
    for check, result in healthy().items():
        if check.startswith("gpu."):
            rows = [m for m in result.measurements if "GPU-00000001" not in m.subject]
            read = tuple(replace(m, value=counts.get(m.name, m.value)) for m in rows)
            it.lost_checks[node, check] = CheckResult(check, ProbeStatus.MEASURED, read)


def takes_a_turn(it: Fleet, node: str) -> None:
    """A node that waits for its batches for half of every step, with idle GPUs meanwhile."""
    gpus_read(it, node, busy_pct=0, event_reasons=1, power_w=it.rng.uniform(95.0, 120.0))
    for gpu in GPUS:
        it.reads(node, "gpu.pcie", "gpu.pcie.busy_pct", 0, gpu)
    for rank in it.job.ranks_on(node):
        it.ranks[rank]["recent_load_s"] = it.step_s * 0.5
    for window in windows() if 0 in it.job.ranks_on(node) else ():
        it.reads(node, "job.ranks", "job.steps.load_s", it.step_s * 0.5, window)
