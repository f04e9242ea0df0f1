"""What training frameworks print about their own trouble, by what they speak of.

Source: message texts of PyTorch (c10d, elastic, FSDP, dynamo), Megatron-LM, DeepSpeed, Lightning, Hugging Face
libraries, NeMo, JAX and XLA, Ray, vLLM, veRL, Composer, wandb and MLflow, taken from their packages.
"""

# ruff: noqa: E501 - a pattern is read whole

from brctl.evidence.logs.signature import Part, Signature, aside, root
from brctl.model.fault import FaultClass as F
from brctl.model.fault import Origin

_C10D = "PyTorch c10d and elastic texts"
_XLA = "JAX and XLA status texts"
_HUB = "Hugging Face hub texts"
_RAY = "Ray texts"
_SERVE = "vLLM, SGLang and veRL texts"

_DISTRIBUTED = (
    root(F.HANG_MISMATCH, "c10d.missing-ranks", ("missing ranks", "ranks are missing", "did not join"), 0.78, _C10D,
         r"(?:barrier|all_?gather|broadcast|reduce|collective)\w* failed -- missing ranks: ?(?P<ranks>[\d, ]+)|(?:ranks? )?\[?(?P<rank>\d+)\]? (?:are|is) missing from|the following ranks (?:are missing|did not)", origin=Origin.UNKNOWN),
    root(F.NCCL_CONFIG, "horovod.join-timeout", ("waiting for tasks to start", "hosts to acknowledge", "tasks to register"), 0.7, "Horovod launcher texts: not all tasks came",
         r"Timed out waiting for (?:tasks to (?:start|register)|hosts to acknowledge)"),
    root(F.USER_CODE, "c10d.world-size", ("cannot init process group", "no backend type", "world_size", "world size", "environment variable", "process group", "nproc_per_node", "nproc-per-node", "master_addr"), 0.76, _C10D,
         r"Cannot init process group where rank|[Ww]orld ?_?size \(?\S{0,12}\)? ?.{0,60}(?:not (?:equal|divisible|match)|must|should|is not|does not|less than|larger than)|initialize the default process group twice|No backend type associated with device type|process group (?:has not been initialized|is not initialized|.{0,20}does not exist)|(?:tensor|pipeline|context|expert|data|sequence)[_ -](?:model[_ -])?parallel\w*.{0,60}(?:must|should|not divisible|does not|is not|greater|exceed)|rank \d+ (?:is )?(?:not in|out of range|>=)"),
    root(F.NCCL_CONFIG, "c10d.rendezvous-missing", ("environment variable", "c10d backend", "mpi world size"), 0.8, _C10D,
         r"Unknown c10d backend type|MPI world size \d+ does not match|[Ee]rror initializing torch\.distributed.{0,80}environment variable|environment variable (?:RANK|WORLD_SIZE|MASTER_ADDR|MASTER_PORT|LOCAL_RANK) expected"),
    root(F.ENVIRONMENT_MISMATCH, "c10d.not-built", ("doesn't have nccl built in", "nccl built in", "is not available", "without nccl", "not built with", "doesn't have mpi", "backend"), 0.84, _C10D,
         r"(?:doesn't|does not) have (?:NCCL|MPI|UCC|Gloo|CUDA) built in|(?:not|isn't) (?:built|compiled) with (?:NCCL|MPI|distributed|GPU|ROCm|c10d)"),
    aside(Part.VICTIM, "c10d.teardown-words", ("store is closed", "agent is shutting", "health check server", "process group has been destroyed", "was aborted", "communicator was aborted", "marked as error", "elastic agent", "workers failed", "rendezvousclosederror", "rendezvous is closed"), _C10D,
          r"RendezvousClosedError|[Rr]endezvous .{0,40}(?:closed|shut ?down)|[Ww]orker group .{0,20}FAILED|(?:[Ll]ocal )?worker group (?:is )?(?:UNHEALTHY|FAILED)"),
    root(F.NETWORK_ETH, "store.unreachable", ("rendezvous", "c10d store", "etcd", "tcpstore"), 0.58, _C10D,
         r"RendezvousConnectionError|[Tt]he connection to the C10d store has failed|[Uu]nable to connect to (?:the )?(?:etcd|rendezvous|TCPStore)|etcd\w*.{0,60}(?:connection (?:refused|timed out)|unreachable|no leader)", origin=Origin.UNKNOWN),
)  # fmt: skip

_COMPILERS = (
    root(F.USER_CODE, "compile.failed", ("inductor", "torch._dynamo", "triton", "backendcompilerfailed", "loweringexception", "outofresources", "compilationerror", "inductorerror", "ptxas"), 0.74, "TorchInductor, Dynamo and Triton texts",
         r"BackendCompilerFailed|LoweringException|InductorError|torch\._(?:inductor|dynamo)\.exc\.\w+|triton\.(?:compiler\.errors\.\w+|runtime\.errors\.\w+)|CompilationError: at \d+:\d+|[Oo]ut ?[Oo]f ?[Rr]esources?: (?:shared memory|threads|registers)|ptxas (?:fatal\s*: (?!Value)|error)"),
    root(F.ENVIRONMENT_MISMATCH, "compile.toolchain", ("c++ compile error", "c compiler", "invalidcxxcompiler", "cppcompileerror", "cannot find a working triton", "triton installation", "tritonmissing", "nvcc", "cuda_home", "jit compile", "g++", "ninja: build stopped", "compiler version", "c++17", "ptxas fatal"), 0.8, "TorchInductor and extension builders",
         r"Cannot find a working triton|TritonMissing|InvalidCxxCompiler|(?:Failed to find|No working) C(?:\+\+)? compiler|ptxas fatal\s*: Value '\S+' is not defined for option|No such file or directory: '(?:\S*nvcc|\S*g\+\+|\S*gcc|ninja)'|ninja: build stopped|CppCompileError|requires C\+\+17"),
)  # fmt: skip

_XLA_ROWS = (
    root(F.GPU_OOM, "xla.memory", ("resource_exhausted", "resource exhausted", "ran out of memory in memory space", "out of memory allocating", "bfc_allocator", "hbm", "was not possible"), 0.88, _XLA,
         r"(?:RESOURCE_EXHAUSTED|Resource exhausted)\b.{0,60}(?:[Oo]ut of memory|allocat|HBM|memory space)|Ran out of memory in memory space \w+|[Aa]ttempting to (?:reserve|allocate) [\d.]+\w*\b.{0,60}(?:HBM|hbm|was not possible)|Total hbm usage >=|Exceeded hbm capacity|Allocator \(GPU_\d+_bfc\) ran out of memory"),
    root(F.USER_CODE, "xla.use", ("invalid_argument", "unimplemented:", "failed_precondition", "jax.errors", "tracerarrayconversionerror", "concretizationtypeerror", "incompatible shapes for"), 0.7, _XLA,
         r"^(?!.*(?:is not implemented for CUDA below|different incarnation)).*?(?:\bINVALID_ARGUMENT: .|(?:Xla|Jax)RuntimeError: (?:UNIMPLEMENTED|FAILED_PRECONDITION|INVALID_ARGUMENT)|jax\.errors\.(?!JaxRuntimeError)\w+|(?:Concretization\w*|Tracer\w+|UnexpectedTracer)Error|[Ii]ncompatible shapes for (?:broadcasting|dot))"),
    root(F.ENVIRONMENT_MISMATCH, "xla.cuda-too-old", "is not implemented for cuda below", 0.86, _XLA),
    aside(Part.VICTIM, "xla.others", ("the tasks have crashed", "heartbeat timeout", "coordination service", "coordination_service", "unhealthy tasks", "barrier timed out", "shutdown barrier", "polled an error"), _XLA,
          r"[Tt]he tasks have crashed|coordination[_ ]service.{0,120}(?:heartbeat|timed? ?out|error|unavailable|shut ?down|disconnect)|[Uu]nhealthy tasks|Barrier (?:timed out|failed)|[Ss]hutdown barrier .{0,40}fail|[Pp]olled an error from coordination"),
    root(F.ENVIRONMENT_MISMATCH, "xla.backend", ("unable to initialize backend", "no gpu/tpu found", "ptxas does not support", "couldn't get ptxas", "could not load dynamic library 'libcudart", "cudnn version", "unknown backend", "dnn library"), 0.76, _XLA,
         r"Unable to initialize backend '(?:cuda|gpu)'(?!.{0,80}(?:not found|NOT_FOUND|Unable to find))|Unknown backend:? '?(?:cuda|gpu|tpu)|ptxas does not support|(?:Couldn't get|Failed to find) ptxas|CuDNN library (?:needs|version)|DNN library (?:is not found|initialization failed)"),
)  # fmt: skip

_TENSORFLOW = (
    root(F.STORAGE_CHECKPOINT, "tf.checkpoint", ("unable to open table file", "not an sstable", "checksum does not match", "tensorslicereader"), 0.84, "TensorFlow checkpoint texts",
         r"Unable to open table file|DataLossError.{0,300}\[Op:(?:Restore|Save|Merge)V2|not an sstable|TensorBundle.{0,60}(?:[Cc]hecksum|truncated)"),
    root(F.USER_CODE, "tf.no-checkpoint", "failed to find any matching files for", 0.66, "TensorFlow checkpoint texts: a path without a checkpoint"),
)  # fmt: skip

_SAVES = (
    root(F.STORAGE_CHECKPOINT, "checkpoint.gave-up", (" times", " attempts"), 0.72, "training programs that try a save again and then end",
         r"\b(?:checkpoint|ckpt|save|saving|snapshot)\b.{0,60}\bfailed (?:after )?(?:[2-9]|\d\d) (?:times|attempts)(?!.*\b(?:but|continu|skipp))"),
    root(F.STORAGE_CHECKPOINT, "checkpoint.not-there", ("://",), 0.7, "clients of object stores, of a checkpoint that is not where it was said to be",
         r"(?:Not ?Found\w*|\b404\b|NoSuchKey).{0,40}\b(?:gs|s3|abfss?|wasbs?|oss|hdfs)://\S*(?:ckpt|checkpoint|step[-_]?\d)"),
)  # fmt: skip

_HUB_ROWS = (
    root(F.USER_CODE, "hub.wrong-name", ("is not a local folder", "not a valid model identifier", "repo id must", "hfvalidationerror", "entrynotfounderror", "revisionnotfounderror", "does not appear to have a file named", "couldn't find a dataset script", "can't load tokenizer", "can't load the configuration", "can't load feature extractor", "unrecognized model", "unrecognized configuration class", "datasetnotfounderror", "doesn't exist on the hub"), 0.58, _HUB,
         r"is not a local folder and is not a valid model|HFValidationError|[Rr]epo id must|(?:Entry|Revision|Dataset)NotFoundError|does not appear to have a file named|Couldn't find (?:a dataset|any data file)|Can't load (?:tokenizer|the (?:configuration|model)|feature extractor|image processor)|Unrecognized (?:model in|configuration class|image processor)|doesn't exist on the Hub", part=Part.GENERIC),
    root(F.USER_CODE, "hub.access", ("gated repo", "you must be authenticated", "access to model", "is restricted", "invalid user token", "token is required", "localtokennotfounderror", "awaiting a review"), 0.76, _HUB,
         r"GatedRepoError|[Cc]annot access gated repo|Access to (?:model|dataset) .{0,80}(?:is restricted|awaiting)|Invalid user token|[Tt]oken is required|LocalTokenNotFoundError|You must be authenticated"),
    root(F.NETWORK_ETH, "hub.network", ("rate limit", "too many requests", "429 client", "offline", "hfhubhttperror", "cannot reach", "consistency check failed", "error while downloading", "couldn't reach"), 0.62, _HUB,
         r"^(?!.*\b(?:gcsfs|s3fs|botocore|adlfs)\b).*(?:(?:HfHubHTTPError|HTTPError|huggingface).{0,80}\b(?:429|50[0-4])\b|Too Many Requests for url|OfflineModeIsEnabled|Cannot reach \S+: offline mode|Consistency check failed: file should be of size|Error while downloading from https?://|Couldn't reach '?\S+'? on the Hub)", origin=Origin.UNKNOWN),
    root(F.DATA_LOADER, "datasets.generation", ("datasetgenerationerror", "datasetgenerationcasterror", "nonmatchingsplitssizeserror", "nonmatchingchecksumerror", "expectedmoredownloadedfiles", "expectedmoresplits", "unexpectedsplits", "datafilesnotfounderror", "emptydataseterror", "schema_inference", "casterror", "one of the subprocesses has abruptly died"), 0.84, "Hugging Face datasets texts",
         r"DatasetGeneration\w*Error|NonMatching\w+Error|Expected(?:MoreDownloadedFiles|MoreSplits)\w*|UnexpectedSplits\w*|DataFilesNotFoundError|EmptyDatasetError|(?:Schema|Cast)\w*Error: .{0,60}(?:column|schema)|One of the subprocesses has abruptly died during map"),
)  # fmt: skip

_DATA = (
    root(F.DATA_LOADER, "data.stream", ("wds", "webdataset", "litdata", "streamingdataset", "mds ", "shard", "megatron", "indexed dataset", "index file", "energon", "bin file"), 0.72, "webdataset, Streaming, LitData and Megatron data texts",
         r"[Ss]hard \S+ (?:is )?(?:corrupt|truncated|missing|not found|empty|unreadable)|(?:corrupt|truncated|missing|empty) (?:data )?shards?\b|[Nn]o (?:samples|shards|data) (?:found|left|available)|ran out of (?:samples|data|shards)|(?:dataset|data) (?:is )?exhausted|[Dd]ataset (?:is empty|has (?:no|0|zero) (?:samples|rows|examples))|number of (?:samples|shards) .{0,30}(?:fewer|less|smaller) than .{0,30}(?:workers|ranks|world)|Index file doesn't match expected format|(?:Streaming\w*|wds\S*).{0,60}(?:hash|checksum|size) (?:mismatch|validation)"),
    root(F.DATA_LOADER, "data.too-slow", ("waiting for batch", "next batch", "waiting for data", "data starv", "batch fetch", "loading the next batch", "fetch took", "dataloader took", "data_loader took"), 0.68, "loader watch texts",
         r"(?:waited|waiting) (?:for )?[\d.]+ ?s(?:ec\w*)? for (?:the )?(?:next )?(?:batch|data)|(?:batch|data) (?:fetch|load)\w* took [\d.]{2,} ?s|[Ii]nput pipeline (?:is )?(?:slow|stalled|the bottleneck)"),
)  # fmt: skip

_RAY_ROWS = (
    root(F.CPU_OOM, "ray.memory", ("memory monitor", "system memory low at node", "low on memory", "memory usage threshold", "object store is full", "objectstorefullerror", "oom, ", "rayoutofmemoryerror", "outofdiskerror", "memory pressure"), 0.88, _RAY,
         r"[Mm]emory monitor.{0,80}kill|running low on memory|System memory low at node|exceed(?:ed|s|ing) the memory usage threshold|RayOutOfMemoryError|ObjectStoreFullError|[Oo]bject store (?:is full|.{0,30}out of memory)|(?:Workers?|Tasks?|Actors?) .{0,60}killed due to .{0,30}(?:OOM|memory)"),
    root(F.DISK_FULL, "ray.disk", ("outofdiskerror", "over capacity", "is over 95% full", "local disk is full"), 0.88, _RAY, r"OutOfDiskError|[Ll]ocal disk is full|is over \d\d% full"),
    root(F.NODE_FAILURE, "ray.node-lost", ("nodediederror", "marked dead", "raylet has died", "raylet died", "node was terminated", "raylet exited", "the node it was running on", "lost its node", "owner's node"), 0.74, _RAY,
         r"NodeDiedError|[Tt]he actor'?s? .{0,60}node (?:has )?(?:died|failed)|raylet (?:has )?died|worker(?:'s)? node (?:died|was lost)|died because its node (?:has )?(?:died|failed)|[Nn]ode .{0,80}was (?:marked dead|terminated|preempted)"),
    aside(Part.VICTIM, "ray.others", ("owner has exited", "ownerdiederror", "objectlosterror", "lost reference", "worker crashed", "raytaskerror", "taskcancellederror", "actorunavailableerror", "worker died", "connection error code", "unexpected_system_exit", "system_error"), _RAY,
          r"Owner(?:Died|Unreachable)\w*Error|ObjectLostError|ObjectReconstruction\w*Error|ReferenceCountingAssertionError|ActorUnavailableError|Worker exit type: \w+|connection error code \d"),
    root(F.ENVIRONMENT_MISMATCH, "ray.runtime-env", "runtimeenvsetuperror", 0.82, _RAY),
    root(F.USER_CODE, "ray.use", ("pendingcallslimitexceeded", "unschedulableerror", "placementgroupremoved"), 0.68, _RAY, r"PendingCallsLimitExceeded|(?:Actor|Task)UnschedulableError|(?:Actor|Task)PlacementGroupRemoved"),
    root(F.USER_CODE, "ray.resources", ("cannot be scheduled right now", "insufficient resources", "placement group", "no available node types", "infeasible"), 0.62, _RAY,
         r"cannot be (?:fulfilled|scheduled)(?! right now).{0,80}(?:resource|node)|No available node types can fulfill|(?:placement group|resource request) .{0,80}(?:infeasible|cannot be(?! scheduled right now)|timed out|insufficient)|Total available GPUs \d+ is less than"),
)  # fmt: skip

_SERVING = (
    root(F.GPU_OOM, "engine.memory", ("no available memory for the cache", "kv cache", "not enough memory", "free memory on device", "gpu_memory_utilization", "mem_fraction_static", "mem-fraction-static", "max seq len", "max_model_len"), 0.84, _SERVE,
         r"No available memory for the cache blocks|Free memory on device.{0,80}(?:less than|is less)|(?:Not enough|insufficient) memory.{0,60}(?:KV|kv|mem[_-]fraction|cache|model)|max seq len \(?\d+\)?.{0,40}larger than.{0,40}KV cache|KV cache .{0,60}(?:is needed|larger than|not enough)"),
    aside(Part.VICTIM, "engine.dead", ("enginedeaderror", "engine core", "engine process failed", "engine loop has died", "background loop has errored", "asyncenginedeaderror", "scheduler hit an exception", "detokenizer", "mqengine"), _SERVE,
          r"(?:Async)?EngineDeadError|Engine (?:core|process) (?:initialization )?(?:failed|died)|Background loop (?:has errored|is stopped)|[Ss]cheduler hit an exception|[Ee]ngine loop (?:has died|is not running)"),
)  # fmt: skip

SIGNATURES: tuple[Signature, ...] = (
    *_DISTRIBUTED, *_COMPILERS, *_XLA_ROWS, *_TENSORFLOW, *_SAVES, *_HUB_ROWS, *_DATA, *_RAY_ROWS, *_SERVING
)  # fmt: skip
