"""The adversary's incidents in two halves, drawn by a hash of their names before any was measured.

Written by somebody who wanted verdicts to be wrong (decision 0444).
"""

import hashlib

from tests.bench.verdicts import adversary_calm, adversary_jobs, adversary_machines
from tests.bench.verdicts.incident import Tell

_TOLD: tuple[Tell, ...] = (*adversary_machines.TOLD, *adversary_jobs.TOLD, *adversary_calm.TOLD)


def _is_open(tell: Tell) -> bool:
    return hashlib.sha256(tell.__name__.encode()).digest()[0] % 2 == 0


OPEN = tuple(tell for tell in _TOLD if _is_open(tell))
SET_ASIDE = tuple(tell for tell in _TOLD if not _is_open(tell))
