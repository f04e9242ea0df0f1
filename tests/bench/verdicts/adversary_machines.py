"""An adversary's incidents of machines, links and hosts, written before any was concluded on.

What people on call meet beside the one fault of a rehearsal: a second one, neighbours that see only
half of it, hosts that are all busy, errors of the past on a machine that is well today.
"""

from dataclasses import replace
from random import Random

from brctl.model.command import Outcome
from brctl.model.fault import FaultClass as F
from brctl.model.sweeps.report import CheckResult, ProbeStatus
from tests.bench.verdicts.answers import words
from tests.bench.verdicts.causes_machines import (
    GPU,
    aborted_by_watchdog,
    any_size,
    one_of,
    peers_of,
)
from tests.bench.verdicts.fleet import WAITING, Fleet, ends, slow_ranks, stands_still
from tests.bench.verdicts.incident import Truth, machine, nobody, place
from tests.bench.verdicts.oncall_machines import kernel_says, sized

HANGS = (F.HANG_MISMATCH, F.USER_CODE)
NETWORKS = (F.NETWORK_ETH, F.NETWORK_LINK, F.NETWORK_SWITCH)
RECEIVES = ("distributed_c10d.py:recv", "schedules.py:recv_forward", "train.py:main")
OWN_LOCK = ("cache.py:Cache.lock", "model.py:Block.forward", "train.py:main")
GPU_CHECKS = ("gpu.clocks", "gpu.ecc", "gpu.nvlink", "gpu.pcie", "gpu.devices")
NO_ROUTE = (Outcome.CONNECT_TIMED_OUT, "no TCP connection within 5 s")


def some_size(rng: Random, *, least: int) -> Fleet:
    """Of up to 48 nodes: what an adversary does shows in small fleets, and quickly."""
    return any_size(rng, least=least, most=48)


def at_s(it: Fleet, node: str, check: str, moment_s: float, *lines: str) -> None:
    """Lines of a node's kernel from so long after its boot."""
    for number, text in enumerate(lines):
        usec = int(moment_s * 1e6) + number
        it.reads(node, check, f"{check}.line", f"3,{700 + number},{usec},-;{text}")


def broken(classes: tuple[F, ...], *nodes: str) -> Truth:
    """Bad machines of which the field would say one of several classes."""
    return Truth(frozenset(classes), frozenset(nodes), frozenset(nodes))


def in_stages(rng: Random) -> Fleet:
    """A pipeline of four stages, a node each, as many times as there are nodes for it."""
    it = sized(rng, rng.choice((4, 8, 16, 32)), rng.choice((1, 2, 4)))
    sizes = (("tp", it.job.ranks_per_node), ("pp", 4), ("dp", len(it.nodes) // 4))
    it.job = replace(it.job, axes=sizes)
    return it


def stuck_beside(it: Fleet, node: str, frames: tuple[str, ...] = OWN_LOCK) -> int:
    """The job waits for one rank of a node, which waits for a lock of its own code; that rank."""
    rank = it.rank_on(node)
    stands_still(it, [rank], where="forward")
    it.stacks[rank] = frames
    return rank


def _pipeline_waits(it: Fleet, node: str) -> None:
    """The other stages of a node's pipeline wait for its activations, not in the all-reduce."""
    first = it.nodes.index(node) // 4 * 4
    for rank in it.ranks_of(it.nodes[first : first + 4]):
        it.ranks[rank]["phase"] = "forward"
        it.stacks[rank] = RECEIVES


def silent_node_and_its_pipeline(rng: Random) -> tuple[Fleet, Truth]:
    """A dead node; its own pipeline waits in receives, all other pipelines in the all-reduce."""
    it = in_stages(rng)
    bad = one_of(it)
    stands_still(it, ())
    _pipeline_waits(it, bad)
    it.is_silent(bad, *NO_ROUTE)
    return it, broken((F.NODE_FAILURE, F.NETWORK_LINK, F.NETWORK_ETH), bad)


def stuck_stage_of_a_pipeline(rng: Random) -> tuple[Fleet, Truth]:
    """One stage waits for a lock; its neighbours stand in receives and are as absent as it is."""
    it = in_stages(rng)
    there = one_of(it)
    stuck_beside(it, there)
    held = it.job.ranks_on(there)[0]
    stands_still(it, [held], where="forward")
    _pipeline_waits(it, there)
    it.stacks[held] = OWN_LOCK
    return it, place(HANGS, there)


def cut_link_seen_by_neighbours(rng: Random) -> tuple[Fleet, Truth]:
    """Both neighbours get no answer from a node, whose own look at its connections timed out."""
    it = some_size(rng, least=4)
    bad = one_of(it)
    stands_still(it, ())
    here = it.nodes.index(bad)
    before, mine = peers_of(it, bad)[1]
    following = it.nodes[(here + 1) % len(it.nodes)]
    for node in (before, following):
        for name, value in (("timeouts_in_a_row", 7), ("segments_now", 0), ("segments", 8000)):
            it.reads(node, "fabric.tcp", f"fabric.tcp.{name}", value, mine)
    it.lost_checks[bad, "fabric.tcp"] = CheckResult("fabric.tcp", ProbeStatus.TIMED_OUT)
    return it, broken((*NETWORKS, F.NODE_FAILURE), bad)


def flapping_link(rng: Random) -> tuple[Fleet, Truth]:
    """A transceiver that comes and goes; steps go on and take longer in their collectives."""
    it = some_size(rng, least=4)
    bad = one_of(it)
    slow_ranks(it, (), rng.uniform(1.5, 4.0))
    it.reads(bad, "fabric.eth", "fabric.eth.carrier_changes", 46, "nic:eth0")
    for node, peer in peers_of(it, bad):
        it.reads(node, "fabric.tcp", "fabric.tcp.lost", 420, peer)
        it.reads(node, "fabric.tcp", "fabric.tcp.lost_now", 6, peer)
    kernel_says(
        it, bad, "mlx5_core 0000:5e:00.0 eth0: Link down", "mlx5_core 0000:5e:00.0 eth0: Link up",
        "mlx5_core 0000:5e:00.0 eth0: Link down", "mlx5_core 0000:5e:00.0 eth0: Link up",
    )  # fmt: skip
    return it, broken(NETWORKS, bad)


def flapped_in_the_night(rng: Random) -> tuple[Fleet, Truth]:
    """The same cable was plugged again three hours ago, and training has its usual pace."""
    it = some_size(rng, least=4)
    there = one_of(it)
    it.reads(there, "fabric.eth", "fabric.eth.carrier_changes", 6, "nic:eth0")
    said = [f"mlx5_core 0000:5e:00.0 eth0: Link {way}" for way in ("down", "up") * 2]
    at_s(it, there, "host.kernel", 900.0, *said)
    return it, nobody(F.NO_FAULT, F.UNKNOWN)


def bond_without_a_leg(rng: Random) -> tuple[Fleet, Truth]:
    """One of two cables is dead: half the rate, and everybody waits for it in collectives."""
    it = some_size(rng, least=4)
    bad = one_of(it)
    slow_ranks(it, (), rng.uniform(1.6, 2.2))
    it.reads(bad, "fabric.eth", "fabric.eth.carrier", value=False, subject="nic:eth1")
    kernel_says(
        it, bad, "mlx5_core 0000:5e:00.1 eth1: Link down",
        "bond0: (slave eth1): link status definitely down, disabling slave",
    )  # fmt: skip
    return it, broken(NETWORKS, bad)


def bonding_status(rng: Random) -> tuple[Fleet, Truth]:
    """What every bond says while it is put together, and when a partner answers late."""
    it = some_size(rng, least=3)
    said = (
        "bond0: (slave eth0): Enslaving as a backup interface with an up link",
        "bond0: (slave eth1): link status definitely up, 100000 Mbps full duplex",
        "bond0: Warning: No 802.3ad response from the link partner for any adapters in the bond",
        "bond0: active interface up!",
    )
    for node in it.nodes:
        at_s(it, node, "host.kernel", 21.0, *said)
    kernel_says(it, one_of(it), said[1])
    return it, nobody(F.NO_FAULT)


def recovered_ata_exception(rng: Random) -> tuple[Fleet, Truth]:
    """A system disk answered late once; the port was reset and all was written."""
    it = some_size(rng, least=3)
    kernel_says(
        it, one_of(it), "ata3.00: exception Emask 0x0 SAct 0x40 SErr 0x0 action 0x6 frozen",
        "ata3.00: failed command: WRITE FPDMA QUEUED", "ata3: hard resetting link",
        "ata3: SATA link up 6.0 Gbps (SStatus 133 SControl 300)",
        "ata3.00: configured for UDMA/133", "ata3: EH complete",
    )  # fmt: skip
    return it, nobody(F.NO_FAULT)


def busy_hosts_and_one_hangs(rng: Random) -> tuple[Fleet, Truth]:
    """Every host has far more to do than cores; one rank waits for a lock all the same."""
    it = some_size(rng, least=4)
    there = one_of(it)
    stuck_beside(it, there)
    for node in it.nodes:
        it.reads(node, "host.cpu", "host.cpu.load_per_cpu", rng.uniform(3.0, 8.0))
        for rank in it.job.ranks_on(node):
            it.reads(node, "job.cpu", "job.cpu.waits_pct", rng.uniform(20, 70), f"rank:{rank}")
    return it, place(HANGS, there)


def all_hosts_busy_and_slow(rng: Random) -> tuple[Fleet, Truth]:
    """Another queue shares every host since noon: all ranks compute longer, none more than most."""
    it = some_size(rng, least=4)
    it.past = True
    times = rng.uniform(1.3, 2.2)
    slow_ranks(it, range(it.job.world_size), times)
    for node in it.nodes:
        it.reads(node, "host.cpu", "host.cpu.load_per_cpu", rng.uniform(3.0, 8.0))
        for rank in it.job.ranks_on(node):
            it.reads(node, "job.cpu", "job.cpu.waits_pct", rng.uniform(30, 60), f"rank:{rank}")
    return it, nobody(F.UNKNOWN, F.STRAGGLER_SLOW, F.ENVIRONMENT_MISMATCH)


def cooling_fails_in_the_hall(rng: Random) -> tuple[Fleet, Truth]:
    """Every GPU is at its limit and slows itself down; no machine of them is broken."""
    it = some_size(rng, least=4)
    it.past = True
    slow_ranks(it, range(it.job.world_size), rng.uniform(1.25, 1.8))
    for node in it.nodes:
        for name, value in (("event_reasons", 0x20), ("temperature_margin_c", 0), ("sm_mhz", 1300)):
            it.reads(node, "gpu.clocks", f"gpu.clocks.{name}", value, GPU)
    return it, place((F.THERMAL_POWER,), *it.nodes)


def ecc_beside_clocks_apart(rng: Random) -> tuple[Fleet, Truth]:
    """A GPU with bad memory killed the job; the clocks of two other nodes are a minute apart."""
    it = some_size(rng, least=4)
    bad, fast, slow = it.some_nodes(3)
    it.has(bad, "gpu-ecc")
    ends(it, [it.rank_on(bad)], 1, words("gpu-ecc", "culprit"))
    it.clock_off_s |= {fast: rng.uniform(25.0, 60.0), slow: -rng.uniform(25.0, 60.0)}
    classes = frozenset({F.GPU_MEMORY_ECC})
    return it, Truth(classes, frozenset({bad, fast, slow}), frozenset({bad}))


def lost_gpu_beside_a_memory_kill(rng: Random) -> tuple[Fleet, Truth]:
    """A GPU fell off the bus; in the same minute the kernel killed a rank of another node."""
    it = some_size(rng, least=4)
    bad, small = it.some_nodes(2)
    it.has(bad, "gpu-lost")
    first, second = it.rank_on(bad), it.rank_on(small)
    ends(it, [first], 1, words("gpu-lost", "culprit"))
    it.ranks[second] |= {"alive": False, "exit_status": -9, "last_words": "", "phase": "backward"}
    it.ranks[second].pop("process_state", None)
    kernel_says(
        it, small, "Out of memory: Killed process 4242 (python3) total-vm:91234567kB,"
        " anon-rss:88000000kB, file-rss:0kB, shmem-rss:0kB, UID:1000",
    )  # fmt: skip
    classes = frozenset({F.GPU_LOST, F.CPU_OOM})
    return it, Truth(classes, frozenset({bad, small}), frozenset({bad}))


def hot_here_and_no_batches_there(rng: Random) -> tuple[Fleet, Truth]:
    """Two nodes hold every step up by as much, one by its heat, the other by its batches."""
    it = some_size(rng, least=7)
    it.past = True
    hot, hungry = it.some_nodes(2)
    times = rng.uniform(1.5, 2.5)
    late = it.job.ranks_on(hungry)
    slow_ranks(it, it.ranks_of((hot, hungry)), times)
    it.has(hot, "thermal")
    for rank in late:
        it.ranks[rank] |= {"recent_load_s": it.step_s * (times - 1.0), "phase": "load"}
    classes = frozenset({F.THERMAL_POWER, F.DATA_LOADER, F.STRAGGLER_SLOW})
    return it, Truth(classes, frozenset({hot, hungry}), frozenset({hot}))


def comes_up_again(rng: Random) -> tuple[Fleet, Truth]:
    """A node crashed and boots: its kernel refuses what sshd does not take yet."""
    it = some_size(rng, least=3)
    bad = one_of(it)
    ends(it, (), 1, "")
    it.is_silent(bad, Outcome.REFUSED, "connection refused")
    return it, broken((F.NODE_FAILURE, F.HOST_KERNEL), bad)


def deaf_node_that_had_joined(rng: Random) -> tuple[Fleet, Truth]:
    """No login on one node, whose ranks wait like all; a rank elsewhere waits for its lock."""
    it = some_size(rng, least=4)
    there, deaf = it.some_nodes(2)
    stuck_beside(it, there)
    it.is_silent(deaf, Outcome.COMMAND_TIMED_OUT, "logged in, no answer within 30 s")
    return it, place(HANGS, there)


def gpu_answers_late_on_many(rng: Random) -> tuple[Fleet, Truth]:
    """NVML is slow on several loaded nodes; the bad memory is on one that answers."""
    it = some_size(rng, least=7)
    bad, *late = it.some_nodes(4)
    it.has(bad, "gpu-ecc")
    ends(it, [it.rank_on(bad)], 1, words("gpu-ecc", "culprit"))
    for node in late:
        for check in GPU_CHECKS:
            it.lost_checks[node, check] = CheckResult(check, ProbeStatus.TIMED_OUT)
    return it, machine(F.GPU_MEMORY_ECC, bad)


def half_the_fleet_says_nothing_useful(rng: Random) -> tuple[Fleet, Truth]:
    """A banner was rolled out to half of the nodes; steps are seen to go on at the others."""
    it = some_size(rng, least=4)
    for node in it.nodes[::2]:
        it.is_silent(node, Outcome.UNPARSABLE, "no JSON in 1204 bytes")
    return it, nobody(F.UNKNOWN)


def blocked_in_its_file_system(rng: Random) -> tuple[Fleet, Truth]:
    """One rank is in the kernel for minutes since its save; all others wait for it."""
    it = some_size(rng, least=3)
    there = one_of(it)
    rank = it.rank_on(there)
    stands_still(it, [rank], where="checkpoint")
    it.ranks[rank] |= {"process_state": "D", "kernel_wait": "xfs_log_force", "phase_longest_s": 5.0}
    it.stacks[rank] = ("serialization.py:save", "checkpoint.py:write", "train.py:main")
    kernel_says(it, there, "INFO: task python:4242 blocked for more than 120 seconds.")
    return it, place((F.STORAGE_CHECKPOINT, F.HOST_KERNEL, *HANGS), there)


def blocked_task_of_somebody(rng: Random) -> tuple[Fleet, Truth]:
    """A backup waited for its disk two hours ago; training never noticed."""
    it = some_size(rng, least=3)
    said = "INFO: task restic:991 blocked for more than 120 seconds."
    at_s(it, one_of(it), "host.kernel", 4000.0, said)
    return it, nobody(F.NO_FAULT, F.UNKNOWN)


def peers_all_name_one_adapter(rng: Random) -> tuple[Fleet, Truth]:
    """Every rank that talked to one node ends of a completion error, and says its address."""
    it = some_size(rng, least=4)
    bad = one_of(it)
    mine = peers_of(it, bad)[1][1].removeprefix("peer:")
    said = (
        "[rank2]: NCCL WARN NET/IB : Got completion from peer "
        f"{mine}<41522> with status=12 opcode=129 len=0 vendor err 129 (Send)\n"
    )
    far = [r for r in range(it.job.world_size) if it.job.node_of(r) != bad]
    ends(it, far, 1, said, phase=WAITING)
    return it, nobody(F.NETWORK_IB, F.NETWORK_LINK, F.NETWORK_ETH, seen_at=it.nodes)


def two_nodes_and_a_path(rng: Random) -> tuple[Fleet, Truth]:
    """Two nodes, and the path between them carries nothing: one of two, or what is between."""
    it = sized(rng, 2, rng.choice((1, 2, 8)))
    stands_still(it, ())
    for node, peer in peers_of(it, it.nodes[0]):
        it.reads(node, "fabric.tcp", "fabric.tcp.timeouts_in_a_row", 7, peer)
        it.reads(node, "fabric.tcp", "fabric.tcp.segments_now", 0, peer)
    return it, nobody(*NETWORKS, seen_at=it.nodes)


def replays_and_one_is_slow(rng: Random) -> tuple[Fleet, Truth]:
    """A bad riser: millions of replays, and the ranks of that node hold all others up."""
    it = some_size(rng, least=4)
    bad = one_of(it)
    slow_ranks(it, it.job.ranks_on(bad), rng.uniform(1.4, 2.5))
    it.reads(bad, "gpu.pcie", "gpu.pcie.replays", 2_400_000, GPU)
    kernel_says(
        it, bad, "pcieport 0000:00:01.0: AER: Multiple Corrected error received: 0000:3b:00.0",
    )  # fmt: skip
    return it, broken((F.PCIE, F.STRAGGLER_SLOW, F.GPU_SLOW), bad)


def memory_kill_next_door_and_a_hang(rng: Random) -> tuple[Fleet, Truth]:
    """The kernel killed a web server in its own container; the job waits for a rank elsewhere."""
    it = some_size(rng, least=4)
    there, innocent = it.some_nodes(2)
    stuck_beside(it, there)
    kernel_says(
        it, innocent, "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=nginx,"
        "mems_allowed=0-1,oom_memcg=/docker/4be1,task_memcg=/docker/4be1,task=nginx,pid=99,uid=33",
        "Memory cgroup out of memory: Killed process 99 (nginx) total-vm:1234567kB,"
        " anon-rss:990000kB, file-rss:0kB, shmem-rss:0kB, UID:33",
    )  # fmt: skip
    return it, place(HANGS, there)


def dead_while_watchdogs_end_the_rest(rng: Random) -> tuple[Fleet, Truth]:
    """Half an hour after a node froze, the watchdogs of all others ended the job."""
    it = some_size(rng, least=3)
    bad = one_of(it)
    stands_still(it, ())
    aborted_by_watchdog(it, it.job.ranks_on(bad))
    it.is_silent(bad, Outcome.LOGIN_TIMED_OUT, "connected, no login within 10 s")
    return it, broken((F.NODE_FAILURE, F.HOST_KERNEL), bad)


TOLD = (
    silent_node_and_its_pipeline, stuck_stage_of_a_pipeline, cut_link_seen_by_neighbours,
    flapping_link, flapped_in_the_night, bond_without_a_leg, bonding_status,
    recovered_ata_exception, busy_hosts_and_one_hangs, all_hosts_busy_and_slow,
    cooling_fails_in_the_hall, ecc_beside_clocks_apart, lost_gpu_beside_a_memory_kill,
    hot_here_and_no_batches_there, comes_up_again, deaf_node_that_had_joined,
    gpu_answers_late_on_many, half_the_fleet_says_nothing_useful, blocked_in_its_file_system,
    blocked_task_of_somebody, peers_all_name_one_adapter, two_nodes_and_a_path,
    replays_and_one_is_slow, memory_kill_next_door_and_a_hang, dead_while_watchdogs_end_the_rest,
)  # fmt: skip
