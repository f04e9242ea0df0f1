"""Incidents of any day that nobody rehearsed: the half that is set aside. See `today`."""

import json
from random import Random

from brctl.model.command import Outcome
from brctl.model.fault import FaultClass as F
from brctl.model.sweeps.report import CheckResult, Measurement, ProbeStatus
from tests.bench.verdicts.adversary_machines import HANGS, NETWORKS, at_s, broken
from tests.bench.verdicts.answers import words
from tests.bench.verdicts.causes_machines import any_size, one_of
from tests.bench.verdicts.clusters import _COMPILES
from tests.bench.verdicts.clusters_later import slow_in_collectives
from tests.bench.verdicts.fleet import (
    LOCAL_PHASES,
    STALL_AFTER_S,
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
from tests.bench.verdicts.today_parts import GPUS, answers, gpus_read, leaves, starts, windows
from tests.bench.verdicts.unseen_jobs import SOUND, _trace


def corrected_memory_storm_slows_one(rng: Random) -> tuple[Fleet, Truth]:
    """A memory module corrects all the time, and firmware stops every core for each report."""
    it = any_size(rng, least=3, most=256)
    bad = one_of(it)
    slow_ranks(it, it.job.ranks_on(bad), rng.uniform(1.3, 2.2))
    for node in it.nodes:
        count = rng.randrange(60_000, 400_000) if node == bad else rng.choice((0, 0, 0, 2, 17))
        it.reads(node, "host.memory", "host.memory.corrected_errors", count)
        it.reads(node, "host.memory", "host.memory.uncorrected_errors", 0)
    for ago in range(9):
        count = rng.randrange(300, 4000)
        at_s(
            it, bad, "host.kernel", 12_240.0 - 60.0 * (9 - ago),
            "mce: [Hardware Error]: Machine check events logged",
            f"EDAC MC0: {count} CE memory read error on CPU_SrcID#0_MC#0_Chan#1_DIMM#0 (channel:1"
            " slot:0 page:0x3f1c02 offset:0x0 grain:32 syndrome:0x0 err_code:0x0101:0x0090)",
        )  # fmt: skip
    return it, broken((F.NODE_FAILURE, F.HOST_KERNEL, F.STRAGGLER_SLOW), bad)


def nan_everywhere_and_one_hot(rng: Random) -> tuple[Fleet, Truth]:
    """A learning rate too high: all losses are no number since one step; and a fan is dead."""
    it = any_size(rng, least=4, most=256)
    it.past = False
    hot = one_of(it)
    it.has(hot, "thermal")
    slow_ranks(it, it.job.ranks_on(hot), rng.uniform(1.4, 2.5))
    since = int(it.ranks[0]["step"]) - rng.randrange(3, 12)
    for values in it.ranks:
        values |= {"loss_finite": False, "first_nonfinite_step": since + 1}
        values |= {"grad_finite": False, "first_nonfinite_grad_step": since}
    classes = frozenset({F.NUMERIC_NAN, F.THERMAL_POWER})
    return it, Truth(classes, frozenset({hot}), frozenset({hot}))


def leaf_uplink_drops_packets(rng: Random) -> tuple[Fleet, Truth]:
    """Within a leaf all is well; what enters or leaves one of them is lost by the hundred."""
    it = sized(rng, rng.choice((48, 64, 96, 256)), rng.choice((1, 2, 8)))
    slow_in_collectives(it, rng.uniform(1.5, 3.5))
    leaf = rng.choice(sorted(set(it.leaves.values())))
    seen: set[str] = set()
    for number, node in enumerate(it.nodes):
        after = (number + 1) % len(it.nodes)
        if (it.leaves[node] == leaf) == (it.leaves[it.nodes[after]] == leaf):
            continue
        seen |= {node, it.nodes[after]}
        for name, value in (
            ("segments", 90_000), ("segments_now", rng.randrange(120, 400)),
            ("lost", rng.randrange(900, 2600)), ("lost_now", rng.randrange(3, 12)),
        ):  # fmt: skip
            it.reads(node, "fabric.tcp", f"fabric.tcp.{name}", value, f"peer:{_address(after)}")
    return it, nobody(*NETWORKS, seen_at=seen)


def gpu_falls_and_every_switch_complains(rng: Random) -> tuple[Fleet, Truth]:
    """A GPU fell off the bus; its switches lose its links, and so does the GPU beside it."""
    it = any_size(rng, most=256)
    bad = one_of(it)
    it.has(bad, "gpu-lost")
    ends(it, [it.rank_on(bad)], 1, words("gpu-lost", "culprit"))
    switches = [
        f"nvidia-nvswitch{n}: SXid (PCI:0000:c{5 + n}:00.0): 20034, Fatal, Link"
        f" {rng.randrange(36)} LTSSM Fault Up"
        for n in range(4)
    ]
    at_s(
        it, bad, "gpu.xid", 12_319.4, *switches,
        "NVRM: Xid (PCI:0000:18:00): 74, pid='<unknown>', name=<unknown>, NVLink: fatal error"
        " detected on link 3(0x10000, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)",
    )  # fmt: skip
    return it, machine(F.GPU_LOST, bad)


def clocks_locked_low_by_a_benchmark(rng: Random) -> tuple[Fleet, Truth]:
    """Somebody measured at a fixed clock on one node, and never took it back."""
    it = any_size(rng, least=3, most=256)
    bad = one_of(it)
    slow_ranks(it, it.job.ranks_on(bad), rng.uniform(1.3, 1.7))
    mhz, power_w = rng.choice((1095, 1200, 1305)), rng.uniform(300.0, 390.0)
    gpus_read(it, bad, event_reasons=2, sm_mhz=mhz, power_w=power_w, busy_pct=100)
    return it, broken((F.GPU_SLOW, F.ENVIRONMENT_MISMATCH, F.STRAGGLER_SLOW), bad)


def killed_by_a_person_and_xid_45(rng: Random) -> tuple[Fleet, Truth]:
    """SIGKILL of one rank in its kernel: the driver cleans up behind it and says so."""
    it = any_size(rng, most=256)
    there = one_of(it)
    ends(it, [it.rank_on(there)], -9, "")
    said = "NVRM: Xid (PCI:0000:2a:00): 45, pid=4242, name=python3, Ch 000000"
    kernel_says(it, there, *(f"{said}{n:02x}" for n in range(8, 14)), check="gpu.xid")
    return it, nobody(F.UNKNOWN, seen_at=[there])


def one_is_a_step_behind(rng: Random) -> tuple[Fleet, Truth]:
    """It did a step again that it alone had thrown away; a board elsewhere has had two rows lent.

    All stand in the same line of the same collective, and only the step of one is another.
    """
    it = any_size(rng, least=4, most=256)
    there, innocent = it.some_nodes(2)
    stands_still(it, ())
    rank = it.rank_on(there)
    it.ranks[rank]["step"] = int(it.ranks[rank]["step"]) - 1
    for name in ("gpu.remap.uncorrected", "gpu.ecc.aggregate_uncorrected"):
        it.reads(innocent, "gpu.ecc", name, 2, GPUS[1])
    return it, place(HANGS, there)


def one_replica_has_other_bits(rng: Random) -> tuple[Fleet, Truth]:
    """Steps go on, the loss is what it was; one rank's copy of a weight is not that of the rest."""
    it = any_size(rng, least=4, most=256)
    bad = one_of(it)
    rank, width = it.rank_on(bad), it.job.ranks_per_node
    group = range(rank % width, it.job.world_size, width)
    since = int(it.ranks[0]["step"]) - rng.randrange(17, 39)
    layer = f"layers.{rng.randrange(48)}.mlp.up.weight"
    found = {
        "kind": "replica", "step": since, "axis": "dp", "tensor": layer, "tensors": 1,
        "ranks": [rank], "of": len(group), "has_majority": True, "count": rng.randrange(2, 17),
    }  # fmt: skip
    for number, values in enumerate(it.ranks):
        values |= {"compared_tensors": 291}
        values["compared_kind"] = "NVIDIA H100 80GB HBM3, CUDA 12.8, torch 2.7.1"
        if number in group:
            values["wrong_numbers"] = json.dumps({"replica": found})
    return it, machine(F.SILENT_CORRUPTION, bad)


def root_disk_gone(rng: Random) -> tuple[Fleet, Truth]:
    """Its system disk left the bus: the kernel lives, logins pass, and no program can be read."""
    it = any_size(rng, least=3, most=256)
    bad = one_of(it)
    stands_still(it, ())
    said = "bash: line 1: /usr/bin/python3: Input/output error"
    it.is_silent(bad, Outcome.UNPARSABLE, f"the probe runner did not start (exit 126): {said}")
    _answers_tcp(it)
    return it, broken((F.NODE_FAILURE, F.HOST_KERNEL), bad)


def _answers_tcp(it: Fleet) -> None:
    """Silent nodes whose kernels live: who talks to them finds nothing wrong with the path."""
    for number, node in enumerate(it.nodes):
        after = (number + 1) % len(it.nodes)
        if it.nodes[after] in it.outcomes:
            peer = f"peer:{_address(after)}"
            it.reads(node, "fabric.tcp", "fabric.tcp.timeouts_in_a_row", 0, peer)


def one_dead_one_upgraded(rng: Random) -> tuple[Fleet, Truth]:
    """Started again over the weekend: one node has no power, another got a driver's library."""
    it = any_size(rng, least=4, most=256)
    dead, upgraded = it.some_nodes(2)
    starts(it)
    said = (
        "RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 803: system has"
        " unsupported display driver / cuda driver combination"
    )
    for rank in it.job.ranks_on(upgraded):
        leaves(it, rank, 1, _trace('train.py", line 31, in setup', said))
    it.reads(upgraded, "gpu.driver", "gpu.driver.mismatch", value=True)
    it.reads(upgraded, "gpu.driver", "gpu.driver.library_version", "580.65.06")
    for name in ("clocks", "devices", "ecc", "fabric_manager", "nvlink", "pcie", "processes"):
        rows = (Measurement("gpu.devices.pci_count", "", 2),) if name == "devices" else ()
        result = CheckResult(
            f"gpu.{name}", ProbeStatus.COULD_NOT_MEASURE, rows,
            ("NVML: Driver/library version mismatch",),
        )  # fmt: skip
        it.lost_checks[upgraded, f"gpu.{name}"] = result
    it.is_silent(dead, Outcome.CONNECT_TIMED_OUT, "no TCP connection within 5 s")
    classes = (F.NODE_FAILURE, F.NETWORK_LINK, F.NETWORK_ETH, F.DRIVER_FIRMWARE)
    return it, broken((*classes, F.ENVIRONMENT_MISMATCH), dead, upgraded)


def slower_by_the_hour(rng: Random) -> tuple[Fleet, Truth]:
    """Every rank keeps a list that it walks in each step: all compute longer, and longer still."""
    it = any_size(rng, most=256)
    it.past = True
    each = rng.uniform(0.09, 0.2)
    it.now_s = it.step_s * (1.0 + 5.0 * each)
    for values in it.ranks:
        values |= {"step_s": it.now_s * rng.uniform(0.99, 1.01), "phase": rng.choice(LOCAL_PHASES)}
        values["wait_s"] = it.step_s * rng.uniform(0.03, 0.1)
    remember(it)
    for number in range(5):
        then = it.step_s * (1.0 + number * each) * rng.uniform(0.99, 1.01)
        it.reads(it.nodes[0], "job.ranks", "job.steps.step_s", then, f"past:{number}")
    for node in it.nodes:
        it.reads(node, "host.memory", "host.memory.available_pct", rng.uniform(17.0, 24.0))
    return it, nobody(F.USER_CODE, F.STRAGGLER_SLOW, F.UNKNOWN)


def stale_handle_on_one_node(rng: Random) -> tuple[Fleet, Truth]:
    """The export was made anew while one node slept through it: its mount names what is gone."""
    it = any_size(rng, least=3, most=256)
    there = one_of(it)
    said = "OSError: [Errno 116] Stale file handle: '/data/tokens/shard-00412.bin'"
    ends(it, [it.rank_on(there)], 1, _trace('data.py", line 27, in open_shard', said), phase="load")
    for node in it.nodes:
        fails = {"fails": True} if node == there else {}
        answers(it, node, "host.mounts", {"disk:/data": {"hangs": False, **fails}})
    return it, place((F.STORAGE_CHECKPOINT,), there)


def cpu_throttles_and_its_gpus_starve(rng: Random) -> tuple[Fleet, Truth]:
    """A fan before the processors failed: they throttle, and cool GPUs wait for their launches."""
    it = any_size(rng, least=3, most=256)
    bad = one_of(it)
    slow_ranks(it, it.job.ranks_on(bad), rng.uniform(1.3, 2.4))
    events = rng.randrange(90_000, 400_000)
    for node in it.nodes:
        count = events if node == bad else rng.choice((0, 0, 3, 41))
        it.reads(node, "host.cpu", "host.cpu.throttle_count", count)
    gpus_read(it, bad, busy_pct=rng.randrange(42, 68), power_w=rng.uniform(230.0, 310.0))
    for ago in (900.0, 600.0, 300.0, 1.0):
        said = "Package temperature above threshold, cpu clock throttled (total events ="
        total = events - int(ago * 8)
        at_s(it, bad, "host.kernel", 12_250.0 - ago, f"CPU{rng.randrange(64)}: {said} {total})")
    return it, broken((F.THERMAL_POWER, F.STRAGGLER_SLOW), bad)


def same_local_rank_raises_everywhere(rng: Random) -> tuple[Fleet, Truth]:
    """One slice of the vocabulary has no token of a rare batch: its rank raises on every node."""
    it = sized(rng, rng.choice((2, 4, 16, 48, 128)), rng.choice((2, 4, 8)))
    odd = rng.randrange(it.job.ranks_per_node)
    first = range(odd, it.job.world_size, it.job.ranks_per_node)
    said = "ValueError: max() arg is an empty sequence"
    ends(it, first, 1, _trace('loss.py", line 52, in sliced_softmax', said), phase="forward")
    return it, nobody(F.USER_CODE, seen_at=it.nodes)


def all_compile_again(rng: Random) -> tuple[Fleet, Truth]:
    """The batch grew by plan: every rank compiles for the new shape, as it did at the start."""
    it = any_size(rng, most=256)
    age = rng.uniform(STALL_AFTER_S * 1.2, 75.0)
    for rank, values in enumerate(it.ranks):
        mine = age + rng.uniform(0.0, 0.5)
        values |= {"phase": "forward", "phase_age_s": mine, "progress_age_s": mine}
        values |= {"process_state": rng.choice("RS"), "phase_longest_s": rng.uniform(90.0, 130.0)}
        it.stacks[rank] = _COMPILES[rng.randrange(3) :]
    return it, nobody(*SOUND)


def uneven_settings_in_a_sound_run(rng: Random) -> tuple[Fleet, Truth]:
    """One node has another driver, one another governor, one a lower limit; none is late."""
    it = any_size(rng, least=4, most=256)
    it.past = True
    driver, governor, limit = it.some_nodes(3)
    it.reads(driver, "gpu.devices", "gpu.devices.driver_version", "570.133.20")
    it.reads(driver, "gpu.driver", "gpu.driver.library_version", "570.133.20")
    for node in it.nodes:
        value = "schedutil" if node == governor else "performance"
        it.reads(node, "host.cpu", "host.cpu.governor", value)
    gpus_read(it, limit, power_limit_w=650.0)
    return it, nobody(F.NO_FAULT)


def every_tenth_step_is_long(rng: Random) -> tuple[Fleet, Truth]:
    """Each tenth step sums the metrics of all, for as long as six others; it always did."""
    it = any_size(rng, most=256)
    it.step_s, it.past = round(rng.uniform(0.4, 2.0), 2), True
    trains(it)
    age = rng.uniform(1.5, 4.0) * it.step_s
    for values in it.ranks:
        mine = age + rng.uniform(0.0, 0.05)
        values |= {"phase": "optimizer", "phase_age_s": mine, "progress_age_s": mine}
        values |= {"phase_longest_s": it.step_s * 5.4}
    it.ranks_later = [{**values, "step": int(values["step"]) + 1} for values in it.ranks]
    for window in windows():
        for name, times in (("mean_s", 1.5), ("trimmed_mean_s", 1.26)):
            value = it.step_s * times * rng.uniform(0.97, 1.03)
            it.reads(it.nodes[0], "job.ranks", f"job.steps.{name}", value, window)
    return it, nobody(F.NO_FAULT)


def scheduler_will_not_let_us_ask(rng: Random) -> tuple[Fleet, Truth]:
    """A third of the nodes drains for new firmware after this job; it trains on all of them."""
    it = any_size(rng, least=3, most=256)
    for node in it.some_nodes(max(1, len(it.nodes) // 3)):
        it.is_silent(node, Outcome.NOT_AVAILABLE, "draining in Slurm by ops: firmware 28.43")
    _answers_tcp(it)
    for number, node in enumerate(it.nodes):
        peer = f"peer:{_address((number + 1) % len(it.nodes))}"
        it.reads(node, "fabric.tcp", "fabric.tcp.segments_now", rng.randrange(30, 60), peer)
    return it, nobody(*SOUND)


TOLD: tuple[Tell, ...] = (
    corrected_memory_storm_slows_one, nan_everywhere_and_one_hot, leaf_uplink_drops_packets,
    gpu_falls_and_every_switch_complains, clocks_locked_low_by_a_benchmark,
    killed_by_a_person_and_xid_45, one_is_a_step_behind, one_replica_has_other_bits,
    root_disk_gone, one_dead_one_upgraded, slower_by_the_hour, stale_handle_on_one_node,
    cpu_throttles_and_its_gpus_starve, same_local_rank_raises_everywhere, all_compile_again,
    uneven_settings_in_a_sound_run, every_tenth_step_is_long, scheduler_will_not_let_us_ask,
)  # fmt: skip
