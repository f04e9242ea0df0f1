"""What the last line of a Python traceback says, given the frames above it."""

# ruff: noqa: E501 - a pattern is read whole

import re

from brctl.evidence.logs.passed_on import CHECKPOINT_TYPE, FAILED_CHECKPOINT, PASSED_ON, passes_on
from brctl.evidence.logs.signature import Part, Signature, aside, root
from brctl.model.fault import FaultClass, Origin

FINAL = re.compile(
    r"^(?:\W{0,3}\[[^\]]{1,40}\]:?\s*|\[\d+,\d+\]<std\w+>:\s*|\(\w+ pid=\d+[^)]*\)\s*|\d+: |[\w.-]{1,60}\s+\|\s|[\w.-]{1,60}: (?=\w+Error)){0,6}"
    r"(?P<type>(?:[a-zA-Z_]\w*\.)*(?:[A-Z]\w*(?:Error|Exception|Interrupt|Failure|Exit|Timeout|Iteration)|Unsupported|(?:struct|zlib|lzma|lmdb|binascii|zipfile|tarfile|cv2)\.\w*[Ee]rror))(?::\s*(?P<words>.*)|\s*)$"
)
"""`pkg.SomeError: words`, behind the rank prefixes of torchrun, Ray and Megatron."""

FRAME = re.compile(
    r'^\W{0,12}(?:\[[^\]]{1,40}\]:?\s*|\[\d+,\d+\]<std\w+>:\s*){0,4}\W{0,12}File "(?P<path>[^"]+)", line \d+(?:, in (?P<function>\w{1,80}))?'
)

_SOURCE = "Python exception hierarchy"
_USER = (
    "SyntaxError|IndentationError|NameError|UnboundLocalError|TypeError|AttributeError|KeyError|IndexError|ValueError|"
    "AssertionError|ZeroDivisionError|NotImplementedError|RecursionError|LookupError|ArithmeticError|StopIteration|"
    r"ConfigAttributeError|ConfigKeyError|\w*ConfigError|ValidationError|PicklingError|FileExistsError|TabError"
)

_VICTIM = aside(Part.VICTIM, "python.distributed-exception", "error", _SOURCE)
_LOADER = root(FaultClass.DATA_LOADER, "python.in-data-loading", "error", 0.82, _SOURCE)
_STORAGE = root(FaultClass.STORAGE_CHECKPOINT, "python.in-checkpoint", "error", 0.6, _SOURCE)
_TABLE: tuple[tuple[re.Pattern[str], Signature], ...] = (
    (re.compile(r"(?:.*\.)?(?:requests|urllib3|httpx|aiohttp)\..*|(?:.*\.)?(?:ConnectTimeout|ReadTimeout|MaxRetryError|gaierror|LocalEntryNotFoundError)"),
     root(FaultClass.NETWORK_ETH, "python.http", "error", 0.62, _SOURCE, origin=Origin.UNKNOWN)),
    (re.compile(r"(?:.*\.)?(?:Dist\w*Error|ChildFailedError|Ray\w*Error|Actor\w*Error|CalledProcessError|BrokenPipeError|"
                r"Connection\w*Error|TimeoutError|GetTimeoutError|EOFError|ProcessRaisedException|ProcessExitedException|"
                r"BrokenProcessPool|SystemExit|GeneratorExit|RendezvousTimeoutError|RendezvousConnectionError|"
                r"CancelledError|Empty|WorkerCrashedError|TaskCancelledError)"), _VICTIM),
    (re.compile(r"(?:.*\.)?KeyboardInterrupt"),
     root(FaultClass.PREEMPTION_SIGTERM, "python.interrupted", "interrupt", 0.6, _SOURCE, part=Part.STOPPED)),
    (re.compile(r"(?:.*\.)?(?:ModuleNotFoundError|ImportError|PackageNotFoundError)"),
     root(FaultClass.ENVIRONMENT_MISMATCH, "python.import", "error", 0.85, _SOURCE)),
    (re.compile(r"(?:.*\.)?MemoryError"), root(FaultClass.CPU_OOM, "python.memory", "error", 0.85, _SOURCE)),
    (re.compile(r"(?:.*\.)?(?:OutOfMemoryError)"), root(FaultClass.GPU_OOM, "python.gpu-memory", "error", 0.85, _SOURCE)),
    (re.compile(r"(?:.*\.)?(?:UnpicklingError|SafetensorError|BadZipFile)"),
     root(FaultClass.STORAGE_CHECKPOINT, "python.broken-file", "error", 0.72, _SOURCE)),
    (CHECKPOINT_TYPE, FAILED_CHECKPOINT),
    (re.compile(r"(?:.*\.)?(?:hadoop|hdfs)\..*"), _STORAGE),
    (re.compile(r"(?:decord|av|soundfile|lmdb|webdataset|pandas\.errors|PIL|petastorm|litdata)\b.*\.\w*(?:Error|Exception)"),
     root(FaultClass.DATA_LOADER, "python.data-library", "error", 0.68, _SOURCE + ": raised by a library that reads samples")),
    (re.compile(r"(?:.*\.)?(?:UnicodeDecodeError|JSONDecodeError|zlib\.error|LZMAError|BadGzipFile|CorruptedError|ArrowInvalid|ReadError|UnidentifiedImageError)"),
     root(FaultClass.DATA_LOADER, "python.bad-data", "error", 0.65, _SOURCE)),
    (re.compile(r"(?:.*\.)?(?:FileNotFoundError|IsADirectoryError|NotADirectoryError|PermissionError)"),
     root(FaultClass.USER_CODE, "python.file", "error", 0.62, _SOURCE)),
    (re.compile(rf"(?:.*\.)?(?:{_USER})"),
     root(FaultClass.USER_CODE, "python.exception", "error", 0.82, _SOURCE)),
    (re.compile(r".*"), root(FaultClass.USER_CODE, "python.other-exception", "error", 0.55, _SOURCE)),
)  # fmt: skip
CARRIERS = re.compile(r"(?:.*\.)?(?:RuntimeError|OSError|IOError|Exception|Error)")
"""Types that carry somebody else's message; what they say decides, not what they are."""

_WORDS_SOURCE = "texts of `raise` statements of some forty training libraries, by thing and verb"

# The thing an exception names and what it says of it stay; the texts around them differ.
_BROKEN = r"(?:corrupt\w*|truncat\w*|incomplete|malformed|unreadable|(?:can ?not|could not|couldn't|can't) (?:be )?(?:read|load|open|decod|pars|sav|writ|restor|deserializ)\w*|(?:failed|unable|error) (?:to |while |when )?(?:read|load|open|decod|pars|sav|writ|restor|fetch)\w*|invalid (?:header|format|magic)|checksum|hash mismatch)"
_CHECKPOINT = r"(?:checkpoint\w*|ckpt|distcp|safetensors|state[ _]?dict file|optimizer state|weights? file|\.pt\b|\.metadata)"
_DATA = r"(?:data ?set|data ?loader|sample|record|image|video|audio|waveform|parquet|tf_?record|jsonl|arrow|tar file|data shard|\.bin\b|\.idx\b|annotation)"
_DATA_FILE = r"[\w-]\.(?:jpe?g|png|webp|tiff?|wav|flac|mp3|mp4|webm|mkv|tar|parquet|arrow|mds|tfrecords?|ar|jsonl|npy|idx|lmdb|h5|hdf5|nc|zarr|cif)\b"
"""What samples are kept in; who reads one and raises, reads data."""
_THING = (
    r"(?:tensors?|shapes?|sizes?|dim\w*|dtypes?|devices?|types?|arguments?|args?|param\w*|config\w*|options?|keys?|modules?|layers?|models?|attention|heads?|hidden|vocab\w*|batch\w*|world|ranks?|groups?|parallel\w*|grad\w*|backward|"
    r"optimizers?|scheduler|loss|masks?|ind(?:ex|ices)|inputs?|outputs?|weights?|labels?|class\w*|functions?|methods?|values?|names?|formats?|backends?|modes?|precision|stages?|mesh|placements?|shard\w*|stream|graph|number|length|elements?|columns?|fields?)"
)
_MISUSE = (
    r"(?:must|should|expect\w*|cannot|can't|can only|not (?:supported|implemented|divisible|allowed|valid|match\w*|equal|compatible|enough|defined|found|a (?:valid|multiple|subclass))|unsupported|invalid|unknown|unrecogni[sz]ed|unexpected|mismatch\w*|does(?: not|n't)|do(?: not|n't)|"
    r"is not|isn't|are not|required?s?|missing|only (?:supports?|one)|out of (?:range|bounds)|already|inconsistent|incompatible|too (?:large|small|many|few|long)|both|either|got|has no|have no)"
)

_BY_WORDS: tuple[tuple[re.Pattern[str], Signature], ...] = (
    (re.compile(r"\bMASTER_(?:ADDR|PORT)\b|\bmaster_port is required|\bcoordinator_address\b|rendezvous (?:endpoint|backend)|RendezvousParameters|initializing torch\.distributed using|\bhostfile\b|OMPI_COMM_WORLD|--ntasks-per-node|"
                r"\b(?:LOCAL_|NODE_)RANK\b|nproc_per_node|!= ?WORLD_SIZE\b|world_size set by init_process_group|tcp ?store with \d+ workers|[Nn]umber of processes must be|"
                r"(?:[Mm]esh|desired GPUs).{0,40}(?:bigger|less|larger) than .{0,24}world size|unsupported gloo device|RPC worker name \S+ is not unique|(?:parallel|update) group (?:is )?already initialized|launch distributed training with"),
     root(FaultClass.NCCL_CONFIG, "python.says-launch", "error", 0.74, _WORDS_SOURCE)),
    (re.compile(r"(?:is|are|been|not) (?:not )?installed|\b[Pp]lease (?:\w+ )?(?:install|upgrade|update|downgrade|build|compile)\b|\b(?:pip3?|conda|apt(?:-get)?) install\b|requires? (?:[\w.-]+ ){0,4}(?:version (?:>=?|<=?|==|at least)? ?|>=|<=|==) ?v?\d|"
                r"(?:version|release) .{0,40}(?:not supported|too (?:old|new)|is required|mismatch|incompatible|do(?:es)?(?:n't| not) match)|minimum (?:required |supported )?version|(?:not|without) (?:been )?compiled|(?:CUDA|C\+\+|custom) extension .{0,60}not found|implementation for device \S{1,12} not found|not (?:built|compiled) with|not available in (?:this|your) (?:build|environment|version)|"
                r"(?:GPU|CUDA|ROCm|cuDNN|NCCL)(?: \w+)? (?:is|are) (?:not available|required)|no (?:CUDA )?GPUs? (?:found|available|detected)|requires? (?:an? )?(?:NVIDIA |CUDA |AMD )?(?:GPU|CUDA|compute capability)|compute capability|has no kernel for|[Yy]our setup doesn't support (?:bf16|fp16|tf32)"),
     root(FaultClass.ENVIRONMENT_MISMATCH, "python.says-environment", "error", 0.78, _WORDS_SOURCE)),
    (re.compile(r"requires? [\w-]{1,40}(?:>=?|<=?|==)\d|\blib\w+\.so\b[\w.]*.{0,40}(?:not found|cannot|can't|missing|invalid)|(?:load|open|find) [\w ]{0,24}shared library|does not recognize this architecture"),
     root(FaultClass.ENVIRONMENT_MISMATCH, "python.says-library", "error", 0.74, _WORDS_SOURCE)),
    (re.compile(r"\bzero_pp_rank_|checkpoints? (?:paths|files|shards) are missing|but found \d+ files"),
     root(FaultClass.STORAGE_CHECKPOINT, "python.says-incomplete", "error", 0.7, _WORDS_SOURCE + ": a checkpoint without some of its files")),
    (re.compile(r"[Nn]ot enough (?:free )?disk space|[Nn]o space left on"),
     root(FaultClass.DISK_FULL, "python.says-full", "error", 0.84, _WORDS_SOURCE)),
    (re.compile(r"[Hh]ash(?:es)? (?:not matching|mismatch|differs?) (?:across|between) (?:DP |data[- ]parallel )?(?:replicas|ranks)"),
     root(FaultClass.SILENT_CORRUPTION, "python.says-replicas-differ", "error", 0.74, "Megatron's check of the parameters of replicas")),
    (re.compile(r"^(?!.*checkpoint tag).*(?:\b(?:differ\w*|inconsistent|mismatch\w*|not (?:the )?(?:same|equal|identical|consistent)) (?:across|between|among|on) (?:all )?(?:hosts|ranks|processes|workers)\b|\brank \d+ differs from rank \d)"),
     root(FaultClass.HANG_MISMATCH, "python.says-ranks-differ", "error", 0.7, _WORDS_SOURCE)),
    (re.compile(r"(?<!['\"])\b(?:nan|NaN|NAN)s?\b(?!['\"_])|\b[Nn]on-?finite|grad_?scale is too small|[Ll]oss scale .{0,24}(?:minimum|too small)"),
     root(FaultClass.NUMERIC_NAN, "python.says-nan", "error", 0.78, _WORDS_SOURCE, origin=Origin.USER)),
    (re.compile(r"IteratorGetNext\b|\bParse(?:Single)?Example|^Feature: \S+ \(data type|^Trailing data$|^Expected object or value$|[Nn]ot decodable|\bmmap an empty file"),
     root(FaultClass.DATA_LOADER, "python.says-sample", "error", 0.7, "input pipelines of TensorFlow and readers of speech")),
    (re.compile(rf"{_CHECKPOINT}.{{0,80}}{_BROKEN}|{_BROKEN}.{{0,60}}{_CHECKPOINT}", re.IGNORECASE),
     root(FaultClass.STORAGE_CHECKPOINT, "python.says-checkpoint", "error", 0.66, _WORDS_SOURCE)),
    (re.compile(rf"{_DATA}s?\b.{{0,60}}(?:{_BROKEN}|is empty|are empty|exhausted|has no (?:samples|rows|data)|too short)|{_BROKEN}.{{0,40}}\b{_DATA}|num_samples should be a positive", re.IGNORECASE),
     root(FaultClass.DATA_LOADER, "python.says-data", "error", 0.7, _WORDS_SOURCE)),
    (re.compile(rf"^(?!.*(?:{_CHECKPOINT}|\bckpt|\bmodel|end ?point|time-?out|timed out|error.?code|No such file|no file named)).*{_DATA_FILE}", re.IGNORECASE),
     root(FaultClass.DATA_LOADER, "python.says-data-file", "error", 0.68, _WORDS_SOURCE + ": the file it names")),
    (re.compile(rf"\b{_THING}\b.{{0,80}}\b{_MISUSE}\b|\b{_MISUSE}\b.{{0,80}}\b{_THING}\b", re.IGNORECASE),
     root(FaultClass.USER_CODE, "python.says-misuse", "error", 0.66, _WORDS_SOURCE)),
)  # fmt: skip

_DATA_FRAME = re.compile(
    r"data ?loader|dataset|data_utils|collat|tokeniz|utils/data|(?:^|/)data/(?!(?:template|formatter|parser|config|args)\w*\.py)|(?:^|/)PIL/|torchvision/(?:io|datasets)|(?:^|/)(?:decord|cv2|av|soundfile|librosa|h5py|lmdb|webdataset|pyarrow|tarfile|petastorm|nvidia/dali|streaming/base|litdata|torchdata|ffcv|energon|grain|seqio|tifffile|nibabel|pydicom)\b",
    re.IGNORECASE,
)
_SAVE_FRAME = re.compile(
    r"serialization\.py|distributed/checkpoint|checkpointing\.py|save_checkpoint|checkpoint_engine|safetensors",
    re.IGNORECASE,
)
_FRAMEWORK = re.compile(
    r"site-packages/torch/(?:distributed|nn/parallel|utils/data/dataloader)|c10d|torchrun"
)


_LIBRARIES = re.compile(r"[/\\](?:(?:site|dist)-packages|lib[/\\]python[\d.]*)[/\\]")
_OWN_PARTS = 2
"""Of a path outside the libraries, the file and its folder tell what it does; the rest is a mount."""

_PATH_END = 300
"""Characters of a path that are looked at: a log may name a path of any length."""


def _code_of(path: str) -> str:
    """What of a frame's path names code: `/data/home/x/train.py` is no data loader."""
    end = path[-_PATH_END:]
    *outside, inside = _LIBRARIES.split(end)
    if outside:
        return inside
    return "/".join(re.split(r"[/\\]", end.lstrip("/\\"))[-_OWN_PARTS:])


_SETS_UP = frozenset({"__init__", "__new__", "__post_init__"})
"""Where the innermost frame is one of these no sample is read yet: the code is at fault, not data."""


def classify_final(
    type_name: str,
    frames: tuple[str, ...],
    words: str = "",
    *,
    in_traceback: bool,
    function: str = "",
) -> Signature:
    """The signature an exception stands for.

    Args:
        type_name: Dotted exception type.
        frames: Paths of the frames above it, outermost first, as far as they were seen.
        words: What stands after the type.
        in_traceback: A traceback head was seen; without one a bare `SomeError:` counts less.
        function: Name of the innermost frame's function, where it was seen.
    """
    if _CUT_SHORT.fullmatch(type_name) and (in_traceback or _RAN_OUT.search(words)):
        return _cut_short(type_name, frames, words)
    known = _by_type_and_words(type_name, words, frames)
    if known is not None:
        return known
    signature = next(row for pattern, row in _TABLE if pattern.fullmatch(type_name))
    if signature.fault is FaultClass.USER_CODE:
        inner = frames[-4:]
        if any(_DATA_FRAME.search(_code_of(path)) for path in inner):
            breaks_rules = _CODE_ALONE.fullmatch(type_name) is not None
            return signature if function in _SETS_UP and breaks_rules else _LOADER
        if CARRIERS.fullmatch(type_name) and any(_SAVE_FRAME.search(path) for path in inner):
            return _STORAGE
        if not _CODE_ALONE.fullmatch(type_name):
            signature = _by_words(signature, _row_of_words(words))
    if not in_traceback and signature.name in _NEEDS_FRAMES:
        return _NAMED if _NAMED_TYPES.fullmatch(type_name) else _BARE
    return signature


def _by_type_and_words(type_name: str, words: str, frames: tuple[str, ...]) -> Signature | None:
    """What a type says only together with its words or with the file that raised it."""
    if passes_on(type_name, words):
        return PASSED_ON
    if _STATUS_TYPE.fullmatch(type_name) and _OF_OTHERS.match(words):
        return _VICTIM
    if type_name == "KeyError" and _LAUNCH_KEY.fullmatch(words):
        return _LAUNCH
    if type_name in _OF_LOOK_UPS and any(map(_KNOWS_MODELS.search, frames[-4:])):
        return _OLD_LIBRARY
    return None


def _cut_short(type_name: str, frames: tuple[str, ...], words: str) -> Signature:
    """A file that ends too early: a checkpoint's where torch.load read it, else a data set's."""
    inner = [_code_of(path) for path in frames[-4:]]
    if type_name.endswith("EOFError") and not _RAN_OUT.search(words):
        return _VICTIM
    if not frames or any(_SAVE_FRAME.search(path) for path in inner):
        return _HALF_WRITTEN
    return _BAD_DATA


def _row_of_words(words: str) -> Signature | None:
    """The row that an exception's words lead to; None where they name no known thing."""
    return next((row for pattern, row in _BY_WORDS if pattern.search(words[:400])), None)


def _by_words(by_type: Signature, by_words: Signature | None) -> Signature:
    """Words that name another thing than code decide; of two that say code the stronger stands."""
    if by_words is None:
        return by_type
    if by_words.fault is by_type.fault and by_words.strength <= by_type.strength:
        return by_type
    return by_words


_CODE_ALONE = re.compile(
    r"(?:.*\.)?(?:SyntaxError|IndentationError|NameError|UnboundLocalError|AttributeError|TypeError|KeyError|IndexError|ZeroDivisionError|"
    r"NotImplementedError|RecursionError|ScannerError|ParserError|ConfigAttributeError|ConfigKeyError|CompilationError)"
)
"""Types that only a program's own code raises, whatever they say."""

_NAMED_TYPES = re.compile(
    rf"{_CODE_ALONE.pattern}|(?:.*\.)?(?:ValueError|AssertionError|ValidationError)"
)

_STATUS_TYPE = re.compile(r"(?:.*\.)?(?:Xla|Jax)RuntimeError")
_OF_OTHERS = re.compile(r"(?:UNAVAILABLE|ABORTED|CANCELLED|DEADLINE_EXCEEDED)\b")
"""Status codes with which XLA tells that another task is gone or did not answer."""

_OF_LOOK_UPS = frozenset({"KeyError", "ValueError"})
_LAUNCH_KEY = re.compile(
    r"'(?:MASTER_(?:ADDR|PORT)|(?:LOCAL_|NODE_|GROUP_)?RANK|(?:LOCAL_)?WORLD_SIZE|SLURM_\w+|OMPI_\w+)'"
)
_LAUNCH = root(
    FaultClass.NCCL_CONFIG, "python.launch-variable", "error", 0.76, "what launchers set"
)
"""A key of `os.environ` that no launcher set."""

_KNOWS_MODELS = re.compile(r"transformers/models/auto/\w+\.py$")
_OLD_LIBRARY = root(
    FaultClass.ENVIRONMENT_MISMATCH, "python.old-library", "error", 0.76,
    "transformers: a model type that this release does not know", origin=Origin.USER,
)  # fmt: skip

_CUT_SHORT = re.compile(r"(?:.*\.)?(?:EOFError|UnpicklingError|BadZipFile)")
_RAN_OUT = re.compile(r"Ran out of input|pickle data was truncated|not a zip file")
_BAD_DATA = root(FaultClass.DATA_LOADER, "python.bad-data", "error", 0.7, _SOURCE)
_HALF_WRITTEN = root(
    FaultClass.STORAGE_CHECKPOINT, "python.broken-file", "error", 0.76, _SOURCE,
    origin=Origin.UNKNOWN,
)  # fmt: skip

_NEEDS_FRAMES = frozenset({"python.exception", "python.other-exception", "python.file"})
"""Rows that a line without a traceback supports less."""

_NAMED = root(FaultClass.USER_CODE, "python.named-exception", "error", 0.66, _SOURCE)
_BARE = root(FaultClass.USER_CODE, "python.bare-exception", "error", 0.5, _SOURCE)
