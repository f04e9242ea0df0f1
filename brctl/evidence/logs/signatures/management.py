"""Schedulers, Kubernetes and clouds: what they record about nodes and jobs.

Source: slurmctld and slurmd, Kubernetes events and node conditions, NVIDIA GPU Operator, cloud
providers' maintenance texts, LBNL Node Health Check and Azure's checks for it.
"""

# ruff: noqa: E501 - a pattern is read whole

from brctl.evidence.logs.signature import Part, aside, root
from brctl.model.fault import FaultClass, Origin

_K8S = "Kubernetes events, conditions and device plug-ins"
_SLURM = "slurmctld, slurmd and sacct texts"
_CLOUD = "cloud providers' texts"

_KUBERNETES = (
    root(FaultClass.GPU_LOST, "k8s.device-unhealthy", ("unhealthy", "xidcriticalerror", "device plugin", "nvidia.com/gpu"), 0.62, _K8S,
         r"[Xx]id[Cc]ritical[Ee]rror: Xid=79|'?nvidia'? device .{0,60}marked unhealthy|device .{0,60}(?:GPU-[\w-]+).{0,40}[Uu]nhealthy|Marking device.{0,60}[Uu]nhealthy|Insufficient nvidia\.com/gpu.{0,40}unhealthy", physical=True),
    root(FaultClass.CPU_OOM, "k8s.memory", ("oomkilled", "oomkilling", "memorypressure", "low on resource: memory", "system oom encountered", "evictionthresholdmet", "exceeds its request", "exceeded its memory", "resourcename=\"memory"), 0.92, _K8S,
         r"OOMKill(?:ed|ing)|(?:must evict pod|Attempting to reclaim).{0,40}resourceName=\"?memory|System OOM encountered|low on resource: memory|EvictionThresholdMet.{0,60}memory|Attempting to reclaim memory|(?:NodeHas)InsufficientMemory"),
    root(FaultClass.DISK_FULL, "k8s.disk-pressure", ("diskpressure", "ephemeral-storage", "ephemeral local storage", "freediskspacefailed", "imagegcfailed", "nodehasdiskpressure", "inodes", "attempting to reclaim"), 0.86, _K8S,
         r"attempting to reclaim (?:ephemeral-storage|nodefs|imagefs|inodes)|(?:must evict pod|Attempting to reclaim).{0,40}resourceName=\"?(?:ephemeral-storage|nodefs|inodes)|NodeHasDiskPressure|DiskPressure\s+True|low on resource: (?:ephemeral-storage|inodes)|[Ee]phemeral[- ](?:local )?(?:ephemeral )?storage usage exceeds|exceeds the (?:total )?limit of.{0,30}(?:ephemeral|emptyDir)|FreeDiskSpaceFailed|ImageGCFailed\b.{0,160}(?:to free|freed|disk usage|space)"),
    root(FaultClass.NODE_FAILURE, "k8s.node-not-ready", ("nodenotready", "notready", "kubelet stopped posting", "nodestatusunknown", "node is not ready", "taintmanagereviction", "unreachable", "nodelost", "not ready", "node was"), 0.62, _K8S,
         r"NodeNotReady|[Kk]ubelet stopped posting node status|NodeStatusUnknown|status is now: NodeNotReady|node\.kubernetes\.io/(?:unreachable|not-ready):No\w+|^(?P<host>\S+)\s+NotReady\b|(?<![\w/])[Nn]ode (?:(?P<host2>[\w.\-]+) )?(?:is |was )(?:not ready|NotReady)"),
    root(FaultClass.NODE_FAILURE, "k8s.node-listed-not-ready", "notready", 0.86, "kubectl get nodes: a node whose kubelet does not report and that nobody drains",
         r"^(?P<host>[\w.-]{1,253})\s+NotReady\s+[\w,<>./-]+\s+\d+[smhdy]\w*\s+v\d+\.\d"),
    root(FaultClass.PREEMPTION_SIGTERM, "k8s.preempted", ("preempted", "preempting", "preemptioncycle", "evictedbyvpa", "disruption", "drain", "deadlineexceeded", "taint"), 0.88, _K8S,
         r"(?-i:\bNormal\s+Preempt(?:ed|ing)\s|\bWarning\s+Preempt(?:ed|ing)\s)|Preempted (?:by|in order to admit|to accommodate)|DisruptionTarget.{0,60}(?:True|Preempt)|PreemptionByScheduler|EvictionByEvictionAPI|TerminationByKubelet", part=Part.STOPPED, origin=Origin.INFRA),
    root(FaultClass.ENVIRONMENT_MISMATCH, "k8s.config", ("failedscheduling", "insufficient", "createcontainerconfigerror", "invalidimagename", "imageinspecterror", "configmap", "secret", "createcontainererror"), 0.74, _K8S,
         r"CreateContainerConfigError|InvalidImageName|(?:configmap|secret) \"[^\"]+\" not found|CreateContainerError"),
    root(FaultClass.NETWORK_ETH, "k8s.pod-network", ("failedcreatepodsandbox", "cni plugin not", "networkpluginnotready", "failed to setup network", "bird is not ready", "unable to connect to cilium", "(map full)"), 0.76, _K8S + "; Calico and Cilium: the network between pods",
         r"FailedCreatePodSandBox.{0,160}(?:plugin type=|\bcni\b|failed to set ?up network)|NetworkPluginNotReady|network (?:is )?not ready.{0,200}cni plugin not initialized|BIRD is not ready|failed to setup network for sandbox|[Uu]nable to connect to Cilium|no space left on device \(map full\)", origin=Origin.INFRA),
    root(FaultClass.NODE_FAILURE, "k8s.sandbox", ("pleg is not healthy", "container runtime is down", "runtime network not ready", "cni plugin not initialized", "failedcreatepodsandbox", "networkplugin"), 0.7, _K8S,
         r"PLEG is not healthy|[Cc]ontainer runtime (?:is down|status check may not have completed|network not ready)|cni plugin not initialized|NetworkPluginNotReady|FailedCreatePodSandBox"),
    root(FaultClass.DRIVER_FIRMWARE, "operator.driver", ("gpu operator", "gpu-operator", "nvidia-driver", "driver-validation", "toolkit-validation", "vgpu", "nvidia-container", "cuda-validation", "mig", "toolkit"), 0.72, "NVIDIA GPU Operator and container toolkit",
         r"nvidia-(?:driver|operator-validator|driver-daemonset)\S*.{0,60}(?:CrashLoopBackOff|Error|failed)|nvidia-container-cli: (?:initialization error|ldcache error|mount error|device error|driver error)|error setting (?:VGPU|MIG) config|(?:mig|vgpu)\.config\.state=failed|No firmware image found|[Ff]ailed to (?:initialize NVML|get device handle)"),
)  # fmt: skip

_SCHEDULER = (
    root(FaultClass.UNKNOWN, "slurm.unkillable", ("not ending with signals", "stepd terminated", "kill task failed"), 0.62, _SLURM, r"DUE TO JOB NOT ENDING WITH SIGNALS|STEPD TERMINATED|Kill task failed"),
    root(FaultClass.NODE_FAILURE, "slurm.node-state", ("down*", "drain", "not responding", "reason=", "node_fail", "node fail", "unexpectedly rebooted", "low realmemory", "kill task failed", "prolog error", "epilog error", "launch failed", "duplicate jobid"), 0.72, _SLURM,
         r"\b(?:down|fail|unk)\*\s|Reason=(?:Not responding|Node unexpectedly rebooted|NHC|Low RealMemory|Low socket|gres/gpu count|Prolog error|Epilog error|Duplicate jobid)|gres/gpu count reported lower than configured|NODE_FAIL\b|error: Nodes \S+ not responding"),
    root(FaultClass.NODE_FAILURE, "slurm.node-listed-down", "state=", 0.62, _SLURM + ": its reason stands in another row",
         r"\bState=\S{0,60}?(?:DOWN|FAIL|NOT_RESPONDING)", part=Part.GENERIC),
    root(FaultClass.ENVIRONMENT_MISMATCH, "slurm.daemon-start", "fatal:", 0.8, _SLURM,
         r"\bslurm(?:d|ctld|dbd)(?:\[\d+\])?: (?:slurm\w+: )?fatal: (?!can't stat gres\.conf file|Could not establish a configuration source|Incomplete job state save file)", origin=Origin.INFRA),
    root(FaultClass.CPU_OOM, "slurm.memory", ("out_of_me", "oom_kill", "oom-kill", "exceeded memory limit", "exceeded job memory limit", "0:125", "memory efficiency", "exceeded step memory", "out of memory", "virtual memory limit"), 0.9, _SLURM,
         r"OUT_OF_ME\w*|\b0:125\b|[Ee]xceeded (?:job|step|virtual) ?memory limit|exceeded memory limit \(\d+ > \d+\)|(?:oom[-_]kill|OOM Kill)\w* event|Memory Efficiency: 1\d\d\.|Some of the step tasks have been OOM Killed|memory limit exceeded"),
    root(FaultClass.PREEMPTION_SIGTERM, "slurm.requeue-by-job", ("this job is timed-out", "job has timed out", "this job is timed out", "requested time"), 0.95, "submitit and Slurm signal handlers",
         r"this job is timed[- ]out|Job has timed out\. Ran", part=Part.STOPPED, origin=Origin.USER),
    root(FaultClass.PREEMPTION_SIGTERM, "slurm.preempted-by-job", ("this job is preempted", "cluster is preempted", "was preempted", "spot", "interruption"), 0.95, "submitit, SkyPilot and spot instances",
         r"this job is preempted|[Cc]luster is preempted|(?:instance|node|VM|worker|job) (?:was |has been |is being )?preempted|[Ss]pot .{0,40}(?:interrupt|reclaim|preempt|terminat)|\bspot_?interrupt|[Ss]pot[_ ]instance[_ ](?:interruption|termination)|EC2 Spot|instance-action(?!.{0,24}(?:404|Not Found|none\b))|BidEvictedEvent|(?-i:PREEMPTED)\b", part=Part.STOPPED, origin=Origin.INFRA),
    root(FaultClass.PREEMPTION_SIGTERM, "slurm.timeout-state", ("timeout", "preempted", "deadline"), 0.86, _SLURM,
         r"^\S+\s+.{0,80}\b(?:TIMEOUT|DEADLINE|PREEMPTED)\s+\d+:\d+|JobState=(?:TIMEOUT|DEADLINE|PREEMPTED)|State: (?:TIMEOUT|PREEMPTED)\b", part=Part.STOPPED),
    root(FaultClass.NODE_FAILURE, "cloud.host-error", ("hosterror", "host error", "maintenance", "instance retirement", "system status check", "hardware failure", "automatic restart", "instance_status", "degraded hardware", "underlying host", "impaired"), 0.78, _CLOUD,
         r"compute\.instances\.hostError|\b[Hh]ost[ _]?[Ee]rror\b|[Ii]nstance (?:retirement|is impaired|scheduled for)|system-?(?: )?status .{0,20}(?:impaired|fail)|underlying (?:host|hardware) .{0,40}(?:fail|degrad|issue)|\bRedeploy(?:ing|ed)? due to|[Uu]nexpected(?:ly)? (?:shutdown|terminated) by (?:host|platform)|ScheduledEvents?.{0,60}(?:Reboot|Redeploy|Freeze|Terminate)"),
)  # fmt: skip

_NHC = "LBNL NHC and Azure's checks for it"
_FAILED = r"^(?!.*clearing note).*?(?:\bNHC: |\bnhc\b.{0,24}|[Hh]ealth check failed: ).{0,12}?\b"
_NODE_CHECKS = (
    aside(Part.VICTIM, "nhc.load", "check_ps_", _NHC + ": processes that run or should; what they do to the node is not said", _FAILED + r"check_ps_(?!daemon|service)\w+:"),
    root(FaultClass.STORAGE_CHECKPOINT, "nhc.mount", "check_fs_mount", 0.86, _NHC, _FAILED + r"check_fs_mount\w*:", origin=Origin.INFRA),
    root(FaultClass.DISK_FULL, "nhc.disk", ("check_fs_used", "check_fs_free", "check_fs_iused", "check_fs_ifree"), 0.88, _NHC, _FAILED + r"check_fs_i?(?:used|free):"),
    root(FaultClass.CPU_OOM, "nhc.memory", ("check_hw_physmem_free", "check_hw_mem_free"), 0.84, _NHC, _FAILED + r"check_hw_(?:phys)?mem_free:"),
    root(FaultClass.NETWORK_ETH, "nhc.ethernet", ("check_hw_eth", "check_net_ping"), 0.84, _NHC, _FAILED + r"check_(?:hw_eth|net_ping):"),
    root(FaultClass.NETWORK_IB, "nhc.ib-bandwidth", "check_ib_bw", 0.82, _NHC, _FAILED + r"check_ib_bw\w*:", physical=True),
    root(FaultClass.DRIVER_FIRMWARE, "nhc.driver", "driver not loaded", 0.86, _NHC, _FAILED + r"check_n\w*:.{0,60}driver not loaded"),
    root(FaultClass.GPU_MEMORY_ECC, "nhc.gpu-memory", ("check_gpu_ecc", "_ecc:", "row remap", "retirement table"), 0.88, _NHC, _FAILED + r"check_\w+:.{0,60}(?:row remap|retire)|" + _FAILED + r"check_(?:gpu_|SDBE_)ecc:", physical=True),
    root(FaultClass.GPU_LOST, "nhc.gpu-count", ("check_gpu_count", "gres/gpu count"), 0.84, _NHC + "; Slurm's own count", _FAILED + r"check_gpu_count:.{0,40}but found|gres/gpu count reported lower than configured", physical=True),
    root(FaultClass.PCIE, "nhc.gpu-copies", "check_gpu_bw", 0.82, _NHC, _FAILED + r"check_gpu_bw:.{0,20}(?:H2D|D2H|host_to_device|device_to_host)", physical=True),
    root(FaultClass.NVLINK, "nhc.gpu-peers", "check_gpu_bw", 0.82, _NHC, _FAILED + r"check_gpu_bw:.{0,20}(?:P2P|device_to_device)", physical=True),
    root(FaultClass.GPU_SLOW, "nhc.gpu-clocks", "check_gpu_clock", 0.88, _NHC, _FAILED + r"check_gpu_clock_throttling:", physical=True),
    root(FaultClass.STRAGGLER_SLOW, "nhc.cpu-stream", "check_cpu_stream", 0.82, _NHC, _FAILED + r"check_cpu_stream:", origin=Origin.INFRA),
)  # fmt: skip
"""What a node health check found says more than that a check failed."""

SIGNATURES = (*_KUBERNETES, *_SCHEDULER, *_NODE_CHECKS)
