"""What the words of an exception speak of: the thing named and what is said of it.

Texts differ from library to library; a thing (a package, a checkpoint, a sample, a tensor) and a verb
(not installed, truncated, cannot be decoded, must match) stay. Looked up where the type says little.
"""

# ruff: noqa: E501 - a pattern is read whole

import re

from brctl.evidence.logs.signature import Signature, root
from brctl.model.fault import FaultClass

_SOURCE = "texts of `raise` statements of some forty training libraries, by thing and verb"

_BROKEN = r"(?:corrupt\w*|truncat\w*|incomplete|malformed|unreadable|(?:can ?not|could not|couldn't|can't) (?:be )?(?:read|load|open|decod|pars|sav|writ|restor|deserializ)\w*|(?:failed|unable|error) (?:to |while |when )?(?:read|load|open|decod|pars|sav|writ|restor|fetch)\w*|invalid (?:header|format|magic)|checksum|hash mismatch)"
_CHECKPOINT = r"(?:checkpoint\w*|ckpt|distcp|safetensors|state[ _]?dict file|optimizer state|weights? file|\.pt\b|\.metadata)"
_DATA = r"(?:data ?set|data ?loader|sample|record|image|video|audio|waveform|parquet|tf_?record|jsonl|arrow|tar file|data shard|\.bin\b|\.idx\b|annotation)"
_THING = (
    r"(?:tensors?|shapes?|sizes?|dim\w*|dtypes?|devices?|types?|arguments?|args?|param\w*|config\w*|options?|keys?|modules?|layers?|models?|attention|heads?|hidden|vocab\w*|batch\w*|world|ranks?|groups?|parallel\w*|grad\w*|backward|"
    r"optimizers?|scheduler|loss|masks?|ind(?:ex|ices)|inputs?|outputs?|weights?|labels?|class\w*|functions?|methods?|values?|names?|formats?|backends?|modes?|precision|stages?|mesh|placements?|shard\w*|stream|graph|number|length|elements?|columns?|fields?)"
)
_MISUSE = (
    r"(?:must|should|expect\w*|cannot|can't|can only|not (?:supported|implemented|divisible|allowed|valid|match\w*|equal|compatible|enough|defined|found|a (?:valid|multiple|subclass))|unsupported|invalid|unknown|unrecogni[sz]ed|unexpected|mismatch\w*|does(?: not|n't)|do(?: not|n't)|"
    r"is not|isn't|are not|required?s?|missing|only (?:supports?|one)|out of (?:range|bounds)|already|inconsistent|incompatible|too (?:large|small|many|few|long)|both|either|got|has no|have no)"
)

_TABLE: tuple[tuple[re.Pattern[str], Signature], ...] = (
    (re.compile(r"(?:is|are|been|not) (?:not )?installed|\b[Pp]lease (?:\w+ )?(?:install|upgrade|update|downgrade|build|compile)\b|\b(?:pip3?|conda|apt(?:-get)?) install\b|requires? (?:[\w.-]+ ){0,4}(?:version (?:>=?|<=?|==|at least)? ?|>=|<=|==) ?v?\d|"
                r"(?:version|release) .{0,40}(?:not supported|too (?:old|new)|is required|mismatch|incompatible)|minimum (?:required |supported )?version|(?:not|without) (?:been )?compiled|not (?:built|compiled) with|not available in (?:this|your) (?:build|environment|version)|"
                r"(?:GPU|CUDA|ROCm|cuDNN|NCCL)(?: \w+)? (?:is|are) (?:not available|required)|no (?:CUDA )?GPUs? (?:found|available|detected)|requires? (?:an? )?(?:NVIDIA |CUDA |AMD )?(?:GPU|CUDA|compute capability)|compute capability|has no kernel for"),
     root(FaultClass.ENVIRONMENT_MISMATCH, "python.says-environment", "error", 0.78, _SOURCE)),
    (re.compile(rf"{_CHECKPOINT}.{{0,80}}{_BROKEN}|{_BROKEN}.{{0,60}}{_CHECKPOINT}", re.IGNORECASE),
     root(FaultClass.STORAGE_CHECKPOINT, "python.says-checkpoint", "error", 0.66, _SOURCE)),
    (re.compile(rf"{_DATA}s?\b.{{0,60}}(?:{_BROKEN}|is empty|are empty|exhausted|has no (?:samples|rows|data)|too short)|{_BROKEN}.{{0,40}}\b{_DATA}|num_samples should be a positive", re.IGNORECASE),
     root(FaultClass.DATA_LOADER, "python.says-data", "error", 0.7, _SOURCE)),
    (re.compile(rf"\b{_THING}\b.{{0,80}}\b{_MISUSE}\b|\b{_MISUSE}\b.{{0,80}}\b{_THING}\b", re.IGNORECASE),
     root(FaultClass.USER_CODE, "python.says-misuse", "error", 0.66, _SOURCE)),
)  # fmt: skip


def row_of_words(words: str) -> Signature | None:
    """The row that an exception's words lead to; None where they name no known thing."""
    return next((row for pattern, row in _TABLE if pattern.search(words[:400])), None)
