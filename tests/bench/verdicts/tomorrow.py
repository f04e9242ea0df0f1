"""Incidents of any day that nobody rehearsed, written after `today` was: one half, all of it new.

Their author had read what the probes can answer and no rule, and ran none on them.
"""

import json
from random import Random

from brctl.model.fault import FaultClass as F
from brctl.model.sweeps.report import CheckResult, Measurement, ProbeStatus, Value
from tests.bench.verdicts.adversary_machines import HANGS, at_s, broken
from tests.bench.verdicts.answers import stack, words
from tests.bench.verdicts.causes_machines import any_size, one_of, peers_of
from tests.bench.verdicts.clusters_later import slow_in_collectives
from tests.bench.verdicts.fleet import Fleet, ends, remember, slow_ranks, stands_still
from tests.bench.verdicts.incident import Tell, Truth, machine, nobody, place
from tests.bench.verdicts.oncall_machines import kernel_says, sized
from tests.bench.verdicts.today_parts import (
    GPUS,
    SAID_BY_NCCL,
    answers,
    gpus_read,
    leaves,
    port,
    starts,
)
from tests.bench.verdicts.tomorrow_parts import (
    BEYOND,
    HALTED,
    OLD_XID,
    SWITCH_LOST_A_LINK,
    bystanders,
    connections,
    has_a_dark_board,
    not_begun_idle,
    one_is_late,
    overheats,
    versions,
)
from tests.bench.verdicts.unseen_jobs import SOUND, _trace

_COMPUTES = ("linear.py:Linear.forward", "model.py:Block.forward", "train.py:main")


def processor_without_its_fan(rng: Random) -> tuple[Fleet, Truth]:
    """The second socket of one node throttles at its limit; a core elsewhere was warm once."""
    it, hot = one_is_late(rng)
    overheats(it, hot)
    (other,) = it.some_nodes(1, but=[hot])
    said = "CPU9: Core temperature above threshold, cpu clock throttled (total events = 1)"
    at_s(it, other, "host.kernel", 3000.0, said, "CPU9: Core temperature/speed normal")
    bystanders(it, hot, other, silent=True)
    return it, machine(F.THERMAL_POWER, hot)


def memory_module_corrects_all_day(rng: Random) -> tuple[Fleet, Truth]:
    """Thousands of corrected errors a second of one DIMM: its node is kept busy and falls back."""
    it, bad = one_is_late(rng)
    place_of = "on CPU_SrcID#1_MC#1_Chan#0_DIMM#0 (channel:0 slot:0 page:0x3f1c{n:02x} offset:0x0)"
    for node in it.nodes:
        count = rng.randrange(900_000, 9_000_000) if node == bad else rng.choice((0, 0, 1, 6))
        it.reads(node, "host.memory", "host.memory.corrected_errors", count)
        it.reads(node, "host.memory", "host.memory.uncorrected_errors", 0)
    for number in range(40):
        said = f"EDAC MC1: {rng.randrange(2000, 9000)} CE memory read error {place_of}"
        at_s(it, bad, "host.kernel", 12_211.0 + number, said.format(n=rng.randrange(256)))
    it.reads(bad, "host.cpu", "host.cpu.load_per_cpu", rng.uniform(1.0, 2.0))
    bystanders(it, bad, silent=True)
    return it, broken((F.NODE_FAILURE, F.STRAGGLER_SLOW), bad)


def board_without_its_power_cable(rng: Random) -> tuple[Fleet, Truth]:
    """Forgotten at a service: the bus has both boards, the driver starts but one of them."""
    it = sized(rng, rng.choice((2, 3, 8, 24, 64)), 2)
    bad = one_of(it)
    starts(it)
    not_begun_idle(it)
    other, without = it.job.ranks_on(bad)
    said = "torch.AcceleratorError: CUDA error: invalid device ordinal"
    leaves(it, without, 1, _trace('train.py", line 31, in setup', said))
    leaves(it, other, -15, "")
    has_a_dark_board(it, bad)
    bystanders(it, bad)
    return it, broken((F.GPU_LOST, F.THERMAL_POWER), bad)


def micro_controller_of_a_gpu_halts(rng: Random) -> tuple[Fleet, Truth]:
    """Its rank waits for its stream for ever; another node has a page fault of hours ago."""
    it = any_size(rng, least=3, most=256)
    bad, other = it.some_nodes(2)
    rank = it.rank_on(bad)
    stands_still(it, [rank], where=rng.choice(("forward", "backward")))
    it.ranks[rank]["process_state"] = "R"
    it.stacks[rank] = ("__init__.py:synchronize", "train.py:Step.run", "train.py:main")
    kernel_says(it, bad, *HALTED, check="gpu.xid")
    it.reads(bad, "gpu.clocks", "gpu.clocks.busy_pct", 100, GPUS[1])
    it.reads(bad, "gpu.clocks", "gpu.clocks.sm_mhz", 345, GPUS[1])
    at_s(it, other, "gpu.xid", rng.uniform(1000.0, 6000.0), OLD_XID)
    bystanders(it, bad, other)
    return it, machine(F.DRIVER_FIRMWARE, bad)


def switches_tell_of_a_gpu_that_died(rng: Random) -> tuple[Fleet, Truth]:
    """It falls off the bus: all NVSwitches lose links to it, and its neighbour tells of NVLink."""
    it = sized(rng, rng.choice((2, 3, 10, 48, 128)), rng.choice((2, 4, 8)))
    bad = one_of(it)
    first, *rest = it.job.ranks_on(bad)[::-1]
    it.has(bad, "gpu-lost")
    ends(it, [first], 1, words("gpu-lost", "culprit"))
    said = "torch.AcceleratorError: CUDA error: uncorrectable NVLink error detected during the"
    for rank in rest:
        mine = _trace('model.py", line 77, in forward', f"{said} execution")
        leaves(it, rank, 1, mine.replace("rank2", f"rank{rank}"))
    gone = [SWITCH_LOST_A_LINK.format(n=n, link=rng.randrange(36)) for n in (3, 4, 5, 6)]
    gone.append(
        "NVRM: Xid (PCI:0000:18:00): 74, pid=4242, name=python3, NVLink: fatal error detected on"
        " link 6(0x0, 0x0, 0x10000, 0x0, 0x0, 0x0, 0x0)"
    )
    at_s(it, bad, "gpu.xid", 12_318.9, *gone)
    bystanders(it, bad)
    return it, machine(F.GPU_LOST, bad)


def bit_errors_on_an_infiniband_cable(rng: Random) -> tuple[Fleet, Truth]:
    """Its link retrains again and again at full rate; a cable elsewhere was changed last week."""
    it = any_size(rng, least=4, most=256)
    it.past = True
    bad, other = it.some_nodes(2)
    slow_in_collectives(it, rng.uniform(1.2, 1.9))
    for node in it.nodes:
        counted: dict[str, Value] = {
            "symbol_error": rng.choice((0, 0, 0, 2)), "link_error_recovery": 0,
            "port_rcv_errors": 0, "local_link_integrity_errors": 0,
            "link_downed": 3 if node == other else 0,
        }  # fmt: skip
        if node == bad:
            counted |= {"symbol_error": 65535, "link_error_recovery": rng.randrange(60, 255)}
            counted |= {"port_rcv_errors": rng.randrange(9000, 60_000)}
            counted |= {"local_link_integrity_errors": rng.randrange(40, 400)}
        answers(it, node, "fabric.ibport", {"nic:mlx5_0": port() | counted, "nic:mlx5_1": port()})
    bystanders(it, bad, other, silent=True)
    return it, broken((F.NETWORK_IB, F.NETWORK_LINK), bad)


def uplink_of_a_leaf_drops_packets(rng: Random) -> tuple[Fleet, Truth]:
    """What enters or leaves one leaf is lost now and then; inside of it nothing is."""
    it = sized(rng, rng.choice((32, 64, 128, 256)), rng.choice((1, 2)))
    it.past = True
    slow_in_collectives(it, rng.uniform(1.3, 2.4))
    bad = rng.choice(sorted(set(it.leaves.values())))
    for node in it.nodes:
        connections(it, node, bad)
    behind = [node for node in it.nodes if it.leaves[node] == bad]
    return it, nobody(F.NETWORK_SWITCH, F.NETWORK_LINK, seen_at=behind)


def one_leaf_reaches_no_storage(rng: Random) -> tuple[Fleet, Truth]:
    """Its route to the file servers is gone: ranks behind it wait for data, all others for them."""
    it = sized(rng, rng.choice((32, 64, 128)), rng.choice((1, 2, 4)))
    leaf = rng.choice(sorted(set(it.leaves.values())))
    behind = [node for node in it.nodes if it.leaves[node] == leaf]
    stands_still(it, it.ranks_of(behind), where="load")
    for rank in it.ranks_of(behind):
        it.ranks[rank] |= {"process_state": "D", "kernel_wait": "rpc_wait_bit_killable"}
        it.stacks[rank] = ("dataset.py:Shard.read", "train.py:main")
    for node in it.nodes:
        answers(it, node, "host.mounts", {"disk:/data": {"hangs": node in behind}})
        if node in behind:
            kernel_says(it, node, "nfs: server nas02 not responding, still trying")
    bystanders(it, *behind)
    return it, nobody(F.STORAGE_CHECKPOINT, F.NETWORK_SWITCH, F.NETWORK_LINK, seen_at=behind)


def weights_of_one_rank_differ(rng: Random) -> tuple[Fleet, Truth]:
    """A GPU computes wrong now and then: its replicas see other bits, and no counter counts it."""
    it = any_size(rng, least=4, most=256)
    it.past, bad = True, one_of(it)
    rank = it.rank_on(bad)
    found = {
        "kind": "replica", "step": max(1, int(it.ranks[0]["step"]) - rng.randrange(5, 30)),
        "axis": "dp", "tensor": f"layers.{rng.randrange(32)}.mlp.up.weight", "tensors": 1,
        "ranks": [rank], "of": len(it.nodes), "has_majority": True, "count": rng.randrange(2, 30),
    }  # fmt: skip
    for number, values in enumerate(it.ranks):
        values |= {"compared_tensors": 291}
        values["compared_kind"] = "NVIDIA H100 80GB HBM3, CUDA 12.8, torch 2.8.0+cu128"
        if (number - rank) % it.job.ranks_per_node == 0:
            values["wrong_numbers"] = json.dumps({"replica": found})
    bystanders(it, bad, silent=True)
    return it, machine(F.SILENT_CORRUPTION, bad)


def clocks_locked_after_a_benchmark(rng: Random) -> tuple[Fleet, Truth]:
    """Somebody fixed the clocks of one node's boards to compare kernels, and left them so."""
    it, there = one_is_late(rng)
    mhz = rng.choice((1095, 1200, 1350))
    gpus_read(it, there, event_reasons=2, sm_mhz=mhz, power_w=rng.uniform(270.0, 350.0))
    bystanders(it, there, silent=True)
    return it, broken((F.GPU_SLOW, F.STRAGGLER_SLOW, F.ENVIRONMENT_MISMATCH), there)


def instances_left_on_one_node(rng: Random) -> tuple[Fleet, Truth]:
    """Its boards are split as they were for notebooks: nothing of a model's size fits."""
    it = any_size(rng, least=3, most=256)
    there = one_of(it)
    starts(it)
    not_begun_idle(it)
    said = (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 12.00 GiB. GPU 0 has a total"
        " capacity of 9.75 GiB of which 9.51 GiB is free. Process 4242 has 216.00 MiB memory in"
        " use."
    )
    for rank in it.job.ranks_on(there):
        mine = _trace('train.py", line 37, in reserve', said)
        leaves(it, rank, 1, mine.replace("rank2", f"rank{rank}"))
    for node in it.nodes:
        split: dict[str, Value] = {"enabled": node == there, "enabled_after_reset": node == there}
        answers(it, node, "gpu.mig", {gpu: split for gpu in GPUS})
    bystanders(it, there)
    return it, broken((F.ENVIRONMENT_MISMATCH, F.GPU_OOM), there)


def older_image_on_two_nodes(rng: Random) -> tuple[Fleet, Truth]:
    """They had pulled the tag before it was moved: two NCCLs meet, and nobody starts."""
    it = any_size(rng, least=7, most=256)
    both = it.some_nodes(2)
    old, new = it.rank_on(both[0]), it.rank_on(it.some_nodes(1, but=both)[0])
    warned = (
        f"h:71:71 [0] NCCL WARN Mismatched NCCL version detected : rank {old} version 22105 rank"
        f" {new} version 22703\n"
    )
    starts(it)
    not_begun_idle(it)
    for rank in range(it.job.world_size):
        is_old = it.job.node_of(rank) in both
        said = SAID_BY_NCCL.format(what="invalid usage (run with NCCL_DEBUG=WARN for details)")
        leaves(it, rank, 1, warned + (said if is_old else said.replace("2.21.5", "2.27.3")))
    versions(it, both, {"torch": ("2.8.0+cu128", "2.6.0+cu124"), "nccl": ("2.27.3", "2.21.5")})
    bystanders(it, *both)
    return it, place((F.ENVIRONMENT_MISMATCH, F.NCCL_CONFIG), *both)


def shards_of_some_end_earlier(rng: Random) -> tuple[Fleet, Truth]:
    """A sampler without drop_last: some nodes are at their epoch's barrier, one batch early."""
    it = any_size(rng, least=7, most=256)
    early = it.some_nodes(rng.choice((2, 3)))
    mine = it.ranks_of(early)
    stands_still(it, mine, where="evaluation")
    batches = rng.randrange(800, 9000)
    for rank, values in enumerate(it.ranks):
        values["last_words"] = f"epoch 3 batch {batches + 1} of {batches + 1}\n"
        if rank in mine:
            values["last_words"] = f"epoch 3 batch {batches} of {batches}\nepoch 3 is done\n"
            frames = ("distributed_c10d.py:barrier", "c10d_logger.py:wrapper")
            it.stacks[rank] = (*frames, "train.py:end_of_epoch", "train.py:main")
    bystanders(it, *early)
    return it, place((*HANGS, F.DATA_LOADER), *early)


def tokens_beyond_the_vocabulary(rng: Random) -> tuple[Fleet, Truth]:
    """A shard was written with another tokenizer: the ranks that read it meet an assertion."""
    it = any_size(rng, least=7, most=256)
    met = it.some_nodes(rng.randrange(2, 6))
    said = "".join(BEYOND.format(b=rng.randrange(400), t=n) for n in range(96, 100))
    raised = "torch.AcceleratorError: CUDA error: device-side assert triggered"
    said += _trace('model.py", line 58, in embed', raised)
    ends(it, [it.rank_on(node) for node in met], 1, said, phase="forward")
    stopped = "NVRM: Xid (PCI:0000:2a:00): 43, pid=4242, name=python3, Ch 00000008"
    for node in met[: rng.randrange(3)]:
        kernel_says(it, node, stopped, check="gpu.xid")
    bystanders(it, *met)
    return it, nobody(F.USER_CODE, F.DATA_LOADER, seen_at=met)


def first_rank_writes_histograms(rng: Random) -> tuple[Fleet, Truth]:
    """Rank 0 sums up every tensor in every step since a change; its node's other ranks wait too."""
    it = sized(rng, rng.choice((3, 8, 24, 96, 256)), rng.choice((2, 4, 8)))
    it.past = True
    slow_ranks(it, [0], rng.uniform(1.3, 2.2))
    took = it.now_s - it.step_s
    told = (f"step {int(it.ranks[0]['step']) - n} histograms of 412 tensors" for n in (3, 2, 1))
    it.ranks[0] |= {"phase": "optimizer", "process_state": "R"}
    it.ranks[0]["last_words"] = "".join(f"{one}, {took:.2f} s\n" for one in told)
    it.reads(it.nodes[0], "gpu.clocks", "gpu.clocks.busy_pct", rng.randrange(42, 70), GPUS[0])
    it.reads(it.nodes[0], "gpu.clocks", "gpu.clocks.power_w", rng.uniform(230.0, 330.0), GPUS[0])
    bystanders(it, it.nodes[0], silent=True)
    return it, place((F.STRAGGLER_SLOW, F.USER_CODE), it.nodes[0])


def hot_processor_and_a_dirty_plug(rng: Random) -> tuple[Fleet, Truth]:
    """One node is late by its heat; every collective besides waits for packets of another one."""
    it, hot = one_is_late(rng, least=7)
    overheats(it, hot)
    (dirty,) = it.some_nodes(1, but=[hot])
    more = it.step_s * rng.uniform(0.3, 0.7)
    it.now_s += more
    for values in it.ranks:
        values["wait_s"] = float(values["wait_s"]) + more
        values["step_s"] = float(values["step_s"]) + more
    remember(it)
    for node, peer in peers_of(it, dirty):
        it.reads(node, "fabric.tcp", "fabric.tcp.lost", rng.randrange(300, 900), peer)
        it.reads(node, "fabric.tcp", "fabric.tcp.lost_now", rng.randrange(2, 5), peer)
    crc = rng.randrange(20_000, 90_000)
    it.reads(dirty, "fabric.eth", "fabric.eth.rx_crc_errors", crc, "nic:eth0")
    it.reads(dirty, "fabric.eth", "fabric.eth.rx_errors", crc, "nic:eth0")
    bystanders(it, hot, dirty)
    return it, broken((F.THERMAL_POWER, F.NETWORK_ETH, F.NETWORK_LINK), hot, dirty)


def no_inodes_here_and_bad_memory_there(rng: Random) -> tuple[Fleet, Truth]:
    """Millions of small files fill one node's scratch; in the same step a GPU's memory fails."""
    it = any_size(rng, least=4, most=256)
    full, bad = it.some_nodes(2)
    it.has(bad, "gpu-ecc")
    first, second = it.rank_on(bad), it.rank_on(full)
    ends(it, [first, second], 1, words("gpu-ecc", "culprit"))
    error = "OSError: [Errno 28] No space left on device: '/srv/site/lab/scratch/cache/7f/11.lock'"
    said = _trace('cache.py", line 21, in lock', error).replace("rank2", f"rank{second}")
    it.ranks[second] |= {"last_words": said, "phase": "load"}
    scratch = "disk:/srv/site/lab/scratch"
    it.reads(full, "host.disk", "host.disk.free_inodes_pct", 0.0, scratch)
    it.reads(full, "host.disk", "host.disk.free_pct", rng.uniform(35.0, 80.0), scratch)
    bystanders(it, full, bad)
    classes = frozenset({F.GPU_MEMORY_ECC, F.DISK_FULL})
    return it, Truth(classes, frozenset({full, bad}), frozenset({bad}))


def half_way_through_an_upgrade(rng: Random) -> tuple[Fleet, Truth]:
    """New kernels and firmware on those nodes that were drained this week; the pace is the same."""
    it = any_size(rng, most=256)
    it.past = True
    newer = it.nodes[: max(1, len(it.nodes) * rng.choice((1, 2, 3)) // 4)]
    kernels = ("5.15.0-119-generic", "5.15.0-127-generic")
    versions(it, newer, {"kernel": kernels, "nic_firmware": ("28.39.1002", "28.43.2026")})
    bystanders(it, silent=True)
    return it, nobody(F.NO_FAULT, F.ENVIRONMENT_MISMATCH, seen_at=it.nodes)


def scars_of_a_long_life(rng: Random) -> tuple[Fleet, Truth]:
    """Rows remapped and reset since, saturated counters, links that came and went in a year."""
    it = any_size(rng, least=3, most=256)
    it.past = True
    remapped, cabled, dropped = it.some_nodes(3)
    for name, value in (("gpu.ecc.aggregate_uncorrected", 2), ("gpu.remap.uncorrected", 2),
                        ("gpu.ecc.aggregate_corrected", rng.randrange(900, 60_000))):  # fmt: skip
        it.reads(remapped, "gpu.ecc", name, value, GPUS[0])
    it.reads(remapped, "gpu.pcie", "gpu.pcie.replays", rng.randrange(20, 400), GPUS[0])
    for node in it.nodes:
        old = port(symbol_error=65535, link_downed=7, link_error_recovery=3)
        row = old if node == cabled else port(link_downed=rng.choice((0, 1)), symbol_error=0)
        answers(it, node, "fabric.ibport", {"nic:mlx5_0": row})
    lost = rng.randrange(9000, 900_000)
    it.reads(dropped, "fabric.eth", "fabric.eth.rx_dropped", lost, "nic:eth0")
    it.reads(dropped, "fabric.eth", "fabric.eth.carrier_changes", 22, "nic:eth0")
    bystanders(it, remapped, cabled, dropped, silent=True)
    return it, nobody(*SOUND) if it.outcomes else nobody(F.NO_FAULT)


def prints_a_row_every_five_minutes(rng: Random) -> tuple[Fleet, Truth]:
    """Nothing but logs tells of its steps: the last rank prints few rows, the others none."""
    it = any_size(rng, most=256)
    it.past, gap = False, rng.uniform(240.0, 330.0)
    step = int(it.ranks[0]["step"]) // 100 * 100 + 500
    for rank, values in enumerate(it.ranks):
        state = values["process_state"]
        values.clear()
        values |= {"alive": True, "process_state": state, "log_age_s": rng.uniform(5000, 5060)}
        values["last_words"] = "NCCL version 2.27.3+cuda12.8\n> building train datasets\n"
        it.stacks[rank] = rng.choice((_COMPUTES, stack("rank-hang", "bystander")))
    age = rng.uniform(60.0, 0.9 * gap)
    row = " iteration {n:8d}/  500000 | elapsed time per iteration (ms): {ms:.1f} | lm loss: 2.3"
    said = "".join(f"{row} |\n".format(n=step - back, ms=10 * gap) for back in (200, 100, 0))
    it.ranks[-1] |= {"step": step, "progress_format": "megatron", "row_gap_s": gap}
    it.ranks[-1] |= {"progress_age_s": age, "log_age_s": age, "last_words": said}
    for number, window in enumerate((*(f"past:{n}" for n in range(4)), "recent", "last")):
        pace = gap / 100 * rng.uniform(0.98, 1.02)
        for name, value in (("first", 100 + 400 * number), ("count", 25), ("step_s", pace)):
            it.reads(it.nodes[-1], "job.ranks", f"job.steps.{name}", value, window)
    return it, nobody(*SOUND)


def may_read_little_and_is_set_oddly(rng: Random) -> tuple[Fleet, Truth]:
    """The login may read no kernel log; ECC and persistence are off everywhere, on purpose."""
    it = any_size(rng, most=256)
    it.past = True
    denied = ("kernel log: [Errno 1] Operation not permitted: '/dev/kmsg'",)
    off: dict[str, Value] = {"enabled": False, "enabled_after_reset": False}
    notes = [f"not supported: gpu.ecc.volatile_{kind} {gpu}" for gpu in GPUS
             for kind in ("corrected", "uncorrected")]  # fmt: skip
    for node in it.nodes:
        for check in ("gpu.xid", "host.kernel"):
            up = (Measurement(f"{check}.uptime_s", "", 12_251.3),)
            refused = CheckResult(check, ProbeStatus.COULD_NOT_MEASURE, up, denied)
            it.lost_checks[node, check] = refused
        answers(it, node, "gpu.ecc", {gpu: off for gpu in GPUS}, *notes)
        answers(it, node, "gpu.persistence", {gpu: {"on": False} for gpu in GPUS})
        it.reads(node, "host.cpu", "host.cpu.governor", "schedutil")
        gpus_read(it, node, event_reasons=4, power_w=rng.uniform(640.0, 699.0), sm_mhz=1755)
    bystanders(it)
    return it, nobody(F.NO_FAULT)


def loads_a_large_checkpoint(rng: Random) -> tuple[Fleet, Truth]:
    """Started minutes ago: every rank reads its shards, a few are done and wait for the rest."""
    it = any_size(rng, most=256)
    starts(it)
    not_begun_idle(it)
    done = [rank for rank in range(1, it.job.world_size) if rng.random() < 0.2]
    reads = ("serialization.py:_load", "checkpoint.py:restore", "train.py:main")
    for rank, values in enumerate(it.ranks):
        share = 100 if rank in done else rng.randrange(20, 90)
        values["last_words"] = f"restoring step-00041000: {share} % of 214 GiB\n"
        if rank not in done:
            values |= {"process_state": "D", "kernel_wait": "folio_wait_bit_common"}
            it.stacks[rank] = reads
        else:
            it.stacks[rank] = ("distributed_c10d.py:barrier", *reads[1:])
    it.ranks_later = [
        values if rank in done else {**values, "last_words": f"{values['last_words']} 8 GiB more\n"}
        for rank, values in enumerate(it.ranks)
    ]
    bystanders(it)
    return it, nobody(*SOUND)


TOLD: tuple[Tell, ...] = (
    processor_without_its_fan, memory_module_corrects_all_day, board_without_its_power_cable,
    micro_controller_of_a_gpu_halts, switches_tell_of_a_gpu_that_died,
    bit_errors_on_an_infiniband_cable, uplink_of_a_leaf_drops_packets,
    one_leaf_reaches_no_storage, weights_of_one_rank_differ, clocks_locked_after_a_benchmark,
    instances_left_on_one_node, older_image_on_two_nodes, shards_of_some_end_earlier,
    tokens_beyond_the_vocabulary, first_rank_writes_histograms, hot_processor_and_a_dirty_plug,
    no_inodes_here_and_bad_memory_there, half_way_through_an_upgrade, scars_of_a_long_life,
    prints_a_row_every_five_minutes, may_read_little_and_is_set_oddly, loads_a_large_checkpoint,
)  # fmt: skip
