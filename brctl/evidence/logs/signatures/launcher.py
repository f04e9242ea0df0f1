"""Who started and who stopped the job: torchrun, Slurm, Kubernetes, Ray, Lightning, signals."""

# ruff: noqa: E501 - a pattern is read whole

from brctl.evidence.logs.signature import Part, Signature, aside, root
from brctl.model.fault import FaultClass, Origin

_SLURM = "Slurm texts (srun, slurmstepd, slurmctld)"
_TORCHRUN = "torchrun agent texts"
_K8S = "Kubernetes event and status texts"
_RAY = "Ray texts"
_PY = "Python and shell texts"

_SCHEDULER = (
    root(FaultClass.NODE_FAILURE, "slurm.node-failure",
         ("node failure", "node_fail", "due to node", "unexpectedly rebooted", "nodes are not responding",
          "not responding", "node down", "setting down", "lost node", "node fail", "communication connection failure",
          "node not responding", "state=down", "unable to contact", "zero bytes were transmitted",
          "unable to confirm allocation", "task launch for", "nodelost", "node was lost", "execution node"), 0.92, _SLURM,
         r"execution node (?P<host5>[\w.\-]+) (?:is )?down\b|[Nn]ode failure on (?P<host>[\w.\-\[\],]+)|DUE TO NODE FAILURE|NODE_FAIL|nodes? (?P<host2>[\w.\-\[\],]+) (?:are )?not responding|"
         r"[Nn]odes? (?P<host3>[\w.\-]+) (?:unexpectedly rebooted|(?:is )?not responding|setting DOWN)|NodeLost|"
         r"[Nn]ode (?P<host4>[\w.\-]+)? ?(?:is |was )(?:lost|unreachable)"),
    root(FaultClass.PREEMPTION_SIGTERM, "slurm.preempted", "due to", 0.95, _SLURM,
         r"DUE TO (?:PREEMPTION|JOB REQUEUE)|CANCELLED AT \S+ DUE TO .{0,40}preempt",
         part=Part.STOPPED, origin=Origin.INFRA),
    aside(Part.CONTEXT, "slurm.asked-to-requeue", ("scontrol requeue", "sigusr1", "sigusr2", "requeued job"), "sbatch --signal, submitit: a job that says that it requeues itself before its time limit; a signal alone may be a preemption's",
          r"\bscontrol requeue\b|\bSIGUSR[12]\b.{0,24}\bre-?queue?ing\b|submitit .{0,80}\bSIGUSR[12]\b.{0,80}this job is timed-out|submitit .{0,60}\bRequeued job \d", sets="own-requeue"),
    root(FaultClass.PREEMPTION_SIGTERM, "slurm.requeued-itself", "due to job requeue", 0.96, _SLURM, r"DUE TO JOB REQUEUE",
         part=Part.STOPPED, origin=Origin.USER, when=(("own-requeue", "*"),)),
    root(FaultClass.PREEMPTION_SIGTERM, "slurm.time-limit", "due to", 0.95, _SLURM, r"DUE TO TIME LIMIT",
         part=Part.STOPPED),
    aside(Part.TEARDOWN, "slurm.step-aborted", ("job step aborted", "force terminated", "killing subprocess"),
          _SLURM),
    root(FaultClass.PREEMPTION_SIGTERM, "slurm.step-cancelled", "cancelled at", 0.5, _SLURM + ": srun ends a step by itself where a task of it fails",
         r"\*\*\* STEP \S+ ON \S+ CANCELLED AT \S+(?! DUE TO)", part=Part.STOPPED),
    root(FaultClass.PREEMPTION_SIGTERM, "slurm.cancelled", ("cancelled at", "scancel", "job cancelled", "cancelled by", "canceled by"), 0.85, _SLURM,
         r"(?<!\*\*\* STEP )(?:JOB \S+ ON \S+ |^(?!.*\*\*\* STEP).*)CANCELLED AT \S+(?! DUE TO)|\bscancel(?:led)?\b|\b[Jj]ob (?:\S+ )?(?:was )?cancell?ed\b", part=Part.STOPPED),
    root(FaultClass.PREEMPTION_SIGTERM, "preempted",
         ("preempt", "spot instance interruption", "spot interruption", "evicted", "terminate notice",
          "termination notice", "requeue", "maintenance event"), 0.86, "Slurm, Kubernetes and cloud texts",
         r"(?<!queue )(?<!queues )(?<!e\.g\. )(?<!No )(?<!channel )\b[Pp]reempt(?:ed|ion|ing)\b(?! (?:check|handler|sequence|request)|\s+Drain|: \d+/\d+ nodes| is not helpful)(?!.{0,20}(?:(?<!\bJobId)=|disabled|support))(?!/(?:died|restarted))|[Ss]pot (?:instance )?interruption|"
         r"(?:pod|[Pp]od) .{0,60}\b[Ee]victed\b(?!.{0,40}low on resource: (?:ephemeral-storage|nodefs|imagefs))|[Tt]erminat(?:e|ion) notice|"
         r"[Rr]equeue?ing (?:the )?(?:job|after)|(?-i:JOB REQUEUE)",
         part=Part.STOPPED, origin=Origin.INFRA),
    root(FaultClass.PREEMPTION_SIGTERM, "time-limit",
         ("time limit", "timelimit", "walltime", "wall time", "deadlineexceeded", "deadline exceeded"), 0.86,
         "Slurm, PBS and Kubernetes texts",
         r"(?<!code = )(?<!code=)DeadlineExceeded(?! desc)|(?:reached|exceeded|hit|due to).{0,20}(?<!yield )(?:[Tt]ime ?[Ll]imit|walltime|wall time)",
         part=Part.STOPPED),
    root(FaultClass.PREEMPTION_SIGTERM, "signal.term",
         ("sigterm", "signal 15", "got signal: 15", "death signal", "signalexception", "sigusr1", "signal: 15",
          "received signal", "sigint", "keyboardinterrupt", "sighup", "exit code 143", "exitcode 143", "graceful exit",
          "exitcode: 143", "exitcode  : 143", "shutting down replica", "terminating process group", "ctrl-c", "^c",
          "terminated"), 0.66, _PY,
         r"(?<!\*\*\* Process )(?<!echo \")(?:[Rr]eceived|[Gg]ot|caught|[Cc]atch\w*|[Tt]rapped).{0,24}(?:death )?(?:signal|SIG(?:TERM|INT|USR1|HUP)|Signals\.SIGTERM)(?:.{0,12}15)?(?!.{0,16}\bhandler)|SignalException|"
         r"^\W*KeyboardInterrupt|got signal: (?:15|2)\b|SIGTERM(?:Exception| received)|exit ?code:? *(?:143|130)\b|"
         r"[Bb]ypassing signal SIGTERM|^\W*Terminated\s*$",
         part=Part.STOPPED),
    aside(Part.TEARDOWN, "torchrun.closing",
          ("closing signal", "sending process", "terminating", "killing", "shutting down", "sigkill to", "exitcode: -15",
           "exitcode  : -15", "signal 15 (sigterm)"),
          _TORCHRUN,
          r"[Ss]ending process \d+ closing signal|closing signal SIG|exitcode\s*:\s*-15|Signal 15 \(SIGTERM\)|"
          r"[Tt]erminating (?:process group|workers|remaining)|[Kk]illing (?:worker|process|subprocess)"),
)  # fmt: skip

_EXITS = (
    aside(Part.VICTIM, "torchrun.failed", (" failed", "failures:"), _TORCHRUN, r"^\S+ FAILED\s*$|^Failures:\s*$"),
    aside(Part.CONTEXT, "torchrun.root-cause", "root cause (first observed failure)", _TORCHRUN,
          sets="torchrun-block"),
    aside(Part.CONTEXT, "torchrun.host", ("host      :", "host:"), _TORCHRUN, r"^\W*host\s*:\s*(?P<host>\S+)\s*$"),
    aside(Part.CONTEXT, "torchrun.rank", ("rank      :", "rank:"), _TORCHRUN,
          r"^\W*rank\s*:\s*(?P<rank>\d+) \(local_rank"),
    aside(Part.CONTEXT, "torchrun.time", "time      :", _TORCHRUN, r"^\W*time\s*:\s*(?P<time>\d{4}-\d\d-\d\d_\d\d:\d\d:\d\d)"),
    aside(Part.VICTIM, "exit.abort", ("exitcode", "aborted", "sigabrt", "exit code", "signal 6", "sigabort", "signal: 6"),
          _TORCHRUN, r"exit ?code\D{0,6}(?:-6|134)\b|(?-i:\bAborted\b)|SIGABRT|Signal 6\b"),
    root(FaultClass.UNKNOWN, "exit.killed",
         ("exitcode", "sigkill", "killed", "exit code", "signal 9", "signal: 9", "exited with code 137"), 0.5,
         _TORCHRUN, r"exit ?code\D{0,6}(?:-9|137)\b|SIGKILL|\bKilled\b\s*(?:$|python|\")|Signal 9\b|signal:? 9\b"),
    root(FaultClass.CPU_OOM, "exit.killed-maybe-oom", ("exitcode", "sigkill", "exit code", "signal 9"), 0.48,
         "the kernel's OOM killer is the commonest sender of SIGKILL; without its line unproven",
         r"exit ?code\D{0,6}(?:-9|137)\b|Signal 9 \(SIGKILL\)", part=Part.HINT),
    root(FaultClass.UNKNOWN, "exit.segv", ("exitcode", "sigsegv", "segmentation fault", "exit code", "signal 11"), 0.45,
         _TORCHRUN, r"exit ?code\D{0,6}(?:-11|139)\b|SIGSEGV|Signal 11\b"),
    root(FaultClass.DATA_LOADER, "exit.bus", ("exitcode", "sigbus", "bus error", "exit code", "signal 7"), 0.55, _TORCHRUN,
         r"exit ?code\D{0,6}(?:-7|135)\b|SIGBUS|(?-i:\bBus error\b)|Signal 7\b", part=Part.GENERIC),
    aside(Part.VICTIM, "exit.python",
          ("exitcode", "exited with exit code", "childfailederror", "exit status", "non-zero exit", "failed with exit code",
           "exit code 1", "failed (exitcode", "calledprocesserror", "task 0:", "exited with"), _TORCHRUN,
          r"exit ?code\s*:? *[1-9]\b|ChildFailedError|[Ee]xited with exit code [1-9]\d*|non-zero exit|CalledProcessError|"
          r"srun: error: (?P<host>[\w.\-]+): tasks? (?P<task>[\d,\-]+): (?:Exited|Killed|Aborted|Segm|Out)"),
    aside(Part.VICTIM, "python.traceback", "traceback (most recent call last)", _PY),
    aside(Part.CONTEXT, "torchrun.no-error-file", ("error_file: <n/a>", "to enable traceback see"), _TORCHRUN),
)  # fmt: skip


_RUNTIMES = (
    aside(Part.VICTIM, "ray.actor-died",
          ("actordiederror", "workercrashederror", "rayactorerror", "raytaskerror", "worker died", "worker exit type",
           "actor died", "nodediederror", "getcontrolstoreerror"), _RAY,
          r"ActorDiedError|WorkerCrashedError|RayActorError|[Ww]orker (?:died|exit type)|actor (?:is dead|died)"),
    root(FaultClass.NODE_FAILURE, "ray.node-died", ("node died", "nodediederror", "marked dead", "node is dead",
         "node with node id"), 0.75, _RAY,
         r"[Nn]ode (?:died|is dead)|NodeDiedError|[Nn]ode .{0,120}(?:marked|has been marked) dead"),
    root(FaultClass.UNKNOWN, "k8s.crash", ("crashloopbackoff", "exit code 137", "containercannotrun", "back-off restarting"),
         0.4, _K8S),
    root(FaultClass.ENVIRONMENT_MISMATCH, "k8s.image",
         ("imagepullbackoff", "errimagepull", "createcontainerconfigerror", "failed to pull image", "runcontainererror",
          "manifest unknown"), 0.85, _K8S),
    root(FaultClass.HANG_MISMATCH, "job.no-progress",
         ("no progress", "hang detected", "detected hang", "job hang", "training hang", "stuck at", "not making progress",
          "appears to be hung", "appears to have hung", "timed out waiting for other ranks", "hanged", "hang:"), 0.45,
         "training frameworks' hang detectors",
         r"[Nn]o progress (?:for|since|in)|hang (?:was )?detected|[Dd]etected (?:a )?hang|(?:job|training|process|rank \d+) (?:is |appears to be |seems to be )?(?:hung|hanging|stuck)",
         origin=Origin.UNKNOWN),
)  # fmt: skip

SIGNATURES: tuple[Signature, ...] = (*_SCHEDULER, *_EXITS, *_RUNTIMES)
