"""Incidents of any day that nobody rehearsed: the open half.

Their author had read what the probes can answer and no rule, and ran none on them. A coin put each
family into its half before one was written; the other half is `today_set_aside`.
"""

from random import Random

from brctl.model.fault import FaultClass as F
from brctl.model.sweeps.report import CheckResult, ProbeStatus, Value
from tests.bench.verdicts.adversary_machines import HANGS, RECEIVES, at_s, broken, in_stages
from tests.bench.verdicts.causes_machines import any_size, one_of
from tests.bench.verdicts.clusters_later import slow_in_collectives
from tests.bench.verdicts.fleet import (
    STALL_AFTER_S,
    WAITING,
    Fleet,
    _address,
    ends,
    remember,
    slow_ranks,
    stands_still,
    trains,
)
from tests.bench.verdicts.incident import Tell, Truth, machine, nobody, place
from tests.bench.verdicts.oncall_machines import kernel_says, sized
from tests.bench.verdicts.today_parts import (
    CAUGHT,
    FIRMWARE_IS_DEAD,
    GPUS,
    KILLED_FOR_MEMORY,
    NARROW_SLOT,
    READ_PAST_ITS_END,
    SAID_BY_NCCL,
    WIDE_SLOT,
    answers,
    gpus_read,
    has_one_gpu,
    leaves,
    port,
    starts,
    takes_a_turn,
)
from tests.bench.verdicts.unseen_jobs import SOUND, _dump, _trace


def loops_where_no_rank_was_read(rng: Random) -> tuple[Fleet, Truth]:
    """A bisection that does not converge; the look at the ranks of that node came to no end."""
    it = any_size(rng, least=4, most=256)
    there = one_of(it)
    rank = it.rank_on(there)
    stands_still(it, [rank], where="optimizer")
    it.ranks[rank]["process_state"] = "R"
    it.stacks[rank] = ("clip.py:Clip.bisect", "train.py:Step.run", "train.py:main")
    late = CheckResult("job.ranks", ProbeStatus.COULD_NOT_MEASURE, (), ("deadline_s reached",))
    it.lost_checks[there, "job.ranks"] = late
    return it, place(HANGS, there)


def two_stages_send_to_each_other(rng: Random) -> tuple[Fleet, Truth]:
    """A schedule in which neighbours both send first; their pipeline receives, the rest reduces."""
    it = in_stages(rng)
    pipeline, stage = rng.randrange(len(it.nodes) // 4) * 4, rng.randrange(3)
    first, second = it.nodes[pipeline + stage], it.nodes[pipeline + stage + 1]
    stands_still(it, ())
    for node in it.nodes[pipeline : pipeline + 4]:
        for rank in it.job.ranks_on(node):
            it.ranks[rank]["phase"] = "backward" if node == second else "forward"
            it.stacks[rank] = RECEIVES
            if node in (first, second):
                way = "forward" if node == first else "backward"
                frames = ("distributed_c10d.py:send", f"schedules.py:send_{way}", "train.py:main")
                it.stacks[rank] = frames
    return it, place(HANGS, first, second)


def gpu_missing_since_the_boot(rng: Random) -> tuple[Fleet, Truth]:
    """One of two GPUs did not train its link at power-on: the bus has one, and so has NVML."""
    it = sized(rng, rng.choice((2, 3, 8, 24, 64)), 2)
    bad = one_of(it)
    starts(it)
    without, other = it.job.ranks_on(bad)[1], it.job.ranks_on(bad)[0]
    said = "torch.AcceleratorError: CUDA error: invalid device ordinal"
    leaves(it, without, 1, _trace('train.py", line 31, in setup', said))
    leaves(it, other, -15, "")
    has_one_gpu(it, bad)
    return it, machine(F.GPU_LOST, bad)


def adapter_on_a_narrow_slot(rng: Random) -> tuple[Fleet, Truth]:
    """Its riser is a wrong one: the port has its full rate, and the slot an eighth of it."""
    it = any_size(rng, least=3, most=256)
    bad = one_of(it)
    slow_in_collectives(it, rng.uniform(1.3, 2.5))
    for node in it.nodes:
        answers(it, node, "fabric.ibport", {"nic:mlx5_0": port()})
        said = NARROW_SLOT if node == bad else WIDE_SLOT
        at_s(it, node, "host.kernel", rng.uniform(9.0, 16.0), said)
    return it, broken((F.PCIE, F.NETWORK_IB, F.NETWORK_LINK), bad)


def cache_full_and_one_loads_late(rng: Random) -> tuple[Fleet, Truth]:
    """Scratch is full there, so its loaders fetch every sample from afar again."""
    it = any_size(rng, least=3, most=256)
    it.past = True
    there = one_of(it)
    mine, times = it.job.ranks_on(there), rng.uniform(1.5, 3.0)
    slow_ranks(it, mine, times)
    it.longer_in_load = 0 in mine
    for rank in mine:
        it.ranks[rank] |= {"recent_load_s": it.step_s * (times - 0.98), "phase": "load"}
    for name, value in (("free_bytes", 0), ("free_pct", 0.0)):
        it.reads(there, "host.disk", f"host.disk.{name}", value, "disk:/srv/site/lab/scratch")
    return it, place((F.DISK_FULL, F.DATA_LOADER), there)


def hot_innocent_beside_the_slow_one(rng: Random) -> tuple[Fleet, Truth]:
    """The warmest board of all draws its full power and waits; the late one shows but its pace."""
    it = any_size(rng, least=4, most=256)
    it.past = True
    slow, warm = it.some_nodes(2)
    slow_ranks(it, it.job.ranks_on(slow), rng.uniform(1.3, 1.8))
    for node in it.nodes:
        heat = rng.randrange(83, 87) if node == warm else rng.randrange(54, 72)
        gpus_read(it, node, temperature_c=heat, temperature_margin_c=92 - heat,
                  power_w=rng.uniform(470.0, 620.0))  # fmt: skip
    gpus_read(it, warm, event_reasons=4, power_w=rng.uniform(693.0, 700.0), sm_mhz=1845)
    return it, broken((F.STRAGGLER_SLOW, F.GPU_SLOW), slow)


def leaks_memory_on_all_and_two_are_killed(rng: Random) -> tuple[Fleet, Truth]:
    """Every rank keeps what it read; two reach the limit of their containers before the rest."""
    it = any_size(rng, least=4, most=256)
    both = it.some_nodes(2)
    killed = [it.rank_on(node) for node in both]
    ends(it, killed, -9, "")
    for node in it.nodes:
        rows: dict[str, dict[str, Value]] = {}
        for rank in it.job.ranks_on(node):
            if it.ranks[rank]["alive"]:
                rows[f"rank:{rank}"] = {
                    "path": f"/sys/fs/cgroup/job/{rank}", "oom_kills": 0,
                    "memory_pct": rng.uniform(93.0, 98.5),
                }  # fmt: skip
        answers(it, node, "job.cgroup", rows)
    for node, rank in zip(both, killed, strict=True):
        kernel_says(it, node, *(line.format(rank=rank) for line in KILLED_FOR_MEMORY))
    return it, place((F.CPU_OOM,), *both)


def all_stand_in_item_and_dumps_tell(rng: Random) -> tuple[Fleet, Truth]:
    """A kernel of the job never ends on one GPU; all ranks wait for their loss in one line."""
    it = any_size(rng, least=4, most=96)
    there = one_of(it)
    rank = it.rank_on(there)
    age = stands_still(it, ())
    for number, values in enumerate(it.ranks):
        values |= {"phase": "optimizer", "process_state": "R"}
        it.stacks[number] = ("train.py:Step.note_loss", "train.py:Step.run", "train.py:main")
        late = number == rank
        it.dumps[number] = _dump(it, 911 if late else 912, "" if late else "nccl:all_reduce", age)
    for node in it.nodes:
        gpus_read(it, node, busy_pct=100, power_w=rng.uniform(165.0, 205.0))
    it.reads(there, "gpu.clocks", "gpu.clocks.power_w", rng.uniform(300.0, 360.0), GPUS[0])
    return it, place(HANGS, there)


def nvlink_replays_slow_everybody(rng: Random) -> tuple[Fleet, Truth]:
    """A link of one GPU repeats what it sends, and stays up; elsewhere there are a few repeats."""
    it = sized(rng, rng.choice((2, 4, 8, 32, 96)), rng.choice((2, 4, 8)))
    bad, other = it.some_nodes(2)
    slow_in_collectives(it, rng.uniform(1.2, 1.8))
    gpu = GPUS[1].removeprefix("gpu:")
    for name, value in (("replays", 412_883), ("crc_flit_errors", 98_114), ("recoveries", 71)):
        value = int(value * rng.uniform(0.5, 2.0))
        it.reads(bad, "gpu.nvlink", f"gpu.nvlink.{name}", value, f"link:{gpu}/7")
    it.reads(other, "gpu.nvlink", "gpu.nvlink.replays", rng.randrange(3, 20), f"link:{gpu}/2")
    said = "nvidia-nvswitch2: SXid (PCI:0000:c7:00.0): 20001, Non-fatal, Link 31 TX Replay Error"
    at_s(it, bad, "gpu.xid", rng.uniform(11_000.0, 12_200.0), said, said)
    return it, machine(F.NVLINK, bad)


def adapter_dies_and_its_port_is_gone(rng: Random) -> tuple[Fleet, Truth]:
    """The firmware of one adapter is dead: its driver gave it up, and it has no port any more."""
    it = any_size(rng, least=3, most=256)
    bad = one_of(it)
    for node in it.nodes:
        ports = {f"nic:mlx5_{n}": port() for n in range(2) if node != bad or n == 0}
        answers(it, node, "fabric.ibport", ports)
    said = (
        f"{bad}:4242:4611 [1] NCCL WARN NET/IB : mlx5_1:1 Got async event : local catastrophic"
        " error\n" + SAID_BY_NCCL.format(what="unhandled system error")
    )
    ends(it, [it.rank_on(bad)], 1, said, phase=WAITING)
    kernel_says(it, bad, *FIRMWARE_IS_DEAD)
    return it, broken((F.NETWORK_IB, F.NETWORK_ETH), bad)


def oops_in_the_gpu_module(rng: Random) -> tuple[Fleet, Truth]:
    """The kernel of one node fell over a pointer in a driver; the rank waits for its lock."""
    it = any_size(rng, least=3, most=256)
    bad = one_of(it)
    rank = it.rank_on(bad)
    stands_still(it, [rank])
    it.ranks[rank] |= {"process_state": "D", "kernel_wait": "rwsem_down_write_slowpath"}
    del it.stacks[rank]
    kernel_says(
        it, bad, "BUG: kernel NULL pointer dereference, address: 0000000000000038",
        "Oops: 0000 [#1] PREEMPT SMP NOPTI",
    )  # fmt: skip
    it.reads(bad, "host.leftovers", "host.leftovers.blocked_count", rng.randrange(1, 4))
    return it, broken((F.HOST_KERNEL, F.DRIVER_FIRMWARE), bad)


def second_half_in_another_network(rng: Random) -> tuple[Fleet, Truth]:
    """Two leaves carry different networks since a change: half of the nodes find no rank 0."""
    it = sized(rng, rng.choice((4, 8, 16, 32, 128)), rng.choice((1, 2, 8)))
    half = len(it.nodes) // 2
    starts(it)
    zero = f"peer:{_address(0)}"
    for number, node in enumerate(it.nodes):
        it.leaves[node] = f"leaf-{number // half}"
        row: dict[str, Value] = {"segments": 14, "timeouts_in_a_row": 0, "delay_ms": 0.06}
        if number >= half:
            row = {"segments": 0, "timeouts_in_a_row": rng.randrange(4, 7)}
        row |= {"lost": 0, "segments_now": 0, "lost_now": 0}
        own = {f"address:{_address(number)}": {"own_address": True}}
        met = {f"peer:{_address(n)}": row for n in range(1, half)} if number == 0 else {zero: row}
        answers(it, node, "fabric.tcp", {**own, **met, "": {"peers": len(met)}})
    for rank in it.ranks_of(it.nodes[half:]):
        it.ranks[rank]["last_words"] = (
            f"[rank{rank}]:[W314 09:25:58.2 socket.cpp:752] [c10d] The client socket has timed out"
            f" after 60000ms while trying to connect to ({_address(0)}, 29500).\n"
        )
    classes = (F.NETWORK_SWITCH, F.NETWORK_ETH, F.NETWORK_LINK, F.NCCL_CONFIG)
    return it, nobody(*classes, seen_at=it.nodes)


def bad_kernel_everywhere(rng: Random) -> tuple[Fleet, Truth]:
    """A kernel of the job reads past its buffer at one length, which most ranks meet at once."""
    it = any_size(rng, most=256)
    first = [r for r in range(it.job.world_size) if r == 0 or rng.random() < 0.8]
    said = "torch.AcceleratorError: CUDA error: an illegal memory access was encountered"
    ends(it, first, 1, _trace('kernels.py", line 88, in packed_attention', said), phase="forward")
    for node in sorted({it.job.node_of(rank) for rank in first}):
        kernel_says(it, node, *READ_PAST_ITS_END, check="gpu.xid")
    return it, nobody(F.USER_CODE, seen_at=it.nodes)


def all_ports_wait_for_their_subnet_manager(rng: Random) -> tuple[Fleet, Truth]:
    """It died with the switch it ran on: every link is up, and no port may carry traffic."""
    it = any_size(rng, most=256)
    starts(it)
    for node in it.nodes:
        port_now = port("INIT", link_downed=1)
        answers(it, node, "fabric.ibport", {"nic:mlx5_0": port_now, "nic:mlx5_1": port_now})
    said = (
        "h:71:71 [0] NCCL INFO NET/IB : No device found.\n"
        "h:71:71 [0] net.cc:418 NCCL WARN Error: network IB not found.\n"
        + SAID_BY_NCCL.format(what="invalid usage")
    )
    for rank in range(it.job.world_size):
        leaves(it, rank, 1, said)
    return it, nobody(F.NETWORK_IB, F.NETWORK_SWITCH, seen_at=it.nodes)


def switches_grumble_in_a_sound_run(rng: Random) -> tuple[Fleet, Truth]:
    """NVSwitches of two nodes tell of errors they mended, hours ago and just now."""
    it = any_size(rng, least=3, most=256)
    it.past = True
    for node in it.some_nodes(2):
        for code, what in ((20001, "TX Replay Error"), (11012, "ingress header ECC limit")):
            said = f"SXid (PCI:0000:c6:00.0): {code}, Non-fatal, Link {rng.randrange(36)} {what}"
            at_s(it, node, "gpu.xid", rng.uniform(900.0, 9000.0), f"nvidia-nvswitch1: {said}")
            kernel_says(it, node, f"nvidia-nvswitch1: {said}", check="gpu.xid")
    return it, nobody(F.NO_FAULT)


def controllers_own_clock_is_off(rng: Random) -> tuple[Fleet, Truth]:
    """The clocks of all nodes agree, and none of them with the one who asks."""
    it = any_size(rng, most=256)
    off = rng.choice((-1, 1)) * rng.uniform(12.0, 900.0)
    it.clock_off_s = {node: off + rng.uniform(-0.02, 0.02) for node in it.nodes}
    return it, nobody(F.NO_FAULT, F.ENVIRONMENT_MISMATCH)


def actors_and_learners_take_turns(rng: Random) -> tuple[Fleet, Truth]:
    """Half of the ranks write texts for most of a minute, the other half then learns from them."""
    it = any_size(rng, most=256)
    it.step_s, it.past = rng.uniform(60.0, 110.0), True
    trains(it)
    age = rng.uniform(STALL_AFTER_S * 1.1, 0.45 * it.step_s)
    for rank, values in enumerate(it.ranks):
        learns = it.nodes.index(it.job.node_of(rank)) % 2 == 0
        mine = age + rng.uniform(0.0, 0.6)
        values |= {"phase": "load" if learns else "forward", "phase_longest_s": 0.6 * it.step_s}
        values |= {"phase_age_s": mine, "progress_age_s": mine}
        values |= {"process_state": "S" if learns else "R"}
        values["wait_s"] = it.step_s * (0.02 if learns else rng.uniform(0.38, 0.42))
        batches = ("queues.py:Queue.get", "rollouts.py:Buffer.take", "train.py:main")
        texts = ("functional.py:linear", "model.py:Block.forward", "rollouts.py:write")
        it.stacks[rank] = batches if learns else texts
    remember(it)
    for node in it.nodes[::2]:
        takes_a_turn(it, node)
    return it, nobody(*SOUND)


def errors_only_in_words(rng: Random) -> tuple[Fleet, Truth]:
    """Logs full of refusals, tracebacks and zeros that were all caught; steps follow each."""
    it = any_size(rng, most=256)
    for values in it.ranks:
        step = int(values["step"])
        rows = "".join(f"step {n} loss 2.{n % 10}1\n" for n in range(step - 3, step))
        values["last_words"] = (rng.choice(CAUGHT) if rng.random() < 0.7 else "") + rows
    return it, nobody(F.NO_FAULT)


TOLD: tuple[Tell, ...] = (
    loops_where_no_rank_was_read, two_stages_send_to_each_other, gpu_missing_since_the_boot,
    adapter_on_a_narrow_slot, cache_full_and_one_loads_late, hot_innocent_beside_the_slow_one,
    leaks_memory_on_all_and_two_are_killed, all_stand_in_item_and_dumps_tell,
    nvlink_replays_slow_everybody, adapter_dies_and_its_port_is_gone, oops_in_the_gpu_module,
    second_half_in_another_network, bad_kernel_everywhere,
    all_ports_wait_for_their_subnet_manager, switches_grumble_in_a_sound_run,
    controllers_own_clock_is_off, actors_and_learners_take_turns, errors_only_in_words,
)  # fmt: skip
