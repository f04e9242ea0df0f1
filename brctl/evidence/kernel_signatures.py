"""Kernel messages that are no Xid, and what each says; the first row that matches a line counts.

Sources: Linux kernel texts; leptonai/gpud 4a8de33a (os, disk, cpu matchers);
NVIDIA/NVSentinel (mlx5 rows); imbue-ai/cluster-health's dmesg whitelist for the harmless rows. The weight of
each row is brctl's own judgement. Patterns have no nested repetition, and lines are bounded before.
"""
# ruff: noqa: E501  (a table is read by its columns)

import re
from dataclasses import dataclass

from brctl.model.evidence import Weight
from brctl.model.fault import FaultClass

_W = Weight
_F = FaultClass


@dataclass(frozen=True, slots=True)
class Signature:
    """One message shape.

    Attributes:
        kind: Evidence kind; "" for a message that is known to be harmless.
        say: What it means, one sentence.
    """

    kind: str
    pattern: re.Pattern[str]
    fault: FaultClass | None
    weight: Weight
    say: str


def _row(kind: str, pattern: str, fault: FaultClass | None, weight: Weight, say: str) -> Signature:
    return Signature(kind, re.compile(pattern), fault, weight, say)


# fmt: off
SIGNATURES: tuple[Signature, ...] = (
    # Harmless, and first: boot noise must not reach a row below.
    _row("", r"BAR \d+: (?:failed to assign|no space for)", None, _W.CONTEXT, "boot noise"),
    _row("", r"module verification failed|taint(?:s|ing) kernel", None, _W.CONTEXT, "boot noise"),
    _row("", r"nvidia_peermem.*invalid context", None, _W.CONTEXT, "after a crash of a job"),
    _row("", r"AER: (?:enabled|PCIe errors handled by)", None, _W.CONTEXT, "boot noise"),
    _row("", r"EDAC (?:MC|DEBUG|MC\d+): (?:Ver:|Giving out device)", None, _W.CONTEXT, "boot noise"),
    # Kernel itself
    _row("host.kernel.panic", r"Kernel panic - not syncing", _F.HOST_KERNEL, _W.CONVICTS, "kernel panic"),
    _row("host.kernel.oops", r"BUG: unable to handle|NULL pointer dereference|Oops: \d", _F.HOST_KERNEL, _W.CONVICTS, "kernel oops"),
    _row("host.kernel.hard_lockup", r"hard LOCKUP", _F.HOST_KERNEL, _W.CONVICTS, "a CPU stopped taking interrupts"),
    _row("host.kernel.soft_lockup", r"BUG: soft lockup", _F.HOST_KERNEL, _W.CONVICTS, "a CPU was stuck in the kernel"),
    _row("host.kernel.hung_task", r"task .{1,80} blocked for more than \d+ seconds", _F.HOST_KERNEL, _W.HINTS, "a task hangs in the kernel; its stack says whether in a file system or the driver"),
    # Memory
    _row("host.kernel.oom_container", r"Memory cgroup out of memory|oom-kill:constraint=CONSTRAINT_MEMCG", _F.CPU_OOM, _W.CONVICTS, "the memory limit of a container or job step killed a process"),
    _row("host.kernel.oom", r"Out of memory: Kill(?:ed)? process|oom-kill:constraint=CONSTRAINT_NONE", _F.CPU_OOM, _W.CONVICTS, "the node ran out of memory and killed a process"),
    _row("host.kernel.memory_uncorrected", r"EDAC .{1,40}: \d+ UE |Machine Check Exception|\[Hardware Error\].{0,80}(?:Uncorrected|Fatal)", _F.NODE_FAILURE, _W.CONVICTS, "uncorrected memory or CPU error"),
    _row("host.kernel.memory_corrected", r"EDAC .{1,40}: \d+ CE |\[Hardware Error\].{0,80}Corrected error", _F.NODE_FAILURE, _W.HINTS, "corrected memory errors; their growth matters"),
    _row("host.kernel.machine_check", r"[Mm]achine check events logged", None, _W.CONTEXT, "machine checks were logged; often thermal, weak alone"),
    _row("host.kernel.cpu_throttled", r"temperature above threshold, cpu clock throttled", _F.THERMAL_POWER, _W.HINTS, "a CPU is throttled by heat; its ranks become stragglers"),
    # PCIe
    _row("host.kernel.pcie_fatal", r"severity=Uncorrect(?:ed|able) \(Fatal\)|Uncorrect(?:ed|able) \(Fatal\) error|DPC: containment event", _F.PCIE, _W.CONVICTS, "fatal PCIe error"),
    _row("host.kernel.pcie_uncorrected", r"Uncorrect(?:ed|able) \(Non-Fatal\)", _F.PCIE, _W.HINTS, "uncorrected PCIe error"),
    _row("host.kernel.pcie_corrected", r"AER: (?:Multiple )?Correct(?:ed|able) error|severity=Correct(?:ed|able)", None, _W.CONTEXT, "corrected PCIe error; only a count"),
    _row("host.kernel.pcie_link_down", r"pciehp: Slot\(.{1,20}\): Link Down|Surprise Link Down|SDES", _F.PCIE, _W.CONVICTS, "a PCIe link went down"),
    _row("host.kernel.pcie_bandwidth", r"available PCIe bandwidth, limited by", _F.PCIE, _W.HINTS, "a device trained below its PCIe rate"),
    # Network adapters
    _row("host.kernel.nic_dead", r"device's health compromised|unrecoverable hardware error|mlx5_.{0,80}(?:fw_ver|assert).{0,60}0xffffffff", _F.NETWORK_IB, _W.CONVICTS, "a network adapter died"),
    _row("host.kernel.nic_command_timeout", r"mlx5_.{0,80}timeout\. Will cause a leak", _F.NETWORK_IB, _W.CONVICTS, "a network adapter does not answer its driver"),
    _row("host.kernel.nic_queue_stuck", r"NETDEV WATCHDOG: .{1,80}transmit queue \d+ timed out", _F.NETWORK_ETH, _W.HINTS, "a network adapter's send queue is stuck"),
    _row("host.kernel.nic_hot", r"Port module event\[error\].{0,80}High Temperature", _F.NETWORK_IB, _W.HINTS, "a transceiver is too hot"),
    _row("host.kernel.nic_unplugged", r"Port module event.{0,80}[Cc]able unplugged", _F.NETWORK_LINK, _W.HINTS, "a network cable is unplugged"),
    _row("host.kernel.nic_power", r"Detected insufficient power on the PCIe slot", None, _W.CONTEXT, "insufficient slot power reported; sources disagree whether it matters"),
    _row("host.kernel.nic_link_down", r"(?:NIC )?Link is Down|link becomes down", _F.NETWORK_ETH, _W.HINTS, "a network link went down"),
    # Storage
    _row("host.kernel.read_only", r"[Rr]emounting filesystem read-only|XFS .{1,60}(?:shutting down|Shutting down|Corruption)", _F.STORAGE_CHECKPOINT, _W.CONVICTS, "a file system gave up and is read-only or shut down"),
    _row("host.kernel.disk_dead", r"Disabling device after reset failure", _F.STORAGE_CHECKPOINT, _W.CONVICTS, "a disk was taken out after a failed reset"),
    _row("host.kernel.disk_error", r"Buffer I/O error|blk_update_request: I/O error|critical medium error|nvme .{1,60}timeout, (?:reset controller|aborting)|EXT4-fs error", _F.STORAGE_CHECKPOINT, _W.HINTS, "disk errors"),
    _row("host.kernel.nfs_hangs", r"nfs: server .{1,255} not responding", _F.STORAGE_CHECKPOINT, _W.HINTS, "a file server does not answer"),
    _row("host.kernel.no_space", r"No space left on device", _F.DISK_FULL, _W.HINTS, "a file system is full"),
)

GPU_SIGNATURES: tuple[Signature, ...] = (
    _row("gpu.driver.init_failed", r"RmInitAdapter failed", _F.GPU_LOST, _W.CONVICTS, "the card is there but the driver cannot start it"),
    _row("gpu.driver.mismatch", r"NVRM: API mismatch", _F.DRIVER_FIRMWARE, _W.CONVICTS, "driver and library versions differ; reboot or reload, no hardware fault"),
    _row("gpu.inforom.corrupted", r"infoROM is corrupted", _F.DRIVER_FIRMWARE, _W.HINTS, "the infoROM is corrupted; aggregate ECC counts cannot be trusted"),
    _row("gpu.driver.segfault", r"segfault at .{1,120} in lib(?:nccl|cuda)", _F.DRIVER_FIRMWARE, _W.HINTS, "a crash inside the NCCL or CUDA library"),
)
# fmt: on


def find_signature(message: str, rows: tuple[Signature, ...]) -> Signature | None:
    """The first row that matches, or None for a message nobody has classed."""
    return next((row for row in rows if row.pattern.search(message)), None)
