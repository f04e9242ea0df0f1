"""Whether a job may be asked at all: a question runs inside the job, and some releases die of it.

Known crashes (issues of NCCL): asked while communicators are created, 2.26.2 to 2.27.2 (1669,
1718); memory corruption with missing ranks, which is the very case here, until 2.29.2 (1762).
While communicators are created, 2.29.7 can still crash (2346, open): a job that is starting is
never asked.
"""

from collections.abc import Sequence

from brctl.evidence.ras.facts import RankFacts, version_of
from brctl.model.jobs.job_status import JobStatus

SAFE_FROM = (2, 29, 2)
FIRST = (2, 24, 0)
STARTING = frozenset({"load", "init", "compile"})
OLD_NCCL = "`nccl_ras: old-too` in config.yaml, or `brctl nccl ras --ask-old-nccl`"


def has_nccl(facts: Sequence[RankFacts]) -> bool:
    """Whether some rank has NCCL loaded, or listens where its RAS service would."""
    return any(one.library or one.sockets for one in facts)


def why_not(status: JobStatus, facts: Sequence[RankFacts], *, old_too: bool) -> str:
    """Why NCCL is not asked; "" where it may be."""
    if not facts:
        return "no rank's process could be read"
    if not has_nccl(facts):
        return "no rank has NCCL loaded"
    if starting := _starting(status):
        return f"{starting}: asking while communicators are made can crash the job"
    if not any(one.enabled for one in facts):
        return "NCCL_RAS_ENABLE=0: the job runs without the service"
    version = version_of(one for one in facts if one.library or one.sockets)
    if version is not None and version < FIRST:
        return f"NCCL {_dotted(version)} has no RAS service; the first is 2.24"
    if old_too:
        return ""
    if version is None:
        return f"its NCCL's release is not known, and old ones crash when asked: {OLD_NCCL}"
    if version < SAFE_FROM:
        return (
            f"NCCL {_dotted(version)} can crash when asked with ranks missing"
            f" (fixed in {_dotted(SAFE_FROM)}): {OLD_NCCL}"
        )
    return ""


def _starting(status: JobStatus) -> str:
    """That the job may still make its communicators; "" where it is past that."""
    if status.step is None:
        return "the job is still starting, it has no step"
    early = next((v for v in status.ranks if v.alive and v.phase in STARTING), None)
    return f"rank {early.rank} is in phase {early.phase}, perhaps still starting" if early else ""


def _dotted(version: tuple[int, int, int]) -> str:
    return ".".join(map(str, version))
