"""Lines that look alarming and are not: they silence every other family on their line.

A cluster prints these all day; a classifier without this table cries wolf (Imbue keeps a list of
several hundred harmless kernel lines for the same reason).
"""

# ruff: noqa: E501 - a pattern is read whole

from brctl.evidence.logs.signature import Part, Signature, aside

_BOOT = "boot noise of healthy nodes"
_TORCH = "PyTorch and TensorFlow start-up warnings"
_RETRY = "clients that retry by themselves"

_REFUSED = r"(?!.*(?:\b(?:not|never|cannot)\b|n['\u2019]t\b|\bunless\b|\b(?:at|on|during) (?:exit|shutdown)\b)[^,.;]{0,20}\b(?:ignored?|harmless)\b)"
"""The opposite, or a condition that this line may not meet."""

_KERNEL = r"^(?:<\d+>)?(?:.{0,70}?\bkernel(?:\[\d+\])?: ?(?:\[ *[\d.]+\] ?)?|\[ *[\d.]+\] ?)(?:\[ *[TC]\d+\] ?)?"
"""Where a kernel's line names who speaks: behind the kernel's own name or its seconds since boot, and nowhere else."""

_SUBSYSTEM = r"(?:usb|hub|xhci_hcd|input|hid(?:-\w+)?|i2c(?:[-_]\w+)?|snd(?:_\w+)?|sof-\S*|bluetooth|btusb|iwlwifi|ath1\dk(?:_\w+)?|wl(?:an\d+|[opsx]\w*\d\w*)|cfg80211|mac80211|mei(?:_\w+)?|(?:intel_)?ish\w*|tpm(?:\d+|_\w+)?|ima|integrity|evm|serio|atkbd|psmouse|pcspkr|thunderbolt|ucsi(?:_\w+)?|typec|wmi(?:_\w+)?|(?:hp|dell|thinkpad|asus|legion)_\w+|ast|mgag200|sr|sr0|floppy|parport\d*|rtc\d*|rtc_cmos|tsc|hpet\d*|acpi(?:[-_]\w+)*|pnp)"
"""Also believed without the kernel's name where the address of a device follows: `usb 1-14-port2: `."""

_DAEMON = r"^(?:<\d+>)?(?:\S{3} +\d+ [\d:]{8} \S+ |(?=[\w()-]+\[\d+\]: ))"
"""Where a daemon's line names it: behind syslog's time and host, or before a process id."""

BYSTANDER = "harmless.bystander"
"""What is known of a device that no job uses says nothing of a cause that its line names."""

SAYS_SO = aside(
    Part.BENIGN, "harmless.says-so",
    ("not a failure", "not an error", "not a problem", "ignore", "harmless"),
    "a program's own word that what it prints is nothing to act on",
    rf"^{_REFUSED}.*(?:\b(?:this|which|it|that) is not (?:a failure|an error|a problem)\b|\b(?:can|may) (?:be )?(?:safely )?(?:be )?ignored?\b|\bsafe(?:ly)? (?:to )?(?:be )?ignored?\b|\bharmless\b)",
)  # fmt: skip
"""Believed where nothing else is known of the line: a cause that a row names stays one."""

QUOTED_OPTIONS = "harmless.torch"
"""Names of options: an exception quotes them as advice, and ends the program all the same."""

SIGNATURES: tuple[Signature, ...] = (
    aside(Part.BENIGN, "harmless.boot",
          ("module verification failed", "tainting kernel", "acpi bios error", "acpi error",
           "firmware bug", "couldn't get size", "edac mc: ver", "edac mc0: giving out", "mce: cpu supports",
           "machine check monitoring", "mce: cmci", "unable to read current time", "lowering kernel.perf_event",
           "aer: enabled", "error containment capabilities", "aer enabled", "pcie aer", "_osc", "hest:", "ghes: apei", "mounting with", "unmounting filesystem",
           "mounted filesystem", "starting recovery", "ending clean mount", "re-mounted",
           "registered pci", "mcelog: mcelog", "registered thermal", "mce: using"), _BOOT),
    aside(Part.BENIGN, "harmless.boot-words",
          ("failed to assign", "rasdaemon", "ras:", "thermal zone", "thermal_sys", "failed to load cni during init", "may not have completed yet"),
          _BOOT + "; what the same programs report later is none",
          r"(?:\bBAR \d+|\bwindow\b.{0,80}): failed to assign|\brasdaemon\b(?!.*(?:uncorrect|fatal|panic|offline-failed))|"
          r"thermal_sys: Registered|[Tt]hermal [Zz]one \[|failed to load cni during init|container runtime status check may not have completed yet"),
    aside(Part.BENIGN, "harmless.allocator", "the caller indicates that this is not a failure",
          "TensorFlow's allocator: memory asked for to see whether there is more"),
    aside(Part.BENIGN, "harmless.boot-links", ("link down", "cable unplugged", "link is not ready", "carrier"),
          "links come up in the first minutes after boot; empty SATA ports never do",
          r"SATA link down|^\W*\[\s*\d{1,2}\.\d+\].*(?:[Ll]ink (?:is )?(?:down|not ready)|Cable unplugged|carrier)"),
    aside(Part.BENIGN, "harmless.node-noise",
          ("[ufw block]", "audit", "entered", "took too long", "hogged cpu", "no observation found", "corrected error, no action required. errors", "uncleanly shut down", "acpi", "apparmor", "callbacks suppressed", "correctable errors collector", "erst:", "thermal monitoring", "nmi watchdog: enabled", "avahi", "bluetooth", "snd_hda", "usb ", "i915", "nouveau", "dhclient", "snapd", "promiscuous mode", "firmware load"),
          "lines of healthy nodes that many clusters filter out",
          r"^(?!.*Kernel panic)(?:.*(?:\[UFW BLOCK\]|\baudit(?:\[\d+\]|d)?: |entered (?:disabled|forwarding|blocking|promiscuous|allmulti\w*) |left (?:promiscuous|allmulti\w*) mode|perf: interrupt took too long|handler .{0,40}took too long|hogged CPU for|no observation found for eviction signal|Corrected error, no action required\. errors|/user-\d+[\w@-]*\.journal corrupted or uncleanly shut down, renaming|\bACPI (?:Error|BIOS|Warning|Exception)|AppArmor|callbacks suppressed|Correctable Errors collector|\bERST: |Thermal monitoring (?:enabled|handled)|NMI watchdog: Enabled|(?:bluetooth|snd_hda\w*|usb \d|i915\b(?!/|.{0,160}(?:\bGT\d|\b[GH][uU]C\b|\bwedged|\b(?:hang|HANG)|\breset|non-operational))|nouveau(?!.{0,160}(?:HANG|wedged|reset))|dhclient|avahi\S*|snapd)\b.{0,120}(?:error|fail|timed? ?out|unable)|Direct firmware load for .{0,80}failed with error -2))"),
    aside(Part.BENIGN, "harmless.edac", "edac ", "EDAC drivers that name their controllers",
          r"EDAC (?:skx|i10nm|amd64|sbridge|igen6|ie31200|MC\d*)\b:? (?!.*(?:\b[1-9]\d* (?:CE|UE)\b|\bUE\b|\bCE (?:row|page|on)|[Uu]ncorrect|HANDLING))"),
    aside(Part.BENIGN, "harmless.platform",
          ("i8042", "reading sysfs", "state file", "state save file", "eisa", "ipmi_", "sev: ", "x.509", "regulatory", "tpm", "mei_me", "power_meter", "udevd", "crtc", "lockup detector", "apst", "cache data failed"), "platform drivers of servers",
          r"\bi8042: |Error reading sysfs attr|Could not open \w+ state file .{0,80}No such file|Trying backup state save file|platform eisa|\bipmi_(?:si|ssif|devintf)\b|\bSEV: failed|X\.509 certificate|regulatory\.db|tpm_?\w*[: ].{0,60}(?:error|fail)|\bmei_me\b|power_meter ACPI|systemd-udevd\[\d+\]: .{0,80}(?:could not|[Ff]ailed to)|Cannot find any crtc|Delayed init of the lockup detector|Asking for cache data failed|[Ff]ailed to set APST"),
    aside(Part.BENIGN, BYSTANDER,
          ("usb", "hub ", "xhci", "input:", "hid", "i2c", "snd", "sof-", "bluetooth", "iwlwifi", "ath1", "wlan", "wlp", "cfg80211", "mac80211", "btusb", "mei", "ish", "tpm", "ima:", "integrity:", "evm:", "serio", "atkbd", "psmouse", "pcspkr", "thunderbolt", "ucsi", "typec", "wmi", "hp_", "dell_", "drm]", "fb0", "vga", "ast ", "mgag200", "sr 0", "sr0", "floppy", "fd0", "parport", "rtc", "tsc:", "hpet", "acpi", "pnp", "thermal_zone", "fuengine", "tcti", "sd-udev", "udev", "ntpd", "chronyd", "dbus", "cups", "avahi", "colord", "pulse", "gnome", "ptm_stat"),
          "kernel subsystems and desktop services that no training job uses: consoles, radios, sound, USB, firmware tables",
          _KERNEL + _SUBSYSTEM + r"(?: [\w.:/-]{1,24})?: |^" + _SUBSYSTEM + r" [\da-f]+[-:][\w:.-]{1,20}: |" +
          _DAEMON + r"(?:(?:systemd-)?udevd|\(udev-worker\)|ntpd|chronyd|dbus(?:-\w+)*|cupsd?|avahi-\w+|colord|pulseaudio|gnome-[\w-]+)(?:\[\d+\])?: |"
          r"\[drm\] \*ERROR\* (?:CPU pipe|AUX|Atomic update|TC cold|crtc|GT\d: GSC|This is a pre-production)|thermal_zone\d+: failed to read out|ERROR:(?:tcti|esys):|\bFuEngine\b|PTM_STAT register"),
    aside(Part.BENIGN, "harmless.no-medium", ("dev sr", "dev fd"), "drives without a disk in them", r"I/O error, dev (?:fd|sr)\d"),
    aside(Part.BENIGN, "harmless.nvme",
          ("clamping down", "new ctrl", "removing ctrl", "host memory buffer", "bogus namespace", "subnqn", "invalid field", "invalid_field", "invalid_opcode", "invalid command opcode", "error log entries", "d3 entry latency", "unchecked data"),
          "NVMe: commands that a drive does not have, and a fabric's controllers that come and go by request",
          r"nvme\d*: .{0,60}(?:clamping down|new ctrl:|Removing ctrl:|host memory buffer|bogus Namespace|SUBNQN|D3 entry latency|unchecked data)|Invalid Field in Command|INVALID_(?:FIELD|OPCODE)\(|Invalid Command Opcode|^\s*Error Log Entries for"),
    aside(Part.BENIGN, "harmless.resync", ("not clean -- starting", "resync of raid", "recovery of raid", "data-check of raid", "newarray", "rebuildstarted", "reset successful", "no pending cmds"),
          "md and RAID controllers: an array that is whole and copies itself after an unclean stop, and a reset that succeeded",
          r"not clean -- starting background reconstruction|md: (?:resync|data-check) of RAID|(?:NewArray|RebuildStarted) event|megasas: reset successful|no pending cmds after reset"),
    aside(Part.BENIGN, "harmless.refused-command", ("aq_rc_", "addrconf(", "ib_srpt", "access_reg(", "context canceled", "hwrm req_type", "not on same switch", "ts query for tx timer", "tc_add_flow", "reload driver to complete"),
          "firmware and daemons that refuse a request it does not have (HWRM codes 2, 3, 5 to 7, 9, 0xc to 0xe, 0x10 and 0xffff), and off-loads that stay in software",
          r"^(?!.*(?:unrecoverable|fatal|timed? ?out|reset failed|\b(?:probe|(?:re-?)?init)))(?:.*hwrm req_type \S+ .{0,30}error 0x(?:[235679cde]|10|ffff)\b|.*(?:AQ_RC_(?:ENOSPC|EINVAL|EPERM|ENOENT|EEXIST|ENOSYS)|error=\"context canceled\"|ADDRCONF\(NETDEV_\w+\)|ib_srpt MAD registration failed|ACCESS_REG\(.{0,60}status bad operation|not on same switch|TS query for TX timer failed|_tc_(?:add|del)_flow|Reload driver to complete reset))"),
    aside(Part.BENIGN, "harmless.service",
          ("systemd[", "timesyncd", "mcelog", "nvidia-persistenced", "syn flooding", "degraded feature set"), "services of a node at their work",
          r"systemd\[\d+\]: (?:Starting|Started|Finished|Stopp(?:ed|ing)|Condition check|Reached target) |systemd-timesyncd\[\d+\]: Timed out|mcelog(?:\[\d+\])?: (?:Cannot open|failed to prefill|Family \d+|.{0,40}only decoding)|Possible SYN flooding|Using degraded feature set|nvidia-persistenced.{0,60}(?:Started|connection opened|persistence mode (?:enabled|disabled)|registered|Failed to lock PID|Received signal 15)"),
    aside(Part.BENIGN, "harmless.counts",
          ("correctable", "critical warning", "critical_warning", "ecc errors", "packets", "error information log", "....0", "errs: wr 0"), "headings, and counters of corrected errors",
          r"^\s*(?:(?:SRAM|DRAM) )?Correctable(?: Error)?s?\s*:\s*\d+\s*$|^\s*E[Cc][Cc] Errors?\s*$|^\s*[RT]X:? .{0,20}packets\s+errors|[Cc]ritical[_ ][Ww]arning\s*:\s*0x0+\s*$|Error Information Log Entries|^\w+:\.{4,}0\s*$|errs: wr 0, rd 0, flush 0, corrupt 0, gen 0|(?<!un)correctable hardware errors detected"),
    aside(Part.BENIGN, "harmless.driver-load",
          ("using msi", "loading nvidia", "probing device", "nvidia-modeset: loading", "nvidia-nvlink: nvlink core",
           "nvlink core is being initialized", "persistence mode is", "nvidia-nvlink: unregistered", "nvidia-uvm: loaded", "nvidia-uvm: unloaded",
           "nv_get_p2p_free_callback", "detected insufficient power on the pcie slot", "vgaarb"), _BOOT),
    aside(Part.BENIGN, "harmless.nccl-info",
          ("nccl info net/plugin", "nccl info net/ib", "nccl info using", "nccl info channel", "nccl info could not enable p2p",
           "nccl info p2p", "nccl info failed to open libibverbs", "nccl info bootstrap", "nccl info dma-buf", "nccl info nvls",
           "nccl info connected", "nccl info comm", "nccl info nccl_", "nccl info ring", "nccl info trees", "nccl info cudadriver",
           "nccl info cuda driver", "nccl info rocm", "nccl info tuner", "nccl info plugin", "nccl info setting affinity", "nccl info new proxy",
           "nccl info [service thread]", "nccl info proxyservice", "nccl info allreduce:", "nccl info initialized net", "nccl info load",
           "nccl info enabled nccl", "nccl info ras", "nccl info gpu direct", "nccl info === system"),
          "NCCL INFO start-up lines",
          r"NCCL INFO (?!.*(?:-> [1-7]\b|Connection refused|exceeded|error|fail|Abort|closed|\bDEAD\b))(?!NET/IB ?: Using .*mlx5_bond)"),
    aside(Part.BENIGN, "harmless.tries-again",
          ("nccl info", "[w", "libfabric", "net/ofi", "mca_base_component"), "NCCL, c10d and libfabric, which say that they try again, look for a newer symbol or leave a component out",
          r"NCCL INFO .{0,200}\bretrying \(?\d+/\d+|NCCL INFO dlvsym failed|^\W*W\d{3,4} .{0,120}\[c10d\].{0,160}(?:\bretrying \(try=|errno: 9[79]\b|IPv[46] network addresses of .{0,120}cannot be retrieved)|"
          r"libfabric:.{0,100}<info> Failed to initialize hmem|NET/OFI .{0,80}\(ignored\)|mca_base_component_repository_open: .{0,200}\(ignored\)"),
    aside(Part.BENIGN, "harmless.does-without",
          ("error caught was: no module", "jit-compiled from ptx", "not installed", "preempted", "no stragglers", "no mismatched", "nan found in latents"),
          "programs that say how they go on: kernels compiled at the start, another implementation, a request computed again, a check that found nobody",
          r"^Error caught was: No module named 'triton'|CUDA kernels will be jit-compiled from PTX|is not installed\. (?:Using \S.{0,40} implementation|\w+ falls back to)|preempted by PreemptionMode\.|[Pp]reempted \d+ requests? by recompute|\b[Nn]o stragglers (?:detected|found)|\bNo mismatched collectives|NaN found in latents, replacing"),
    aside(Part.BENIGN, "harmless.version-control", ("head detached at", "head is now at"), "git: what a commit is called", r"HEAD (?:detached|is now) at [0-9a-f]{6,}"),
    aside(Part.BENIGN, "harmless.expected-end", ("termination is expected", "expected_termination", "idle_termination"), "Ray: a node that its autoscaler gives back",
          r"Termination is expected|\b(?:EXPECTED|IDLE)_TERMINATION\b"),
    aside(Part.BENIGN, "harmless.no-plugin", ("nccl info",), "NCCL: plug-ins that are not there, symbols of other releases, a communicator that its program ended",
          r"NCCL INFO (?:\S+ )?(?:[\w/]*[Pp]lugin\b.{0,60}(?:[Cc]ould not find|[Ff]ailed to (?:find|open|load)|not found|No plugin))"),
    aside(Part.BENIGN, "harmless.no-verbs", "failed to open libibverbs", "NCCL on nodes without InfiniBand"),
    aside(Part.BENIGN, QUOTED_OPTIONS,
          ("find_unused_parameters", "destroy_process_group() was not called", "omp_num_threads", "torch_nccl_async_error_handling",
           "unable to register cu", "tf-trt warning", "cudnn factory", "cublas factory", "futurewarning", "userwarning",
           "deprecationwarning", "resourcewarning", "w socket.cpp", "nccl_async_error_handling is deprecated", "tf32", "could not find tensorrt",
           "process group has not been destroyed", "was deprecated", "is deprecated", "using a non-full backward hook",
           "guessing device id", "barrier() using the device", "could not load dynamic library 'libnvinfer"),
          _TORCH),
    aside(Part.BENIGN, "harmless.retry",
          ("entering retry loop", "retrying in", "will retry", "retry #", "wandb: network error", "reconnected", "server ok", " ok after",
           "falling back to", "mlflow", "tensorboard"), _RETRY,
          r"entering retry loop|[Rr]etry(?:ing)? in \d|will retry|wandb: Network error|nfs: server \S+ OK"),
    aside(Part.BENIGN, "harmless.zero-count",
          ("error", "xid", "nan", "skipped iterations", "failures", "uncorrectable", "violation"),
          "counters that say zero",
          r"number of (?:skipped|nan) iterations:\s+\d+\s*\|(?!.*(?:loss|norm): *-?(?:nan|inf))|\b(?:errors?|failures?|violations?|uncorrectable\w*)\s*[:=]\s*(?:0|none|N/A)\b\s*(?:$|[,|;])|\b0 (?:errors|failures|warnings)\b|"
          r"Out of bounds values : 0 OK|no errors? (?:found|detected|occurred)|Xid\s*:\s*None"),
    aside(Part.BENIGN, "harmless.options",
          ("[default=", "........", "--", "=true", "=false", "namespace(", "arguments:"), "option listings",
          r"^(?!.*(?:Counter|Errors?|Downed|Rcv\w*|Xmit\w*):\.).*\.{6,}\s*(?!(?:FAIL\w*|ERROR|DOWN|BAD|CRITICAL)\b)\S+\s*$|^\s*\"?[\w.\-]+\"?\s*[:=]\s*(?:True|False|None|null|true|false|\d+)\s*,?\s*$|[Nn]amespace\(|^\s*--\w"),
    aside(Part.BENIGN, "harmless.checkpoint-done",
          ("successfully saved checkpoint", "saved checkpoint", "checkpoint saved", "loaded checkpoint", "successfully loaded"),
          "checkpoint success lines", r"^(?!.*(?:SIG(?:TERM|INT|USR\d|HUP)|[Pp]reempt))"),
    SAYS_SO,
)  # fmt: skip
