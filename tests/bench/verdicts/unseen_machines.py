"""Incidents of storage, networks and hosts by means that no other set has, made before any rule."""

from random import Random

from brctl.model.fault import FaultClass as F
from brctl.model.sweeps.report import CheckResult, ProbeStatus
from tests.bench.verdicts.causes_machines import any_size, one_of, peers_of
from tests.bench.verdicts.fleet import Fleet, _address, ends, slow_ranks, stands_still
from tests.bench.verdicts.incident import Truth, machine, nobody, place
from tests.bench.verdicts.oncall_machines import kernel_says
from tests.bench.verdicts.unseen_jobs import HANGS, SOUND, _trace

NETWORKS = (F.NETWORK_ETH, F.NETWORK_LINK, F.NETWORK_SWITCH)


def slow_disk_at_the_save(rng: Random) -> tuple[Fleet, Truth]:
    """Somebody capped the disk under one rank's checkpoints; its save takes for ever."""
    it = any_size(rng, least=3)
    there = one_of(it)
    rank = it.rank_on(there)
    stands_still(it, [rank], where="checkpoint")
    it.ranks[rank] |= {
        "process_state": "D", "kernel_wait": "balance_dirty_pages", "phase_longest_s": 4.0,
    }  # fmt: skip
    it.stacks[rank] = ("serialization.py:save", "checkpoint.py:write", "train.py:main")
    return it, place((F.STORAGE_CHECKPOINT, F.HANG_MISMATCH, F.UNKNOWN), there)


def shared_memory_full_on_one(rng: Random) -> tuple[Fleet, Truth]:
    """Segments of dead loaders fill /dev/shm of one node."""
    it = any_size(rng, least=3)
    there = one_of(it)
    said = _trace(
        'data.py", line 33, in batch',
        "RuntimeError: unable to write to file </torch_811_2091544_12>: No space left on device"
        " (28)",
    )
    ends(it, [it.rank_on(there)], 1, said, phase="load")
    classes = (F.DISK_FULL, F.DATA_LOADER, F.NCCL_CONFIG, F.ENVIRONMENT_MISMATCH)
    return it, place(classes, there)


def fuse_never_answers(rng: Random) -> tuple[Fleet, Truth]:
    """The daemon behind one node's mount of the object store is stuck."""
    it = any_size(rng, least=3)
    there = one_of(it)
    rank = it.rank_on(there)
    stands_still(it, [rank], where="load")
    it.ranks[rank] |= {
        "process_state": rng.choice("DS"), "kernel_wait": "request_wait_answer",
    }  # fmt: skip
    it.stacks[rank] = ("dataset.py:Shard.read", "train.py:main")
    if rng.random() < 0.5:
        it.reads(there, "host.mounts", "host.mounts.hangs", value=True, subject="mount:/data")
    return it, place((F.STORAGE_CHECKPOINT, F.DATA_LOADER, *HANGS), there)


def names_gone_on_one(rng: Random) -> tuple[Fleet, Truth]:
    """One node's resolver died; its loader finds the object store no more."""
    it = any_size(rng, least=3)
    there = one_of(it)
    said = _trace(
        'fetch.py", line 77, in get',
        "socket.gaierror: [Errno -3] Temporary failure in name resolution",
    )
    ends(it, [it.rank_on(there)], 1, said, phase="load")
    classes = (F.ENVIRONMENT_MISMATCH, F.NETWORK_ETH, F.USER_CODE, F.DATA_LOADER,
               F.STORAGE_CHECKPOINT)  # fmt: skip
    return it, place(classes, there)


def one_direction_dropped(rng: Random) -> tuple[Fleet, Truth]:
    """A filter drops what one node sends to one other; back, packets pass."""
    it = any_size(rng, least=4)
    source = one_of(it)
    stands_still(it, ())
    (node, peer), _ = peers_of(it, source)
    it.reads(node, "fabric.tcp", "fabric.tcp.timeouts_in_a_row", rng.randrange(4, 9), peer)
    it.reads(node, "fabric.tcp", "fabric.tcp.segments_now", 0, peer)
    other = it.nodes[(it.nodes.index(source) + 1) % len(it.nodes)]
    return it, nobody(*NETWORKS, seen_at=[source, other])


def half_open_connection(rng: Random) -> tuple[Fleet, Truth]:
    """A firewall forgot one connection between two nodes, and a re-route took half of another."""
    it = any_size(rng, least=4)
    source = one_of(it)
    stands_still(it, ())
    _, (before, peer) = peers_of(it, source)
    it.reads(before, "fabric.tcp", "fabric.tcp.timeouts_in_a_row", 8, peer)
    return it, nobody(*NETWORKS, seen_at=[source, before])


def one_direction_rejected(rng: Random) -> tuple[Fleet, Truth]:
    """A filter answers one node's packets with a reset; all ranks end of a lost peer."""
    it = any_size(rng, least=4)
    source = one_of(it)
    said = (
        "[rank2]: RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection"
        f" closed by peer [{_address(it.nodes.index(source))}]:41022\n"
    )
    ends(it, range(it.job.world_size), 1, said, phase="all_reduce")
    return it, nobody(*NETWORKS, F.UNKNOWN, seen_at=[source])


def twice_and_out_of_order(rng: Random) -> tuple[Fleet, Truth]:
    """Two paths of different length to one node: packets come twice and late, and steps go on."""
    it = any_size(rng, least=4)
    bad = one_of(it)
    for node, peer in peers_of(it, bad):
        it.reads(node, "fabric.tcp", "fabric.tcp.lost", rng.randrange(2, 12), peer)
        it.reads(node, "fabric.tcp", "fabric.tcp.delay_ms", rng.uniform(0.2, 0.6), peer)
    return it, nobody(*SOUND)


def connections_table_full(rng: Random) -> tuple[Fleet, Truth]:
    """Connection tracking of one node is full: it drops what it does not know."""
    it = any_size(rng, least=4)
    there = one_of(it)
    slow_ranks(it, (), rng.uniform(1.4, 4.0))
    for node, peer in peers_of(it, there):
        it.reads(node, "fabric.tcp", "fabric.tcp.segments_now", 400, peer)
        it.reads(node, "fabric.tcp", "fabric.tcp.lost_now", rng.randrange(8, 30), peer)
    kernel_says(it, there, "nf_conntrack: nf_conntrack: table full, dropping packet")
    classes = (F.ENVIRONMENT_MISMATCH, F.NETWORK_ETH, F.NETWORK_LINK, F.HOST_KERNEL)
    return it, place(classes, there)


def drifted_clocks(rng: Random) -> tuple[Fleet, Truth]:
    """The time service of a rack is gone since a week; a few nodes have drifted apart."""
    it = any_size(rng, least=7)
    nodes = it.some_nodes(rng.choice((2, 3)))
    for node in nodes:
        it.clock_off_s[node] = rng.choice((-1, 1)) * rng.uniform(2.0, 7.0)
    return it, place((F.ENVIRONMENT_MISMATCH,), *nodes)


def answers_at_the_deadline(rng: Random) -> tuple[Fleet, Truth]:
    """A node so busy that some of its checks do not end in time; training goes on."""
    it = any_size(rng, least=3)
    _half_answers(it, one_of(it))
    return it, nobody(*SOUND)


def late_answers_and_a_deadlock(rng: Random) -> tuple[Fleet, Truth]:
    """The same node, while another one's rank stands."""
    it = any_size(rng, least=4)
    there, busy = it.some_nodes(2)
    rank = it.rank_on(there)
    stands_still(it, [rank], where="backward")
    it.stacks[rank] = ("hooks.py:after_backward", "train.py:main")
    _half_answers(it, busy)
    return it, place(HANGS, there)


def _half_answers(it: Fleet, node: str) -> None:
    for check in it.rng.sample(("host.disk", "host.kernel", "host.mounts", "gpu.xid"), 3):
        it.lost_checks[node, check] = CheckResult(check, ProbeStatus.TIMED_OUT)


def login_takes_twenty_seconds(rng: Random) -> tuple[Fleet, Truth]:
    """A name look-up holds up every login on one node: it was asked twenty seconds later."""
    it = any_size(rng, least=3)
    late = one_of(it)
    for rank in it.job.ranks_on(late):
        values = it.ranks[rank]
        values["step"] = int(values["step"]) + int(20.0 // it.step_s)
    return it, nobody(F.NO_FAULT)


def queue_of_an_adapter_stuck(rng: Random) -> tuple[Fleet, Truth]:
    """The driver gives a transmit queue up and resets the adapter, again and again."""
    it = any_size(rng, least=4)
    bad = one_of(it)
    stands_still(it, ())
    for node, peer in peers_of(it, bad):
        it.reads(node, "fabric.tcp", "fabric.tcp.timeouts_in_a_row", rng.randrange(4, 9), peer)
    kernel_says(
        it, bad, "NETDEV WATCHDOG: eth0 (mlx5_core): transmit queue 3 timed out",
        "mlx5_core 0000:5e:00.0: TX timeout detected",
    )  # fmt: skip
    truth = machine(F.NETWORK_ETH, bad)
    return it, Truth(frozenset({F.NETWORK_ETH, F.NETWORK_LINK}), truth.blamed, truth.broken)
