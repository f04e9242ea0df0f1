"""PCIe, CPU and memory hardware as Linux reports it: corrected errors are rates, the others faults.

Source: drivers/pci/pcie/{aer,dpc}.c, drivers/pci/hotplug, drivers/edac, arch/x86/kernel/cpu/mce,
drivers/firmware/efi/cper.c, mm/memory-failure.c of Linux 4.x to 6.x; rasdaemon and mcelog texts.
"""

# ruff: noqa: E501 - a pattern is read whole

from brctl.evidence.logs.signature import Part, aside, healthy, root
from brctl.model.fault import FaultClass, Origin

_PCI = "Linux PCI core, AER and DPC drivers"
_RAS = "Linux EDAC, machine check and APEI texts"
_CPU = "Linux CPU and thermal texts"
_DEVICE = r"(?:(?P<device>[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.\d).{0,160}?)?"

_PCIE = (
    root(FaultClass.PCIE, "aer.corrected-storm", ("severity=correct", "aer: correct", "aer: multiple correct", "corrected error received", "corrected error message", "event severity: corrected"), 0.6, _PCI,
         _DEVICE + r"(?:AER: (?:Multiple )?Correct(?:ed|able) error|severity=Correct(?:ed|able))", physical=True, per_minute=10),
    root(FaultClass.PCIE, "aer.uncorrected", ("uncorrect",), 0.84, _PCI,
         _DEVICE + r"(?:(?:Multiple )?Uncorrect(?:ed|able) \(Non-Fatal\)|severity=Uncorrect(?:ed|able) \(Non-Fatal\))", physical=True),
    root(FaultClass.PCIE, "aer.status-bit", ("surprise down", "] dlp", "] sdes", "cmpltto", "completion timeout", "poisoned tlp", "malformed tlp", "malftlp", "rxof", "fcp ", "ecrc", "unxcmplt", "cmpltabrt"), 0.8, _PCI,
         r"\[ ?\d{1,2}\] (?:Surprise Down Error|SDES|DLP\b|Data Link Protocol|FCP|Flow Control Protocol|CmpltTO|Completion Timeout|CmpltAbrt|RxOF|Receiver Overflow|MalfTLP|Malformed TLP|PoisonTLPBlocked|Poisoned TLP|TLP\s|ECRC)\b.{0,30}|Surprise (?:Link )?Down", physical=True),
    root(FaultClass.PCIE, "pci.recovery-failed", ("device recovery failed", "recovery failed", "can't recover"), 0.6, _PCI,
         _DEVICE + r"(?:AER: )?(?:[Dd]evice recovery failed|subordinate device reset failed)", physical=True),
    root(FaultClass.GPU_LOST, "pci.not-ready", ("not ready", "giving up", "device inaccessible", "change power state"), 0.78, _PCI,
         r"(?:nvidia|amdgpu)[\w-]* (?P<gpu>[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.\d): (?:not ready \d+ms after|.{0,40}giving up|.{0,60}device inaccessible|(?:[Uu]nable to|can't|[Rr]efused to) change power state)", physical=True),
    root(FaultClass.PCIE, "pci.device-gone", ("not ready", "giving up", "device inaccessible", "disabling already-disabled", "unable to change power state", "can't change power state", "no longer responds", "device is disconnected", "broken device"), 0.74, _PCI,
         _DEVICE + r"(?:not ready \d{4,}ms after (?:FLR|bus reset|DPC|resume|D3)|not ready \d+ms after .{0,40}giving up|device inaccessible|[Uu]nable to change power state from \S+ to D0|can't change power state from (?:D3cold|unknown)|broken device, retraining non-functional)", physical=True),
    root(FaultClass.PCIE, "pciehp.link", ("pciehp", "card not present", "link down", "power fault", "link active not set", "retraining", "edr event", "failed to train"), 0.85, _PCI,
         r"pciehp.{0,60}(?:Link Down|Card not present|Power fault|No link|Timeout waiting for|Surprise removal|Cannot train link|Failed to check link status|link training error)|Slot\(\S+\): (?:Link Down|Card not present|Power fault)|Data Link Layer Link Active not set|(?:pcieport|pci) \S+: .{0,40}(?:retraining failed|failed to (?:re-?)?train)|EDR event received", physical=True),
    root(FaultClass.PCIE, "pcie.any", ("pcieport",), 0.56, _PCI + ": any port that failed",
         r"\bpcieport (?P<device>[0-9a-f:.]{7,12}): (?!.{0,60}(?:AER|\[ ?\d{1,2}\]|severity=|error status|Correct|BAR \d|bridge window|assign|PME|capabilities|enabled|SR-IOV|SHPC|[Ff]ailed to (?:add|expand)|[Ff]alling back)).{0,120}\b(?:failed|failure|timed ?out|timeout|unreachable|inaccessible|unable to|cannot)\b", part=Part.GENERIC),
    root(FaultClass.PCIE, "pci.bandwidth", ("available pcie bandwidth, limited by",), 0.84, _PCI,
         _DEVICE + r"[\d.]+ Gb/s available PCIe bandwidth, limited by", physical=True),
    root(FaultClass.PCIE, "pci.window", ("can't claim", "address conflict"), 0.66, _PCI,
         _DEVICE + r"(?:bridge window|BAR \d+) .{0,80}can't claim; (?:address conflict|no compatible bridge window)", physical=True),
    root(FaultClass.PCIE, "lspci.downgraded", ("downgraded", "lnksta"), 0.72, "lspci(8) and /sys/bus/pci",
         r"LnkSta:.{0,40}(?:Speed [\d.]+GT/s \(downgraded\)|Width x\d+ \(downgraded\))", physical=True),
    root(FaultClass.PCIE, "lspci.half-width", ("lnksta:",), 0.62, "lspci(8): a port of 8 GT/s or more that trained at 2.5",
         r"LnkSta:\s*Speed 2\.5GT/s,", when=(("pcie-cap", "*"),), physical=True),
    aside(Part.CONTEXT, "lspci.capability", ("lnkcap:",), "lspci(8)", r"LnkCap:.{0,40}Speed (?P<value>(?:8|16|32|64)(?:\.0)?GT/s)", sets="pcie-cap"),
    root(FaultClass.PCIE, "pci.iommu", ("dmar: drhd", "io_page_fault", "dmar: [dma"), 0.5, "Linux IOMMU drivers",
         r"DMAR: \[DMA (?:Read|Write).{0,80}fault reason|AMD-Vi: Event logged \[(?:IO_PAGE_FAULT|INVALID_DEVICE)", physical=True, per_minute=10),
)  # fmt: skip

_MEMORY = (
    aside(Part.CONTEXT, "aer.detail", ("error status/mask", "rxerr", "receiver error", "badtlp", "baddllp", "bad tlp", "bad dllp", "rollover", "replay timer", "] timeout", "advnonfatalerr", "correrr", "corrinterr", "headerof", "unsupreq", "(first)", "tlp header"), _PCI,
          r"device \[[0-9a-f]{4}:[0-9a-f]{4}\] error status/mask=|\[ ?\d{1,2}\]\s+(?:RxErr|Receiver Error|Bad ?TLP|Bad ?DLLP|Rollover|RELAY_NUM|Replay Timer|Timeout|AdvNonFatalErr|CorrIntErr|HeaderOF|UnsupReq|ACSViol)|TLP Header:"),
    aside(Part.CONTEXT, "mce.detail", ("[hardware error]:",), _RAS,
          r"\[Hardware Error\]:\s+(?:Error \d+, type: corrected|CPU:?\s?\d+ .{0,60}STATUS\[|Error Addr|IPID|PPIN|cache level|Syndrome|MC\d+ |TSC|PROCESSOR|RIP|Hardware error from APEI|It has been corrected|section|fru|error_type|error_status|physical|node|\w[\w ]*Ext\. Error Code|Machine check events|Corrected error|event severity: corrected|This system BIOS has enabled)"),
    root(FaultClass.NODE_FAILURE, "firmware.callout", ("callout", "deconfig", "prdf", "machine check and me", "checkstop", "gard"), 0.82, "IBM POWER, HPE and Cray firmware texts",
         r"Hardware Callout|HWAS\|Deconfig|Error reported by prdf|\b[Cc]heckstop\b|Machine check and ME", physical=True),
    root(FaultClass.NODE_FAILURE, "edac.corrected-storm", ("edac", "corrected error", "corrected_error", "memory read error", "correctable"), 0.68, _RAS,
         r"EDAC .{0,60}\b(?P<amount>[1-9]\d*) CE\b|EDAC .{0,40}CE (?:row|page)|mc_event: (?P<amount2>\d+) Corrected error", physical=True, per_minute=10),
    root(FaultClass.NODE_FAILURE, "mce.corrected-storm", ("corrected error, no action", "event severity: corrected", "corrected error", "machine check: 0", "machine check event: 0", "_status[-|ce|"), 0.6, _RAS,
         r"\[Hardware Error\]: (?:Corrected error, no action required|event severity: corrected)|Machine Check(?: Event)?: 0 Bank \d+: [89cd]|MC\d+_STATUS\[-\|CE\|", physical=True, per_minute=10),
    root(FaultClass.NODE_FAILURE, "mce.deferred", ("deferred", "poison", "software restartable", "action required", "action optional"), 0.86, _RAS,
         r"\[Hardware Error\]:.{0,60}(?:Deferred error|Uncorrected, (?:software (?:restartable|containable)|contained)|System Fatal error)|MC\d+_STATUS\[(?![^\]]*\|CE\|)[^\]]*(?:\|UE\||\|PCC\||Deferred)|MCE: Killing \S+ due to hardware memory corruption", physical=True),
    root(FaultClass.NODE_FAILURE, "edac.uncorrected", ("edac", "uncorrected", "uncorrectable", "rasdaemon", "mce_record", "mca:"), 0.93, _RAS,
         r"EDAC .{0,60}\b[1-9]\d* UE\b|EDAC .{0,60}\bUE (?:row|page|memory|on)|mc_event: \d+ (?:Uncorrected|Fatal) error|Uncorrected hardware memory error|\b[1-9]\d* Uncorrected Errors?\b|(?:rasdaemon|ras-mc-ctl|mcelog|mce_record)\b.{0,160}\b[Uu]ncorrect(?!\w* ?(?:errors?)?:? ?0\b)|\bMCA: .{0,80}uncorrected", physical=True),
    root(FaultClass.NODE_FAILURE, "memory.unrecovered", ("memory failure:", "memory error not recovered", "hwpoison"), 0.86, _RAS,
         r"Memory failure: .{0,60}(?:Ignored|Failed|unhandlable|still referenced)|Memory error not recovered|HWPoison|hardware memory corruption", physical=True),
    root(FaultClass.NODE_FAILURE, "apei.fatal", ("event severity:", "error severity", "fatal", "cper"), 0.9, _RAS,
         r"(?:event severity|[Ee]rror \d+, type): (?:fatal|recoverable)|GHES: Fatal hardware error|^(?!.*\bqib\d*:).*Fatal hardware error", physical=True),
    root(FaultClass.NODE_FAILURE, "apei.previous-boot", "error records from previous", 0.86, _RAS + ": what was recorded stands in the lines behind it",
         r"BERT: Error records from previous boot", physical=True),
    healthy("over.apei", "event severity: ", 0.6, _RAS + ": a record that tells of no failure", r"event severity: info\b", settles=("apei.previous-boot",)),
    aside(Part.CONTEXT, "apei.section", "section_type:", _RAS, r"section_type: (?P<value>\w+)", sets="cper-section"),
    root(FaultClass.PCIE, "apei.pcie", "aer_uncor_status", 0.96, _RAS + ": a section on a PCIe device tells whose the record is",
         r"aer_uncor_status: 0x0*[1-9a-f]", when=(("cper-section", "pcie"),), physical=True),
    root(FaultClass.NODE_FAILURE, "mce.machine-check", ("machine check", "mce", "cpu context corrupt"), 0.86, _RAS,
         r"[Mm]achine [Cc]heck (?:[Ee]xception|Exception: \d|: Processor)|Machine Check Exception: [\da-f]+ Bank|Machine Check(?: Event)?: \d+ Bank \d+: [abef]|[Pp]rocessor context corrupt|Some CPUs didn't answer in synchronization|Timeout: Not all CPUs entered broadcast exception handler", physical=True),
    root(FaultClass.UNKNOWN, "mce.overflow", ("over|",), 0.55, _RAS,
         r"MC\d+_STATUS\[Over\|CE\|", physical=True),
    root(FaultClass.NODE_FAILURE, "memory.test", ("memtest", "memory test", "bad dimm", "dimm "), 0.7, "memtest86, dmidecode, vendor tools",
         r"memtest.{0,40}(?:FAIL(?! - GPU)|errors? [1-9])|(?:DIMM|dimm)\S* .{0,40}(?:failed|disabled|uncorrect|mapped out|training fail)", physical=True),
)  # fmt: skip

_CPU_ROWS = (
    root(FaultClass.THERMAL_POWER, "thermal.critical", ("critical temperature", "overheat", "thermal shutdown", "emergency", "prochot"), 0.88, _CPU,
         r"critical temperature reached|[Tt]hermal (?:zone \S+ )?shutdown|temperature .{0,30}shutting down|[Ee]mergency (?:thermal )?(?:shutdown|poweroff)(?! (?:trip|temperature|threshold|limit))", physical=True),
    root(FaultClass.THERMAL_POWER, "thermal.package", ("cpu clock throttled", "temperature above threshold", "temperature is above threshold", "clock is throttled", "power limit notification", "powercap", "package power"), 0.8, _CPU,
         r"(?:Core|Package) temperature (?:is )?above threshold|cpu clock is? ?throttled|[Pp]ackage power limit notification", physical=True),
    root(FaultClass.THERMAL_POWER, "thermal.often", "total events", 0.845, _CPU + ": the count since boot; a hundred are no single spike",
         r"cpu clock (?:is )?throttled \(total events = [1-9]\d{2,}\)", physical=True),
    root(FaultClass.HOST_KERNEL, "kernel.oops", ("null pointer dereference", "unable to handle", "oops:", "general protection", "kernel bug at", "invalid opcode", "double fault", "bad rip", "stack-protector"), 0.92, "Linux kernel texts, 3.x to 6.x",
         r"BUG: (?:unable to handle|kernel NULL pointer)|NULL pointer dereference|Unable to handle kernel|\bOops(?::| - | \[#)|general protection fault(?:,|:) .{0,60}\[#\d+\]|kernel BUG at|invalid opcode: \d+ \[#|(?:double fault|stack guard page was hit): ", physical=True, own=True, follows=("nvrm.rminit",)),
    root(FaultClass.HOST_KERNEL, "kernel.panic-by-hand", ("sysrq", "crash_kexec", "trigger a crash"), 0.95, "sysrq and kdump tests",
         r"sysrq: (?:SysRq : )?Trigger(?:ing)? a crash|sysrq triggered crash|Manually triggered crash", physical=True, own=True, origin=Origin.USER),
    root(FaultClass.CPU_OOM, "kernel.panic-without-memory", "kernel panic", 0.93, "Linux kernel texts",
         r"Kernel panic - not syncing: (?:Out of memory|System is deadlocked on memory)", physical=True),
    root(FaultClass.NODE_FAILURE, "kernel.panic-by-hardware", ("kernel panic", "oops: machine check", "synchronous parity", "serror interrupt"), 0.93, "Linux kernel texts",
         r"Oops: [Mm]achine check|synchronous parity or ECC error|SError Interrupt on CPU|Kernel panic - not syncing: (?:An NMI occurred|Asynchronous SError|Fatal hardware error|Fatal (?:local )?[Mm]achine check|[Mm]achine check|NMI: (?:IOCK|Not continuing|PCI)|Uncorrected|Timeout: Not all CPUs)", physical=True),
    root(FaultClass.NODE_FAILURE, "kernel.nmi", ("nmi:", "nmi received", "uhhuh"), 0.62, "Linux NMI texts",
         r"NMI: (?:PCI system error|IOCK error|SERR)|Uhhuh\. NMI received for unknown reason", physical=True),
    root(FaultClass.NODE_FAILURE, "node.watchdog", ("hardware watchdog", "watchdog timeout", "itco_wdt"), 0.66, "Linux watchdog drivers and systemd",
         r"hardware watchdog timeout|iTCO_wdt: .{0,40}(?:timeout|unexpected)", physical=True),
    root(FaultClass.HOST_KERNEL, "kernel.stuck", ("waiting for", "freezing execution", "slub:", "bug kmalloc", "object already free", "redzone"), 0.74, "Linux kernel and systemd texts",
         r"unregister_netdevice: waiting for \S+ to become free|systemd\[1\]: Freezing execution|\bBUG kmalloc-|Object already free|Redzone overwritten", physical=True),
    root(FaultClass.HOST_KERNEL, "kernel.executes-data", ("nx-protected page", "attempted to kill init", "smep", "refcount_t", "internal error:"), 0.9, "Linux kernel texts", r"tried to execute NX-protected page|refcount_t: (?:underflow|overflow|saturated|addition on 0)|Internal error: .{0,60}\[#\d+\]|Attempted to kill init|unable to execute userspace code \(SMEP", physical=True, own=True),
    root(FaultClass.CPU_OOM, "kernel.oom-limit", ("no killable processes", "killed as a result of limit"), 0.92, "Linux memory management and cgroups", r"Out of memory and no killable processes|killed as a result of limit of", physical=True),
    root(FaultClass.CPU_OOM, "kernel.vmalloc", ("allocation failure", "vmalloc", "vmap"), 0.66, "Linux memory management", r"vmalloc\w*: .{0,20}allocation failure|vmalloc error: size \d+|vmap allocation for size \d+ failed", physical=True),
    root(FaultClass.NODE_FAILURE, "node.power-key", ("power key pressed", "powering off", "power button"), 0.72, "systemd-logind",
         r"[Pp]ower (?:key|button) (?:was )?pressed", origin=Origin.USER),
    root(FaultClass.HOST_KERNEL, "kernel.rcu-stall", ("rcu", "stall", "lockup"), 0.8, "Linux RCU and watchdog texts",
         r"rcu(?:_\w+)?:? .{0,30}(?:self-)?detected (?:expedited )?stalls?|rcu_\w+ kthread (?:starved|timer wakeup)|[Ss]oft lockup|[Hh]ard LOCKUP|[Ww]atchdog detected hard LOCKUP", physical=True),
    root(FaultClass.ENVIRONMENT_MISMATCH, "cpu.invalid-opcode", ("trap invalid opcode", "illegal instruction"), 0.72, "Linux trap texts: a binary built for another CPU",
         r"traps: (?P<task>[^\s\[]{1,32})\[(?P<pid>\d{1,8})\] trap invalid opcode|^.{0,60}Illegal instruction(?:\s+\(core dumped\))?"),
)  # fmt: skip

_HARMLESS = (
    aside(Part.BENIGN, "hardware.got-over", ("did not stop", "without side effects", "without phy reinit", "recovered error", "nonfatalerr", "non-medium error", "abort status: 0x0"), "Linux drivers and smartctl: what was put right at once, and a watchdog that goes on over a restart",
          r"watchdog\d*: watchdog did not stop|Memory failure: .{0,120}without side effects|\bLLR without phy reinit, corrected|Sense Key : Recovered Error(?!.*(?:I/O error|FAILED Result))|\[ ?13\] NonFatalErr|^\W*Non-medium error count|nvme\d+: Abort status: 0x0\b"),
)  # fmt: skip

SIGNATURES = (*_PCIE, *_MEMORY, *_CPU_ROWS, *_HARMLESS)
