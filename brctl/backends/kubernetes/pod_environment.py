"""What a container is told through annotations of its pod: pure.

An annotation of a suspended Job's template may change where an environment variable may not.
"""

from collections.abc import Iterator, Mapping, Sequence

from brctl.backends.kubernetes.marks import PREFIX
from brctl.fanout.kubernetes.kubectl import Object
from brctl.model.jobs.job import CODE_DIR_VARIABLE, CODE_VERSION_VARIABLE, Job

CHECKPOINT = PREFIX + "checkpoint"
CODE_DIR, CODE_VERSION = PREFIX + "code-dir", PREFIX + "code-version"
_RESUME = {"BRCTL_RESUME_FROM": CHECKPOINT}
_CODE = {CODE_DIR_VARIABLE: CODE_DIR, CODE_VERSION_VARIABLE: CODE_VERSION}


def annotations(job: Job, checkpoint: str) -> Mapping[str, str]:
    """What the pods of a start are told."""
    values = job.rank_environment
    code = {note: values[name] for name, note in _CODE.items()} if job.code is not None else {}
    return {CHECKPOINT: checkpoint, **code}


def hears(template: Object, annotation: str) -> bool:
    """Whether some container of a pod template reads an annotation."""
    rows = [row for container in containers(template) for row in _variables(container)]
    return any(_field_path(row) == _path(annotation) for row in rows)


def with_variables(template: Object, job: Job) -> Iterator[Object]:
    """The containers of a template, with a variable for all that the job's pods are told."""
    told = {**_RESUME, **(_CODE if job.code is not None else {})}
    added = [{"name": name, "valueFrom": _source(note)} for name, note in told.items()]
    for container in containers(template):
        own = [row for row in _variables(container) if row.get("name") not in told]
        yield {**container, "env": [*own, *added]}


def containers(template: Object) -> Sequence[Object]:
    """Of a pod or its template, helpers that run before it left out."""
    return template["spec"].get("containers") or ()


def _source(annotation: str) -> Object:
    return {"fieldRef": {"fieldPath": _path(annotation)}}


def _path(annotation: str) -> str:
    return f"metadata.annotations['{annotation}']"


def _variables(container: Object) -> Sequence[Object]:
    return container.get("env") or ()


def _field_path(row: Object) -> object:
    """The field a variable reads; the server writes `apiVersion: v1` beside it."""
    source = (row.get("valueFrom") or {}).get("fieldRef") or {}
    return source.get("fieldPath")
