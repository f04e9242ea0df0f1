"""The job's own program and its surroundings: Python errors, libraries, data loading, loss."""

# ruff: noqa: E501 - a pattern is read whole

from brctl.evidence.logs.signature import Part, Signature, aside, root
from brctl.model.fault import FaultClass, Origin

_PY = "Python exception texts"
_LD = "dynamic linker texts"
_DATA = "torch.utils.data texts"
_HUB = "hub and HTTP client texts"

_ENVIRONMENT = (
    root(FaultClass.ENVIRONMENT_MISMATCH, "import.failed",
         ("modulenotfounderror", "importerror", "no module named", "cannot import name", "packagenotfounderror"), 0.85, _PY,
         r"ModuleNotFoundError|No module named|ImportError|cannot import name|PackageNotFoundError"),
    root(FaultClass.ENVIRONMENT_MISMATCH, "linker",
         ("undefined symbol", "glibcxx_", "glibc_2", "cannot open shared object file", "symbol lookup error", "version `",
          "wrong elf class", "symbol not found", "libcudart", "libcudnn", "libnvjitlink", "dlopen"), 0.88, _LD,
         r"undefined symbol|version `\S+' not found|(?<!NET/Plugin : )(?:OSError|ImportError|error while loading shared libraries).{0,120}cannot open shared object|"
         r"error while loading shared libraries|symbol lookup error|wrong ELF class|[Ss]ymbol not found|"
         r"(?:Could not|Unable to|cannot) (?:load|dlopen).{0,40}lib\w+\.so"),
    root(FaultClass.ENVIRONMENT_MISMATCH, "versions.differ",
         ("incompatible", "version mismatch", "version conflict", "abi mismatch", "requires transformers", "is required for a normal functioning",
          "versionconflict", "numpy.dtype size changed", "compiled using numpy", "distributionnotfound",
          "different versions of", "conflicting dependencies"), 0.8, "package managers and native modules",
         r"is required for a normal functioning|VersionConflict|numpy\.(?:dtype|ndarray) size changed|compiled using NumPy 1|"
         r"DistributionNotFound|(?:[Vv]ersion|ABI) (?:mismatch|conflict)|[Ii]ncompatible (?:version|ABI|torch|cuda|driver|library)|"
         r"different versions of|conflicting dependencies"),
    root(FaultClass.ENVIRONMENT_MISMATCH, "toolchain",
         ("command not found", "ninja is required", "error building extension", "nvcc fatal", "could not find nvcc", "no nvcc", "gnu version",
          "cudaextension", "not installed", "is required", "apex", "transformer_engine"), 0.62, "build tools and shells",
         r"^(?!.*: (?:-[\w-]+|\$'\\r'|[^\w\s./]+): command).*: command not found|[Nn]inja is required|Error building extension|nvcc fatal|"
         r"(?:Could not find|(?<!which: )\bNo) nvcc|unsupported GNU version|CUDAExtension|"
         r"(?:apex|transformer[_ ]engine|flash[_-]attn).{0,60}(?:not installed|is required|not found|could not be)"),
    root(FaultClass.DISK_FULL, "errno.no-space-cut", "no space left on", 0.72, "errno 28 where a log breaks its lines", r"^(?!.*(?:shared memory|/dev/shm|shm_open|/torch_\d)).*No space left on\s*$", part=Part.GENERIC),
    root(FaultClass.ENVIRONMENT_MISMATCH, "limits",
         ("too many open files", "resource temporarily unavailable", "emfile", "errno 24", "pthread_create failed",
          "can't start new thread", "pids controller", "ulimit", "no child processes", "[errno 11]"), 0.68, "errno 11, 24",
         r"Too many open files|Errno 24\b|pthread_create failed|can't start new thread|rejected by pids controller|fork: (?:retry: )?Resource temporarily"),
)  # fmt: skip

_DATA_ROWS = (
    root(FaultClass.DATA_LOADER, "loader.killed",
         ("dataloader worker", "dataloader workers", "insufficient shared memory", "received 0 items of ancdata",
          "out of shared memory", "shared memory manager", "torch_shm_manager", "caught indexerror in dataloader", "encountered in worker", "file </torch_"), 0.9, _DATA,
         r"DataLoader worker(?: \(pid(?:\(s\))? (?P<pid>\d+)|(?:\(s\)|s)?\b.{0,40}(?:is killed|killed by|exited|died|crashed|failed|hung))|Caught \w+ in DataLoader worker|Unexpected (?:bus error|segmentation fault|floating-point exception|\w+) encountered in worker|[Dd]ata[Ll]oader.{0,40}(?:killed|exited unexpectedly|died|timed out)|insufficient shared memory|"
         r"received 0 items of ancdata|out of shared memory|torch_shm_manager|unable to (?:write to|mmap \d+ bytes from|resize) file </torch_\d"),
    root(FaultClass.DATA_LOADER, "loader.supervised",
         ("supervised_loader.loadererror", "supervised_loader.positionerror"), 0.95, "brctl.training.supervised_loader",
         r"supervised_loader\.(?:Loader|Position)Error: (?:.{0,60}data-loader worker (?P<pid>\d+))?"),
    root(FaultClass.DATA_LOADER, "loader.words",
         ("failed to load", "failed to read", "failed to open", "failed to decode", "failed to fetch", "failed to parse", "error loading",
          "error reading", "error decoding", "error while loading", "error while reading", "error parsing", "error in data", "unable to load",
          "unable to read", "unable to open", "could not load", "could not read", "could not open", "caught ", "pin memory thread",
          "unidentifiedimageerror", "cannot identify image", "timed out", "stalled", "corrupt", "truncated", "arrowinvalid", "jsondecodeerror",
          "readerror", "index file", "invalid record", "invalid sample", "exhausted"), 0.68,
         "dataset library texts",
         r"(?:[Ff]ailed|[Ee]rror|[Uu]nable|[Cc]ould not|[Ee]xception) (?:to |while |in |during |when )?(?:the )?(?:load|read|open|decod|pars|fetch|tokeniz|collat)\w* (?:\w+ ){0,3}(?:dataset|sample|shard|batch|example|image|parquet|tfrecord|jsonl|data ?loader|arrow|tar)(?!.*\.(?:sif|simg|iso|qcow2)\b)|"
         r"Caught \w+(?:Error|Exception) in (?:DataLoader|pin memory)|pin memory thread exited|"
         r"[Uu]nidentifiedImageError|cannot identify image file|(?:dataset|data ?loader|data worker)\w* .{0,30}(?:timed? ?out|stalled|hung|corrupt|exhausted|died|crashed)|"
         r"(?:corrupt|truncat|invalid)\w* (?:\w+ ){0,2}(?:sample|record|tfrecord|parquet|jsonl|image|shard|tar)|ArrowInvalid|"
         r"JSONDecodeError|tarfile\.ReadError|image file is truncated|StopIteration.{0,40}data|index file.{0,40}(?:not (?!provided|given|set\b)|n't|mismatch|corrupt)"),
    aside(Part.CONTEXT, "python.semaphore", ("semlock(", "ctx.lock()", "ctx.rlock()", "ctx.semaphore(", "ctx.boundedsemaphore("), "CPython multiprocessing frames",
          r"_multiprocessing\.SemLock\(|\bctx\.(?:R?Lock|(?:Bounded)?Semaphore)\(", sets="semaphore"),
    root(FaultClass.DATA_LOADER, "loader.no-semaphore", ("no space left on device", "[errno 28]"), 0.95, "sem_open(3): semaphores live in /dev/shm",
         r"^\W*OSError: \[Errno 28\] No space left on device\s*$", when=(("semaphore", "*"),), origin=Origin.USER),
    root(FaultClass.DATA_LOADER, "loader.straggling", ("data loading", "dataloader is", "dataloader bottleneck", "dataloader took"), 0.5, _DATA,
         r"[Dd]ata(?:loader| loading).{0,40}(?:bottleneck|too slow|is slow|took \d{3,}|waiting)"),
)  # fmt: skip

_NUMERIC = (
    root(FaultClass.NUMERIC_NAN, "numeric.nan",
         ("nan", ": inf", "=inf", "= inf", "is inf", "-inf", "loss: inf", "infinite loss", "non-finite", "nonfinite", "not finite", "loss is inf", "grad norm: inf",
          "found inf", "inf or nan", "nan or inf", "loss=inf", "diverge", "loss spike", "exploding", "overflow detected",
          "minimum loss scale", "loss scale is", "current loss scale already at minimum"), 0.86, "training frameworks' loss checks",
         r"^\s*(?:step\s*)?\d+\b.{0,120}[\s,|:=]-?nan\s*$|\b[Ll]oss (?:is|[:=]) ?-?Infinity\b|(?:loss|ppl|perplexity|grad\w*|norm|reward|logits?|gradients?)\w*[\"']?\s*(?:value)?\s*(?:is|[:=|]|was|became|->)\s*[\"']?(?:tensor\()?-?(?:nan|inf)\b|"
         r"\b(?:nan|NaN|NAN)s?\b.{0,30}\b(?:loss|grad|weight|activation|tensor|output|logit|detected|found|encountered)|"
         r"(?:found|detected|encountered|contains?|got|produced|returned|hit).{0,20}\b(?:nan|NaN|NAN|inf|Inf|non-?finite)s?\b|"
         r"(?:loss|gradients?|norm).{0,24}(?:not|non-?)[ -]?finite|non-?finite.{0,40}(?:loss|grad|norm|value|tensor)|"
         r"(?<!Potential )(?<!persistent )[Ll]oss (?:has )?(?:diverged|exploded|spike)|training (?:has )?diverged|[Ee]xploding gradient|"
         r"loss scale already at minimum|[Mm]inimum loss scale|probability tensor contains either", origin=Origin.USER),
    root(FaultClass.USER_CODE, "shell.syntax", ("syntax error near", "unexpected eof while looking", "unbound variable", ": command not found"), 0.84, "bash texts; an option or the end of a line that was taken for a command",
         r": (?:--?\w[\w-]*|\$'\\r'): command not found|syntax error near unexpected token|unexpected EOF while looking for matching|: unbound variable\s*$", origin=Origin.USER),
    root(FaultClass.ENVIRONMENT_MISMATCH, "pip.no-version", ("could not find a version that satisfies", "no matching distribution found", "resolutionimpossible"), 0.86, "pip texts", origin=Origin.USER),
    root(FaultClass.SILENT_CORRUPTION, "rerun.differs", "rerun_state_machine", 0.9, "Megatron's rerun state machine: the same step on the same GPU, or on another one, gave another result",
         r"rerun_state_machine\b.{0,200}(?:Possible (?:transient|persistent) error|result is not reproducible)", physical=True),
    root(FaultClass.NUMERIC_NAN, "numeric.scale-floor", "reducing to", 0.64, "DeepSpeed's loss scaler: near the floor after a search downwards",
         r"OVERFLOW!.{0,120}reducing to (?:16|8|4|2|1)(?:\.0)?\s*$", origin=Origin.UNKNOWN, own=True),
    root(FaultClass.NUMERIC_NAN, "numeric.scale-gone", ("loss scale to", "loss scale:"), 0.8, "fp16 loss scalers",
         r"loss scale to 0(?:\.\d+)?\s*$|reducing loss scale to [\d.]*e-(?:[1-9]\d|0?[5-9])", origin=Origin.USER),
    aside(Part.CONTEXT, "numeric.skipped", ("overflow!", "skipping step", "loss scale to", "gradient overflow"), "fp16 loss scalers",
          r"OVERFLOW!.{0,60}[Ss]kipping|[Gg]radient overflow|reducing loss scale to"),
)  # fmt: skip

_CODE = (
    root(FaultClass.USER_CODE, "code.words",
         ("size mismatch for", "error(s) in loading state_dict", "missing key(s)", "mat1 and mat2 shapes", "expected all tensors",
          "must match the size of tensor", "shape '[", "is invalid for input of size", "does not require grad",
          "inplace operation", "trying to backward through the graph", "unrecognized arguments", "got an unexpected keyword",
          "the following arguments are required", "not divisible by", "must be divisible", "expected scalar type",
          "invalid choice:", "conflicting option", "index out of range in self", "index out of bounds",
          "sizes of tensors must match", "unexpected key(s)", "hydra.errors", "omegaconf.errors"), 0.8, "PyTorch, argparse and Hydra texts",
         r"size mismatch for|loading state_dict|[Mm]issing key\(s\)|mat1 and mat2 shapes|Expected all tensors|must match the size of tensor|"
         r"is invalid for input of size|does not require grad|modified by an inplace operation|backward through the graph|"
         r"unrecognized arguments|unexpected keyword|following arguments are required|(?:not|must be) divisible|"
         r"expected scalar type|invalid choice:|index out of (?:range|bounds)|[Ss]izes of tensors must match|"
         r"(?:hydra|omegaconf)\.errors"),
    root(FaultClass.USER_CODE, "code.syntax-place", 'file "', 0.75, "CPython prints a syntax error's place without a function name",
         r'^(?:\W{0,3}\[[^\]]{1,40}\]:?)*\s*File "[^"]+\.py", line \d+\s*$'),
    root(FaultClass.ENVIRONMENT_MISMATCH, "access.device", ("permission denied", "/dev/kfd", "/dev/dri", "docker"), 0.8, "device nodes and the container daemon: whoever may use them is set up on the machine",
         r"/dev/(?:kfd|dri/|nvidia|infiniband/).{0,60}[Pp]ermission denied|[Pp]ermission denied.{0,40}/dev/(?:kfd|dri/|nvidia|infiniband/)|connect to the Docker daemon socket", origin=Origin.INFRA),
    root(FaultClass.ENVIRONMENT_MISMATCH, "access.cluster", ("unauthorized", "you must be logged in to the server", "client certificate"), 0.74, "Kubernetes clients: credentials that the cluster does not take",
         r"You must be logged in to the server|\bclient certificate\b.{0,120}\b(?:is|has) expired|\bfailed to (?:list|watch|get|create) \S.{0,60}: Unauthorized", origin=Origin.INFRA),
    root(FaultClass.USER_CODE, "code.access",
         ("401 client error", "403 client error", "gatedrepo", "repository not found", "repositorynotfound", "permission denied",
          "permissionerror", "[errno 13]", "accessdenied", "invalid credentials", "unauthorized", "permission_denied", "permissiondenied"), 0.6, _HUB,
         r"40[13] Client Error|GatedRepo|Repository ?Not ?Found|(?<!dmesg: )(?<!read kernel buffer failed: )Permission(?:Error|[ _]?denied)|Errno 13\b|AccessDenied|(?<!process is )[Uu]nauthorized",
         part=Part.GENERIC),
    root(FaultClass.NETWORK_ETH, "http.unreachable",
         ("max retries exceeded", "newconnectionerror", "connecttimeout", "readtimeout", "503 server error",
          "429 client error", "couldn't reach", "connectionerror", "urlopen error", "endpointconnectionerror"), 0.45, _HUB,
         r"[Mm]ax retries exceeded|NewConnectionError|ConnectTimeout|50[0-4] Server Error|429 Client Error|"
         r"[Cc]ouldn't (?:reach|connect to)|urlopen error|EndpointConnectionError",
         part=Part.GENERIC, origin=Origin.UNKNOWN),
)  # fmt: skip

_STACKS = (
    aside(Part.CONTEXT, "stack.thread", ("(active)", "(idle)", "(active+gil)", "mainthread", "process "), "py-spy dump output",
          r"^\s*(?:Thread|Process) (?:0x)?[0-9a-f]+\b.*(?:\((?:active|idle|active\+gil)\)|: \S*python)", sets="py-spy"),
    root(FaultClass.HANG_MISMATCH, "stack.in-collective",
         ("torch/distributed", "distributed_c10d", "deepspeed/comm", "megatron/core", "collectives", "c10d::", "communicat", "weight_update"), 0.8,
         "py-spy dump output",
         r"^\s+\w*(?:broadcast|all_?reduce|all_?gather|reduce_scatter|barrier|all_?to_?all|recv|send|wait|init_process_group|new_group|init_weights_update_group|communicat\w*)\w* \(\S+",
         when=(("py-spy", "*"),), origin=Origin.USER),
    root(FaultClass.HANG_MISMATCH, "stack.waiting",
         ("recv_multipart", "wait (", "_try_get_data", "acquire (", "select (", "poll ("), 0.72, "py-spy dump output",
         r"^\s+(?:recv_multipart|wait|_try_get_data|acquire|select|poll|join) \(\S+:\d+\)",
         when=(("py-spy", "*"),), origin=Origin.USER),
    root(FaultClass.STORAGE_CHECKPOINT, "stack.in-save",
         ("torch/serialization", "torch/distributed/checkpoint", "save_checkpoint", "_save", "fsync"), 0.5, "py-spy dump output",
         r"^\s+(?:save\w*|_save\w*|write\w*|fsync|flush) \(\S*(?:serialization|checkpoint)\S*:\d+\)",
         when=(("py-spy", "*"),)),
)  # fmt: skip

SIGNATURES: tuple[Signature, ...] = (*_ENVIRONMENT, *_DATA_ROWS, *_NUMERIC, *_CODE, *_STACKS)
