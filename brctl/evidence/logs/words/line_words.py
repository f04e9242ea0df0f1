"""What a model of words sees of a line: words, their parts, the program, the level, codes.

Numbers, addresses and hashes are left out, as they differ from log to log and mean nothing
elsewhere; only what a line calls a status, a signal or an error is a number that means the same.
"""

import re
import zlib
from collections.abc import Iterable, Iterator

from brctl.evidence.logs.quiet_rows import is_missed

BUCKETS = 16384
"""Features are hashed into so many buckets; the shipped tables have one row each."""

_PART = 5
"""Letters of a long word that tell it from others: its two ends stand for words nobody saw yet."""

_LONG = 6
_WORDS_A_LINE = 60
_HEX = re.compile(r"0x[0-9a-f]+|\b[0-9a-f]{8,}\b")
_AT_ZERO = re.compile(
    r"(?:^|(?<=[|,;:(\[{]))(?P<label>[^|,;:=(){}\[\]]{2,60})[:=]\s*(?:0+(?:\.0+)?|none|no|false|n/a)"
    r"(?=\s*(?:$|[|,;)\]}]))",
    re.IGNORECASE,
)

_WORD = re.compile(r"[a-z][a-z_]{2,40}")
_LEVEL = re.compile(r"\b(?:fatal|critical|panic|error|warn(?:ing)?|info|debug)\b")
_CODE = re.compile(
    r"(?:status|error|errno|code|rc|xid|err|exitcode|signal)\W{1,3}(?P<code>-?\d{1,3})\b"
)
_PROGRAM = re.compile(
    r"^\[ *\d+\.\d+\] (?P<dmesg>)|"
    r"^\S{3} +\d+ [\d:]{8} \S+ (?P<syslog>[a-z][\w.-]*)(?:\[\d+\])?:|"
    r"\b(?P<named>nccl|nvrm|mlx5_core|pcieport|slurmstepd|srun|kubelet|lustre|nvme|edac|torch)\b"
)


def without_zeros(text: str) -> str:
    """A line without its named values that are none, but for what ought to be there."""
    return _AT_ZERO.sub(lambda none: none[0] if is_missed(none["label"]) else " ", text)


def words_of(text: str) -> list[str]:
    """The words of one line in order, in lower case; parts of joined names too."""
    lowered = without_zeros(_HEX.sub(" ", text.lower()))
    found: list[str] = []
    for word in _WORD.findall(lowered)[:_WORDS_A_LINE]:
        found.append(word)
        if "_" in word:
            found += [part for part in word.split("_") if len(part) > 2]
    return found


def features_of_line(text: str) -> Iterator[str]:
    """Names of the features of one line."""
    words = words_of(text)
    yield from (f"w:{word}" for word in words)
    for word in words:
        if len(word) > _LONG:
            yield f"g:{word[:_PART]}"
            yield f"h:{word[-_PART:]}"
    lowered = text.lower()
    yield from (f"l:{level}" for level in _LEVEL.findall(lowered))
    yield from (f"n:{found['code']}" for found in _CODE.finditer(lowered))
    program = _PROGRAM.search(lowered)
    if program:
        yield f"p:{program['syslog'] or program['named'] or 'kernel'}"


def bucket_of(feature: str) -> int:
    """The bucket of a feature, the same in every process and on every machine."""
    return zlib.crc32(feature.encode()) % BUCKETS


def buckets_of(features: Iterable[str]) -> frozenset[int]:
    """The buckets of some features, each once."""
    return frozenset(bucket_of(feature) for feature in features)
