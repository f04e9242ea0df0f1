"""The stand-in's objects: kept in memory, changed only with the right resourceVersion."""

import copy
import itertools
import re
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

Object = dict[str, Any]
Key = tuple[str, str, str]
"""Plural, namespace ("" for nodes), name."""

KINDS = {
    "nodes": ("v1", "Node"),
    "pods": ("v1", "Pod"),
    "events": ("v1", "Event"),
    "jobs": ("batch/v1", "Job"),
    "jobsets": ("jobset.x-k8s.io/v1alpha2", "JobSet"),
    "poddisruptionbudgets": ("policy/v1", "PodDisruptionBudget"),
}


class ApiError(Exception):
    """An answer of the server that is not a success."""

    def __init__(self, code: int, reason: str, message: str, details: Object | None = None) -> None:
        super().__init__(message)
        self.code, self.reason, self.details = code, reason, details or {}


def stamp() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Store:
    """Every object; `lock` is held by whoever reads and then writes."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.objects: dict[Key, Object] = {}
        self.owners: set[str] = set()
        self.default: Callable[[str, Object], None] = _nothing
        self._versions = itertools.count(100)

    def all(self, plural: str, namespace: str = "") -> Iterator[Object]:
        with self.lock:
            found = [o for (p, _, _), o in self.objects.items() if p == plural]
        yield from (o for o in found if not namespace or namespace_of(o) == namespace)

    def get(self, plural: str, namespace: str, name: str) -> Object:
        found = self.objects.get((plural, namespace, name))
        if found is None:
            raise ApiError(404, "NotFound", f'{plural} "{name}" not found')
        return found

    def create(self, plural: str, namespace: str, arguments: Object) -> Object:
        with self.lock:
            made = copy.deepcopy(arguments)
            version, kind = KINDS[plural]
            made |= {"apiVersion": version, "kind": kind}
            meta = made.setdefault("metadata", {})
            name = meta["name"]
            if (plural, namespace, name) in self.objects:
                raise ApiError(409, "AlreadyExists", f'{plural} "{name}" already exists')
            if meta.get("resourceVersion"):
                raise ApiError(400, "BadRequest", "resourceVersion should not be set on create")
            if namespace:
                meta["namespace"] = namespace
            meta |= {"uid": str(uuid.uuid4()), "creationTimestamp": stamp(), "generation": 1}
            self.default(plural, made)
            self.objects[plural, namespace, name] = made
            return self.touch(made)

    def replace(self, plural: str, namespace: str, name: str, arguments: Object) -> Object:
        """What is stored now; 409 when somebody else changed it since it was read."""
        with self.lock:
            old = self.get(plural, namespace, name)
            meta = arguments["metadata"]
            version = meta.get("resourceVersion")
            if version and version != old["metadata"]["resourceVersion"]:
                raise conflict(plural, name, "the object has been modified")
            if meta.get("uid") not in (None, old["metadata"]["uid"]):
                raise conflict(plural, name, "Precondition failed: UID in precondition")
            new = copy.deepcopy(arguments)
            for fixed in ("uid", "creationTimestamp", "name", "deletionTimestamp"):
                if fixed in old["metadata"]:
                    new["metadata"][fixed] = old["metadata"][fixed]
            self.default(plural, new)
            self.objects[plural, namespace, name] = new
            return self.touch(new)

    def touch(self, changed: Object) -> Object:
        """Give an object a new resourceVersion."""
        changed["metadata"]["resourceVersion"] = str(next(self._versions))
        return changed

    def drop(self, plural: str, namespace: str, name: str) -> None:
        with self.lock:
            self.objects.pop((plural, namespace, name), None)


def _nothing(_plural: str, _item: Object) -> None:
    """A store on its own adds nothing."""


def conflict(plural: str, name: str, why: str) -> ApiError:
    actual = f'Operation cannot be fulfilled on {plural} "{name}": {why}'
    return ApiError(409, "Conflict", actual)


def namespace_of(item: Object) -> str:
    return str(item["metadata"].get("namespace", ""))


def owner_of(item: Object) -> str:
    """The uid of the object that made this one; "" for nobody."""
    owners = item["metadata"].get("ownerReferences") or [{}]
    return str(owners[0].get("uid", ""))


def labels_of(item: Object) -> Mapping[str, str]:
    return item["metadata"].get("labels") or {}


def matches_labels(item: Object, selector: str) -> bool:
    """`a=b,c,!d,e in (f,g)` as in a URL."""
    labels = labels_of(item)
    for part in filter(None, re.split(r",(?![^(]*\))", selector)):
        among = re.fullmatch(r"(\S+) in \((.*)\)", part)
        if among is not None:
            if labels.get(among[1]) not in among[2].split(","):
                return False
            continue
        key, equals, value = part.partition("=")
        if part.startswith("!"):
            if part[1:] in labels:
                return False
        elif key not in labels or (equals and labels[key] != value.lstrip("=")):
            return False
    return True


def matches_fields(item: Object, selector: str) -> bool:
    """`spec.nodeName=n1`, `spec.unschedulable=true`, `metadata.name=x`."""
    for part in filter(None, selector.split(",")):
        path, _, value = re.sub("==", "=", part).partition("=")
        if path not in ("spec.nodeName", "spec.unschedulable", "metadata.name"):
            raise ApiError(400, "BadRequest", f"field label not supported: {path}")
        top, key = path.split(".")
        found = item[top].get(key, False if key == "unschedulable" else "")
        text = str(found).lower() if isinstance(found, bool) else str(found)
        if text != value:
            return False
    return True


def merge(into: Any, patch: Any) -> Any:
    """JSON merge patch (RFC 7386); strategic patches of scalar fields are the same."""
    if not isinstance(patch, dict):
        return patch
    done = dict(into) if isinstance(into, dict) else {}
    for key, value in patch.items():
        if value is None:
            done.pop(key, None)
        else:
            done[key] = merge(done.get(key), value)
    return done
