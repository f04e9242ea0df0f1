"""Who speaks on a line, and how loudly: the same words mean another thing from another."""

import re

from brctl.evidence.logs.severity import (
    goes_on_without,
    is_below_warning,
    is_caught_by_library,
)
from brctl.evidence.logs.signature import CONVICTING, Part, Signature
from brctl.model.fault import FaultClass

_OF_PROGRAMS = frozenset({FaultClass.ENVIRONMENT_MISMATCH, FaultClass.USER_CODE})
"""What a library may find amiss, warn of, and do without."""

_SURE = 0.9
"""A row as strong as this tells of what the program cannot go on without."""

_OF_KERNEL = re.compile(
    r"(?:<\d+>)?(?:\[ *\d{1,7}\.\d{6}\] (?![\w.-]{1,40}\[\d{1,8}\]: )|"
    r".{0,60}?(?:^|[ \]])kernel(?:\[\d+\])?: )"
)
_NO_WORD_OF_KERNEL = frozenset(
    {
        FaultClass.USER_CODE,
        FaultClass.DATA_LOADER,
        FaultClass.NCCL_CONFIG,
        FaultClass.HANG_MISMATCH,
        FaultClass.NUMERIC_NAN,
        FaultClass.PREEMPTION_SIGTERM,
    }
)
"""Causes that a job's own programs tell: the kernel has a `size mismatch` and an `image` too."""


def is_said_by(text: str, signature: Signature) -> bool:
    """Whether who speaks on a line, and how loudly, means what a row reads in it.

    A library warns of what it has caught, a program of what it goes on without, the kernel's words
    are no program's, and general words below a warning are no alarm.
    """
    of_program = signature.fault in _OF_PROGRAMS
    if of_program and is_caught_by_library(text):
        return False
    if of_program and signature.strength < _SURE and goes_on_without(text):
        return False
    loose = not signature.physical and signature.strength < CONVICTING
    if loose and signature.fault in _NO_WORD_OF_KERNEL and _OF_KERNEL.match(text):
        return False
    return signature.part is not Part.GENERIC or not is_below_warning(text)
