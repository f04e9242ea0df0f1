"""What brctl writes on a Kubernetes node, and reads from it: pure changes of a Node object.

A change returns the new object, or None when there is nothing to do. Everything brctl writes has
the prefix `brctl.dev/`, and nothing without it is touched, save `spec.unschedulable`.
"""

import copy
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime

from brctl.backends.contract import Cordon, Label, Reservation, labelled, unlabelled
from brctl.fanout.kubernetes.kubectl import Object
from brctl.model.foreign_json import ForeignJsonError, read_foreign_json
from brctl.model.units import rfc3339

PREFIX = "brctl.dev/"
CORDONED = PREFIX + "cordoned"
CORDONED_BY, CORDONED_AT, REASON = PREFIX + "cordoned-by", PREFIX + "cordoned-at", PREFIX + "reason"
RESERVED = PREFIX + "reserved"
RESERVED_BY, RESERVED_AT = PREFIX + "reserved-by", PREFIX + "reserved-at"
JOB = PREFIX + "job"
"""On nodes and in pod templates: pods of this job go to nodes with this label."""

_WAS = PREFIX + "label."
_TEXT_LIMIT = 2000
_KEEPING_AWAY = ("NoSchedule", "NoExecute")


def labels_of(item: Object) -> Mapping[str, str]:
    """Labels, also of an object that has none."""
    return item["metadata"].get("labels") or {}


def notes_of(item: Object) -> Mapping[str, str]:
    """Annotations, also of an object that has none."""
    return item["metadata"].get("annotations") or {}


def marked(
    item: Object, labels: Mapping[str, str | None], notes: Mapping[str, str | None]
) -> Object:
    """A copy with these labels and annotations; None takes one away."""
    new = copy.deepcopy(item)
    for key, values in (("labels", labels), ("annotations", notes)):
        merged = {**(new["metadata"].get(key) or {}), **values}
        new["metadata"][key] = {k: v for k, v in merged.items() if v is not None}
    return new


def is_ready(node: Object) -> bool:
    """Whether the control plane hears from the kubelet and it is well."""
    rows = node.get("status", {}).get("conditions") or ()
    return any(row.get("type") == "Ready" and row.get("status") == "True" for row in rows)


def takes_work(node: Object, tolerations: Sequence[Object] = ()) -> bool:
    """Ready, in service, no run has put it aside, and no taint there keeps the pods away."""
    free = cordon_of(node) is None and reservation_of(node) is None
    taints = [t for t in node["spec"].get("taints") or () if t.get("effect") in _KEEPING_AWAY]
    return is_ready(node) and free and all(_is_tolerated(t, tolerations) for t in taints)


def _is_tolerated(taint: Object, tolerations: Sequence[Object]) -> bool:
    """As the scheduler decides it: an empty key or effect means every one."""
    return any(
        row.get("effect") in (None, "", taint.get("effect"))
        and row.get("key") in (None, "", taint.get("key"))
        and (row.get("operator") == "Exists" or row.get("value", "") == taint.get("value", ""))
        for row in tolerations
    )


def cordon_of(node: Object) -> Cordon | None:
    """Who took this node out of service; None while it takes work."""
    notes, name = notes_of(node), str(node["metadata"]["name"])
    if CORDONED in labels_of(node):
        owner, reason = notes.get(CORDONED_BY, "brctl"), notes.get(REASON, "")
        # `kubectl uncordon` takes away the field but knows nothing of the taint.
        lasting = bool(node["spec"].get("unschedulable"))
        at = _moment(notes.get(CORDONED_AT))
        return Cordon(name, owner, reason[:_TEXT_LIMIT], at, lasting)
    if not node["spec"].get("unschedulable"):
        return None
    manager, at = _who_made_unschedulable(node)
    return Cordon(name, manager, "cordoned outside brctl", at)


def cordon(node: Object, owner: str, reason: str, at: datetime) -> Object | None:
    """Out of service: unschedulable, a taint for those who ignore that, and who, why and when."""
    before = cordon_of(node)
    if before is not None and before.lasting:
        return None
    notes = {CORDONED_BY: owner, REASON: reason[:_TEXT_LIMIT], CORDONED_AT: rfc3339(at)}
    new = marked(node, {CORDONED: "true"}, notes)
    taint = {"key": CORDONED, "value": taint_value(owner), "effect": "NoSchedule"}
    new["spec"]["taints"] = [*_other_taints(node), taint]
    new["spec"]["unschedulable"] = True
    return new


def uncordon(node: Object) -> Object | None:
    """Back into service; taints and annotations of others stay."""
    if cordon_of(node) is None:
        return None
    gone = dict.fromkeys((CORDONED_BY, REASON, CORDONED_AT))
    new = marked(node, {CORDONED: None}, gone)
    new["spec"]["taints"] = _other_taints(node)
    new["spec"].pop("unschedulable", None)
    return new


def reservation_of(node: Object) -> Reservation | None:
    """The run that has put this standby aside."""
    notes = notes_of(node)
    if RESERVED not in labels_of(node):
        return None
    at = _moment(notes.get(RESERVED_AT)) or datetime.fromtimestamp(0, UTC)
    return Reservation(str(node["metadata"]["name"]), notes.get(RESERVED_BY, ""), at)


def reserve(node: Object, owner: str, at: datetime) -> Object | None:
    """Put a standby aside; None when somebody has it, this owner included."""
    if reservation_of(node) is not None:
        return None
    return marked(node, {RESERVED: "true"}, {RESERVED_BY: owner, RESERVED_AT: rfc3339(at)})


def release(node: Object, owner: str) -> Object | None:
    """Give a standby back; None when this owner does not hold it."""
    held = reservation_of(node)
    if held is None or held.owner != owner:
        return None
    return marked(node, {RESERVED: None}, {RESERVED_BY: None, RESERVED_AT: None})


def label_of(node: Object, key: str) -> Label | None:
    """A label under brctl's prefix, with who set it as long as the value is still theirs."""
    value = labels_of(node).get(PREFIX + key)
    if value is None:
        return None
    try:
        was = read_foreign_json(notes_of(node).get(_WAS + key, "{}"))
    except ForeignJsonError:
        was = {}
    if not isinstance(was, dict) or was.get("value") != value:
        return Label(value, "", None)
    former = was.get("former")
    return Label(value, str(was.get("owner", "")), None if former is None else str(former))


def label(node: Object, key: str, value: str, owner: str) -> Object | None:
    """Set a label and remember what stood there."""
    before = label_of(node, key)
    after = labelled(before, value, owner)
    return None if after == before else _written(node, key, after)


def unlabel(node: Object, key: str, owner: str) -> Object | None:
    """Put the former value back where this owner's still stands."""
    before = label_of(node, key)
    after = unlabelled(before, owner)
    return None if after == before else _written(node, key, after)


def _written(node: Object, key: str, label: Label | None) -> Object:
    was = json.dumps(asdict(label)) if label is not None and label.owner else None
    return marked(node, {PREFIX + key: label.value if label else None}, {_WAS + key: was})


def bind(node: Object, job: str) -> Object | None:
    """Let the pods of a job come to this node."""
    return None if labels_of(node).get(JOB) == job else marked(node, {JOB: job}, {})


def unbind(node: Object, job: str) -> Object | None:
    """Let no further pod of a job come to this node."""
    return marked(node, {JOB: None}, {}) if labels_of(node).get(JOB) == job else None


def taint_value(owner: str) -> str:
    """An owner as a taint may show it: `brctl:R-0012` becomes `R-0012`."""
    text = re.sub(r"[^A-Za-z0-9_.-]", "-", owner.removeprefix("brctl:"))
    return text[:63].strip("-_.") or "brctl"


def _other_taints(node: Object) -> list[Object]:
    return [t for t in node["spec"].get("taints") or () if t.get("key") != CORDONED]


def _who_made_unschedulable(node: Object) -> tuple[str, datetime | None]:
    """The program that set the field, as the API server keeps it: `kubectl`, an autoscaler."""
    for entry in node["metadata"].get("managedFields") or ():
        fields = entry.get("fieldsV1") or {}
        if "f:unschedulable" in (fields.get("f:spec") or {}):
            return str(entry.get("manager") or "kubernetes"), _moment(entry.get("time"))
    return "kubernetes", None


def _moment(text: object) -> datetime | None:
    try:
        return datetime.fromisoformat(str(text)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
