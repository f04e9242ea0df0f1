"""What the last line of a Python traceback says, given the frames above it."""

# ruff: noqa: E501 - a pattern is read whole

import re

from brctl.evidence.logs.exception_words import row_of_words
from brctl.evidence.logs.signature import Part, Signature, aside, root
from brctl.model.fault import FaultClass, Origin

FINAL = re.compile(
    r"^(?:\W{0,3}\[[^\]]{1,40}\]:?\s*|\[\d+,\d+\]<std\w+>:\s*|\(\w+ pid=\d+[^)]*\)\s*|\d+: |[\w.-]{1,60}\s+\|\s|[\w.-]{1,60}: (?=\w+Error)){0,6}"
    r"(?P<type>(?:[a-zA-Z_]\w*\.)*(?:[A-Z]\w*(?:Error|Exception|Interrupt|Failure|Exit|Timeout|Iteration)|Unsupported|(?:struct|zlib|lzma|lmdb|binascii|zipfile|tarfile|cv2)\.\w*[Ee]rror))(?::\s*(?P<words>.*)|\s*)$"
)
"""`pkg.SomeError: words`, behind the rank prefixes of torchrun, Ray and Megatron."""

FRAME = re.compile(
    r'^\W{0,12}(?:\[[^\]]{1,40}\]:?\s*|\[\d+,\d+\]<std\w+>:\s*){0,4}\W{0,12}File "(?P<path>[^"]+)", line \d+'
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
    (re.compile(r"(?:.*\.)?(?:UnpicklingError|SafetensorError|CheckpointException|BadZipFile)"),
     root(FaultClass.STORAGE_CHECKPOINT, "python.broken-file", "error", 0.72, _SOURCE)),
    (re.compile(r"(?:.*\.)?(?:UnicodeDecodeError|JSONDecodeError|ArrowInvalid|ReadError|UnidentifiedImageError)"),
     root(FaultClass.DATA_LOADER, "python.bad-data", "error", 0.65, _SOURCE)),
    (re.compile(r"(?:.*\.)?(?:FileNotFoundError|IsADirectoryError|NotADirectoryError|PermissionError)"),
     root(FaultClass.USER_CODE, "python.file", "error", 0.62, _SOURCE)),
    (re.compile(rf"(?:.*\.)?(?:{_USER})"),
     root(FaultClass.USER_CODE, "python.exception", "error", 0.82, _SOURCE)),
    (re.compile(r".*"), root(FaultClass.USER_CODE, "python.other-exception", "error", 0.55, _SOURCE)),
)  # fmt: skip
CARRIERS = re.compile(r"(?:.*\.)?(?:RuntimeError|OSError|IOError|Exception|Error)")
"""Types that carry somebody else's message; what they say decides, not what they are."""

_DATA_FRAME = re.compile(
    r"data ?loader|dataset|data_utils|collat|tokeniz|utils/data|/data/|/PIL/|torchvision/(?:io|datasets)|/(?:decord|cv2|av|soundfile|librosa|h5py|lmdb|webdataset|pyarrow|tarfile|petastorm|nvidia/dali)\b",
    re.IGNORECASE,
)
_SAVE_FRAME = re.compile(
    r"serialization\.py|distributed/checkpoint|checkpointing\.py|save_checkpoint|checkpoint_engine|safetensors",
    re.IGNORECASE,
)
_FRAMEWORK = re.compile(
    r"site-packages/torch/(?:distributed|nn/parallel|utils/data/dataloader)|c10d|torchrun"
)


def classify_final(
    type_name: str, frames: tuple[str, ...], words: str = "", *, in_traceback: bool
) -> Signature:
    """The signature an exception stands for.

    Args:
        type_name: Dotted exception type.
        frames: Paths of the frames above it, outermost first, as far as they were seen.
        words: What stands after the type.
        in_traceback: A traceback head was seen; without one a bare `SomeError:` counts less.
    """
    signature = next(row for pattern, row in _TABLE if pattern.fullmatch(type_name))
    if signature.fault is FaultClass.USER_CODE:
        inner = frames[-4:]
        if any(_DATA_FRAME.search(path) for path in inner):
            return _LOADER
        if CARRIERS.fullmatch(type_name) and any(_SAVE_FRAME.search(path) for path in inner):
            return _STORAGE
        if not _CODE_ALONE.fullmatch(type_name):
            signature = _by_words(signature, row_of_words(words))
    if not in_traceback and signature.name in _NEEDS_FRAMES:
        return _NAMED if _NAMED_TYPES.fullmatch(type_name) else _BARE
    return signature


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

_NEEDS_FRAMES = frozenset({"python.exception", "python.other-exception", "python.file"})
"""Rows that a line without a traceback supports less."""

_NAMED = root(FaultClass.USER_CODE, "python.named-exception", "error", 0.66, _SOURCE)
_BARE = root(FaultClass.USER_CODE, "python.bare-exception", "error", 0.5, _SOURCE)
