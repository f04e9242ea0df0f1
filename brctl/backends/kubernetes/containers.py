"""The container of a pod that trains, and how it stands: pure.

A pod may carry helpers beside it (a log shipper, a service mesh), which go on after it has ended;
kubelets list what became of containers by name and not in the order of the manifest.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from brctl.backends.kubernetes.marks import notes_of
from brctl.fanout.kubernetes.kubectl import Object

GPU = "nvidia.com/gpu"
_DEFAULT = "kubectl.kubernetes.io/default-container"
_SIGNALLED = 128
_RESTARTS = "CrashLoopBackOff"


@dataclass(frozen=True, slots=True)
class ContainerState:
    """How a container stands.

    Attributes:
        id: As the container runtime names it; "" while it has none.
        ended: It has ended; one that a kubelet starts again and again has.
        running: False for what waits, has ended, or was never looked at.
        exit_status: Negative for a signal; None while it runs or never ran.
        reason: Why it ended or waits.
    """

    id: str = ""
    ended: bool = False
    running: bool = False
    exit_status: int | None = None
    reason: str = ""
    message: str = ""


def trainer_state(pod: Object) -> ContainerState:
    """How the container that trains stands; nothing is known before a kubelet has said so."""
    name = trainer_name(pod)
    rows = rows_of((pod.get("status") or {}).get("containerStatuses"))
    row = next((r for r in rows if r.get("name") == name), rows[0] if len(rows) == 1 else None)
    return ContainerState() if row is None else _state(row)


def trainer_name(pod: Object) -> str:
    """The one that kubectl would mean, else the first with a GPU, else the first."""
    containers = rows_of(pod["spec"].get("containers"))
    choice = [c for c in containers if has_gpu(c)] or containers or ({},)
    return notes_of(pod).get(_DEFAULT) or str(choice[0].get("name", ""))


def has_gpu(container: Object) -> bool:
    """Whether a container was promised a GPU."""
    limits = (container.get("resources") or {}).get("limits") or {}
    return str(limits.get(GPU, "0")) not in ("", "0")


def rows_of(value: object) -> Sequence[Object]:
    """The objects of a list that somebody else wrote; whatever else it is has none."""
    return tuple(row for row in value if isinstance(row, dict)) if isinstance(value, list) else ()


def _state(row: Object) -> ContainerState:
    now, before = _part(row, "state"), _part(row, "lastState")
    ended, waiting = _part(now, "terminated"), _part(now, "waiting")
    reason = str(waiting.get("reason") or "")
    if reason == _RESTARTS and not ended:
        ended = _part(before, "terminated")
    code = ended.get("exitCode")
    told = ended or waiting
    return ContainerState(
        id=str(row.get("containerID") or "").rpartition("//")[2],
        ended=bool(ended) or reason == _RESTARTS,
        running="running" in now,
        exit_status=_exit_status(code) if isinstance(code, int) else None,
        reason=str(told.get("reason") or ""),
        message=str(told.get("message") or ""),
    )


def _part(value: Object, key: str) -> Object:
    found = value.get(key)
    return found if isinstance(found, dict) else {}


def _exit_status(code: int) -> int:
    """As Python has it: a death by a signal is negative."""
    return _SIGNALLED - code if _SIGNALLED < code <= _SIGNALLED + 64 else code
