"""Native programs, containers and their limits: glibc, loaders, MPI, runtimes of images, systemd, errno.

Source: texts of glibc (malloc, dl, stdlib), libstdc++, Open MPI and Hydra, UCX, libfabric, runc, containerd,
Docker, enroot, pyxis, Apptainer, systemd, and the errno table.
"""

# ruff: noqa: E501, S108 - a pattern is read whole; the path is only searched for

from brctl.evidence.logs.signature import Part, Signature, aside, root
from brctl.model.fault import FaultClass as F
from brctl.model.fault import Origin

_GLIBC = "glibc and libstdc++ texts"
_MPI = "Open MPI, Hydra and PMIx texts"
_BOX = "runc, containerd, Docker, enroot, pyxis and Apptainer texts"
_SYSTEMD = "systemd service results"
_ERRNO = "errno texts"
_RDMA = "UCX and libfabric texts"

_CRASHES = (
    root(F.UNKNOWN, "native.heap", ("malloc", "free():", "double-linked", "realloc()", "munmap_chunk", "unsorted", "tcache", "fastbin", "heap-use-after-free", "addresssanitizer", "pure virtual method", "smashing detected", "buffer overflow detected", "terminate called", "assertion failed", "stack overflow", "fatal python error"), 0.5, _GLIBC,
         r"(?:malloc|realloc|free)\(\): .{0,40}(?:invalid|corrupt|unaligned|mismatching|detected)|corrupted double-linked list|malloc_consolidate|(?:invalid|corrupted) (?:fastbin|tcache|unsorted)|AddressSanitizer: \w+|pure virtual method called|\*\*\* (?:stack smashing|buffer overflow) detected|Fatal Python error: (?!.{0,20}(?:init|Py_Init))", part=Part.GENERIC),
    root(F.ENVIRONMENT_MISMATCH, "native.instruction", ("illegal instruction", "sigill", "signal 4", "exitcode: -4", "exit code 132", "invalid opcode"), 0.76, "SIGILL: the binary was built for another processor",
         r"^\W*Illegal instruction(?: \(core dumped\))?\s*$|SIGILL|Signal 4\b|exit ?code\D{0,6}(?:-4|132)\b|trap invalid opcode"),
    root(F.ENVIRONMENT_MISMATCH, "native.python-home", ("fatal python error: init", "py_initialize", "no module named 'encodings'", "bad interpreter", "not a dynamic executable", "cannot execute binary file", "exec format error", "elf load command", "relocation error", "error relocating", "static tls", "libc.musl"), 0.84, "CPython, shells and dynamic linkers",
         r"Fatal Python error: (?:init|Py_Init)|No module named 'encodings'|bad interpreter|cannot execute (?:binary file|: required file)|[Ee]xec format error|relocation error: |Error relocating /|cannot allocate memory in static TLS block"),
)  # fmt: skip

_LIMITS = (
    root(F.DATA_LOADER, "loader.too-many-files", "communication with the workers", 0.86, "PyTorch DataLoader: every tensor in flight holds a file",
         r"Communication with the workers is no longer possible"),
    root(F.ENVIRONMENT_MISMATCH, "errno.limits", ("too many open files", "resource temporarily unavailable", "no file descriptors", "nofile", "inotify", "thread creation failed", "pthread_create", "can't fork", "cannot fork", "max user processes", "nproc", "too many processes", "new thread", "clone()", "operation not permitted (clone"), 0.76, _ERRNO,
         r"[Tt]oo many open files|[Nn]o file descriptors available|inotify watch limit|(?:pthread_create|[Tt]hread creation|clone\(\)|fork)\S* .{0,40}(?:failed|error|Resource temporarily)|(?:OpenBLAS|libgomp)\S*.{0,60}(?:pthread_create|[Tt]hread creation) failed|[Cc]an(?:'t|not) (?:fork|start new thread|allocate thread)|[Uu]nable to create (?:a )?(?:new )?(?:native )?thread|RLIMIT_(?:NPROC|NOFILE)"),
    root(F.DATA_LOADER, "errno.shared-memory", ("/dev/shm", "shared memory", "shm_open", "torch_shm", "unable to open shared memory", "plasma", "shmem"), 0.74, "POSIX shared memory of containers",
         r"(?:torch_shm\w*|shm_open|[Ss]hared memory (?:object|file|manager|segment)|/dev/shm/(?!nccl)\S*).{0,80}(?:No space left|[Cc]annot allocate|fail|unable|error|too small|insufficient|exhausted)|(?:unable|[Ff]ailed) to (?:open|allocate|create|resize|write to) (?:a )?shared memory(?! segment /dev/shm/nccl)", origin=Origin.USER),
)  # fmt: skip

_MPI_ROWS = (
    aside(Part.VICTIM, "mpi.aborted", ("mpi_abort", "mpirun noticed", "mpiexec", "prterun", "one or more processes exited", "primary job terminated normally", "process returned a non-zero", "bad termination", "your application terminated with the exit string", "orterun", "ompi_mpi_abort", "prte_"), _MPI,
          r"MPI_ABORT was invoked|(?:mpirun|mpiexec|prterun|orterun) (?:noticed|detected|has exited)|[Oo]ne or more processes (?:exited|returned)|[Pp]rimary job\s+terminated normally|BAD TERMINATION OF ONE OF YOUR APPLICATION"),
    root(F.USER_CODE, "mpi.order", ("before mpi_init", "after mpi_finalize"), 0.76, _MPI, r"was called (?:before MPI_INIT|after MPI_FINALIZE) was invoked"),
    root(F.ENVIRONMENT_MISMATCH, "mpi.not-started", "reliably start one or more daemons", 0.72, _MPI + ": that a daemon did not start, not why", part=Part.GENERIC),
    root(F.ENVIRONMENT_MISMATCH, "mpi.start", ("data unpack would read past end", "data unpack had inadequate space", "host key verification failed"), 0.72, _MPI + ": a daemon of another version, or a login that does not work",
         r"(?:ORTE|PRTE|PMIX)_?ERROR_LOG: Data unpack|^\W*Host key verification failed"),
    root(F.NETWORK_ETH, "mpi.connect", "failed to tcp connect to a peer", 0.7, _MPI, origin=Origin.INFRA),
    root(F.NCCL_CONFIG, "mpi.memlock", "allocate some locked memory", 0.84, _MPI + ": the limit of locked memory"),
    root(F.USER_CODE, "mpi.use", ("not enough slots", "there are not enough slots", "mpirun was unable to launch", "mpirun was unable to find", "no executable was specified", "all nodes which are allocated", "mpi_err_", "mpi_init", "running as root"), 0.74, _MPI,
         r"not enough slots available|was unable to (?:launch|find) the specified (?:application|executable)|MPI_ERR_(?:COMM|COUNT|TYPE|RANK|ROOT|TAG|TRUNCATE|BUFFER|ARG)\b|mpirun has detected an attempt to run as root"),
    root(F.ENVIRONMENT_MISMATCH, "mpi.install", ("opal_init failed", "orte_init failed", "pmix_init", "no components were able", "symbol lookup", "mca_base_component", "unable to load", "libmpi", "pmi server not found", "not compiled with", "not built with", "orte_ess_base", "version of pmi"), 0.78, _MPI,
         r"(?:opal|orte|ompi_mpi|prte|PMIx?)_\w*[Ii]nit\w* (?:failed|error)|PMI2?_Init failed|[Nn]o components were able to be opened|not (?:configured|compiled|built) with (?!CUDA kernel binaries).{0,20}(?:PMI|SLURM|MPI|CUDA)[- ]?(?:support)?|mca_base_component_repository_open: unable to open"),
    root(F.NETWORK_IB, "ucx.error", ("ucx ", "uct_", "ucp_", "rc_verbs", "rc_mlx5", "dc_mlx5", "ud_mlx5"), 0.7, _RDMA,
         r"\bUCX\s+(?:ERROR|FATAL)\b(?!\s+(?:ibv_query_gid|Unable to find specified pkey|cu[A-Z]|shm|mm ep)|.{0,80}(?:recovery support requires|asymmetric endpoint|failure handler|error handler)).{0,160}(?:ibv_|mlx5_\d|verbs|rc_|dc_|ud_|QP|completion|retry|RNR|port|active|transport)", origin=Origin.UNKNOWN),
    root(F.NCCL_CONFIG, "ucx.configuration", ("no active messages transport", "no usable transports", "is not available, please use", "process_vm_"), 0.78, _RDMA + ": devices and transports asked for that are not there, a container without ptrace",
         r"UCX\s+\w+\s+.{0,20}(?:no (?:active messages|usable|remote|auxiliary) transports?\b|network device '\S+' is not available|process_vm_\w+\(.{0,60}not permitted)"),
    root(F.NCCL_CONFIG, "ucx.shared-memory", "ucx ", 0.9, _RDMA + ": transports by shared memory and a limit or a container that refuses them",
         r"UCX\s+ERROR\s+(?:shm(?:get|at|_open)\(.{0,120}failed|open\(file_name=/proc/.{0,60}denied|[Ff]ailed to write \d+ bytes.{0,20}No space left|mm ep .{0,80}Shared memory error)"),
    root(F.NCCL_CONFIG, "ucx.device-table", "ucx ", 0.76, _RDMA + ": a GID, key or transport that was asked for and is not there",
         r"UCX\s+ERROR\s+(?:ibv_query_gid\(.{0,80}failed: Invalid argument|Unable to find specified pkey|cuIpcOpenMemHandle|multi-node NVLINK support is requested)"),
    root(F.ENVIRONMENT_MISMATCH, "ucx.versions", "ucx ", 0.76, _RDMA + ": peers of different builds",
         r"UCX\s+ERROR.{0,80}(?:requires UCX [\d.]+ or later|asymmetric endpoint configuration)"),
    root(F.GPU_OOM, "ucx.gpu-memory", "unable to allocate cuda memory", 0.8, _RDMA),
    aside(Part.VICTIM, "ucx.peer-gone", ("ucx ", "uct_", "ucp_"), _RDMA + ": the other end is gone",
          r"UCX\s+ERROR.{0,80}(?:error handler called|peer failure handler called)|Unexpected UCX error: Endpoint timeout|ucp_ep_create\(.{0,40}Destination is unreachable"),
    root(F.NETWORK_ETH, "ucx.tcp", ("ucx ", "tcp_ep", "tcp_cm"), 0.64, _RDMA, r"\bUCX\s+(?:ERROR|FATAL|DIAG)\b.{0,120}(?:tcp|connect\().{0,60}(?:refused|timed out|unreachable|No route|reset)", origin=Origin.UNKNOWN),
    root(F.NETWORK_LINK, "cxi.link", "_hni", 0.8, "HPE Slingshot's cxi driver: its link's errors", r"\bcxi\w*\b.{0,60}C\d_HNI\w* error: (?:llr|mac|pcs|rx)_", physical=True),
    root(F.NETWORK_IB, "mpich.poll", "ofi poll failed", 0.74, "MPICH and Cray MPICH: the adapter's completion says what", r"OFI poll failed.{0,160}(?:Input/output error|TRNSPRT_ERR|RNR|timed? ?out)", origin=Origin.UNKNOWN),
    aside(Part.VICTIM, "ofi.peer-gone", "transport endpoint is not connected", _RDMA, r"libfabric.{0,160}Transport endpoint is not connected"),
    root(F.NETWORK_ETH, "ofi.error", ("libfabric", "fi_", "ofi_", "net/ofi", "cxi", "efa"), 0.66, _RDMA,
         r"^(?!.*(?:Transport endpoint is not connected|\bcompleted ok\b)).*?(?:NET/OFI|libfabric|\bfi_\w+\(?\)?|\bcxi\w*|\befa\w*)\b.{0,100}(?:RC: -\d+|error|failed|unresponsive|[Uu]nreachable|timed? ?out|CQ .{0,20}err)(?!.{0,20}=\s*0)", origin=Origin.UNKNOWN),
)  # fmt: skip

_CONTAINERS = (
    root(F.ENVIRONMENT_MISMATCH, "box.start", ("oci runtime", "runc", "enroot", "pyxis", "apptainer", "singularity", "containerd", "docker: error", "error response from daemon", "squashfs", "sqsh", "nvidia-container", "failed to create task", "failed to create shim", "error gathering device information", "mounting ", "docker daemon"), 0.8, _BOX,
         r"(?:pyxis|enroot|slurmstepd: error: pyxis)\b(?!.{0,60}(?:couldn't start container|task_init\(\) failed|Could not process JSON)).{0,120}(?:fail|error|couldn't|could not|unable|No such)|\[ERROR\].{0,60}(?:squashfs|enroot|hook)|(?:apptainer|singularity|FATAL):?\s.{0,100}(?:container creation failed|while (?:loading|mounting|extracting|opening|making)|image .{0,40}(?:not found|doesn't exist|no such))|docker: Error response from daemon|Error response from daemon: (?!.{0,40}is not running)|Cannot connect to the Docker daemon|nvidia-container-cli\S* .{0,40}(?:error|fail)|error gathering device information"),
    root(F.ENVIRONMENT_MISMATCH, "box.not-started", ("oci runtime", "runc", "failed to create task", "failed to create containerd task", "failed to create shim", "start container", "task_init() failed"), 0.8, _BOX + ": that it did not start, not why",
         r"OCI runtime (?:create|exec|start) failed|runc(?: \w+)? (?:create|run) failed|failed to create (?:task|containerd task|shim)|pyxis: couldn't start container|spank_pyxis\S* task_init\(\) failed", part=Part.GENERIC),
    root(F.USER_CODE, "box.command", ("permission denied: unknown", "executable file not found", "no such file or directory: unknown", "entrypoint"), 0.7, _BOX,
         r"exec: \"[^\"]+\": (?:executable file not found|permission denied|stat .{0,80}no such file)"),
    root(F.CPU_OOM, "box.memory", "container init was oom-killed", 0.92, _BOX),
    root(F.USER_CODE, "box.request", ("port is already allocated", "bind source path does not exist", "enroot-mount: "), 0.86, _BOX + ": what a person asked of it",
         r"port is already allocated|bind source path does not exist|enroot-mount: failed to mount: .{0,200}No such file"),
    root(F.NETWORK_ETH, "box.registry", ("client.timeout exceeded", "i/o timeout", "failed to connect to", "could not resolve host"), 0.88, _BOX,
         r"Error response from daemon: .{0,120}Client\.Timeout exceeded|[Ff]ailed to pull image .{0,300}dial tcp \S+ i/o timeout|\b(?:pyxis|enroot)\b.{0,40}(?:curl: \(28\) Failed to connect|Could not resolve host)"),
    root(F.DISK_FULL, "box.disk", ("no space left on device", "disk quota", "failed to register layer"), 0.88, _BOX,
         r"(?:failed to register layer|docker|containerd|unsquashfs|enroot|apptainer|/var/lib/(?:docker|containerd)|overlay)\S* .{0,120}No space left on device|write_file: failed .{0,60}No space left"),
    root(F.CPU_OOM, "systemd.oom", ("oom-kill", "result 'oom", "out of memory"), 0.92, _SYSTEMD, r"[Ff]ailed with result 'oom-kill'|A process of this unit has been killed by the OOM killer"),
    root(F.ENVIRONMENT_MISMATCH, "systemd.cannot-execute", ("status=200/", "status=203/", "status=209/", "status=216/", "status=217/", "status=226/"), 0.86, "systemd.exec(5): a unit whose program, user, group or folder is not there",
         r"code=exited, status=(?:200/CHDIR|203/EXEC|209/STDOUT|216/GROUP|217/USER|226/NAMESPACE)\b", origin=Origin.INFRA),
    root(F.UNKNOWN, "systemd.failed", ("failed with result", "main process exited", "start request repeated", "entered failed state"), 0.35, _SYSTEMD,
         r"[Ff]ailed with result '(?:exit-code|signal|core-dump|timeout|watchdog|start-limit-hit)'|Main process exited, code=(?:exited|killed|dumped)|Start request repeated too quickly"),
)  # fmt: skip

SIGNATURES: tuple[Signature, ...] = (*_CRASHES, *_LIMITS, *_MPI_ROWS, *_CONTAINERS)
