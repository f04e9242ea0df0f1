"""Kernel messages that accuse the node whose kernel log they stand in.

The checks of a node's kernel log (brctl/evidence/kernel_log.py) read these rows alone, under the
row's name as the kind of evidence; in other logs they speak beside all others. Sources: Linux
kernel texts; leptonai/gpud 4a8de33a (os, disk, cpu matchers); NVIDIA/NVSentinel (mlx5 rows). Xid
and SXid numbers have tables of their own. The strength of each row is brctl's own judgement.
"""

# ruff: noqa: E501 - a table is read by its columns

from brctl.evidence.logs.signature import Part, Signature
from brctl.model.fault import FaultClass, Origin

_F = FaultClass
_DEVICE = r"(?:(?P<device>[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.\d).{0,80})?"
_LINUX = "Linux kernel texts; gpud and NVSentinel matchers"
_NVRM = "NVIDIA kernel driver texts"


def _row(
    name: str,
    anchors: str,
    pattern: str,
    fault: FaultClass | None,
    strength: float,
    say: str,
    source: str = _LINUX,
    origin: Origin | None = None,
) -> Signature:
    part = Part.ROOT if fault else Part.CONTEXT
    return Signature(
        name, tuple(anchors.split("|")), part, fault, strength, source, pattern, origin,
        physical=True, say=say,
    )  # fmt: skip


# fmt: off
HOST: tuple[Signature, ...] = (
    # Kernel itself
    _row("host.kernel.panic", "kernel panic", r"Kernel panic - not syncing", _F.HOST_KERNEL, 0.9, "kernel panic"),
    _row("host.kernel.oops", "unable to handle|null pointer|oops: ", r"BUG: unable to handle|NULL pointer dereference|\bOops: \d", _F.HOST_KERNEL, 0.9, "kernel oops"),
    _row("host.kernel.hard_lockup", "hard lockup", r"hard LOCKUP", _F.HOST_KERNEL, 0.88, "a CPU stopped taking interrupts"),
    _row("host.kernel.soft_lockup", "soft lockup", r"BUG: soft lockup", _F.HOST_KERNEL, 0.88, "a CPU was stuck in the kernel"),
    _row("host.kernel.hung_task", "blocked for more than", r"task .{1,80} blocked for more than \d+ seconds", _F.HOST_KERNEL, 0.75, "a task hangs in the kernel; its stack says whether in a file system or the driver"),
    # Memory
    _row("host.kernel.oom_container", "memory cgroup out of memory|constraint_memcg", r"Memory cgroup out of memory|oom-kill:constraint=CONSTRAINT_MEMCG", _F.CPU_OOM, 0.93, "the memory limit of a container or job step killed a process"),
    _row("host.kernel.oom", "out of memory: kill|constraint_none", r"Out of memory: Kill(?:ed)? process|oom-kill:constraint=CONSTRAINT_NONE", _F.CPU_OOM, 0.93, "the node ran out of memory and killed a process"),
    _row("host.kernel.memory_uncorrected", "edac|machine check exception|[hardware error]", r"EDAC .{1,40}: \d+ UE |Machine Check Exception|\[Hardware Error\].{0,80}(?:Uncorrected|Fatal)", _F.NODE_FAILURE, 0.86, "uncorrected memory or CPU error"),
    _row("host.kernel.memory_corrected", "edac|[hardware error]", r"EDAC .{1,40}: \d+ CE |\[Hardware Error\].{0,80}Corrected error", _F.NODE_FAILURE, 0.2, "corrected memory errors; their growth matters"),
    _row("host.kernel.machine_check", "machine check events logged", r"Machine check events logged", None, 0.0, "machine checks were logged; often thermal, weak alone"),
    _row("host.kernel.cpu_throttled", "cpu clock throttled|cpu clock is throttled", r"temperature (?:is )?above threshold, cpu clock (?:is )?throttled", _F.THERMAL_POWER, 0.84, "a CPU is throttled by heat; its ranks become stragglers"),
    # PCIe
    _row("host.kernel.pcie_fatal", "(fatal)|dpc: containment", r"severity=Uncorrect(?:ed|able) \(Fatal\)|Uncorrect(?:ed|able) \(Fatal\) error|DPC: containment event", _F.PCIE, 0.88, "fatal PCIe error"),
    _row("host.kernel.pcie_uncorrected", "(non-fatal)", _DEVICE + r"Uncorrect(?:ed|able) \(Non-Fatal\)", _F.PCIE, 0.84, "uncorrected PCIe error"),
    _row("host.kernel.pcie_corrected", "aer: |severity=correct", r"AER: (?:Multiple )?Correct(?:ed|able) error|severity=Correct(?:ed|able)", None, 0.0, "corrected PCIe error; only a count"),
    _row("host.kernel.pcie_link_down", "pciehp: slot|surprise link down|sdes", r"pciehp: Slot\(.{1,20}\): Link Down|Surprise Link Down|\bSDES\b(?![-+]| 0\b)", _F.PCIE, 0.85, "a PCIe link went down"),
    _row("host.kernel.pcie_bandwidth", "available pcie bandwidth", _DEVICE + r"available PCIe bandwidth, limited by", _F.PCIE, 0.84, "a device trained below its PCIe rate"),
    # Network adapters
    _row("host.kernel.nic_dead", "health compromised|unrecoverable hardware error|mlx5_", r"device's health compromised|unrecoverable hardware error|mlx5_.{0,80}(?:fw_ver|assert).{0,60}0xffffffff", _F.NETWORK_IB, 0.86, "a network adapter died"),
    _row("host.kernel.nic_command_timeout", "will cause a leak", r"mlx5_.{0,80}timeout\. Will cause a leak", _F.NETWORK_IB, 0.86, "a network adapter does not answer its driver"),
    _row("host.kernel.nic_queue_stuck", "netdev watchdog", r"NETDEV WATCHDOG: .{1,80}transmit queue \d+ timed out", _F.NETWORK_ETH, 0.84, "a network adapter's send queue is stuck"),
    _row("host.kernel.nic_hot", "port module event", r"Port module event\[error\].{0,80}High Temperature", _F.NETWORK_LINK, 0.84, "a transceiver is too hot"),
    _row("host.kernel.nic_unplugged", "cable unplugged", r"Port module event.{0,80}cable unplugged", _F.NETWORK_LINK, 0.62, "a network cable is unplugged"),
    _row("host.kernel.nic_power", "insufficient power on the pcie slot", r"Detected insufficient power on the PCIe slot", None, 0.0, "insufficient slot power reported; sources disagree whether it matters"),
    _row("host.kernel.nic_link_down", "link is down|link becomes down|link down", r"(?:NIC )?Link is Down|link becomes down|Port: \d+ Link DOWN", _F.NETWORK_LINK, 0.82, "a network link went down"),
    # Storage
    _row("host.kernel.read_only", "remounting filesystem|xfs", r"Remounting filesystem read-only|XFS .{1,60}(?:shutting down|Corruption)", _F.STORAGE_CHECKPOINT, 0.88, "a file system gave up and is read-only or shut down"),
    _row("host.kernel.disk_dead", "disabling device after reset", r"(?:(?P<disk>nvme\d{1,3}(?:n\d{1,3})?).{0,80})?Disabling device after reset failure", _F.STORAGE_CHECKPOINT, 0.88, "a disk was taken out after a failed reset"),
    _row("host.kernel.disk_error", "i/o error|critical medium|nvme|ext4-fs error", r"Buffer I/O error|blk_update_request: I/O error|critical medium error|nvme .{1,60}timeout, (?:reset controller|aborting)|EXT4-fs error", _F.STORAGE_CHECKPOINT, 0.84, "disk errors"),
    _row("host.kernel.nfs_hangs", "not responding", r"nfs: server .{1,255} not responding", _F.STORAGE_CHECKPOINT, 0.84, "a file server does not answer"),
    _row("host.kernel.no_space", "no space left", r"^(?!.*(?:shared memory|/dev/shm|shm_open|/torch_\d)).*No space left on device", _F.DISK_FULL, 0.75, "a file system is full"),
)

DRIVER: tuple[Signature, ...] = (
    _row("gpu.driver.init_failed", "rminitadapter failed", r"RmInitAdapter failed", _F.DRIVER_FIRMWARE, 0.86, "the card is there but the driver cannot start it", _NVRM),
    _row("gpu.driver.mismatch", "nvrm: api mismatch", r"NVRM: API mismatch", _F.ENVIRONMENT_MISMATCH, 0.93, "driver and library versions differ; reboot or reload, no hardware fault", _NVRM, Origin.INFRA),
    _row("gpu.inforom.corrupted", "inforom is corrupted", r"infoROM is corrupted", _F.DRIVER_FIRMWARE, 0.84, "the infoROM is corrupted; aggregate ECC counts cannot be trusted", _NVRM),
    _row("gpu.driver.segfault", "in libnccl|in libcuda", r"segfault at .{1,120} in lib(?:nccl|cuda)", _F.DRIVER_FIRMWARE, 0.5, "a crash inside the NCCL or CUDA library", _NVRM),
)
# fmt: on

SIGNATURES: tuple[Signature, ...] = (*HOST, *DRIVER)
