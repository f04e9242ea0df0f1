"""The node as its kernel tells it: panics, lock-ups, memory, machine checks, PCIe, heat, storage."""

# ruff: noqa: E501 - a pattern is read whole

from brctl.evidence.logs.signature import Part, Signature, aside, root
from brctl.model.fault import FaultClass, Origin

_LINUX = "Linux kernel texts, 3.x to 6.x"
_AER = "Linux PCIe AER driver"
_EDAC = "Linux EDAC and machine check texts"
_ERRNO = "errno texts"
_FS = r"(?:mmfs|gpfs|lustre|ldlm|ptlrpc|osc_|mdc_|llite|nfs4?_|rpc_wait|rpciod|fuse_|ceph_|beegfs|weka|zfs_|zio_|txg_wait|cxiWait|jbd2|xfs_|ext4_|wb_wait|io_schedule|submit_bio|blk_mq)"

_NOT_OF_MEMORY = r"^(?!.*(?i:\bibv_|\b(?:send|recv|create|register|reg) (?:CQ|QP|MR)\b|_mr_reg|create_qp|insert module|static TLS|/sys/fs/cgroup)).*"
"""What an adapter, the module loader and cgroups refuse with the same errno for lack of something else."""

_GPU_MODULE = r"(?:[/\[](?:nvidia(?:-\w+|_\w+)?|amdgpu|amdkfd)[/\]])"
"""A frame of a GPU driver: its folder among the sources, or the module behind a function."""

_KERNEL = (
    root(FaultClass.HOST_KERNEL, "kernel.panic",
         ("kernel panic", "kernel bug at", "unable to handle kernel", "unable to handle page fault",
          "general protection fault", "oops:", "null pointer dereference", "bad page state",
          "kernel paging request", "stack-protector", "double fault", "kernel oops", "bug: ", "fatal exception",
          "page fault in kernel", "slab-out-of-bounds", "use-after-free"), 0.9, _LINUX,
         r"Kernel panic(?!\s*=)|kernel BUG at|BUG: (?:unable|kernel|Bad|scheduling|workqueue|KASAN|sleeping|spinlock|stack|"
         r"TASK|non-zero|using)|[Uu]nable to handle (?:kernel|page fault)|(?:^|\W)general protection fault(?! ip:)|\bOops: |"
         r"NULL pointer dereference|kernel paging request|[Bb]ad page state|double fault|"
         r"use-after-free in|slab-out-of-bounds", physical=True),
    root(FaultClass.HOST_KERNEL, "kernel.lockup",
         ("soft lockup", "hard lockup", "rcu_sched", "rcu_preempt", "self-detected stall", "detected stalls",
          "rcu: info", "hung_task: blocked", "watchdog: bug", "nmi watchdog", "stuck for", "clocksource:"), 0.88,
         _LINUX,
         r"soft lockup|[Hh]ard LOCKUP|rcu_?\w* (?:self-)?detect\w+ (?:stall|expedited)|detected stalls on CPUs|"
         r"hung_task: blocked tasks|watchdog: BUG|CPU#?\d+ stuck for",
         physical=True),
    root(FaultClass.HOST_KERNEL, "kernel.warning",
         ("warning: cpu:", "warning: at ", "list_del corruption", "list_add corruption", "nobody cared", "disabling irq", "file-max limit",
          "page allocation failure", "call trace:", "scheduling while atomic", "no irq handler", "bad rip value",
          "stack segment", "invalid opcode:", "divide error:", "sysrq: trigger a crash"), 0.74, _LINUX,
         r"WARNING: (?:CPU: \d+ PID: \d+ )?at (?!\S*(?:sch_generic|dev_watchdog)|.{0,160}" + _GPU_MODULE + r")|list_(?:add|del) corruption|nobody cared|^\W{0,40}(?:\[ *[\d.]+\] )?Disabling IRQ #\d+|file-max limit \d+ reached|"
         r"page allocation failure|scheduling while atomic|No irq handler for vector|stack segment: |invalid opcode: |divide error: |Trigger a crash",
         physical=True),
    root(FaultClass.DRIVER_FIRMWARE, "kernel.warning-in-gpu-driver", "warning: ", 0.6,
         _LINUX + ": a GPU driver's own code; what it met stands in the driver's lines",
         r"WARNING: (?:CPU: \d+ PID: \d+ )?at .{0,160}" + _GPU_MODULE, part=Part.GENERIC),
    root(FaultClass.HOST_KERNEL, "kernel.hung-task", "blocked for more than", 0.75, _LINUX,
         r"task (?P<task>[\w\-/:.]+):(?P<pid>\d+) blocked for more than \d+ seconds",
         physical=True, sets="hung-task"),
    root(FaultClass.STORAGE_CHECKPOINT, "kernel.hung-in-filesystem",
         ("mmfs", "gpfs", "lustre", "ptlrpc", "ldlm", "nfs_", "nfs4_", "rpc_wait", "fuse_", "ceph_", "beegfs",
          "jbd2", "xfs", "ext4", "wb_wait", "weka", "cl_sync", "osc_", "ll_file", "[zfs]", "zfs_", "[btrfs]", "[nfs", "[fuse]", "[ceph]", "[nvme", "[dm_", "[cifs]", "zio_", "[md_mod]", "[raid", "io_schedule"), 0.9, _LINUX,
         r"\b\w*" + _FS + r"\w*\+0x[0-9a-f]+|\+0x[0-9a-f]+/0x[0-9a-f]+ \[(?:zfs|spl|nfsd?|nfsv\d|lustre|mmfs\w*|xfs|ext4|btrfs|fuse|ceph|beegfs|wekafs\w*|gfs2|ocfs2|cifs|9p|virtiofs|nvme\w*|dm_\w+|md_mod|raid\w+)\]", when=(("hung-task", "*"),), physical=True),
    aside(Part.CONTEXT, "kernel.hung-who", "blocked for more than", _LINUX,
          r"task (?P<value>kworker)/\S+ blocked for more|task (?!kworker/)\S", sets="hung-who"),
    root(FaultClass.HOST_KERNEL, "kernel.hung-in-network-driver",
         ("[mlx5_", "[mlx4_", "[ib_core]", "[rdma_", "[rpcrdma]", "[bnxt_", "[irdma]", "[ice]", "[i40e]", "[hfi1]", "[efa]"), 0.9,
         _LINUX + ": a worker of the kernel waits for a lock of the driver that it runs in",
         r"\+0x\w+/0x\w+ \[(?:mlx[45]_\w+|ib_core|rdma_\w+|rpcrdma|bnxt_\w+|irdma|ice|i40e|hfi1|efa)\]",
         when=(("hung-who", "kworker"),), physical=True, own=True),
    root(FaultClass.DRIVER_FIRMWARE, "kernel.hung-in-nvidia",
         ("os_acquire", "nv_", "rm_ioctl", "uvm_", "nvidia_ioctl", "[nvidia"), 0.9, _LINUX,
         r"\b(?:os_acquire_\w+|nvidia_\w+|nv_\w+|rm_ioctl|uvm_\w+|_nv\d+rm)\+0x|\+0x\w+/0x\w+ \[nvidia",
         when=(("hung-task", "*"),), physical=True, own=True),
    root(FaultClass.UNKNOWN, "kernel.segfault", ("segfault at", "traps:", "trap invalid opcode"), 0.5, _LINUX,
         r"(?P<task>[^\s\[]{1,32})\[(?P<pid>\d{1,8})\]:? segfault at|traps: (?P<task2>[^\s\[]{1,32})\[\d{1,8}\]|trap invalid opcode"),
    root(FaultClass.NODE_FAILURE, "node.rebooted",
         ("system is going down", "unexpected reboot", "node unexpectedly rebooted", "watchdog did not stop",
          "power-on reset", "power loss", "chassis power", "system reboot", "node rebooted",
          "unexpectedly rebooted", "powered off", "machine rebooted"), 0.75, "systemd, slurmctld and IPMI texts",
         r"unexpected(?:ly)? reboot|power[- ](?:loss|failure|supply fail)|chassis power (?:down|off)|"
         r"(?:node|machine) (?:was )?rebooted|system is going down|powered off unexpectedly"),
    root(FaultClass.CPU_OOM, "kernel.oom",
         ("out of memory: kill", "oom-kill", "oom_kill", "memory cgroup out of memory", "oom_reaper",
          "invoked oom-killer", "killed process", "out-of-memory", "out of memory (oom)", "oomkilled",
          "memory limit", "killed due to memory pressure", "oom killer", "oom-killed", "oom killed", "low on resource: memory",
          "cgroup out-of-memory", "outofmemory", "out_of_memory", ": out of memory"), 0.93, _LINUX,
         r"^(?!.*(?:potential root causes|possible causes)).*?(?:Out of memory: Kill(?:ed)? process (?P<pid>\d+) \((?P<task>[^)]*)\)|oom-kill(?::|er(?! (?:enabled|disabled)\b))|"
         r"Memory cgroup out of memory|invoked oom-killer|Killed process (?P<pid2>\d+)|"
         r"[Dd]etected \d+ oom[_-]kill|OOMKilled|[Oo]ut[- ][Oo]f[- ][Mm]emory \(OOM\)|oom[- _]kill(?:ed|er(?! (?:enabled|disabled)\b))|"
         r"killed due to memory pressure|low on resource: memory|srun: error: (?P<host>\S+): tasks? \S+: Out Of Memory|(?<!CUDA_ERROR_)(?<!HIP_ERROR_)(?-i:OUT_OF_MEMORY)|cgroup out-of-memory|"
         r"(?:exceeded|over) (?:the )?(?:job |step |pod |container )?memory limit|oom_reaper: reaped)"),
    root(FaultClass.CPU_OOM, "oom.userspace", ("systemd-oomd", "earlyoom", "sigterm limits", "sigkill limits", "oomcontroller", "nohang"), 0.9,
         "systemd-oomd, earlyoom, nohang and Talos",
         r"systemd-oomd\S* Killed \S+ due to memory (?:pressure|used)|low memory! at or below SIG(?:TERM|KILL) limits|earlyoom.{0,20}sending SIG(?:TERM|KILL) to process|OOMController.{0,80}(?:cgroup|kill)|Sending SIGKILL to cgroup.{0,120}OOMController|nohang.{0,40}Sending SIG(?:TERM|KILL)"),
    root(FaultClass.CPU_OOM, "errno.enomem",
         ("memoryerror", "cannot allocate memory", "std::bad_alloc", "defaultcpuallocator",
          "can't allocate memory", "unable to allocate", "not enough memory", "[errno 12]"), 0.8, _ERRNO,
         r"^.{0,40}(?<!OutOf)MemoryError\b(?!.{0,40}(?:out_of_memory: CUDA|RMM))|" + _NOT_OF_MEMORY + r"[Cc]annot allocate memory|std::bad_alloc(?!.{0,20}(?:out_of_memory|CUDA|RMM))|DefaultCPUAllocator|"
         r"can't allocate memory|Unable to allocate [\d.]+ [KMGT]i?B|Errno 12\b"),
    aside(Part.CONTEXT, "kernel.mce-logged", "machine check events logged", _EDAC),
    root(FaultClass.NODE_FAILURE, "kernel.mce",
         ("machine check", "mce:", "edac", "hardware error", "uncorrected error", "uncorrectable error",
          "memory failure:", "ghes", "cper", "mcelog", "mca:"), 0.8, _EDAC,
         r"[Mm]achine [Cc]heck(?: [Ee]xception|: Processor context corrupt|.{0,30}(?:Uncorrected|fatal))|"
         r"mce: \[Hardware Error\]: (?!Machine check events logged|Corrected error|TSC |PROCESSOR |CPU \d+: Machine Check(?: Event)?: 0 Bank \d+: [89cd]|.{0,200}(?<!un)\bcorrected\b)|EDAC .{0,60}(?<!\b0 )\bUE\b(?!:? ?0\b)|EDAC.{0,40}[Uu]ncorrect|"
         r"(?:GHES|\{\d+\}\[Hardware Error\]).{0,80}(?:fatal|uncorrect|recoverable)|Memory failure: 0x(?!.*(?:Recovered|Delayed|without side effects))|"
         r"CPU \d+: Machine Check(?!(?: Event)?: 0 Bank \d+: [89cd])|[Uu]ncorrect(?:ed|able) (?:memory|DIMM|hardware) error(?! count: 0)",
         physical=True),
    root(FaultClass.NODE_FAILURE, "kernel.mce-fatal", ("machine check", "hardware error"), 0.94, _EDAC,
         r"[Mm]achine [Cc]heck.{0,40}(?:Processor context corrupt|fatal)|[Ff]atal machine check|event severity: fatal",
         physical=True),
    root(FaultClass.THERMAL_POWER, "kernel.thermal",
         ("temperature above threshold", "cpu clock throttled", "thermal throttl", "critical temperature", "thermal shutdown",
          "over-temperature", "overtemperature", "over temperature", "prochot", "package power limit", "core power limit"), 0.84, "Linux thermal driver",
         r"(?:(?P<device>CPU\d+): .{0,20})?temperature above threshold|cpu clock throttled|critical temperature reached|thermal shutdown|"
         r"\bover-?[Tt]emp(?:erature)?\b|PROCHOT|thermal throttl", physical=True),
)  # fmt: skip

_PCIE = (
    root(FaultClass.PCIE, "aer.fatal", ("aer", "pcie bus error"), 0.88, _AER,
         r"(?:(?P<device>[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.\d).*)?(?:severity=Uncorrect\w+(?! \(Non)|Uncorrected \(Fatal\)|"
         r"Multiple Uncorrect\w+(?! \(Non)|Uncorrectable (?!\(Non).{0,24}(?:error )?(?:message )?received)", physical=True),
    root(FaultClass.PCIE, "pcie.link",
         ("pcieport", "pciehp", "dpc:", "available pcie bandwidth", "link down", "card not present",
          "surprise down", "config space", "pci device was removed", "failed to retrain", "pcie link"), 0.85,
         "Linux PCI core and pciehp",
         r"(?:(?P<device>[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.\d).*)?(?:"
         r"pciehp.{0,60}(?:Link Down|Card not present|Slot.*removed)|DPC: (?:containment|unmasked uncorrect)|[Ss]urprise [Dd]own|"
         r"PCIe link (?:is )?(?:lost|down|training fail)|can't change power state from D3cold|[Ff]ailed to retrain)",
         physical=True),
)  # fmt: skip

_STORAGE = (
    root(FaultClass.STORAGE_CHECKPOINT, "block.error",
         ("i/o error", "nvme nvme", "beyond end of device", "no available path", "reset controller", "disabling device after reset",
          "remounting filesystem read-only", "remounting read-only", "disk failure", "blk_update_request",
          "ext4-fs error", "xfs (", "metadata corruption", "failing array", "md/raid", "medium error",
          "unrecovered read error", "controller is down", "critical medium", "journal has aborted",
          "filesystem has been shut", "smart error", "btrfs"), 0.84, _LINUX,
         r"(?:Buffer )?I/O error(?: on dev(?:ice)? (?P<disk>[\w\-]+)|, dev (?P<disk2>\w+))|"
         r"(?P<disk3>nvme\d+(?:n\d+)?).{0,80}(?:timeout(?!, completion polled| set to)|reset controller|[Dd]isabling|controller is down|removing after|not ready|failed)|"
         r"(?:block (?P<disk5>\w+): )?no available path|access beyond end of device|[Rr]emounting filesystem read-only|Disk failure on (?P<disk4>\w+)|failing array|"
         r"EXT4-fs (?:error|warning.*error|\([^)]*\): .*error)|XFS \([^)]*\): .*(?:[Ss]hutting down|[Cc]orruption|log I/O error|force_shutdown|metadata I/O)|"
         r"(?:critical )?(?<!non-)[Mm]edium [Ee]rror|[Uu]nrecovered read error|Aborting journal|journal has aborted|"
         r"BTRFS(?! info)(?: \w+)?(?: \([^)]*\))?:? (?!.*(?:errno=-28|No space left)).{0,40}(?:error|critical)|"
         r"md/raid\S*: .*fail|SMART.{0,40}(?:fail|FAILING)", physical=True),
    root(FaultClass.STORAGE_CHECKPOINT, "netfs.stall",
         ("not responding", "lustreerror", "lustre:", "gpfs", "mmfs", "beegfs", "nfs:", "nfs4", "ceph:",
          "libceph", "stale file handle", "stale nfs", "transport endpoint is not connected",
          "s3fs", "gcsfuse", "juicefs"), 0.84, "network file system clients",
         r"nfs4?:? .{0,40}(?:server (?P<peer>\S+) )?not responding|LustreError|Lustre: (?!.{0,160}(?:restored|[Rr]ecovery (?:over|complete)|until recovery ends)).{0,100}(?:lost|evicted|timed out|connection)|"
         r"(?:GPFS|mmfs)\S* .{0,100}(?:unmount|lost|stale|panic|expel|error)|Stale (?:NFS )?file handle|"
         r"^(?!.*(?:libfabric|\bOFI\b|\bfi_\w+|\bUCX\b|err: 107, message: )).*Transport endpoint is not connected|libceph.{0,80}(?:socket closed|session lost|down)|ceph: .{0,60}(?:error|hung|lost)|"
         r"(?:BeeGFS|beegfs).{0,80}(?:error|timeout|unreachable)|(?:gcsfuse|s3fs|juicefs).{0,80}(?:error|fail)"),
    root(FaultClass.STORAGE_CHECKPOINT, "errno.io",
         ("[errno 5]", "input/output error", "read-only file system", "[errno 30]", "[errno 116]",
          "remote i/o error", "[errno 121]", "[errno 107]"), 0.85, _ERRNO,
         r"^(?!.*(?:OFI poll failed|handle_cq_error|Read-only file system:? ['\"]?/(?:sys|proc)/)).*(?:Input/output error|Errno 5\b|Read-only file system|Errno 30\b|Errno 116\b|Remote I/O error|Errno 121\b|Errno 107\b)"),
    root(FaultClass.DISK_FULL, "errno.quota", ("disk quota exceeded", "[errno 122]", "edquot"), 0.88,
         _ERRNO, origin=Origin.USER),
    root(FaultClass.DISK_FULL, "errno.no-space-checkpoint",
         ("no space left on device", "enospc", "[errno 28]", "disk full", "storagefull"), 0.9, _ERRNO,
         r"^(?!.*(?:shared memory|/dev/shm|shm_open|/torch_\d)).*(?:checkpoint|ckpt|save|torch|serializ|shard|distcp|safetensors|writer).{0,160}(?:No space left on device|ENOSPC|Errno 28)|"
         r"(?:No space left on device|ENOSPC|Errno 28).{0,160}(?:checkpoint|ckpt|\.pt\b|\.pth|\.bin|shard|distcp|safetensors)", origin=Origin.USER),
    root(FaultClass.DISK_FULL, "errno.no-space",
         ("no space left on device", "enospc", "[errno 28]", "disk full", "disk is full",
          "diskpressure", "index full, reach max", "directory index full", "out of space", "iuse%", "filesystem full", "low on resource: ephemeral", "disk pressure", "% full", "no free space", "file system is full", "insufficient disk"), 0.75,
         _ERRNO,
         r"^(?!.*(?:shared memory|/dev/shm|shm_open|/torch_\d)).*(?:No space left on device|ENOSPC|Errno 28\b)|[Dd]isk (?:is )?full|(?<!No)DiskPressure(?!\s+(?:False|Unknown))|[Ff]ile ?system (?:is )?full|Directory (?:\(ino: \d+\) )?index full|\bout of space\b|IUse%.{0,20}\b100%|"
         r"no free space|(?<!no )\bdisk pressure\b|\b100 ?% full\b|low on resource: ephemeral-storage|[Ii]nsufficient disk", part=Part.GENERIC),
    root(FaultClass.DISK_FULL, "df.full", ("100%",), 0.6, "df(1)",
         r"^(?!/dev/(?:loop|sr)\d|\S*squashfs|\S*iso9660|efivarfs)\S+\s+[\d.]+[KMGTP]?\s+[\d.]+[KMGTP]?\s+(?:0|[\d.]+[KM]?)\s+100%\s+/(?!dev/|snap/|run/|media/|cdrom|sys/)"),
    root(FaultClass.STORAGE_CHECKPOINT, "checkpoint.broken",
         ("pytorchstreamwriter", "pytorchstreamreader", "inline_container", "unexpected pos",
          "failed finding central directory", "corrupt", "failed to save checkpoint",
          "failed to load checkpoint", "checkpoint save failed", "error saving checkpoint", "checkpoint write",
          "failed to write checkpoint", "invalid header or archive", "file in archive is not", "unpicklingerror",
          "unexpected eof", "eoferror", "headertoolarge", "metadataincompletebuffer", "incomplete metadata",
          "checkpoint is corrupt", "error while saving", "failed saving", "could not save", "unable to save", "checkpoint upload", "truncat", "incomplete",
          "failed to upload", "failed to flush", "checkpoint saving failed", "could not load", "unable to load"), 0.8, "torch serialization and checkpoint texts",
         r"PytorchStream(?:Writer|Reader) failed|[Ff]ailed finding central directory|"
         r"(?:checkpoint|ckpt|shard(?!\S*\.tar\b)|safetensors?).{0,80}(?:corrupt|truncat|incomplete)|"
         r"(?:corrupt|truncat)\w*.{0,60}(?:checkpoint|ckpt)|"
         r"(?:[Ff]ailed|[Ee]rror|[Uu]nable|[Cc]ould not) (?:to |while |when |during )?(?:sav|writ|load|read|upload|flush)\w* (?:the )?(?:async )?(?:model |optimizer |global )?(?:checkpoint|ckpt|shard|state)|"
         r"checkpoint (?:save|write|load|upload|saving)\w* (?:has )?(?:fail|error|timed? ?out|abort)|"
         r"invalid header or archive|[Ff]ile in archive is not|HeaderTooLarge|IncompleteBuffer|InvalidHeaderDeserialization"),
)  # fmt: skip

_FABRIC = (
    root(FaultClass.NETWORK_IB, "mlx5.dead",
         ("mlx5_core", "mlx5_ib", "mlx4_core", "bnxt_en", "irdma", "hfi1"), 0.86, "mlx5 driver texts",
         r"(?:mlx[45]_(?:core|ib)|hfi1|irdma)(?: (?P<device>[0-9a-f]{4}:[0-9a-f:.]+))?.{0,100}"
         r"(?:health compromised|unrecoverable|synd(?:rome)? 0x|timeout\. Will cause a leak|"
         r"device is in (?:error|internal)|(?<!non)(?<!non-)fatal|assert_var|poll_health|reset requested|handling bad device|enter(?:ing|ed)?[_ ]error[_ ]state|error_sw_reset|"
         r"CQE.{0,20}error|dump_cqe|failed to (?:recover|reset)|command failed)",
         physical=True),
    root(FaultClass.NETWORK_LINK, "link.down",
         ("link down", "link is down", "link went down", "link_downed", "link flap", "lost carrier", "carrier lost",
          "port down", "port state changed", "linkerrorrecovery", "symbol error", "symbolerror", "linkdowned",
          "phy_state", "physical link", "port error", "link_error_recovery", "link failure", "nic link",
          "flapping", "state: down", "state: initializing", "physical state:", "no-carrier", "port_rcv_errors", "portrcverrors"), 0.82,
         "Linux net core; perfquery; ibstat",
         r"(?:(?P<device>ib\d+|ibp\w+|mlx5_\d+|en[ops]\w+|eth\d+|bond\w*|hsn\d+|roce\w*|rdma\d+)\b.{0,60})?"
         r"(?:(?<!\bISL )(?<!\bICI )(?<!\bpeer )(?<!\bpeer-)(?<!inter-switch )Link (?:is |went )?[Dd]own|(?:lost|Lost) carrier|(?<!No new IB )link flap\w*|port (?:went |is )?down|Link DOWN)|"
         r"\b(?:link_downed|LinkDowned\w*|link_error_recovery|LinkErrorRecovery\w*|[Ss]ymbol_?[Ee]rror\w*|port_rcv_errors|PortRcvErrors)\b"
         r"[\s.:]*=?\s*[1-9]|Physical state:\s*(?:Polling|LinkErrorRecovery)|"
         r"port (?:state )?(?:changed|change).{0,40}(?:down|DOWN|INIT)", physical=True),
    root(FaultClass.NETWORK_LINK, "link.unplugged", "cable unplugged", 0.62, "mlx5 driver texts",
         r"(?P<device>mlx[45]_core [0-9a-f:.]+).*Cable unplugged", physical=True),
    root(FaultClass.NETWORK_IB, "ib.port-inactive", ("no ib port", "ib port", "infiniband", "port inactive", "ib link"), 0.75,
         "node health checks and ibstat",
         r"[Nn]o (?:IB|InfiniBand|Infiniband) (?:port|device).{0,60}(?:ACTIVE|active|found)|(?:IB|[Ii]nfini[Bb]and) port.{0,60}(?:inactive|missing|not active|down)",
         physical=True),
    root(FaultClass.NETWORK_ETH, "net.watchdog",
         ("netdev watchdog", "transmit queue", "tx timeout", "adapter reset", "tx hang"), 0.84, "Linux net core",
         r"NETDEV WATCHDOG(?:: (?P<device>\S+))?|transmit queue \d+ timed out|(?<!\bfake )tx hang|(?<!netdev )(?<!time to )tx timeout",
         physical=True),
    root(FaultClass.NETWORK_SWITCH, "switch.words",
         ("switch", "opensm", "subnet manager", "ufm "), 0.7, "switch and subnet manager texts",
         r"(?:leaf|spine|tor|ib|infiniband|ethernet|network) ?switch\b.{0,60}(?:down|fail|reboot|unreachable|error|crash|offline)|"
         r"switch \S+ (?:is |went )?(?:down|unreachable|offline|rebooted)|"
         r"(?:OpenSM|subnet manager|SM).{0,40}(?:lost|not running|unresponsive|no SM)|"
         r"(?:UFM|opensm)\b.{0,80}(?:\bswitch\b.{0,60}(?:down|fail|fault|unreachable|lost|reboot|isolated|critical)|isolated|unhealthy port)", physical=True),
)  # fmt: skip

SIGNATURES: tuple[Signature, ...] = (*_KERNEL, *_PCIE, *_STORAGE, *_FABRIC)
