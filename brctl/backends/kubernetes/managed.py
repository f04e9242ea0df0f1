"""Jobs that another controller starts and stops: refused, with the words that make it do so. Pure.

Kueue admits and suspends what is in its queues, and an operator writes its own `suspend`: each
would undo after us what we did.
"""

import json
import shlex

from brctl.backends.kubernetes.jobs import Workload
from brctl.backends.kubernetes.kinds import JOBSET, TRAINJOB, JobKind
from brctl.model.errors import UsageError

_KUEUE = "kubectl -n {namespace} get workloads -l kueue.x-k8s.io/job-uid={name} -o name |"
_KUEUE += " xargs kubectl -n {namespace} patch --type merge -p '{patch}'"


def refuse_managed(found: Workload, namespace: str, verb: str) -> None:
    """Refuse what somebody else alone lets be `started`, `stopped` or `moved`.

    Raises:
        UsageError: With the words to type.
    """
    if found.queue:
        problem = f"{found.name} is {verb} by Kueue alone (queue {found.queue})"
        stop, start = (_kueue_words(found, namespace, active=active) for active in (False, True))
        raise UsageError(problem, hint=_hint(verb, stop, start))
    owner = _trainjob_of(found)
    if owner:
        problem = f"{found.name} is {verb} by its TrainJob {owner} alone"
        raise UsageError(problem, hint=_hint(verb, *_words(TRAINJOB, owner, namespace)))
    if not found.kind.is_ours:
        problem = f"{found.kind.name} {found.name} is {verb} by its own controller alone"
        raise UsageError(problem, hint=_hint(verb, *_words(found.kind, found.name, namespace)))


def _trainjob_of(found: Workload) -> str:
    """The TrainJob that made a JobSet and writes its `suspend`; of a Job it writes none."""
    owners = found.value["metadata"].get("ownerReferences") or ()
    names = [str(row.get("name")) for row in owners if row.get("kind") == TRAINJOB.name]
    return names[0] if found.kind is JOBSET and names else ""


def _words(kind: JobKind, name: str, namespace: str) -> tuple[str, str]:
    known = {"namespace": shlex.quote(namespace), "name": shlex.quote(name)}
    return kind.stop.format(**known), kind.start.format(**known)


def _kueue_words(found: Workload, namespace: str, *, active: bool) -> str:
    patch = json.dumps({"spec": {"active": active}})
    where = {"namespace": shlex.quote(namespace), "name": shlex.quote(found.uid)}
    return _KUEUE.format(**where, patch=patch)


def _hint(verb: str, stop: str, start: str) -> str:
    moved = f"brctl cordon NODES; {stop}; {start}"
    return {"started": start, "stopped": stop}.get(verb, moved)
