"""What frameworks, launchers, batch systems and containers print, beyond the tables of their own.

Source: texts of PyTorch, NCCL 2.4 to 2.28, TensorFlow, JAX, Horovod, Open MPI, Ray, Slurm, PBS, LSF, OpenCV,
PIL, libjpeg, Docker, nvidia-container-toolkit and the CUDA runtime (error names of driver_types.h).
"""

# ruff: noqa: E501, S108 - a pattern is read whole; the path is only searched for

from brctl.evidence.logs.signature import Part, aside, root
from brctl.model.fault import FaultClass, Origin

_NCCL = "NCCL source texts, 2.4 to 2.28"
_TORCH = "PyTorch error texts"
_CUDA = "CUDA runtime API, error codes"
_DATA = "data readers: PIL, OpenCV, libjpeg, TensorFlow, Arrow, LMDB"
_BATCH = "PBS, LSF, SGE and MPI launchers"
_BOX = "Docker, containerd and nvidia-container-toolkit"

_NCCL_ROWS = (
    root(FaultClass.GPU_OOM, "nccl.cuda-calloc", ("failed to cuda calloc", "failed to cuda malloc", "failed to cuda host"), 0.82, _NCCL, r"Failed to CUDA (?:host )?(?:c|m)alloc"),
    root(FaultClass.NCCL_CONFIG, "nccl.shm-extend", ("/dev/shm/nccl", "shared memory segment", "shm-size"), 0.92, _NCCL, r"failed to extend /dev/shm/nccl|Error while (?:creating|attaching|mapping).{0,30}shared memory segment"),
    root(FaultClass.NCCL_CONFIG, "nccl.shm-of-platform", ("/dev/shm/nccl", "shared memory segment"), 0.925, _NCCL + "; pods of a CI runner: the platform sets their /dev/shm, not who wrote the job",
         r"[\w.]-workflow:\d+:\d+ .{0,80}(?:failed to extend /dev/shm/nccl|Error while (?:creating|attaching|mapping).{0,30}shared memory segment)", origin=Origin.INFRA),
    root(FaultClass.NCCL_CONFIG, "nccl.memlock-limit", ("ibv_reg_mr", "ibv_create_", "memlock"), 0.86, _NCCL, r"ibv_(?:reg_mr\w*|create_\w+|alloc_pd)\b.{0,80}Cannot allocate memory"),
    root(FaultClass.ENVIRONMENT_MISMATCH, "nccl.versions-differ", ("mismatched nccl version", "nccl version mismatch", "incompatible nccl"), 0.92, _NCCL, r"Mismatched NCCL version|NCCL version mismatch|[Ii]ncompatible NCCL"),
    root(FaultClass.NCCL_CONFIG, "nccl.loopback", ("127.0.0.1", "localhost"), 0.84, _NCCL, r"(?:NCCL|[Cc]onnect|socket).{0,80}(?:to |host )?(?:127\.0\.0\.1|localhost)\S*.{0,40}(?:refused|failed|timed out)"),
    root(FaultClass.NCCL_CONFIG, "nccl.network-missing", ("couldn't find any available", "could not find net", "no nic", "missing or invalid", "no gid", "unable to find the requested", "nccl_net", "network plugin", "nccl_ib_hca", "nccl_socket_ifname", "net/ofi", "fi_getinfo"), 0.8, _NCCL,
         r"Could not find (?:NET|a net)|[Cc]ouldn't find any available network|(?:NET|network) plugin .{0,40}(?:not found|failed|required)|NCCL_(?:IB_HCA|NET|SOCKET_IFNAME|IB_GID_INDEX|TOPO_FILE)\b.{0,60}(?:not found|no match|invalid|missing|wrong)|No (?:usable|valid) GID|Missing or invalid NCCL_|fi_getinfo.{0,60}(?:No data available|output empty list|no provider)"),
    root(FaultClass.DRIVER_FIRMWARE, "nccl.nvls-cuda", "transport/nvls", 0.78, "NCCL's NVLS transport: a fabric manager that was restarted without a reset of the GPUs",
         r"transport/nvls\.cc:\d+ NCCL WARN Cuda failure", origin=Origin.INFRA),
    root(FaultClass.DRIVER_FIRMWARE, "nccl.nvls-failed", ("nvls", "nvlink sharp", "multicast"), 0.74, _NCCL,
         r"transport/nvls\.cc:\d+ NCCL WARN(?! Cuda failure)|Failed to bind NVLink SHARP|NCCL WARN.{0,80}(?:NVLS|[Mm]ulticast).{0,80}(?:fail|error|CUDA)", origin=Origin.INFRA),
    root(FaultClass.HANG_MISMATCH, "nccl.mismatched-collective", ("mismatched collective", "collective mismatch", "mismatch in collective", "mismatch in the collective", "due to shape mismatches"), 0.9, _NCCL, r"[Mm]ismatched collective|(?<!may be a )[Mm]ismatch in collective|net_socket\.cc.{0,200}mismatch in collective|[Ss]hape mismatch in the collective|desired operation due to shape mismatches", origin=Origin.USER),
    aside(Part.BENIGN, "nccl.info-noise", ("nccl info graph", "could not find a path", "nccl info tree", "nccl info p2p", "is not available on dev", "nccl info ncclcommsplit", "nccl info threadthresholds"), _NCCL,
          r"NCCL INFO (?!.*(?:-> [1-7]\b|Connection refused|exceeded|Abort|closed by))"),
)  # fmt: skip

_TORCH_ROWS = (
    root(FaultClass.USER_CODE, "store.port-taken", ("failed to listen on any local", "has failed to bind", "failed to bind to"), 0.82, _TORCH, r"failed to listen on any local network address|(?:failed to bind|bind).{0,60}(?:errno: 98|EADDRINUSE|already in use)"),
    root(FaultClass.NCCL_CONFIG, "store.port-forbidden", "failed to bind", 0.8, _TORCH + ": a port that only root may open", r"failed to bind.{0,80}(?:errno: 13|EACCES)"),
    aside(Part.VICTIM, "c10d.others-failed", ("monitoredbarrier", "inconsistent between workers", "store->get", "check rank", "another rank", "other rank", "lost communication", "peer process"), _TORCH,
          r"successfully reached monitoredBarrier|gradients are inconsistent between workers|store->get\(.{0,20}\) got error|[Pp]lease check rank \d+ logs"),
    root(FaultClass.USER_CODE, "torch.usage", ("expected to have finished", "expected all tensors", "expected a cuda", "weight type", "should be the same", "default process group has not been", "must be called before", "cannot re-initialize cuda", "does not have a deterministic", "grad can be implicitly", "leaf variable", "out of bounds", "expected object of", "expected input", "shape mismatch", "size mismatch", "incompatible shapes", "dimension", "not implemented for", "no grad accumulator", "batch size", "wrong shape", "must be divisible", "process group"), 0.78, _TORCH,
         r"Input type .{0,80}weight type .{0,60}should be the same|Cannot re-initialize CUDA in forked subprocess|Default process group has not been initialized|grad can be implicitly created|a leaf Variable that requires grad|not implemented for '|[Ii]ncompatible shapes|(?:shape|size) mismatch|Expected (?:input|object|tensor|a|more|\d+)[ -].{0,80}(?:got|but)|does not have a deterministic implementation|Target \d+ is out of bounds|IndexError: Target|has inconsistent \d+ params"),
    root(FaultClass.NUMERIC_NAN, "torch.nan", ("returned nan", "nan values", "nan or inf", "inf or nan", "is nan, stopping", "nan loss", "loss is nan", "nan detected", "nan in", "contains nan", "found nan", "loss nan", "nan avg"), 0.88, "training frameworks' loss checks",
         r"returned nan values in its|NaN (?:or Inf )?(?:found|detected|loss|values?|encountered)|[Ll]oss (?:is|was|became) (?:nan|NaN|inf)|(?:nan|NaN),? stopping training|[Mm]odel diverged with loss = NaN|\bnan avg\b|contains? (?:nan|NaN)s?\b|found NaN in", origin=Origin.USER),
    root(FaultClass.GPU_OOM, "gpu.out-of-memory-other", ("resourceexhaustederror", "oom when allocating", "cuda_error_out_of_memory", "out of memory", "cudnn_status_not_initialized", "allocator (gpu_", "failed to allocate", "ran out of memory trying to allocate", "cublas_status_alloc", "not enough gpu memory", "cublas_status_not_initialized", "would exceed", "larger than the maximum", "out_of_memory: ", "rmm failure", "cudaerrormemoryallocation", "max seq len", "ncudalib", "memory not enough", "enough gpu ram"), 0.84, "TensorFlow, JAX, vLLM, RMM and CUDA library texts",
         r"out_of_memory: (?:CUDA|RMM)|max seq len \(\d+\) is larger than the maximum number of tokens|NCudaLib::TOutOfMemory|ResourceExhaustedError|OOM when allocating tensor|Allocator \(GPU_\d+_bfc\) ran out of memory|CU(?:DNN|BLAS)_STATUS_NOT_INITIALIZED|CUBLAS_STATUS_ALLOC_FAILED|[Nn]ot enough (?:GPU|CUDA) memory|Memory not enough: current free memory|enough GPU RAM to fit|(?:XLA|jax).{0,60}(?:Out of memory|RESOURCE_EXHAUSTED)|RESOURCE_EXHAUSTED: Out of memory|failed to allocate .{0,40}(?:device memory|from device)"),
    root(FaultClass.STRAGGLER_SLOW, "job.straggler", ("straggler", "slow rank", "slowest rank", "slow node"), 0.66, "straggler detectors", r"\b[Ss]traggl(?:er|ing)\b(?! \w+ (?:is )?(?:enabled|disabled|on|off|started|interval)\b).{0,60}(?:rank|node|host|GPU|detect)|(?:rank|node|host|GPU) \S+ .{0,40}(?:is|was|as|are) (?:a )?(?:straggler|the slowest|slower than)", origin=Origin.INFRA),
    root(FaultClass.NETWORK_ETH, "http.no-route", ("connecttimeout", "max retries exceeded", "newconnectionerror", "name resolution", "localentrynotfounderror", "offline mode", "couldn't connect to", "can't load", "we couldn't connect", "failed to establish a new connection", "connection to "), 0.6, "hub and HTTP client texts",
         r"We couldn't connect to|Failed to establish a new connection|Connection to \S+ timed out|LocalEntryNotFoundError|ConnectTimeout(?:Error)?\b|NameResolutionError", origin=Origin.UNKNOWN, part=Part.GENERIC),
)  # fmt: skip

_DATA_ROWS = (
    root(FaultClass.DATA_LOADER, "data.broken-sample", ("corrupt jpeg", "premature end", "truncated file read", "broken data stream", "broken png", "image file is truncated", "cannot identify image", "!_src.empty()", "!ssize.empty()", "datalosserror", "corrupted record", "truncated record", "invalid jpeg", "invalid png", "decode error", "decoding error", "moov atom", "invalid data found", "could not decode", "arrowinvalid", "parquet", "mapfullerror", "badzipfile", "invalid tar", "end of sequence", "input is empty", "error reading image"), 0.82, _DATA,
         r"Corrupt JPEG data(?!: \d+ extraneous bytes)|premature end of (?:data|JPEG|file)|Truncated File Read|broken data stream|broken PNG file|image file is truncated|cannot identify image|!_src\.empty\(\)|!ssize\.empty\(\)|DataLossError(?!.*\[Op:(?:Restore|Save|Merge)V2)|(?:corrupted|truncated) record at|Invalid (?:JPEG|PNG|image|tar|TFRecord)|moov atom not found|Invalid data found when processing input|ArrowInvalid|(?:Parquet|parquet).{0,60}(?:corrupt|invalid|magic)|MapFullError|End of sequence|OutOfRangeError|[Ii]nput is empty"),
    root(FaultClass.DATA_LOADER, "data.worker", ("dataloader", "data loader", "encountered in worker", "pin memory thread", "prefetch", "dataset worker", "fetcher", "loader worker", "_next_data", "worker_loop"), 0.84, "torch.utils.data and loader texts",
         r"DataLoader worker (?:\(pid|process|.{0,40}(?:killed|exited|died|crashed|failed|hung))|Unexpected .{1,40} encountered in worker|[Pp]in memory thread exited|(?:data ?loader|dataset|prefetch\w*|loader) (?:worker|process|thread)\w*.{0,60}(?:died|killed|exited|crash|timed out|stuck|hung|dead)|Caught \w+ in DataLoader worker"),
    root(FaultClass.DATA_LOADER, "data.slow", ("dataloader", "data loading", "input pipeline", "data time", "data_time", "starv"), 0.62, "loader bottleneck warnings",
         r"(?:data ?loader|data loading|input pipeline|data pipeline).{0,60}(?:bottleneck|too slow|is slow|starv|waiting for data|cannot keep up)|GPU(?:s)? (?:is|are) starv(?:ed|ing)"),
)  # fmt: skip

_ENVIRONMENT = (
    root(FaultClass.ENVIRONMENT_MISMATCH, "libs.built-for-another", ("compiled against", "compiled without", "cuda setup failed", "dependency resolver", "resolutionimpossible", "multiarray failed", "unsupported gpu arch", "version magic", "no matching distribution", "requires-python", "incompatible architecture"), 0.82, "pip, conda, numpy and bitsandbytes texts",
         r"compiled against .{0,60}(?:but|version)|compiled without (?:GPU|CUDA)|CUDA Setup failed|ResolutionImpossible|multiarray failed to import|[Uu]nsupported gpu arch|No matching distribution found|incompatible architecture"),
    root(FaultClass.ENVIRONMENT_MISMATCH, "pip.conflicts", "dependency resolver", 0.4, "pip: it installed all the same; what breaks by it says so itself", r"dependency resolver does not", part=Part.GENERIC),
    root(FaultClass.CPU_OOM, "java.heap", ("java.lang.outofmemoryerror", "java heap space", "gc overhead limit"), 0.9, "JVM texts", r"java\.lang\.OutOfMemoryError|Java heap space|GC overhead limit exceeded"),
    root(FaultClass.USER_CODE, "shell.no-script", ("can't open file", "no such file or directory"), 0.62, "CPython and shell texts", r"can't open file '|^(?:/\S+: )?(?:bash|sh|slurm_script|\S+\.sh): (?:line \d+: )?\S+: No such file or directory", part=Part.GENERIC),
    root(FaultClass.ENVIRONMENT_MISMATCH, "cuda.combination", ("unsupported display driver", "system_driver_mismatch", "does not match dso", "forward compatib", "unsupported toolchain", "provided ptx", "invalid device function", "cudaerrorinsufficientdriver", "cuda initialization", "no kernel image", "named symbol not found", "compiled with", "does not match the version", "was built with", "cuda capability", "requires a newer"), 0.88, _CUDA,
         r"unsupported display driver|SYSTEM_DRIVER_MISMATCH|does not match DSO version|unsupported toolchain|provided PTX was compiled|invalid device function|named symbol not found|(?:PyTorch|torch\w*|TensorFlow) .{0,80}compiled with (?:a )?different|CUDA capability sm_\d+ is not compatible|requires a newer (?:driver|CUDA)|no kernel image is available"),
    root(FaultClass.ENVIRONMENT_MISMATCH, "cuda.init", ("initialization error", "cuda unknown error", "busy or unavailable", "cuda_error_not_initialized", "cudaerrorinitialization", "operation not supported", "error 999", "error 803", "error 804", "error 304"), 0.64, _CUDA,
         r"CUDA (?:runtime |driver )?error:? ?(?:\(?\d+\)?:? )?initialization error|cudaErrorInitializationError|CUDA_ERROR_NOT_INITIALIZED|Error 80[34]: |Error 304: |busy or unavailable", origin=Origin.INFRA),
    root(FaultClass.DRIVER_FIRMWARE, "driver.load", ("key was rejected by service", "disagrees about version of symbol", "dkms", "module nvidia", "nvidia-modprobe", "can't find an irq", "module not found", "unknown symbol", "nvidia-persistenced", "driver not loaded", "nvml error"), 0.9, "module loader, DKMS and NVIDIA installer texts",
         r"(?:nvidia\S*|modprobe).{0,80}(?:Key was rejected by service|disagrees about version|Unknown symbol|Exec format error|Module nvidia\S* not found)|DKMS.{0,60}(?:fail|error)|Bad return status for module build|(?:nvidia-container-cli: |CDI device).{0,100}driver not loaded|nvidia-container-cli: .{0,60}(?:nvml error|driver rpc error|load library failed)|NVRM: Can't find an IRQ", origin=Origin.INFRA),
    root(FaultClass.DRIVER_FIRMWARE, "driver.no-devices", "nvidia-persistenced", 0.6, "nvidia-persistenced: it opens what the driver offers, and tells not why that fails",
         r"nvidia-persistenced.{0,60}[Ff]ailed(?! to lock PID)", part=Part.GENERIC, origin=Origin.INFRA),
    root(FaultClass.ENVIRONMENT_MISMATCH, "driver.version-differs", ("kernel module has the version", "unable to determine neuron driver version"), 0.88, "NVIDIA and Neuron drivers: module and libraries of two releases",
         r"NVRM: .{0,20}kernel module has the version|[Uu]nable to determine Neuron Driver version", origin=Origin.INFRA),
    root(FaultClass.ENVIRONMENT_MISMATCH, "k8s.plugin-api", "unknown service deviceplugin", 0.86, "device plug-ins of another API than the kubelet's", origin=Origin.INFRA),
    root(FaultClass.ENVIRONMENT_MISMATCH, "mpi.provider", "ofi endpoint open failed", 0.8, "libfabric: a provider for devices that this machine does not have", r"OFI endpoint open failed(?!.*Cannot allocate)", origin=Origin.INFRA),
    root(FaultClass.ENVIRONMENT_MISMATCH, "box.gpu-runtime", ("unknown runtime", "could not select device driver", "unknown or invalid runtime", "unsatisfied condition", "requirement error", "exec format error", "no such file or directory: unknown", "executable file not found", "cdi device", "could not open image"), 0.86, _BOX,
         r"[Uu]nknown (?:or invalid )?runtime(?: name| specified)?:? ?nvidia|could not select device driver|unsatisfied condition|requirement error|exec format error|unresolvable CDI devices(?!.*driver not loaded)|executable file not found in \$PATH|could not open image \S+\.(?:sif|simg)\b"),
    root(FaultClass.ENVIRONMENT_MISMATCH, "libs.api-gone", ("has no attribute", "was removed in the numpy", "descriptors cannot", "can't get attribute", "with arguments from the", "got an unexpected keyword", "is not defined", "is not subscriptable", "operand type(s) for |"), 0.81, "NumPy 2, setuptools, torch, protobuf and CPython: a name or a form that another release has, or that an optional import would have given",
         r"^(?!.*Unable to initialize backend).*module '(?:numpy|pkgutil|scipy|sklearn|pandas|pyarrow|tensorflow|keras|jax|jaxlib|flax|transformers|datasets|tokenizers|accelerate|deepspeed|triton|PIL|cv2|ray|cupy|numba|pydantic|inspect|collections|asyncio|ssl|torch)(?:\.[\w.]+)?' has no attribute|type object 'torch\.[\w.]+' has no attribute|Can't get attribute '\w+' on <module '(?:torch|numpy|pandas|sklearn|transformers)\b|name '(?:flash_attn\w*|amp_C|fused_(?:adam|layer_norm|dense|rms_norm|softmax)\w*|str2optimizer\w*|init_empty_weights|selective_scan\w*|causal_conv1d\w*)' is not defined|'(?:type|ABCMeta|_GenericAlias)' object is not subscriptable|operand type\(s\) for \|: '(?:type|ABCMeta|NoneType)'|Could not run '(?!aten::)\w+::\w+' with arguments from the '|(?:\b(?:Seq2Seq|SFT|DPO|PPO|GRPO|Reward|ORPO|KTO)?Trainer|TrainingArguments|\b(?:Async)?Client|\bflash_attn\w*|Accelerator|\b\w{1,60}ForCausalLM)(?:\.__init__)?\(\) got an unexpected keyword|was removed in the NumPy 2\.\d release|Descriptors cannot (?:not )?be created directly"),
    root(FaultClass.ENVIRONMENT_MISMATCH, "lmod.unknown-module", "module(s) are unknown", 0.84, "Lmod"),
    root(FaultClass.ENVIRONMENT_MISMATCH, "libs.missing", ("cannot open shared object", "not found (required by", "glibc", "glibcxx", "cxxabi", "libcuda.so", "dlopen", "could not load dynamic library", "module 'torch' has no attribute", "no module named", "undefined symbol", "cannot import name"), 0.84, "dynamic linker and Python import texts",
         r"version `(?:GLIBC|GLIBCXX|CXXABI)\S+' not found|not found \(required by|libcuda\.so(?:\.1)?: cannot open|undefined symbol: \w+"),
)  # fmt: skip

_BATCH_ROWS = (
    root(FaultClass.PREEMPTION_SIGTERM, "batch.time", ("walltime", "term_runlimit", "run time limit", "h_rt", "job killed:", "runlimit", "exceeded its time", "wallclock"), 0.92, _BATCH,
         r"PBS: job killed: walltime|TERM_RUNLIMIT|walltime \d+ exceeded limit|exceed(?:ed|s) (?:its |the |hard |soft )?(?:wall ?(?:clock|time)?|run ?time|job time|time)[ _]?(?:limit)?\b|\bh_rt\b(?![\w=, ]{0,24}\bor\b).{0,40}(?:exceed|reach|limit)|(?:exceed\w*|enforced|reached) (?:hard |soft )?h_rt\b(?!,? or|, )", part=Part.STOPPED, origin=Origin.USER),
    root(FaultClass.CPU_OOM, "batch.memory", ("job killed:", "exceeded limit", "term_memlimit", "vmem", "memory limit", "exceeded memory", "memlimit", "out-of-memory handler"), 0.92, _BATCH,
         r"PBS: job killed: (?:v?mem|cgroup mem)|TERM_MEMLIMIT|(?:v?mem) \d+\w* exceeded limit|memory usage limit|exceed(?:ed|s) (?:its |the )?(?:job |virtual )?memory limit"),
    root(FaultClass.PREEMPTION_SIGTERM, "cloud.taken-back", ("compute.instances.preempted", "taintmanagereviction", "marking for deletion pod", "evicting pod", "scheduled event", "interruption notice", "rebalance recommendation", "eventtype"), 0.84, "clouds and Kubernetes that take a machine back",
         r"compute\.instances\.preempted|TaintManagerEviction|Marking for deletion Pod|evicting pod \S+|interruption notice|EventType\W+Preempt", part=Part.STOPPED, origin=Origin.INFRA),
    root(FaultClass.PREEMPTION_SIGTERM, "batch.stopped", ("term_owner", "term_admin", "term_preempt", "bkill", "qdel", "scancel", "requested to terminate", "stop requested", "job was killed by"), 0.82, _BATCH,
         r"TERM_(?:ADMIN|PREEMPT|WINDOW)|requested to terminate", part=Part.STOPPED, origin=Origin.INFRA),
    root(FaultClass.PREEMPTION_SIGTERM, "batch.stopped-by-owner", ("term_owner", "qdel", "deleted by"), 0.82, _BATCH,
         r"TERM_OWNER|deleted (?:by|as a result of) .{0,40}(?:qdel|user|owner)", part=Part.STOPPED, origin=Origin.USER),
    root(FaultClass.NODE_FAILURE, "mpi.daemon-lost", ("lost communication with a remote daemon", "orte", "prte", "hydra", "daemon on node", "ssh: connect to host", "client_loop: send disconnect", "connection to host", "node went down", "lost contact with", "lost connection to node"), 0.68, _BATCH,
         r"lost communication with (?:a )?remote daemon|daemon .{0,40}(?:on node|on host) (?P<host>\S+).{0,40}(?:died|exited|lost|terminated)|ssh: connect to host (?P<host2>\S+) port \d+: (?:No route|Connection timed out|Connection refused)|[Ll]ost (?:contact|connection) (?:with|to) (?:node|host|worker) (?P<host3>\S+)|[Nn]ode \S+ (?:went|has gone|is) (?:down|offline|unreachable)"),
    root(FaultClass.NETWORK_ETH, "slurm.controller-lost", ("unable to contact", "communication connection failure", "connect failure"), 0.72, "Slurm texts",
         r"Unable to contact slurm controller|[Cc]ommunication connection failure", origin=Origin.INFRA),
    root(FaultClass.NETWORK_ETH, "mpi.tcp", ("tcp connection to another process", "failed to tcp connect", "btl_tcp"), 0.74, "Open MPI's TCP transport",
         r"unable to complete a TCP connection to another process|failed to TCP connect to a peer|btl_tcp\S*.{0,80}(?:connect\(\) to|Unable to connect).{0,80}(?:failed|timed out|No route)", origin=Origin.INFRA),
    aside(Part.BENIGN, "slurm.busy", ("socket timed out on send/recv", "job step creation temporarily disabled"), "Slurm texts; a busy controller answers later", r"slurm_\w+: .{0,80}Socket timed out on send/recv|temporarily disabled, retrying"),
    root(FaultClass.NETWORK_LINK, "switch.port-of-link", "%ethport", 0.8, "NX-OS syslog: a port that its own link took down",
         r"%ETHPORT-\d-(?:IF_DOWN_(?:LINK_FAILURE|INITIALIZING)|IF_UNSUPPORTED_TRANSCEIVER|IF_DOWN_ERROR_DISABLED: .{0,120}link-flap)", physical=True),
    root(FaultClass.NETWORK_SWITCH, "switch.syslog", ("%link", "%ethport", "%lineproto", "%platform", "%sys", "%bgp", "%ospf", "%port", "if_down", "ifdown", "spanning", "portmgr", "lldp", "if_link_down"), 0.72, "Cisco, Arista, Juniper, Cumulus and SONiC syslog",
         r"%(?:LINK|ETHPORT|LINEPROTO|PORT|PLATFORM|BGP|OSPF|MODULE|ETH_PORT_CHANNEL)\w*-[0-5]-(?!(?:IF_UP|SPEED|IF_DUPLEX|IF_\w*ADMIN_DOWN|\w*FLOW_CONTROL)\b)(?!.*(?:state to up\b|\bUp\b|state Established|\bto FULL\b|collision resolution|[Cc]leared\b|\bis up\b|[Aa]dministratively down))\w+|SNMP_TRAP_LINK_DOWN|(?:portmgrd|orchagent|portsyncd).{0,80}(?:down|DOWN)|[Ii]nterface (?:Ethernet|swp|xe-|et-)(?!.*[Aa]dministratively)\S+.{0,40}\bdown\b", physical=True),
)  # fmt: skip

SIGNATURES = (*_NCCL_ROWS, *_TORCH_ROWS, *_DATA_ROWS, *_ENVIRONMENT, *_BATCH_ROWS)
