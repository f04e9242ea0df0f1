"""What `tomorrow` tells its incidents with."""

from collections.abc import Iterable
from dataclasses import replace
from random import Random

from brctl.model.command import Outcome
from brctl.model.sweeps.report import CheckResult, Measurement, ProbeStatus, Value
from tests.bench.verdicts.adversary_machines import at_s
from tests.bench.verdicts.causes_machines import any_size, one_of, peers_of
from tests.bench.verdicts.fleet import Fleet, _address, slow_ranks
from tests.bench.verdicts.today_parts import GPUS, answers, gpus_read, has_one_gpu

_NOT_THE_JOBS = ("host.mounts", "host.disk", "host.memory", "gpu.pcie", "gpu.nvlink", "gpu.ecc")
_NO_LOGIN = (
    (Outcome.HOST_KEY_MISMATCH, "the host key is not the recorded one"),
    (Outcome.AUTHENTICATION_FAILED, "permission denied (publickey)"),
)
SWITCH_LOST_A_LINK = (
    "nvidia-nvswitch{n}: SXid (PCI:0000:0{n}:00.0): 20034, Fatal, Link {link} LTSSM Fault Up"
)
_NO_POWER = (
    "NVRM: GPU 0000:2a:00.0: GPU does not have the necessary power cables connected.",
    "NVRM: GPU 0000:2a:00.0: RmInitAdapter failed! (0x24:0x1c:1589)",
    "NVRM: GPU 0000:2a:00.0: rm_init_adapter failed, device minor number 1",
)
HALTED = (
    "NVRM: Xid (PCI:0000:2a:00): 62, pid='<unknown>', name=<unknown>, 2027(2e84) 00000000 00000000",
    "NVRM: Xid (PCI:0000:2a:00): 154, pid='<unknown>', name=<unknown>, GPU recovery action changed"
    " from 0x0 (None) to 0x1 (GPU Reset Required)",
)
OLD_XID = (
    "NVRM: Xid (PCI:0000:18:00): 31, pid=3111, name=python3, Ch 00000008, intr 00000000. MMU Fault:"
    " ENGINE GRAPHICS GPCCLIENT_T1_4 faulted @ 0x7f11_20000000. Fault is of type FAULT_PDE"
    " ACCESS_TYPE_VIRT_READ"
)
_OVERHEATS = (
    "CPU{n}: Package temperature above threshold, cpu clock throttled (total events = {of})"
)
BEYOND = (
    "/pytorch/aten/src/ATen/native/cuda/Indexing.cu:1553: indexSelectLargeIndex: block: [{b},0,0],"
    " thread: [{t},0,0] Assertion `srcIndex < srcSelectDimSize` failed.\n"
)


def bystanders(it: Fleet, *but: str, silent: bool = False) -> None:
    """What nobody's fault shows elsewhere: old small errors, an answer that is missing, no login.

    Args:
        it: The fleet.
        but: Nodes that stay as they are.
        silent: Whether one node may let nobody in, which trains all the same.
    """
    rng, others = it.rng, [node for node in it.nodes if node not in but]
    if not others:
        return
    rng.shuffle(others)
    corrects, leaves_some, answers_late, lets_nobody_in = (others * 4)[:4]
    if rng.random() < 0.6:
        it.reads(corrects, "gpu.ecc", "gpu.ecc.volatile_corrected", rng.randrange(1, 40), GPUS[1])
        it.reads(leaves_some, "host.leftovers", "host.leftovers.zombie_count", rng.randrange(1, 5))
    if rng.random() < 0.6:
        late = rng.choice(_NOT_THE_JOBS)
        it.lost_checks.setdefault((answers_late, late), CheckResult(late, ProbeStatus.TIMED_OUT))
    if silent and len(others) > 4 and lets_nobody_in != it.nodes[0] and rng.random() < 0.6:
        it.is_silent(lets_nobody_in, *rng.choice(_NO_LOGIN))
        before, mine = peers_of(it, lets_nobody_in)[1]
        it.reads(before, "fabric.tcp", "fabric.tcp.segments_now", 40, mine)
        it.reads(before, "fabric.tcp", "fabric.tcp.timeouts_in_a_row", 0, mine)


def one_is_late(rng: Random, least: int = 3) -> tuple[Fleet, str]:
    """A fleet whose past is known, and a node of it whose ranks hold every step up."""
    it = any_size(rng, least=least, most=256)
    it.past, late = True, one_of(it)
    slow_ranks(it, it.job.ranks_on(late), rng.uniform(1.25, 2.1))
    for node in it.nodes:
        heat = rng.randrange(48, 63)
        gpus_read(it, node, power_w=rng.uniform(380.0, 560.0), temperature_c=heat,
                  temperature_margin_c=92 - heat)  # fmt: skip
    return it, late


def _processors(it: Fleet, node: str, throttled: int) -> None:
    row: dict[str, Value] = {
        "online_count": 128, "present_count": 128, "offline_count": 0, "governor": "performance",
        "throttle_count": throttled, "load_per_cpu": it.rng.uniform(0.2, 0.6),
    }  # fmt: skip
    answers(it, node, "host.cpu", {"": row})


def overheats(it: Fleet, hot: str) -> None:
    """One processor throttles for hours; the GPUs there wait for their launches."""
    rng, events = it.rng, it.rng.randrange(180_000, 900_000)
    for node in it.nodes:
        _processors(it, node, events if node == hot else rng.choice((0, 0, 0, 2, 17)))
    for number in range(5):
        said = _OVERHEATS.format(n=rng.randrange(64, 128), of=events - 300 * (5 - number))
        at_s(it, hot, "host.kernel", 12_251.3 - 300.0 * (5 - number), said)
    gpus_read(it, hot, busy_pct=rng.randrange(48, 80), power_w=rng.uniform(250.0, 360.0))


def versions(it: Fleet, newer: Iterable[str], rows: dict[str, tuple[Value, Value]]) -> None:
    """What every node has installed, and what some nodes have in its place."""
    usual: dict[str, Value] = {
        "kernel": "5.15.0-119-generic", "system": "Ubuntu 22.04.5 LTS", "driver": "570.148.08",
        "torch": "2.8.0+cu128", "nccl": "2.27.3",
    }  # fmt: skip
    newer = set(newer)
    for node in it.nodes:
        mine = usual | {name: values[node in newer] for name, values in rows.items()}
        firmware = mine.pop("nic_firmware", "28.43.2026")
        answers(it, node, "host.versions", {"": mine, "nic:mlx5_0": {"nic_firmware": firmware}})


def not_begun_idle(it: Fleet) -> None:
    """What the GPUs of a job read that has not begun."""
    for node in it.nodes:
        gpus_read(it, node, busy_pct=0, event_reasons=1, sm_mhz=345,
                  power_w=it.rng.uniform(68.0, 90.0))  # fmt: skip
        for gpu in GPUS:
            it.reads(node, "gpu.pcie", "gpu.pcie.busy_pct", 0, gpu)


def has_a_dark_board(it: Fleet, node: str) -> None:
    """What a node reads whose second GPU is on the bus and cannot be started."""
    has_one_gpu(it, node)
    both = Measurement("gpu.devices.pci_count", "", 2)
    devices, log = it.lost_checks[node, "gpu.devices"], it.lost_checks[node, "gpu.xid"]
    rows = tuple(both if m.name == both.name else m for m in devices.measurements)
    it.lost_checks[node, "gpu.devices"] = replace(devices, measurements=rows)
    lines = tuple(
        Measurement("gpu.xid.line", "", f"3,{400 + n},{moment + n},-;{text}")
        for moment in (14_811_402, 12_130_555_120)
        for n, text in enumerate(_NO_POWER)
    )
    it.lost_checks[node, "gpu.xid"] = replace(log, measurements=(*log.measurements, *lines))


def connections(it: Fleet, node: str, leaf: str) -> None:
    """What a node reads of its neighbours and of one far node, where one leaf drops packets."""
    rng, here, count = it.rng, it.nodes.index(node), len(it.nodes)
    rows: dict[str, dict[str, Value]] = {
        f"address:{_address(here)}": {"own_address": True}, "": {"peers": 3},
    }  # fmt: skip
    for other in ((here + 1) % count, (here - 1) % count, (here + count // 2) % count):
        ends_at = {it.leaves[node], it.leaves[it.nodes[other]]}
        drops = len(ends_at) == 2 and leaf in ends_at
        rows[f"peer:{_address(other)}"] = {
            "segments": rng.randrange(40_000, 60_000), "segments_now": rng.randrange(200, 500),
            "lost": rng.randrange(400, 1500) if drops else rng.choice((0, 0, 1)),
            "lost_now": rng.randrange(2, 14) if drops else 0, "timeouts_in_a_row": 0,
            "path_mtu": 9000, "delay_ms": rng.uniform(0.04, 0.08) * (6 if drops else 1),
        }  # fmt: skip
    answers(it, node, "fabric.tcp", rows)
