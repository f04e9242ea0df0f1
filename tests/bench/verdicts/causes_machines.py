"""Incidents of machines, networks and storage, made from lists of causes and not from any rule.

The causes are those that published accounts of large training runs give, and those of trials that
broke things by hand. They were written, and measured once, before a rule was changed for them.
"""

from collections.abc import Iterable
from random import Random

from brctl.model.command import Outcome
from brctl.model.fault import FaultClass as F
from brctl.model.sweeps.report import CheckResult, ProbeStatus
from tests.bench.verdicts.fleet import (
    Fleet,
    _address,
    _leave,
    ends,
    slow_ranks,
    stands_still,
)
from tests.bench.verdicts.incident import Truth, machine, nobody, place
from tests.bench.verdicts.oncall_machines import kernel_says, sized

GPU = "gpu:GPU-00000001-0000-0000-0000-000000000000"
ABORTED = (
    "[rank{rank}]:[E ProcessGroupNCCL.cpp:616] [Rank {rank}] Watchdog caught collective operation"
    " timeout: WorkNCCL(SeqNum=8123, OpType=ALLREDUCE, NumelIn=33554432, Timeout(ms)=600000) ran"
    " for 600041 milliseconds before timing out.\n"
    "[rank{rank}]:[E ProcessGroupNCCL.cpp:630] To avoid data inconsistency, we are taking the"
    " entire process down.\n"
)


def any_size(rng: Random, *, least: int = 2, most: int = 512) -> Fleet:
    """From two nodes to 512, one to eight ranks on each."""
    counts = [n for n in (2, 3, 4, 7, 10, 20, 48, 96, 256, 512) if least <= n <= most]
    count = rng.choice(counts)
    return sized(rng, count, rng.choice((1, 2, 4, 8) if count < 100 else (1, 2)))


def one_of(it: Fleet) -> str:
    return it.some_nodes(1)[0]


def aborted_by_watchdog(it: Fleet, but: Iterable[int]) -> None:
    """Every rank but some was ended by its own watchdog."""
    spared = set(but)
    for rank, values in enumerate(it.ranks):
        if rank not in spared:
            _leave(values, -6, ABORTED.replace("{rank}", str(rank)))


def peers_of(it: Fleet, node: str) -> tuple[tuple[str, str], tuple[str, str]]:
    """The two ends at which the next nodes of the ring see it: who reads, and of which address."""
    here = it.nodes.index(node)
    after = (here + 1) % len(it.nodes)
    return (node, f"peer:{_address(after)}"), (it.nodes[here - 1], f"peer:{_address(here)}")


def small_packets_only(rng: Random) -> tuple[Fleet, Truth]:
    """Its interface was set back to 1500 bytes while its neighbours send 9000: logins pass."""
    it = any_size(rng, least=4)
    bad = one_of(it)
    stands_still(it, ())
    for node in it.nodes:
        it.reads(node, "fabric.eth", "fabric.eth.mtu", 1500 if node == bad else 9000, "nic:eth0")
    for node, peer in peers_of(it, bad):
        it.reads(node, "fabric.tcp", "fabric.tcp.timeouts_in_a_row", rng.randrange(4, 9), peer)
        it.reads(node, "fabric.tcp", "fabric.tcp.segments_now", 0, peer)
    classes = frozenset({F.NETWORK_ETH, F.NETWORK_LINK, F.ENVIRONMENT_MISMATCH})
    return it, Truth(classes, frozenset({bad}), frozenset({bad}))


def nic_at_a_tenth(rng: Random) -> tuple[Fleet, Truth]:
    """One adapter came back at 10 Gbit/s where all others have 100; everybody waits for it."""
    it = any_size(rng, least=4)
    bad = one_of(it)
    slow_ranks(it, (), rng.uniform(2.0, 8.0))
    for node in it.nodes:
        rate = 10 if node == bad else 100
        it.reads(node, "fabric.eth", "fabric.eth.gbit_per_s", rate, "nic:eth0")
    classes = frozenset({F.NETWORK_ETH, F.NETWORK_LINK, F.STRAGGLER_SLOW})
    return it, Truth(classes, frozenset({bad}), frozenset({bad}))


def port_flaps_and_watchdogs(rng: Random) -> tuple[Fleet, Truth]:
    """An InfiniBand port went down for ten seconds; all watchdogs ended the job half an hour on."""
    it = any_size(rng, least=3)
    bad = one_of(it)
    stands_still(it, ())
    aborted_by_watchdog(it, ())
    kernel_says(
        it, bad, "mlx5_core 0000:5e:00.0 mlx5_3: Port: 1 Link DOWN",
        "mlx5_core 0000:5e:00.0 mlx5_3: Port: 1 Link ACTIVE",
    )  # fmt: skip
    classes = frozenset({F.NETWORK_IB, F.NETWORK_LINK})
    return it, Truth(classes, frozenset({bad}), frozenset({bad}))


def loses_packets_both_ways(rng: Random) -> tuple[Fleet, Truth]:
    """4 % loss at one node, steady; in the moment of the look few packets were on their way."""
    it = any_size(rng, least=4)
    bad = one_of(it)
    times = rng.uniform(1.2, 2.2)
    slow_ranks(it, (), times)
    for node, peer in peers_of(it, bad):
        it.reads(node, "fabric.tcp", "fabric.tcp.lost", rng.randrange(300, 420), peer)
    classes = frozenset({F.NETWORK_ETH, F.NETWORK_LINK})
    return it, Truth(classes, frozenset({bad}), frozenset({bad}))


def silent_leaf_but_training(rng: Random) -> tuple[Fleet, Truth]:
    """The management switch of one leaf is off; the training network is another one."""
    it = any_size(rng, least=48)
    leaf = rng.choice(sorted(set(it.leaves.values())))
    for node in (n for n, where in it.leaves.items() if where == leaf):
        it.is_silent(node, Outcome.CONNECT_TIMED_OUT, "no TCP connection within 5 s")
    return it, nobody(F.UNKNOWN, F.NETWORK_SWITCH)


def half_a_leaf_off(rng: Random) -> tuple[Fleet, Truth]:
    """Nine nodes of one leaf of sixteen go at once, as one of its two power supplies does."""
    it = sized(rng, 64, 1)
    leaf = rng.choice(sorted(set(it.leaves.values())))
    gone = [n for n, where in it.leaves.items() if where == leaf][:9]
    stands_still(it, ())
    for node in gone:
        it.is_silent(node, Outcome.UNREACHABLE, "no route to host")
    classes = frozenset({F.NODE_FAILURE, F.NETWORK_SWITCH, F.UNKNOWN})
    return it, Truth(classes, frozenset(gone), frozenset(gone))


def host_memory_broken(rng: Random) -> tuple[Fleet, Truth]:
    """A page of the host cannot be read: the kernel kills the rank with SIGBUS."""
    it = any_size(rng)
    bad = one_of(it)
    ends(it, [it.rank_on(bad)], -7, "")
    kernel_says(
        it, bad, "mce: [Hardware Error]: CPU 34: Machine Check Exception: 5 Bank 7: be000000008004",
        "EDAC MC1: 1 UE memory read error on CPU_SrcID#1_MC#0_Chan#0_DIMM#1 (channel:0 slot:1)",
        "Memory failure: 0x3f1c: Sending SIGBUS to python3:42 due to hardware memory corruption",
    )  # fmt: skip
    it.reads(bad, "host.memory", "host.memory.uncorrected_errors", 1)
    return it, machine(F.NODE_FAILURE, bad)


def local_disk_dies(rng: Random) -> tuple[Fleet, Truth]:
    """The scratch disk of one node is gone; the loader there waits for it in the kernel."""
    it = any_size(rng)
    bad = one_of(it)
    rank = it.rank_on(bad)
    stands_still(it, [rank], where="load")
    it.ranks[rank] |= {"process_state": "D", "kernel_wait": "folio_wait_bit_common"}
    it.stacks[rank] = ("dataset.py:Shard.read", "train.py:main")
    kernel_says(
        it, bad, "nvme nvme2: I/O 312 QID 5 timeout, aborting",
        "nvme nvme2: Device not ready; aborting reset, CSTS=0x1",
        "blk_update_request: I/O error, dev nvme2n1, sector 88123392 op 0x0:(READ)",
        "EXT4-fs error (device nvme2n1): ext4_find_entry:1682: inode #2: comm python3: reading"
        " directory lblock 0",
    )  # fmt: skip
    classes = frozenset({F.STORAGE_CHECKPOINT, F.HOST_KERNEL, F.NODE_FAILURE})
    return it, Truth(classes, frozenset({bad}), frozenset({bad}))


def file_server_slow_for_one(rng: Random) -> tuple[Fleet, Truth]:
    """One node's mount of the file server retries for ever; to stat it succeeds from the cache."""
    it = any_size(rng)
    there = one_of(it)
    ranks = it.job.ranks_on(there)
    stands_still(it, ranks, where="checkpoint")
    for rank in ranks:
        it.ranks[rank] |= {"process_state": "D", "kernel_wait": "nfs_wait_bit_killable"}
        it.stacks[rank] = ("serialization.py:save", "checkpoint.py:write", "train.py:main")
    return it, place([F.STORAGE_CHECKPOINT], there)


def power_limit_lowered(rng: Random) -> tuple[Fleet, Truth]:
    """Somebody tried a power limit on one node and left it there."""
    it = any_size(rng)
    bad = one_of(it)
    slow_ranks(it, it.job.ranks_on(bad), rng.uniform(1.3, 2.5))
    for number in (0, 1):
        gpu = f"gpu:GPU-0000000{number}-0000-0000-0000-000000000000"
        it.reads(bad, "gpu.clocks", "gpu.clocks.power_limit_w", 300.0, gpu)
        it.reads(bad, "gpu.clocks", "gpu.clocks.power_w", 299.0, gpu)
        it.reads(bad, "gpu.clocks", "gpu.clocks.sm_mhz", 1005, gpu)
        it.reads(bad, "gpu.clocks", "gpu.clocks.event_reasons", 0x4, gpu)
    classes = frozenset({F.THERMAL_POWER, F.GPU_SLOW, F.STRAGGLER_SLOW})
    return it, Truth(classes, frozenset({bad}), frozenset({bad}))


def driver_upgraded_under_it(rng: Random) -> tuple[Fleet, Truth]:
    """Unattended upgrades replaced the driver's library on one node; its ranks cannot start."""
    it = any_size(rng)
    there = one_of(it)
    said = (
        "[rank2]: RuntimeError: Unexpected error from cudaGetDeviceCount(). Did you run some cuda"
        " functions before calling NumCudaDevices() that might have already set an error? Error"
        " 804: forward compatibility was attempted on non supported HW\n"
    )
    ends(it, it.job.ranks_on(there), 1, said)
    it.reads(there, "gpu.driver", "gpu.driver.mismatch", value=True)
    it.reads(there, "gpu.driver", "gpu.driver.library_version", "580.65.06")
    # No rank can start there before it was booted again: to take it out is right.
    classes = frozenset({F.ENVIRONMENT_MISMATCH, F.DRIVER_FIRMWARE})
    return it, Truth(classes, frozenset({there}), frozenset({there}))


def fabric_manager_gone(rng: Random) -> tuple[Fleet, Truth]:
    """The fabric manager of one node failed; nothing on it can use its GPUs."""
    it = any_size(rng)
    bad = one_of(it)
    said = "[rank2]: RuntimeError: CUDA error: system not yet initialized\n"
    ends(it, it.job.ranks_on(bad), 1, said)
    for number in (0, 1):
        gpu = f"gpu:GPU-0000000{number}-0000-0000-0000-000000000000"
        it.reads(bad, "gpu.fabric_manager", "gpu.fabric.state", "in progress", gpu)
    kernel_says(it, bad, "nvidia-nvswitch0: SXid (PCI:0000:04:00.0): 20034, Fatal, Link 28 LTSSM"
                " Fault Up")  # fmt: skip
    classes = frozenset({F.NVLINK, F.DRIVER_FIRMWARE})
    return it, Truth(classes, frozenset({bad}), frozenset({bad}))


def corrected_storm_beside_a_bug(rng: Random) -> tuple[Fleet, Truth]:
    """A GPU corrects 100,000 errors, as it does for weeks; the job fell over its own change."""
    it = any_size(rng, least=3)
    it.reads(one_of(it), "gpu.ecc", "gpu.ecc.volatile_corrected", 104_331, GPU)
    said = (
        "[rank2]: Traceback (most recent call last):\n"
        '[rank2]:   File "/srv/site/code/train.py", line 211, in <module>\n'
        "[rank2]:     main()\n"
        '[rank2]:   File "/srv/site/code/schedule.py", line 40, in lr\n'
        "[rank2]:     return self.table[step]\n"
        "[rank2]: KeyError: 12000\n"
    )
    ends(it, range(it.job.world_size), 1, said, phase="optimizer")
    return it, nobody(F.USER_CODE)


def slow_login_and_training(rng: Random) -> tuple[Fleet, Truth]:
    """A node takes nine seconds to let anybody in and loses a check; steps go on."""
    it = any_size(rng)
    there = one_of(it)
    it.lost_checks[there, "host.disk"] = CheckResult("host.disk", ProbeStatus.TIMED_OUT)
    it.reads(there, "host.cpu", "host.cpu.load_per_cpu", 31.0)
    return it, nobody(F.UNKNOWN, F.NO_FAULT)


def foreign_work_on_one(rng: Random) -> tuple[Fleet, Truth]:
    """Somebody compiles on a node of the job: its ranks get a part of the processors."""
    it = any_size(rng, least=3)
    there = one_of(it)
    slow_ranks(it, it.job.ranks_on(there), rng.uniform(1.4, 3.0))
    for node in it.nodes:
        it.reads(node, "host.cpu", "host.cpu.load_per_cpu", 9.4 if node == there else 0.9)
    return it, place([F.STRAGGLER_SLOW], there)


def reclaimed_with_notice(rng: Random) -> tuple[Fleet, Truth]:
    """A spot machine was told to end, ended its ranks in order, and went."""
    it = any_size(rng, least=3)
    gone = one_of(it)
    ends(it, (), 1, "")
    it.is_silent(gone, Outcome.UNREACHABLE, "no route to host")
    return it, machine(F.NODE_FAILURE, gone)


def ecc_in_the_standing_rank(rng: Random) -> tuple[Fleet, Truth]:
    """Contained ECC error: the driver ends the channel, the rank waits for its stream for ever."""
    it = any_size(rng)
    bad = one_of(it)
    rank = it.rank_on(bad)
    stands_still(it, [rank], where="backward")
    it.stacks[rank] = ("__init__.py:synchronize", "train.py:Step.run", "train.py:main")
    kernel_says(
        it, bad, "NVRM: Xid (PCI:0000:2a:00): 94, pid=4242, name=python3, Contained: FB (0x0,0x0)."
        " RST: No, D-RST: No", check="gpu.xid",
    )  # fmt: skip
    it.reads(bad, "gpu.ecc", "gpu.ecc.volatile_uncorrected", 1, GPU)
    return it, machine(F.GPU_MEMORY_ECC, bad)


def two_lose_their_gpus(rng: Random) -> tuple[Fleet, Truth]:
    """Two nodes of one rack lose a GPU in the same minute."""
    it = any_size(rng, least=7)
    both = it.some_nodes(2)
    said = "[rank2]: RuntimeError: CUDA error: unspecified launch failure\n"
    for node in both:
        it.has(node, "gpu-lost")
    ends(it, [it.rank_on(node) for node in both], 1, said)
    return it, machine(F.GPU_LOST, *both)


def hot_and_scratch_full(rng: Random) -> tuple[Fleet, Truth]:
    """One node is throttled by heat; the scratch of another ran full, its rank ended of that."""
    it = any_size(rng, least=3)
    hot, full = it.some_nodes(2)
    it.has(hot, "thermal")
    it.has(full, "disk-full")
    said = "[rank2]: OSError: [Errno 28] No space left on device: '/scratch/cache/7.bin'\n"
    ends(it, [it.rank_on(full)], 1, said, phase="load")
    classes = frozenset({F.DISK_FULL, F.THERMAL_POWER})
    return it, Truth(classes, frozenset({hot, full}), frozenset({hot}))


def clock_jumped_an_hour(rng: Random) -> tuple[Fleet, Truth]:
    """A clock was set an hour ahead while the job trained: files there look an hour old."""
    it = any_size(rng, least=3)
    there = one_of(it)
    it.clock_off_s[there] = 3600.0
    for rank in it.job.ranks_on(there):
        it.ranks[rank]["progress_age_s"] = 3600.0 + rng.uniform(0.0, 2.0)
        it.ranks[rank]["phase_age_s"] = it.ranks[rank]["progress_age_s"]
    return it, place([F.ENVIRONMENT_MISMATCH], there)


OPEN = (
    small_packets_only, port_flaps_and_watchdogs, silent_leaf_but_training, host_memory_broken,
    file_server_slow_for_one, driver_upgraded_under_it, corrected_storm_beside_a_bug,
    foreign_work_on_one, ecc_in_the_standing_rank, hot_and_scratch_full,
)  # fmt: skip
SET_ASIDE = (
    nic_at_a_tenth, loses_packets_both_ways, half_a_leaf_off, local_disk_dies,
    power_limit_lowered, fabric_manager_gone, slow_login_and_training, reclaimed_with_notice,
    two_lose_their_gpus, clock_jumped_an_hour,
)  # fmt: skip
