"""What a model of words sees of a log: words, pairs, the program that speaks, the level, the place.

Numbers, addresses and hashes are left out: they differ from log to log and mean nothing elsewhere.
"""

import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

BUCKETS = 8192
"""Features are hashed into so many buckets; the shipped tables have one row each."""

LINES_READ = 1000
"""Lines of one input that are looked at: the first and the last ones."""

_LAST_LINES = 3
_WORDS_A_LINE = 60
_HEX = re.compile(r"0x[0-9a-f]+|\b[0-9a-f]{8,}\b")
_WORD = re.compile(r"[a-z][a-z_]{2,40}")
_LEVEL = re.compile(r"\b(?:fatal|critical|panic|error|warn(?:ing)?|info|debug)\b")
_PROGRAM = re.compile(
    r"^\[ *\d+\.\d+\] (?P<dmesg>)|"
    r"^\S{3} +\d+ [\d:]{8} \S+ (?P<syslog>[a-z][\w.-]*)(?:\[\d+\])?:|"
    r"\b(?P<named>nccl|nvrm|mlx5_core|pcieport|slurmstepd|srun|kubelet|lustre|nvme|edac|torch)\b"
)


def words_of(text: str) -> list[str]:
    """The words of one line in order, in lower case; parts of joined names too."""
    lowered = _HEX.sub(" ", text.lower())
    found: list[str] = []
    for word in _WORD.findall(lowered)[:_WORDS_A_LINE]:
        found.append(word)
        if "_" in word:
            found += [part for part in word.split("_") if len(part) > 2]
    return found


def features_of_line(text: str, *, last: bool = False) -> Iterator[str]:
    """Names of the features of one line; `last` for the lines that a log ends with."""
    words = words_of(text)
    yield from (f"w:{word}" for word in words)
    yield from (f"b:{first} {second}" for first, second in pairwise(words))
    if last:
        yield from (f"e:{word}" for word in words)
    lowered = text.lower()
    yield from (f"l:{level}" for level in _LEVEL.findall(lowered))
    program = _PROGRAM.search(lowered)
    if program:
        yield f"p:{program['syslog'] or program['named'] or 'kernel'}"


def bucket_of(feature: str) -> int:
    """The bucket of a feature, the same in every process and on every machine."""
    return zlib.crc32(feature.encode()) % BUCKETS


def sampled(lines: Sequence[str]) -> list[str]:
    """The lines that are looked at: all of a short log, the two ends of a long one."""
    full = [line for line in lines if line.strip()]
    if len(full) <= LINES_READ:
        return full
    return [*full[: LINES_READ // 2], *full[-LINES_READ // 2 :]]


def buckets_of_log(lines: Sequence[str]) -> list[frozenset[int]]:
    """For every line looked at the buckets of its features."""
    kept = sampled(lines)
    first_of_the_end = len(kept) - _LAST_LINES
    return [
        buckets_of(features_of_line(line, last=number >= first_of_the_end))
        for number, line in enumerate(kept)
    ]


def buckets_of(features: Iterable[str]) -> frozenset[int]:
    """The buckets of some features, each once."""
    return frozenset(bucket_of(feature) for feature in features)
