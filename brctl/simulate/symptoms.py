"""What stops a job, how often, and whose fault it is: Tables 1 and 2 of arXiv 2509.16293.

The paper says only of hangs, illegal memory accesses and NaN which share was the user's code
(Table 2); that of the others, and how many pass by themselves, is assumed and says so here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """How a stop shows, which decides how soon it is seen."""

    EXPLICIT = "explicit"
    MACHINE = "machine"
    HANG = "hang"
    SLOW = "slow"
    NAN = "nan"
    MANUAL = "manual"


class SymptomFamily(StrEnum):
    """The three classes of the paper's Table 1."""

    EXPLICIT = "explicit"
    IMPLICIT = "implicit"
    MANUAL = "manual"


class Cause(StrEnum):
    """What is true of a fault; no policy is told."""

    MACHINE = "machine"
    PASSING = "passing"
    CODE = "code"
    SERVICE = "service"
    PERSON = "person"


@dataclass(frozen=True, slots=True)
class Symptom:
    """One row of Table 1.

    Attributes:
        count: Incidents in three months of the whole platform.
        code: Share that the job's own code causes.
        passing: Share that is gone after any restart.
        service: Share that somebody else's service causes: neither node nor code.
    """

    family: SymptomFamily
    kind: Kind
    count: int
    code: float = 0.0
    passing: float = 0.0
    service: float = 0.0

    def cause(self, chance: float) -> Cause:
        """The cause for a number between 0 and 1."""
        if self.kind is Kind.MANUAL:
            return Cause.PERSON
        shares = ((Cause.CODE, self.code), (Cause.PASSING, self.passing),
                  (Cause.SERVICE, self.service))  # fmt: skip
        for cause, share in shares:
            if chance < share:
                return cause
            chance -= share
        return Cause.MACHINE


E, M = SymptomFamily.EXPLICIT, SymptomFamily.IMPLICIT

SYMPTOMS: Mapping[str, Symptom] = {
    # Table 2: 41 of 62 illegal memory accesses were the user's code.
    "cuda-error": Symptom(E, Kind.EXPLICIT, 19_968, code=41 / 62),
    "cpu-overload": Symptom(E, Kind.EXPLICIT, 6_095, passing=0.5),  # assumed
    "cpu-oom": Symptom(E, Kind.EXPLICIT, 5_567, code=0.5),  # assumed
    "disk-space": Symptom(E, Kind.EXPLICIT, 2_755, service=1.0),  # the tree frees space by hand
    "infiniband-error": Symptom(E, Kind.EXPLICIT, 1_599, passing=0.5),  # links flap; assumed
    "filesystem-mount": Symptom(E, Kind.EXPLICIT, 1_176, passing=0.5),  # assumed
    "hdfs-error": Symptom(E, Kind.EXPLICIT, 1_104, service=1.0),
    "container-error": Symptom(E, Kind.EXPLICIT, 781, passing=0.5),  # assumed
    "kernel-panic": Symptom(E, Kind.EXPLICIT, 203),
    "gpu-memory": Symptom(E, Kind.MACHINE, 188),
    "external-service": Symptom(E, Kind.EXPLICIT, 128, service=1.0),
    "gpu-unavailable": Symptom(E, Kind.MACHINE, 76),
    "disk-fault": Symptom(E, Kind.MACHINE, 47),
    "hang": Symptom(M, Kind.HANG, 5_506, code=5 / 26),  # Table 2
    "mfu-decline": Symptom(M, Kind.SLOW, 442),
    "nan": Symptom(M, Kind.NAN, 148, code=1 / 4),  # Table 2
    "manual": Symptom(SymptomFamily.MANUAL, Kind.MANUAL, 9_582),
}
"""By the name a fleet file uses."""


def shares(families: Mapping[SymptomFamily, float]) -> dict[str, float]:
    """How often each symptom comes, where a job's counts are known by family only."""
    total = {
        family: sum(s.count for s in SYMPTOMS.values() if s.family is family)
        for family in SymptomFamily
    }
    whole = sum(families.values())
    return {
        name: families.get(row.family, 0.0) / whole * row.count / total[row.family]
        for name, row in SYMPTOMS.items()
    }
