"""Another hand's incidents of machines: written before any rule of brctl was read by their author.

They are what an engineer on call meets, and their truth is what such a person would write into the
report afterwards; where that person would hesitate, more than one class is right.
"""

from random import Random

from brctl.model.command import Outcome
from brctl.model.fault import FaultClass as F
from brctl.model.sweeps.report import CheckResult, ProbeStatus
from tests.bench.verdicts.answers import words
from tests.bench.verdicts.fleet import (
    WAITING,
    Fleet,
    _address,
    _leave,
    ends,
    fleet,
    job_on,
    slow_ranks,
    stands_still,
    trains,
)
from tests.bench.verdicts.incident import Truth, machine, nobody, place

_UPTIME_S = 12251.3
_GPU = "gpu:GPU-00000001-0000-0000-0000-000000000000"


def sized(rng: Random, count: int, per_node: int) -> Fleet:
    """A sound fleet of just this size."""
    it = fleet(rng, most=4)
    nodes = tuple(f"r{n // 16:02d}n{n % 16:02d}" for n in range(count))
    it.job = job_on(nodes, per_node)
    it.leaves = {node: f"leaf-{i // 16}" for i, node in enumerate(nodes)}
    trains(it)
    return it


def kernel_says(it: Fleet, node: str, *lines: str, check: str = "host.kernel") -> None:
    """Lines of a node's kernel from just before the job's last progress."""
    age = max(float(values["progress_age_s"]) for values in it.ranks)
    moment = int((_UPTIME_S - age - 0.5) * 1e6)
    for number, text in enumerate(lines):
        it.reads(node, check, f"{check}.line", f"3,{900 + number},{moment + number},-;{text}")


def _one(it: Fleet) -> str:
    return it.some_nodes(1)[0]


def gpu_lost_in_evaluation(rng: Random) -> tuple[Fleet, Truth]:
    it = fleet(rng)
    bad = _one(it)
    it.has(bad, "gpu-lost")
    ends(it, [it.rank_on(bad)], 1, words("gpu-lost", "culprit"), phase="evaluation")
    for values in it.ranks:
        values["phase"] = "evaluation"
    return it, machine(F.GPU_LOST, bad)


def throttled_with_corrected_ecc_elsewhere(rng: Random) -> tuple[Fleet, Truth]:
    it = fleet(rng)
    hot, other = it.some_nodes(2)
    it.has(hot, "thermal")
    slow_ranks(it, it.ranks_of([hot]), rng.uniform(1.3, 2.0))
    it.reads(other, "gpu.ecc", "gpu.ecc.volatile_corrected", rng.randrange(3, 60), _GPU)
    kernel_says(it, other, "EDAC MC1: 1 CE memory scrubbing error on CPU_SrcID#1_Chan#2_DIMM#0")
    return it, machine(F.THERMAL_POWER, hot)


def interface_down_and_all_wait(rng: Random) -> tuple[Fleet, Truth]:
    """The training network of one node; it is asked over another."""
    it = fleet(rng)
    bad = _one(it)
    stands_still(it, [])
    it.reads(bad, "fabric.eth", "fabric.eth.carrier", value=False, subject="nic:ens1f0")
    it.reads(bad, "fabric.eth", "fabric.eth.carrier_changes", 7, "nic:ens1f0")
    kernel_says(it, bad, "mlx5_core 0000:98:00.0 ens1f0: Link down")
    here = it.nodes.index(bad)
    for node, peer in ((bad, (here + 1) % len(it.nodes)), (it.nodes[here - 1], here)):
        subject = f"peer:{_address(peer)}"
        it.reads(node, "fabric.tcp", "fabric.tcp.timeouts_in_a_row", 7, subject)
        it.reads(node, "fabric.tcp", "fabric.tcp.segments_now", 0, subject)
    return it, Truth(frozenset({F.NETWORK_ETH, F.NETWORK_LINK}), frozenset({bad}), frozenset({bad}))


def infiniband_port_down(rng: Random) -> tuple[Fleet, Truth]:
    it = fleet(rng)
    bad = _one(it)
    stands_still(it, [])
    for node in it.nodes:
        up = node != bad
        for name, value in (
            ("state", "ACTIVE" if up else "DOWN"), ("physical", "LinkUp" if up else "Polling"),
            ("gbit_per_s", 400 if up else 10), ("link_downed", 0 if up else 1),
        ):  # fmt: skip
            it.reads(node, "fabric.ibport", f"fabric.ibport.{name}", value, "ibport:mlx5_0/1")
    return it, Truth(frozenset({F.NETWORK_IB, F.NETWORK_LINK}), frozenset({bad}), frozenset({bad}))


def lost_here_and_pcie_there(rng: Random) -> tuple[Fleet, Truth]:
    it = fleet(rng)
    lost, narrow = it.some_nodes(2)
    it.has(lost, "gpu-lost")
    it.has(narrow, "pcie-degraded")
    ends(it, [it.rank_on(lost)], 1, words("gpu-lost", "culprit"))
    both = frozenset({lost, narrow})
    return it, Truth(frozenset({F.GPU_LOST, F.PCIE}), both, both)


def half_its_checks_time_out(rng: Random) -> tuple[Fleet, Truth]:
    """A node so busy that half of its checks end late, and another one that killed the job."""
    it = fleet(rng)
    bad, busy = it.some_nodes(2)
    it.has(bad, "gpu-ecc")
    ends(it, [it.rank_on(bad)], 1, words("gpu-ecc", "culprit"))
    for check in ("gpu.clocks", "gpu.ecc", "gpu.nvlink", "gpu.pcie", "host.disk", "host.mounts"):
        it.lost_checks[busy, check] = CheckResult(check, ProbeStatus.TIMED_OUT)
    return it, machine(F.GPU_MEMORY_ECC, bad)


def two_nodes_one_loses_a_gpu(rng: Random) -> tuple[Fleet, Truth]:
    it = sized(rng, 2, rng.choice((1, 2, 4)))
    bad = _one(it)
    it.has(bad, "gpu-lost")
    ends(it, [it.rank_on(bad)], 1, words("gpu-lost", "culprit"))
    return it, machine(F.GPU_LOST, bad)


def one_slow_of_many(rng: Random) -> tuple[Fleet, Truth]:
    """Too little a loss for a person to see, on 256 nodes."""
    it = sized(rng, 256, rng.choice((1, 2)))
    slow = _one(it)
    slow_ranks(it, it.ranks_of([slow]), rng.uniform(1.25, 1.4))
    return it, Truth(
        frozenset({F.STRAGGLER_SLOW, F.GPU_SLOW}), frozenset({slow}), frozenset({slow})
    )


def soft_lockup(rng: Random) -> tuple[Fleet, Truth]:
    it = fleet(rng)
    bad = _one(it)
    stands_still(it, [it.rank_on(bad)])
    kernel_says(
        it, bad,
        "watchdog: BUG: soft lockup - CPU#12 stuck for 26s! [python:4242]",
        "watchdog: BUG: soft lockup - CPU#12 stuck for 52s! [python:4242]",
    )  # fmt: skip
    classes = frozenset({F.HOST_KERNEL, F.NODE_FAILURE})
    return it, Truth(classes, frozenset({bad}), frozenset({bad}))


def firmware_processor_hangs(rng: Random) -> tuple[Fleet, Truth]:
    it = fleet(rng)
    bad = _one(it)
    stands_still(it, [it.rank_on(bad)])
    kernel_says(
        it, bad,
        "NVRM: Xid (PCI:0000:2a:00): 119, pid=4242, name=python, Timeout after 6s of waiting for"
        " RPC response from GPU1 GSP! Expected function 76 (GSP_RM_CONTROL) (0x20802a02 0x8).",
        check="gpu.xid",
    )  # fmt: skip
    return it, machine(F.DRIVER_FIRMWARE, bad)


def node_booted_again(rng: Random) -> tuple[Fleet, Truth]:
    """It crashed and is back, healthy to look at; its ranks are gone without a word."""
    it = fleet(rng)
    bad = _one(it)
    ends(it, it.job.ranks_on(bad), 0, "")
    for rank in it.job.ranks_on(bad):
        del it.ranks[rank]["exit_status"]
    for check in ("gpu.xid", "host.kernel"):
        it.reads(bad, check, f"{check}.uptime_s", rng.uniform(1.0, 4.0))
    classes = frozenset({F.NODE_FAILURE, F.HOST_KERNEL, F.UNKNOWN})
    return it, Truth(classes, frozenset({bad}), frozenset({bad}))


def power_brake_of_a_rack(rng: Random) -> tuple[Fleet, Truth]:
    it = sized(rng, 64, 2)
    rack = [node for node in it.nodes if it.leaves[node] == "leaf-2"]
    slow_ranks(it, it.ranks_of(rack), rng.uniform(1.5, 2.5))
    for node in rack:
        it.reads(node, "gpu.clocks", "gpu.clocks.event_reasons", 128 | 8, _GPU)
        it.reads(node, "gpu.clocks", "gpu.clocks.sm_mhz", 990, _GPU)
    return it, machine(F.THERMAL_POWER, *rack)


def packets_lost_at_one_node(rng: Random) -> tuple[Fleet, Truth]:
    """A dirty transceiver: nothing is down, and every step takes longer."""
    it = fleet(rng, least=6)
    bad = _one(it)
    slow_ranks(it, range(it.job.world_size), rng.uniform(1.6, 3.0))
    for values in it.ranks:
        values |= {"phase": WAITING, "wait_s": it.now_s - it.step_s, "process_state": "S"}
        values["recent_wait_s"] = values["wait_s"]
    here = it.nodes.index(bad)
    for node, peer in ((bad, (here + 1) % len(it.nodes)), (it.nodes[here - 1], here)):
        it.reads(node, "fabric.tcp", "fabric.tcp.lost", 700, f"peer:{_address(peer)}")
        it.reads(node, "fabric.tcp", "fabric.tcp.lost_now", 3, f"peer:{_address(peer)}")
    it.reads(bad, "fabric.eth", "fabric.eth.rx_crc_errors", 51234, "nic:eth0")
    return it, Truth(frozenset({F.NETWORK_ETH, F.NETWORK_LINK}), frozenset({bad}), frozenset({bad}))


def file_server_hangs_on_one(rng: Random) -> tuple[Fleet, Truth]:
    it = fleet(rng)
    there = _one(it)
    rank = it.rank_on(there)
    stands_still(it, [rank], where="checkpoint")
    it.ranks[rank] |= {"process_state": "D", "kernel_wait": "rpc_wait_bit_killable"}
    it.stacks[rank] = ("serialization.py:save", "trainer.py:Trainer.save", "__main__.py:main")
    it.reads(there, "host.mounts", "host.mounts.hangs", value=True, subject="mount:/srv/site")
    kernel_says(it, there, "nfs: server 10.9.0.4 not responding, still trying")
    return it, place([F.STORAGE_CHECKPOINT], there)


def file_server_hangs_for_all(rng: Random) -> tuple[Fleet, Truth]:
    it = fleet(rng)
    stands_still(it, range(it.job.world_size), where="load")
    for node in it.nodes:
        it.reads(node, "host.mounts", "host.mounts.hangs", value=True, subject="mount:/srv/site")
        kernel_says(it, node, "nfs: server 10.9.0.4 not responding, still trying")
    for values in it.ranks:
        values["process_state"] = "D"
    return it, nobody(F.STORAGE_CHECKPOINT, F.DATA_LOADER)


def shared_checkpoints_full(rng: Random) -> tuple[Fleet, Truth]:
    it = fleet(rng)
    said = (
        '[rank2]:   File "/srv/site/packages/torch/serialization.py", line 944, in save\n'
        "[rank2]: OSError: [Errno 28] No space left on device\n"
    )
    ends(it, [0], 1, said, phase="checkpoint")
    disk = "disk:/srv/site/lab/job/checkpoints"
    for node in it.nodes:
        it.reads(node, "host.disk", "host.disk.free_bytes", 0, disk)
        it.reads(node, "host.disk", "host.disk.free_pct", 0.0, disk)
    return it, nobody(F.DISK_FULL, F.STORAGE_CHECKPOINT)


def all_silent_but_one(rng: Random) -> tuple[Fleet, Truth]:
    """So many nodes do not die at once: a switch, or the controller's own way to them."""
    it = fleet(rng)
    stands_still(it, [])
    heard = _one(it)
    for node in it.nodes:
        if node != heard:
            it.is_silent(node, Outcome.CONNECT_TIMED_OUT, "no TCP connection within 5 s")
    return it, nobody(F.UNKNOWN, F.NETWORK_SWITCH, F.NETWORK_LINK)


def stale_xid_before_a_reset(rng: Random) -> tuple[Fleet, Truth]:
    """An error of hours ago; the driver was loaded again since, and every counter is at zero."""
    it = fleet(rng)
    text = (
        "NVRM: Xid (PCI:0000:2a:00): 48, pid='<unknown>', name=<unknown>, An uncorrectable double"
        " bit error (DBE) has been detected on GPU in the framebuffer at partition 4."
    )
    there = _one(it)
    loads = "NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  570.148.08"
    it.reads(there, "gpu.xid", "gpu.xid.line", f"3,700,3600000000,-;{text}")
    it.reads(there, "gpu.xid", "gpu.xid.line", f"6,750,3700000000,-;{loads}")
    return it, nobody(F.NO_FAULT, F.UNKNOWN)


def ranks_die_on_a_leftover(rng: Random) -> tuple[Fleet, Truth]:
    """A process of an earlier job holds the memory of one GPU."""
    it = fleet(rng)
    there = _one(it)
    it.reads(there, "gpu.processes", "gpu.processes.leftover_count", 1, _GPU)
    it.reads(there, "gpu.processes", "gpu.processes.leftovers", "31337 python", _GPU)
    said = (
        "[rank2]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 1 has"
        " a total capacity of 79.11 GiB of which 411.00 MiB is free. Process 31337 has 61.20 GiB"
        " memory in use.\n"
    )
    ends(it, [it.rank_on(there)], 1, said, phase="forward")
    return it, place([F.GPU_OOM, F.ENVIRONMENT_MISMATCH], there)


def login_refused_and_training(rng: Random) -> tuple[Fleet, Truth]:
    """A login is refused after a reinstallation, while training goes on there too."""
    it = fleet(rng)
    it.is_silent(_one(it), Outcome.HOST_KEY_MISMATCH, "the host key is not the recorded one")
    return it, nobody(F.NO_FAULT, F.UNKNOWN, F.ENVIRONMENT_MISMATCH)


def killed_by_its_cgroup(rng: Random) -> tuple[Fleet, Truth]:
    it = fleet(rng)
    there = _one(it)
    rank = it.rank_on(there)
    ends(it, [rank], -9, "")
    for other in it.ranks:
        if other is not it.ranks[rank] and not other["alive"]:
            _leave(other, 1, words("gpu-ecc", "bystander"))
    it.reads(there, "job.cgroup", "job.cgroup.oom_kills", 1, f"rank:{rank}")
    kernel_says(
        it, there,
        "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=job,mems_allowed=0-1,"
        "oom_memcg=/job,task_memcg=/job,task=python,pid=4242,uid=1000",
        "Memory cgroup out of memory: Killed process 4242 (python) total-vm:301234567kB,"
        " anon-rss:201234567kB, file-rss:0kB, shmem-rss:1024kB, UID:1000",
    )  # fmt: skip
    return it, place([F.CPU_OOM], there)
