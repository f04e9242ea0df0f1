"""Proofs of health: what programs print when something went well.

A block of start-up lines proves only that start-up worked, so it is weak here; a job's own success,
a passed test, or a service that does its work is strong. Sources: the programs' own texts.
"""

# ruff: noqa: E501 - a pattern is read whole

from brctl.evidence.logs.quiet_rows import UNWELL
from brctl.evidence.logs.signature import healthy

_JOB = "training frameworks and launchers"
_SCHEDULER = "Slurm and Kubernetes texts"
_TEST = "NCCL tests, DCGM, fabric and burn-in tools"
_SMI = "nvidia-smi"
_TOOLS = "system tools"
_NODE = "systemd, cron and daemons of a node in service"

_ENDED = (
    healthy("well.training-ended",
            ("complete", "finished", "succeeded", " done", " ended", "max_epochs", "max_steps", "train_runtime", "train metrics", "reached max", "reached the max", "was successful"), 0.9, _JOB,
            r"\b(?:training|train(?:ing)? (?:run|job|loop)|fine-?tuning|pre-?training|run|job|experiment|fit)\b(?!.{0,24}\b(?:prolog|epilog))(?!.{0,24}\bterminat).{0,24}\b(?:complet(?:e|ed)|finished|done|ended|succeeded|was successful)\b(?! with (?:error|fail))(?!.{0,20}(?:error|fail|exit code:? [1-9]))|"
            r"\b(?:[Ff]inished|[Cc]ompleted|[Dd]one) (?:the )?(?:training|fine-?tuning|pre-?training|all (?:epochs|steps|iterations))\b|"
            r"`?Trainer\.fit`? stopped: `?max_\w+|['\"]train_runtime['\"]\s*:|\*{3,} train metrics \*{3,}|reached (?:the )?max(?:imum)? (?:number of )?(?:epochs?|steps?|iterations?)"),
    healthy("well.total-time", ("total time", "total training time", "training time", "elapsed"), 0.72, _JOB,
            r"^(?!.*\b(?:epoch|step|iter(?:ation)?)\W{0,3}(\d+) ?/ ?(?!\1\b)\d).*(?:(?:^|[\]|:.] )\W{0,3}(?:[Aa]ll )?[Dd]one\b.{0,12}[Tt]otal (?:training |run )?time\b|[Tt]otal (?:training|run) time\s*[:=]? ?\d)"),
    healthy("well.synced", "process to finish", 0.66, "wandb at the end of a run; what it uploads, a failed one has too", r"wandb: .{0,40}process to finish\W+\(success\)"),
    healthy("well.run-success", ("success", "exited with code 0", "exit code 0", "zero exit code", "exit status 0", "returned 0", "exit_code: 0", "exitcode 0", "exit code: 0", "exit 0"), 0.9, _JOB,
            r"\"status\": ?\"success\"|exited successfully|successfully (?:finished|completed|exited)|(?:finished|(?<!Command )completed|exited|ended|terminated) (?:successfully|with(?: a zero)? exit (?:code|status):? 0\b|with code 0\b)|"
            r"zero exit code|(?<!\+ )\bexit(?:ed)? 0\s*$|\bexit(?:ed)?[ _](?:with )?(?:code|status)\s*[:=]?\s*0\b(?!:[1-9])|\b(?:job|run|task|command|pipeline|workflow)\b.{0,40}\bsucceeded\b"),
    healthy("well.saved-at-end", ("saved model", "model saved", "final checkpoint", "last checkpoint", "at last step"), 0.6, _JOB,
            r"(?:final|last) checkpoint (?:was )?(?:saved|written)|saved (?:the )?final (?:model|checkpoint)|at last step, step"),
    healthy("well.slurm", ("completed", "exitcode=0:0"), 0.88, _SCHEDULER,
            r"\bCOMPLETED\b(?:\s+|.{0,24}\b[Ee]xit_?[Cc]ode[ =:]+)0:0(?!\d)|State: COMPLETED \(exit code 0\)|JobState=COMPLETED\b.{0,80}|\bJob \d+ .{0,60}completed successfully"),
    healthy("well.kubernetes", ("succeeded", "completed", " running ", " ready "), 0.7, _SCHEDULER,
            r"^\S+\s+(?:\d+/\d+\s+)?(?:Completed|Succeeded)\s+0\s|reason: Completed\b|Normal\s+Completed\s.{0,60}Job completed|^\S+\s+Ready\s+(?:<none>|[\w,.-]+)\s+\d+[dhms]|^\S+\s+(\d+)/\1\s+Running\s+0\s"),
    healthy("well.kubernetes-events", ("  normal ",), 0.66, "kubectl get events",
            r"\sNormal\s+(?:Scheduled|Pulled|Created|Started|SuccessfulCreate|Completed|SuccessfulAttachVolume|SuccessfulMountVolume|NodeReady|NodeSchedulable)\s"),
    healthy("well.steps", ("sec/step", "s/step", "steps/s", "samples/s", "tokens/s", "images/sec", "img/s", "examples/sec", "global_step/sec", "tok/s", "it/s", "s/it"), 0.74, _JOB,
            r"\b(?:step|iter(?:ation)?|epoch|ep|batch|it)\w*\b.{0,160}\b(?:sec/step|s/step|steps/s(?:ec)?|samples/s(?:ec)?|tokens/s(?:ec)?|images/sec|img/s|examples/sec|tok/s)\b(?!.*\b(?:nan|inf)\b)|global_step/sec: [\d.]+|\b\d+/\d+ \[\d+:\d\d(?::\d\d)?<[\d:]+, +[\d.]+(?:it/s|s/it)|\b\d+% \S* ?\d+/\d+ [\d.]+(?:it/s|s/it) [\d.:]+"),
    healthy("well.eta-row", ("eta", "data_time", "batch_time"), 0.68, "Swin, MMEngine, detectron and torchvision progress rows",
            r"\[\d+/\d+\].{0,40}\beta:? [\d:, days]+.{0,200}\bloss:? \d[\d.]*(?!.{0,10}\bnan)"),
    healthy("well.final-metrics", ("accuracy", "f1", "auc", "bleu", "perplexity", "eval_loss", "val_loss"), 0.7, _JOB,
            r"^\W{0,20}(?:.{0,40}\b)?(?:test|final|eval(?:uation)?)(?:[ _-](?:set )?|\b(?:(?!\b(?:train|step|iter))[^\n]){0,50}\b)(?:accuracy|acc|loss|f1|auc|score|bleu|ppl|perplexity)\b\s*[:=]\s*(?!.{0,6}nan)[\d.]+"),
    healthy("well.progress-bar", ("100%|",), 0.6, "tqdm", r"100%\|[^|]{3,}\|\s*(\d+)/\1\b"),
    healthy("well.nccl-init", ("init complete",), 0.6, "NCCL start-up lines; a start proves only that it started", r"NCCL INFO comm .{0,120}Init COMPLETE",
            settles=("nccl.connect",)),
    healthy("well.saved", ("successfully saved checkpoint", "saved checkpoint", "saving checkpoints for", "checkpoint saved", "loaded checkpoint", "successfully loaded checkpoint", "finished saving the checkpoint"), 0.6, _JOB),
)  # fmt: skip

_TESTS = (
    healthy("well.nccl-tests", ("out of bounds values", "avg bus bandwidth"), 0.93, _TEST,
            r"# Out of bounds values : 0 OK|# Avg bus bandwidth\s*:\s*[\d.]+"),
    healthy("well.nccl-tests-row", ("float ", "  sum ", " bfloat16 ", " half "), 0.8, _TEST,
            r"^\s*\d+\s+\d+\s+(?:float|half|double|bfloat16|u?int\d+)\s+(?:(?:sum|prod|min|max|avg|none)\s+)?(?:-?\d+\s+)?[\d.]+\s+[\d.]+\s+[\d.]+\s+(?:0|0e\+00|N/A)\b"),
    healthy("well.dcgm-row", ("pass",), 0.78, _TEST + ": one test of several, which settles no other", r"\|\s*[\w /()-]{4,40}\|\s*Pass\s"),
    healthy("well.dcgm", ("healthy",), 0.85, _TEST,
            r"Overall [Hh]ealth\s*[:|]\s*Healthy|Overall Health:\s*Healthy"),
    healthy("well.burn", (": ok", "errors: 0"), 0.85, "gpu-burn", r"^\s*GPU \d+: OK\s*$|proc'd: \d+ .{0,60}errors: 0(?: +- 0)*\s+temps"),
    healthy("well.test-passed", ("passed", "test ok", "[ok]"), 0.82, _TEST,
            r"\b(?:all )?(?:tests?|checks?|diagnostics?|validations?|health ?checks?|self-?tests?|burn-?in)\b.{0,24}\bpass(?:ed)?\b(?!.{0,20}\bfail)|Result = PASS\b|overall-health self-assessment test result: PASSED|SMART Health Status: OK|\bTest PASSED\b"),
    healthy("well.ib-port", ("physical state: linkup", "phys_port_cnt", "port_active", "state active"), 0.75, "ibstat, ibv_devinfo and rdma",
            r"Physical state:\s*LinkUp|state:\s*PORT_ACTIVE|state ACTIVE physical_state LINK_UP"),
    healthy("well.ib-fabric", ("subnet up", "no topology change", "no configuration change required", "0 bad nodes", "no bad nodes"), 0.78, "opensm and ibdiagnet",
            r"\bSUBNET UP\b|No topology change|No configuration change required|nodes checked, 0 bad nodes"),
)  # fmt: skip

_DEVICES = (
    healthy("well.smi-table", ("mib /",), 0.8, _SMI,
            r"\|\s*\S+\s+\d+C\s+P\d+\s+\d+W\s*/\s*\d+W\s*\|\s*\d+MiB\s*/\s*\d+MiB\s*\|\s*\d+%\s+\w"),
    healthy("well.smi-ecc", ("uncorrectable", "double bit", "remapping failure occurred", "pending"), 0.7, _SMI,
            r"^\s*(?:(?:SRAM|DRAM) ?Uncorrectable(?: Parity| SEC-DED)?|Double Bit ECC(?: Errors?)?|Uncorrectable Error)\s*:\s*0\s*$|^\s*(?:Remapping Failure Occurred|Pending(?: Page Blacklist)?)\s*:\s*No\s*$"),
    healthy("well.rocm-smi", ("gpu[",), 0.66, "rocm-smi: a card that answers with its sensors and clocks",
            r"^GPU\[\d+\]\s*: (?:Temperature \(Sensor \w+\) \(C\): [1-8]?\d(?:\.\d+)?|[fms]clk clock level: \d+.{0,3}\(\d+Mhz\))\s*$"),
    healthy("well.smi-clocks", ("not active",), 0.7, _SMI,
            r"^\s*(?:HW (?:Thermal )?Slowdown|HW Power Brake(?: Slowdown)?|SW Thermal Slowdown)\s*:\s*Not Active"),
    healthy("well.nvlink-counters", ("replay errors:", "recovery errors:", "crc errors:", "gb/s"), 0.8, _SMI,
            r"Link \d+:\s*(?:Replay|Recovery|CRC)(?: FLIT| Data)? Errors?:\s*0\s*$|^\s*Link \d+: [\d.]+ GB/s\s*$"),
    healthy("well.disk-space", ("% /",), 0.62, "df(1)",
            r"^\S+\s+[\d.]+[KMGTP]i?\s+[\d.]+[KMGTP]?i?\s+[\d.]+[KMGTP]i?\s+[1-8]?\d%\s+/"),
    healthy("well.ping", ("packet loss",), 0.75, "ping(8)", r"\b0(?:\.0+)?% packet loss"),
    healthy("well.disk", (": clean,", "no known data errors", "[uu", "state: online"), 0.75, "fsck, zpool and md",
            r": clean, \d+/\d+ files|errors: No known data errors|blocks .{0,40}\[U{2,}\]"),
    healthy("well.sel-routine", ("chassis intru", "session audit", "log area", "timestamp clock", "presence detected", "fully redundant", "are redundant"), 0.64, "ipmitool", r"Physical Security|Session Audit|Log area (?:reset|cleared)|Timestamp Clock|Presence [Dd]etected(?!, ?(?:Failure|Predictive|AC))|Fully Redundant|(?<!not )\bare redundant\b"),
    healthy("well.sensor", ("| ok",), 0.66, "ipmitool sensor and sdr", r"^\s*[\w #./+-]{3,30}\|[^|]{1,30}\|(?:[^|]{1,20}\|)?\s*ok\b(?!.*" + UNWELL + ")"),
    healthy("well.link-width", ("current", "lnksta:"), 0.62, "nvidia-smi and lspci: the link is as wide as it can be", r"^\s*Current\s*:\s*16x\s*$|LnkSta:.{0,24}\(ok\), Width x\d+ \(ok\)"),
    healthy("well.counter", ("_phy: 0", "media_errors", "media and data integrity errors", "self-test completed without", "symbolerrorcounter:", "linkdownedcounter:", "errors_phy:"), 0.66, "ethtool, perfquery, nvme-cli and smartd: counters of hardware errors at zero",
            r"^\s*(?:rx_crc_errors_phy|rx_symbol_err_phy|rx_discards_phy|media_errors|Media and Data Integrity Errors|SymbolErrorCounter|LinkDownedCounter|LinkErrorRecoveryCounter)\s*:[\s.]*0\s*$|self-test completed without error"),
    healthy("well.storage-state", ("health_ok", "active+clean", "mmfsd ready", "is operational now", ": reinstated", "successful mount"), 0.72, "Ceph, Storage Scale, iSCSI and multipath",
            r"\bHEALTH_OK\b|\d+ active\+clean\s*$|mmfsd ready|is operational now|\b\d+:\d+: reinstated|successful mount"),
    healthy("well.sel-empty", ("sel has no entries", "no entries"), 0.7, "ipmitool", r"SEL has no entries"),
    healthy("well.link-speed", ("available pcie bandwidth",), 0.62, "Linux PCI core",
            r"Gb/s available PCIe bandwidth \([\d.]+ GT/s PCIe x\d+ link\)"),
)  # fmt: skip

_IN_SERVICE = (
    healthy("well.boot-ended", ("reached target", "startup finished", "login:", "started session", "new session"), 0.8, _NODE,
            r"Reached target (?:Multi-?User|Graphical|multi-user|graphical|Login)|Startup finished in|^\S+ login:"),
    healthy("well.in-service",
            ("session opened for user", "started session", "new session", "synchronized to", "selected source", "registered node", "accepted publickey", "node configuration differs", "health check passed", "status is now: nodeready", "successfully registered node", "registered device plugin", "dhcpack"), 0.66, _NODE,
            r"session opened for user|Started [Ss]ession|[Nn]ew session \S+ of user|synchronized to \S+|Selected source \S+|Accepted publickey for|status is now: NodeReady|[Ss]uccessfully registered node|Registered device plugin for|health check passed|DHCPACK"),
    healthy("well.device-ready", ("default/read/poll queues", "mounted filesystem", "ending clean mount", "smu is initialized", "fw now in ready", "successfully initialized", "all the available gpus and nvswitches", "host engine listener"), 0.62, "drivers and daemons of a device that came up",
            r"default/read/poll queues|EXT4-fs \(\S+\): mounted filesystem|XFS \(\S+\): Ending clean mount|SMU is initialized successfully|FW now in Ready state|DCGM successfully initialized|Successfully configured all the available GPUs|Host Engine Listener Started"),
    healthy("well.unit-started", ("] started ", "] finished ", "] reached target", "]: started ", "]: finished ", "returns successfully", "successfully configured", "resumed successfully", "initialized successfully", "initialised successfully", "became ready", "with 2 out of 2", "with 4 out of 4", "ready for requests"), 0.62, _NODE + ": a unit, a device or a container that came up",
            r"\[ *OK *\] (?:Started|Finished|Reached target) |systemd\[1\]: (?:Started|Finished) |returns successfully|[Ss]uccessfully configured all|(?:resumed|initiali[sz]ed) successfully|just became ready|active with (\d+) out of \1 (?:mirrors|devices)|ready for requests"),
    healthy("well.driver-loaded", ("loading nvidia unix", "nvlink core is being initialized", "[drm] initialized nvidia", "loaded the uvm driver", "initialized nvidia-drm"), 0.62, _SMI,
            r"NVRM: loading NVIDIA UNIX|\[drm\] Initialized (?:nvidia-drm|amdgpu) \d|Loaded the UVM driver"),
    healthy("well.boot-line", ("freeing unused", "write protecting the kernel", "as init process", "linux version", "loading compiled-in", "command line:", "registered taskstats", "clocksource: switched", "freeing smp", "brought up"), 0.66, "Linux boot texts",
            r"Freeing unused (?:kernel|decrypted)|Write protecting the kernel|Run /\S+ as init process|\bLinux version \d|Loading compiled-in X\.509|registered taskstats|Switched to clocksource|smp: Brought up"),
    healthy("well.container-left", ("entered disabled state", "entered forwarding state", "renamed from eth", "link up", "link is up", "becomes ready", "linkup", "link_up"), 0.62, "container networks and links that come up",
            r"port \d+\(veth\w+\) entered (?:disabled|forwarding) state|veth\w+: renamed from eth|[Ll]ink (?:is )?[Uu]p\b|link becomes ready|\bLinkUp\b"),
    healthy("well.ras-summary", ("no memory errors", "no mce errors", "no pcie aer errors", "no errors logged", "no error"), 0.75, "ras-mc-ctl and edac-util", r"^No (?:Memory|PCIe AER|MCE|Extlog|disk|devlink) errors|edac-util: No errors to report"),
)  # fmt: skip

_OVER = (
    healthy("over.nfs", ("server ",), 0.6, "Linux NFS client", r"nfs: server \S+ OK\b",
            settles=("host.kernel.nfs_hangs", "netfs.stall", "kernel.hung-in-filesystem", "kernel.hung-task", "host.kernel.hung_task")),
    healthy("over.lustre", ("connection restored to", "recovery over", "recovery complete"), 0.6, "Lustre client",
            r"Connection restored to (?:service )?\S+|Lustre: .{0,80}Recovery (?:over|complete)", settles=("netfs.stall", "lustre.lost", "lustre.error")),
    healthy("over.ata", "sata link", 0.5, "libata: a port without a disk, or a disk that came back", r"(?P<sensor>ata\d+): SATA link (?:down \(SStatus 0|up)", settles=("ata.no-link",)),
    healthy("over.ata-device", "configured for", 0.5, "libata: a disk that is set up again, which a dead one never is", r"(?P<sensor>ata\d+)(?:\.\d+)?: configured for (?:UDMA|PIO|MWDMA)", settles=("ata.error", "ata.reset", "ata.no-link")),
    healthy("over.ceph", "libceph:", 0.5, "Ceph kernel client", r"libceph: (?:mon|osd)\d+ .{0,40}session established|libceph: osd\d+ up\b", settles=("netfs.stall", "parallel-fs.error")),
    healthy("over.path", ("reinstating path", ": reinstated"), 0.5, "multipath: a path that is back",
            r"Reinstating path (?P<sensor>\d+:\d+)|\b(?P<sensor2>\d+:\d+): reinstated", settles=("multipath.path",)),
    healthy("over.no-path", "remaining active paths: ", 0.5, "multipathd", r"(?P<sensor>(?<![\w.-])[\w.-]{1,64}): remaining active paths: [1-9]", settles=("multipath.no-path",)),
    healthy("over.iscsi", ("operational after recovery", "is operational now"), 0.5, "iscsid: a session that is back",
            r"connection(?P<sensor>\d+:\d+)\b.{0,200}is operational (?:now|after recovery)", settles=("iscsi.connection",)),
    healthy("over.scsi-refusal", "add. sense: invalid", 0.5, "SCSI: a drive that lacks an optional command", r"\[(?P<sensor>sd\w+)\] .{0,20}Add\. Sense: Invalid (?:field in (?:cdb|parameter list)|command operation code)", settles=("scsi.command-failed",)),
    healthy("over.thermal", ("temperature/speed normal",), 0.6, "Linux thermal driver", r"temperature/speed normal",
            settles=("kernel.thermal", "host.kernel.cpu_throttled")),
    healthy("over.memory-failure", ("recovered",), 0.5, "Linux memory failure handling",
            r"Memory failure: .{0,80}(?:Recovered|Delayed)\b", settles=("kernel.mce", "mce.uncorrected-recovered")),
    healthy("over.nvme", ("paths", "path", "resetting controller", "successfully reconnected", "reconnected"), 0.5, "NVMe multipath and fabrics",
            r"nvme\d+: (?:[Ss]uccessfully reconnected|queue \d+ mapping)|Successfully reconnected \(\d+ attempts?\)", settles=("nvme.no-path", "block.error", "nvme.fabrics")),
    healthy("over.link", ("link up", "link is up"), 0.5, "Linux net drivers: the link of an interface is back", r"\b(?P<sensor>(?:en[opsx]|eth|ib|hsn)\w+): .{0,20}\b[Ll]ink (?:is )?[Uu]p\b", settles=("net.link-down",)),
    healthy("over.bond-slave", "link status definitely up", 0.5, "Linux bonding driver: a leg that is back", r"(?P<sensor>(?<![\w.-])[\w.-]{1,64}: \(slave [\w.-]+\)): link status definitely up|link status definitely up for interface (?P<sensor2>[\w.-]+)", settles=("net.link-down",)),
    healthy("over.bond", ("making interface", "now running without"), 0.45, "Linux bonding driver", r"making interface \S+ the new active one", settles=()),
    healthy("over.bond-partner", "active interface up", 0.45, "Linux bonding driver", r"bond\d+: active interface up!", settles=("net.bond-degraded",)),
    healthy("over.slurm-node", ("now responding", "returned to service"), 0.6, "slurmctld", r"[Nn]odes? \S+ (?:now responding|returned to service)",
            settles=("slurm.node-failure", "witness.node-silent")),
    healthy("over.kubelet", ("nodeready", "is now: nodeready"), 0.6, "Kubernetes events", r"status is now: NodeReady", settles=("slurm.node-failure", "k8s.node-not-ready", "k8s.node-listed-not-ready", "k8s.reason.node")),
    healthy("over.reconnected", ("reconnected", "connection re-established", "connection restored", "retry succeeded", "succeeded after", "recovered after"), 0.6, "clients that retry by themselves",
            r"\b(?:re-?connected|connection (?:re-?established|restored)|retry (?:\d+/\d+ )?(?:ok|succeeded)|succeeded (?:after|on) (?:\d+ )?(?:retr|attempt))",
            settles=("http.unreachable", "net.unreachable", "store.join-timeout", "store.connect-timeout", "nccl.connect", "barrier.timeout", "object-store.timeout", "unexplained")),
)  # fmt: skip

_RESULTS = (
    healthy("well.suite-passed", ("passed", "result = pass", "test is a success"), 0.85, "pytest, CTest, HPL, CUDA samples and accelerate",
            r"^=+ \d+ passed(?!.*(?:failed|error))|100% tests passed|Result = PASS\b|\.{3,} ?PASSED\s*$|Test is a success!"),
    healthy("well.fio", ("err= 0", "iops="), 0.72, "fio: a job without an error, and its rates",
            r"\(groupid=\d+, jobs=\d+\): err= 0:|^\s*(?:read|write|randread|randwrite) ?: (?:io=\S+ )?IOPS=[\d.]"),
    healthy("well.bandwidth-row", ("images/sec", "img/sec", ": bw="), 0.7, "TensorFlow and Horovod benchmarks, fio",
            r"^\W*(?:\[\d+,\d+\]<\w+>:)?[Tt]otal (?:images/sec|img/sec)\b|^\s*(?:READ|WRITE): bw=\d"),
    healthy("well.rows-of-other-trainers", ("samplespersec=", "train_step_timing", "val_loss:", "timing_s/step", "done in"), 0.72, "DeepSpeed, NeMo, Keras, veRL and home-made progress rows",
            r"RunningAvgSamplesPerSec=\d|train_step_timing in s: \d|\bval_loss: \d[\d.]*(?!.{0,40}nan)|timing_s/step:\d|[Ee]poch \d+/\d+ done in [\d.]+ ?s"),
)  # fmt: skip

_FOUND_NONE = (
    healthy("well.found-none", (" detected", " found", " observed", " reported", " logged", " encountered"), 0.62, "checks that say what they looked for and did not find",
            r"\b(?:[Nn]o|[Nn]one of the|(?<![\d.:#-])0) (?:(?:[\w-]+ ){1,3}(?:errors?|faults?|failures?|problems?|issues?)|(?:[\w-]+ ){0,3}(?:stragglers?|mismatch\w*|anomal\w+|leaks?|violations?|bad (?:blocks|sectors|nodes|links|rows)|miscompares|corruptions?))"
            r"(?: \w+){0,2} (?:(?:were |was |have been )?(?:detected|found|observed|reported|logged|encountered))\b"),
    healthy("well.optimized", ("optimization ", "optimisation ", "best val", "best dev", "best test", "best model", "best epoch"), 0.7, "training scripts at their end",
            r"\b[Oo]ptimi[sz]ation (?:is )?(?:complete|finished|done)\b|\b[Bb]est (?:validation|val|test|dev|model|epoch)\b.{0,60}[:=]? \d[\d.]*"),
)  # fmt: skip

_STAGES = (
    healthy("over.pod-stage", ("started container", "created container", "created with docker id", "started with docker id", "  started  ", "  created  "), 0.0, "Kubernetes: a container that was made or started shows that its pod has its sandbox and volumes, and tells of no other container",
            r"\b(?:Created|Started) (?:container\b|with docker id)|\sNormal\s+(?:Created|Started)\s",
            settles=("volume.mount", "k8s.sandbox")),
)  # fmt: skip

SIGNATURES = (*_FOUND_NONE, *_STAGES, *_RESULTS, *_ENDED, *_TESTS, *_DEVICES, *_IN_SERVICE, *_OVER)
