"""What the API server refuses: fields of Jobs and JobSets that change only at certain times.

From pkg/apis/batch/validation and pkg/registry/batch/job (validationOptionsForJob)
and JobSet's webhook (ValidateUpdate), as of Kubernetes 1.34 without the 1.36 default
MutableSchedulingDirectivesForSuspendedJobs: the stricter rule is the one to live with.
"""

import copy
import re
from typing import Any

from tests.fakes.kube.objects import ApiError, Object

_VALUE = re.compile(r"([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?")


def check_node(new: Object) -> None:
    """Values of labels and taints have a syntax; annotations hold any text."""
    values = list((new["metadata"].get("labels") or {}).values())
    values += [taint.get("value", "") for taint in new["spec"].get("taints") or ()]
    for value in values:
        if not isinstance(value, str) or not _VALUE.fullmatch(value):
            why = f"Invalid value: {value!r}: a valid label must be an empty string or consist of"
            raise _invalid("Node", new["metadata"]["name"], "metadata.labels", why)


def check_job_update(old: Object, new: Object) -> None:
    """A pod template changes only while suspended and never started; the rest never."""
    name = old["metadata"]["name"]
    was_suspended = bool(old["spec"].get("suspend"))
    before, after = copy.deepcopy(old["spec"]), copy.deepcopy(new["spec"])
    if before.get("selector") != after.get("selector"):
        raise immutable("Job", name, "spec.selector", after.get("selector"))
    if before.get("completions") != after.get("completions"):
        raise immutable("Job", name, "spec.completions", after.get("completions"))
    if was_suspended and not old.get("status", {}).get("startTime"):
        _forget(before["template"], after["template"], affinity=True)
    if before["template"] != after["template"]:
        raise immutable("Job", name, "spec.template", new["spec"]["template"])


def check_jobset_update(old: Object, new: Object) -> None:
    """Annotations, labels, selectors and tolerations of templates, while suspended."""
    name = old["metadata"]["name"]
    before, after = copy.deepcopy(old["spec"]), copy.deepcopy(new["spec"])
    if before.get("suspend") or after.get("suspend"):
        for one, other in zip(before["replicatedJobs"], after["replicatedJobs"], strict=True):
            _forget(one["template"]["spec"]["template"], other["template"]["spec"]["template"])
    if before["replicatedJobs"] != after["replicatedJobs"]:
        raise immutable("JobSet", name, "spec.replicatedJobs", after["replicatedJobs"])


def check_job_status(old: Object, new: Object) -> None:
    """`startTime` goes away only while the Job is suspended."""
    had, has = (o.get("status", {}).get("startTime") for o in (old, new))
    if had and had != has and not old["spec"].get("suspend"):
        why = "Required value: startTime cannot be removed for unsuspended job"
        raise _invalid("Job", old["metadata"]["name"], "status.startTime", why)


def check_job_create(new: Object) -> None:
    """What the server itself sets may not come with a new Job."""
    spec = new["spec"]
    if spec.get("selector") and not spec.get("manualSelector"):
        why = "Invalid value: `selector` not auto-generated"
        raise _invalid("Job", new["metadata"]["name"], "spec.selector", why)


def immutable(kind: str, name: str, field: str, value: Any) -> ApiError:
    """1.26.1 prints the whole value in Go's own way, thousands of characters, before the reason."""
    dump = f'core.PodTemplateSpec{{ObjectMeta:v1.ObjectMeta{{Name:""}}, Spec:{value!r}}}'
    return _invalid(kind, name, field, f"Invalid value: {dump}: field is immutable")


def _invalid(kind: str, name: str, field: str, why: str) -> ApiError:
    """With the causes from which kubectl makes `The Job "x" is invalid: ...`, without brackets."""
    details = {"name": name, "kind": kind, "causes": [{"message": why, "field": field}]}
    return ApiError(422, "Invalid", f'{kind} "{name}" is invalid: {field}: {why}', details)


def _forget(before: Any, after: Any, *, affinity: bool = False) -> None:
    """Take out of both templates what may differ."""
    for template in (before, after):
        for key in ("annotations", "labels"):
            template.setdefault("metadata", {}).pop(key, None)
        for key in ("nodeSelector", "tolerations", "schedulingGates"):
            template["spec"].pop(key, None)
        if affinity:
            (template["spec"].get("affinity") or {}).pop("nodeAffinity", None)
