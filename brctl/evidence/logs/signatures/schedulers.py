"""Slurm, Kubernetes and other schedulers: their reasons, events and states as such.

Source: slurmctld, slurmd, slurmstepd, srun, sacct (job_state.h, slurm_errno.c), Kubernetes event reasons and
pod conditions (pkg/kubelet/events, pkg/scheduler, controllers), PBS, LSF, Kueue, Volcano, Kubeflow, Flyte.
"""

# ruff: noqa: E501 - a pattern is read whole

from brctl.evidence.logs.signature import Part, Signature, aside, root
from brctl.model.fault import FaultClass as F
from brctl.model.fault import Origin

_SLURM = "Slurm job states, reasons and error texts"
_K8S = "Kubernetes event reasons, pod conditions and container states"
_QUEUE = "Kueue, Volcano, Kubeflow and cloud batch texts"

_SLURM_ROWS = (
    root(F.NODE_FAILURE, "slurm.state.node", ("node_fail", "boot_fail", "slurmd on node", "node fail", "batchhost", "lost contact", "abort on node", "zero_bytes", "on failed node", "failure of node", "missing from batch node"), 0.9, _SLURM,
         r"\b(?:State|JobState|Reason)\W{1,3}(?:NODE_FAIL|BOOT_FAIL|NodeDown|NodeFail)\b|^\S+\s.{0,80}\b(?:NODE_FAIL|BOOT_FAIL)\s+\d+:\d+|\bNODE_FAIL\b.{0,40}ExitCode|requeue\w* job \S+ due to failure of node (?P<host>\S+)|(?:Killing|Requeu\w+) \S*(?:job|JobId)\S* .{0,30}(?:on|due to) (?:failed|failure of) node (?P<host2>[\w.-]+)|missing from batch node (?P<host3>[\w.-]+)|batch job complete f?a?i?l?u?r?e?.{0,20}node fail"),
    root(F.CPU_OOM, "slurm.state.memory", ("out_of_memory", "oom_kill", "oom kill", "memory limit", "exceeding requested memory", "hit memory", "being killed", "used more memory"), 0.92, _SLURM,
         r"\b(?:State|JobState|Reason)\W{1,3}(?:OUT_OF_MEMORY|OutOfMemory)\b|^\S+\s.{0,80}\bOUT_OF_ME\S*\s+\d+:\d+|(?:job|step|StepId)\S* .{0,60}(?:exceed\w* (?:its |the )?(?:requested |job |step )?memory|memory \(?\d+\w*\)?.{0,20}exceed)|hit memory(?:\+swap)? limit at least once"),
    root(F.PREEMPTION_SIGTERM, "slurm.state.stopped", ("jobstate=", "state=", "state:", "reason=", "cancelled by", "cancelled+"), 0.9, _SLURM,
         r"\b(?:State|JobState)\W{1,3}(?:PREEMPTED|TIMEOUT|DEADLINE|REVOKED)\b|Reason=(?:TimeLimit|JobHeldUser|Preempted|JobHeldAdmin|DeadLine)\b|CANCELLED by \d+", part=Part.STOPPED),
    root(F.CPU_OOM, "pbs.memory", "mem usage", 0.92, "PBS, TORQUE and Moab", r"\bexceeded [VP]?MEM usage (?:(?:hard|soft) )?limit"),
    root(F.PREEMPTION_SIGTERM, "pbs.deleted", "job deleted at request of", 0.78, "PBS and TORQUE server logs",
         r"\bJob deleted at request of (?!Scheduler)", part=Part.STOPPED),
    root(F.NODE_FAILURE, "slurm.prolog", ("prolog", "epilog", "healthcheckprogram", "health check", "nhc"), 0.72, _SLURM,
         r"(?:[Pp]rolog|[Ee]pilog)\w*(?: \S+)?(?:.{0,30}(?:error|failed|failure|exit status \d*[1-9]|non-?zero|timed? ?out|hung)|\s+status=\d*[1-9])|[Dd]raining node .{0,60}(?:prolog|epilog|health)|\bNHC: (?!.{0,60}check_ps_(?!daemon|service)).{0,60}fail"),
    root(F.NODE_FAILURE, "slurm.launch", ("launch failed", "launching of job failed", "unable to create ", "timeout waiting for task launch", "slurmstepd failed", "failed to launch", "unable to launch", "step launch"), 0.6, _SLURM,
         r"[Tt]ask launch for \S+ failed on node (?P<host>[\w.-]+)|[Aa]pplication launch failed|timeout waiting for task launch|(?:_fork_all_tasks|fork_exec\w*).{0,40}fail|slurmstepd (?:failed|return code -\d)|launch (?:RPC )?failed.{0,40}(?:node|host)"),
    root(F.ENVIRONMENT_MISMATCH, "slurm.credential", ("munge", "credential", "invalid credential", "expired credential", "protocol version", "protocol_version", "zero bytes were transmitted or received", "authentication"), 0.72, _SLURM,
         r"(?:[Mm]unge|auth/munge).{0,60}(?:fail|error|decode|expired|not running|No such file)|(?:[Ii]nvalid|[Ee]xpired) (?:job )?credential|[Pp]rotocol authentication error|Incompatible versions of client and server|[Pp]rotocol[ _][Vv]ersion .{0,20}(?:mismatch|not supported)|Invalid Protocol Version", origin=Origin.INFRA),
    root(F.ENVIRONMENT_MISMATCH, "slurm.configuration", ("slurm.conf", "configuration differs from hardware", "thread count", "cpu count", "nodehostname", "node registration", "cgroup", "load specified plugin"), 0.72, _SLURM + ": slurmd and slurmctld disagree on what a node has",
         r"different slurm\.conf than|[Nn]ode configuration differs from hardware|has low (?:socket\*core\*thread|cpu|real_memory|tmp_disk) (?:count|size)|[Dd]uplicated NodeHostName|[Nn]ode (?:index|name)\S* .{0,40}not (?:found|configured) in slurm\.conf|Unable to determine this slurmd's NodeName|[Cc]ouldn't load specified plugin|cgroup namespace '\w+' not mounted|(?:[Uu]nable|[Ff]ailed) to (?:mount|create|initialize|load) .{0,30}cgroup"),
    root(F.USER_CODE, "slurm.request", ("batch job submission failed", "unable to allocate resources", "unable to create step", "requested node configuration", "invalid partition", "invalid account", "invalid qos", "invalid generic resource", "more processors requested", "unable to satisfy", "violates accounting", "invalid job id", "unable to open file", "execve()", "chdir("), 0.72, _SLURM,
         r"[Bb]atch job submission failed|[Uu]nable to (?:allocate resources|create step\b.{0,60}):(?!.*already complet)|[Rr]equested node configuration is not available|[Ii]nvalid (?:partition|account|qos|generic resource|feature|node name)\b|[Mm]ore processors requested than permitted|violates accounting/QOS policy|execve\(\): .{0,80}No such file|couldn't chdir to|[Ii]nvalid directive found in batch script"),
    root(F.GPU_LOST, "slurm.gres", ("gres/gpu", "gres gpu", "stat gres.conf file"), 0.58, _SLURM,
         r"can't stat gres\.conf file /dev/nvidia\d|gres/gpu.{0,60}(?:count (?:reported )?(?:lower|too low|changed|mismatch)|lower than|missing|below)", physical=True),
    aside(Part.VICTIM, "slurm.task-ended", ("exited with exit code", "first task exited", "tasks started", "terminating job step", "terminating step", "terminated due to signal", "mpi_abort", "pmix", "pmi2"), _SLURM,
          r"First task exited \d+s ago|Terminating (?:job )?step|task \S+: (?:Terminated|Exited)|MPI_ABORT was invoked|PMIX? (?:ERROR|.{0,20}error)"),
)  # fmt: skip

_FLUX_ROWS = (
    root(F.NODE_FAILURE, "flux.node-lost", ("type=node-failure", "lost contact with job shell", "->offline due to", "->lost due to"), 0.86, "Flux brokers and job exceptions",
         r"exception type=node-failure|lost contact with job shell on (?P<host>[\w.-]+)|(?<![\w.-])(?P<host2>[\w.-]{1,64}) \(rank \d+\) transitioned from \w+->(?:LOST|OFFLINE) due to"),
)  # fmt: skip

_K8S_ROWS = (
    root(F.CPU_OOM, "k8s.reason.memory", ("oomkill", "oom_kill", "memorypressure", "exceeded memory", "container was using", "memory limit", "memory cgroup"), 0.92, _K8S,
         r"\bOOMKill\w*|[Cc]ontainer \S+ was using [\d.]+\w*, (?:which exceeds its )?request (?:is|of)|NodeHasInsufficientMemory|MemoryPressure\s+True|exit(?:ed with)?(?: code)?:? 137.{0,40}OOM|memory usage .{0,30}exceeds? (?:its )?limit"),
    root(F.PREEMPTION_SIGTERM, "k8s.reason.stopped", ("preempt", "evict", "deadlineexceeded", "backofflimitexceeded", "activedeadlineseconds", "graceful node shutdown", "node shutdown", "deletiontimestamp", "killing", "scaledown", "scale down", "cordoned", "drain", "drained", "workload", "tainttoleration"), 0.88, _K8S,
         r"(?-i:^(?:\S+\s+){0,4}Preempt(?:ed|ing)\b(?! sequence| request))|\bPreemptionByScheduler\b|(?<!code = )(?<!code=)\bDeadlineExceeded\b(?! desc)|activeDeadlineSeconds|imminent node shutdown|[Gg]raceful [Nn]ode [Ss]hutdown|reason\W{1,4}(?:Shutdown|NodeShutdown|Terminated|EvictionByEvictionAPI|TerminationByKubelet|DeletionByTaintManager|DeletionByPodGC)\b|\bScaleDown\b|(?:evict\w*|delet\w*) (?:pod|Pod)\S* .{0,60}(?:drain|autoscal|preempt|taint|maintenance)|Workload .{0,60}(?:was )?(?:preempted|evicted|deactivated)|(?:kube-scheduler|kueue|volcano|autoscaler|karpenter)\S* .{0,80}\b(?:preempt|evict|reclaim|disrupt)(?:ed|ing|s)\b", part=Part.STOPPED, origin=Origin.INFRA),
    root(F.NODE_FAILURE, "k8s.reason.node", ("nodenotready", "nodelost", "node not ready", "nodestatusunknown", "kubelet stopped", "containerruntimeunhealthy", "runtimeunhealthy", "rebooted", "kubeletnotready", "nodenotschedulable", "unreachable:noexecute", "kernelhaspanic", "kerneldeadlock", "readonlyfilesystem", "frequentkubeletrestart", "node is unreachable", "nodeunresponsive"), 0.84, _K8S,
         r"\b(?:NodeNotReady|NodeLost|NodeStatusUnknown|NodeUnresponsive|KubeletNotReady|ContainerRuntimeUnhealthy|KernelDeadlock|KernelHasPanic|FrequentKubeletRestart)\b(?!\s+False|\W{1,3}(?:Status\W{1,3})?False)|[Nn]ode (?P<host>\S+) has been rebooted|\bRebooted\b.{0,60}boot id|node\.kubernetes\.io/unreachable|node (?:\S+ )?(?:was |is )?(?:lost|unreachable|gone)\b"),
    root(F.ENVIRONMENT_MISMATCH, "k8s.reason.container", ("imagepull", "errimage", "invalidimage", "imageinspect", "createcontainer", "failedcreatepodsandbox", "failed to pull", "pull access denied", "manifest for", "crictl", "toomanyrequests", "no match for platform", "unauthorized: authentication required", "registry", "failed to resolve reference", "x509:"), 0.82, _K8S,
         r"\b(?:ImagePullBackOff|ErrImage\w*|InvalidImageName|ImageInspectError|CreateContainer\w*Error)\b|[Ff]ailed to (?:pull|resolve|unpack) (?:image|reference)|pull access denied|manifest (?:for \S+ not found|unknown)|no match(?:ing manifest)? for (?:platform|\S+ in the manifest)|toomanyrequests|unauthorized: authentication required|http: server gave HTTP response to HTTPS|x509: certificate"),
    root(F.NETWORK_ETH, "k8s.image-network", ("failed to pull", "failed to resolve reference", "errimagepull"), 0.88, _K8S + ": the registry was not reached",
         r"(?:[Ff]ailed to (?:pull|resolve)|ErrImagePull).{0,400}(?:i/o timeout|no such host|connect: connection refused|connection reset by peer|TLS handshake timeout|network is unreachable|no route to host)", origin=Origin.INFRA),
    root(F.ENVIRONMENT_MISMATCH, "k8s.reason.not-started", ("runcontainererror", "containercannotrun", "starterror", "failed to create container", "failed to start container"), 0.82, _K8S + ": that a container did not start, not why",
         r"\b(?:RunContainerError|ContainerCannotRun|StartError)\b|failed to (?:create|start) container", part=Part.GENERIC),
    root(F.UNKNOWN, "k8s.pending", ("failedscheduling", "unschedulable"), 0.45, _K8S, r"\bFailedScheduling\b|\bUnschedulable\b"),
    root(F.STORAGE_CHECKPOINT, "k8s.reason.volume", ("failedmount", "failedattachvolume", "failedmapvolume", "mountvolume", "multi-attach", "volumeresizefailed", "provisioningfailed", "timed out waiting for the condition", "unmounted volumes", "rpc error: code"), 0.8, _K8S,
         r"\b(?:FailedMount|FailedAttachVolume|FailedMapVolume|FailedUnMount|ProvisioningFailed)\b|Multi-Attach error|MountVolume\.\w+ failed|[Uu]nable to (?:attach or )?mount volumes|unmounted volumes=\["),
    aside(Part.VICTIM, "k8s.restarts", ("backoff", "back-off", "unhealthy", "liveness probe failed", "readiness probe failed", "startup probe", "probe errored", "error syncing pod", "backofflimitexceeded"), _K8S,
          r"\bBackOff\b|[Bb]ack-off restarting|(?:[Ll]iveness|[Rr]eadiness|[Ss]tartup) probe (?:failed|errored)|BackoffLimitExceeded|Error syncing pod|has reached the specified backoff limit"),
)  # fmt: skip

_OTHERS = (
    root(F.PREEMPTION_SIGTERM, "queue.stopped", ("spot", "capacity", "reclaim", "interruption", "scheduled maintenance", "maintenance", "time limit", "max runtime", "maxruntime", "maxwait", "stoppingcondition", "quota was", "idle timeout"), 0.84, _QUEUE,
         r"[Ss]pot (?:capacity|instance|VM|node)\S* .{0,60}(?:reclaim|interrupt|evict|terminat|preempt|no longer available)|[Ii]nterruption notice|(?:[Mm]ax(?:imum)? ?[Rr]un ?[Tt]ime|MaxRuntimeExceeded|MaxWaitTime|StoppingCondition)\w*.{0,30}(?:exceeded|reached|elapsed)|(?:terminated|stopped|ended|drained) (?:for|due to|because of) (?:scheduled )?maintenance|reclaimed by (?:the )?(?:queue|cluster|cloud|provider|owner)", part=Part.STOPPED, origin=Origin.INFRA),
)  # fmt: skip

SIGNATURES: tuple[Signature, ...] = (*_SLURM_ROWS, *_FLUX_ROWS, *_K8S_ROWS, *_OTHERS)
