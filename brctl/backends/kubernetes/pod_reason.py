"""Why a pod ended, does not start or has to go, in the cluster's own words: pure."""

from collections.abc import Iterator, Mapping

from brctl.backends.kubernetes.containers import rows_of, trainer_state
from brctl.fanout.kubernetes.kubectl import Object

MESSAGE_LIMIT = 300
_NORMAL = frozenset({"", "Completed", "ContainerCreating", "PodInitializing"})


def pod_reason(pod: Object) -> tuple[str, str]:
    """Why a pod ended, does not start or has to go, and what is said besides; "" for nothing."""
    found = [(reason, text) for reason, text in _pod_reasons(pod) if reason not in _NORMAL]
    reason, text = found[0] if found else ("", "")
    return reason[:MESSAGE_LIMIT], text[:MESSAGE_LIMIT]


def _pod_reasons(pod: Object) -> Iterator[tuple[str, str]]:
    """The nearest to the cause first: a pod that is evicted also ends with an error."""
    status, state = pod.get("status") or {}, trainer_state(pod)
    if state.reason == "OOMKilled":
        yield state.reason, state.message
    yield str(status.get("reason") or ""), str(status.get("message") or "")
    yield from _conditions(status.get("conditions"), {"DisruptionTarget": "True"})
    yield state.reason, state.message
    yield from _conditions(status.get("conditions"), {"PodScheduled": "False"})


def _conditions(rows: object, wanted: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for row in rows_of(rows):
        if wanted.get(str(row.get("type"))) == row.get("status"):
            yield str(row.get("reason") or row["type"]), str(row.get("message") or "")
