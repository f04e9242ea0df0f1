"""The stand-in's HTTP side: the paths kubectl asks for, JSON in and out."""

import json
import re
import socket
import subprocess
from collections.abc import Callable, Collection
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.fakes.kube import rules
from tests.fakes.kube.objects import (
    KINDS,
    ApiError,
    Object,
    Store,
    conflict,
    labels_of,
    matches_fields,
    matches_labels,
    merge,
    namespace_of,
    owner_of,
    stamp,
)
from tests.fakes.kube.rights import load_rights
from tests.fakes.kube.spdy import ExecSession

RESOURCE = re.compile(
    r"/(?:api/v1|apis/(?:batch|policy|jobset\.x-k8s\.io)/[^/]+)(?:/namespaces/(?P<namespace>[^/]+))?"
    r"/(?P<plural>nodes|pods|events|jobs|jobsets|poddisruptionbudgets)"
    r"(?:/(?P<name>[^/]+))?(?:/(?P<sub>status|eviction|exec))?$"
)
GROUPS = {
    "batch": ("v1", ("jobs",)),
    "policy": ("v1", ("poddisruptionbudgets",)),
    "jobset.x-k8s.io": ("v1alpha2", ("jobsets",)),
    "authorization.k8s.io": ("v1", ()),
}


Start = Callable[[], "subprocess.Popen[bytes]"]
"""Starts what was asked for, once the client has opened its streams."""


class ApiServer(ThreadingHTTPServer):
    """One cluster's API on a loopback port."""

    daemon_threads = True

    def __init__(self, store: Store) -> None:
        super().__init__(("127.0.0.1", 0), ApiHandler)
        self.store = store
        self.rights = load_rights()
        self.denied: set[tuple[str, str]] = set()
        self.without: set[str] = set()
        self.namespaces = {"train", "default"}
        self.overloaded = 0
        self.said: list[tuple[str, str, str]] = []
        self.start_in: Callable[[Object, str, list[str]], Start]
        self.executions: set[socket.socket] = set()

    def listen_again(self) -> None:
        """On the port it had, after its socket was closed."""
        self.socket = socket.socket(self.address_family, self.socket_type)
        self.server_bind()
        self.server_activate()

    def cut_executions(self) -> None:
        """What a load balancer, or a dying API server, does to every `kubectl exec` under way."""
        for connection in list(self.executions):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


class ApiHandler(BaseHTTPRequestHandler):
    server: ApiServer
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._serve("get")

    def do_PUT(self) -> None:
        self._serve("update")

    def do_POST(self) -> None:
        self._serve("create")

    def do_PATCH(self) -> None:
        self._serve("patch")

    def do_DELETE(self) -> None:
        self._serve("delete")

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def _serve(self, verb: str) -> None:
        url = urlsplit(self.path)
        self._query = {k: v[0] for k, v in parse_qs(url.query).items()}
        body = self._body()
        if self.server.overloaded:
            self._overload()
            return
        try:
            if url.path.endswith("/exec"):
                self._exec(url.path, parse_qs(url.query))
                return
            with self.server.store.lock:
                self._send(200, self._answer(verb, url.path, json.loads(body) if body else {}))
        except ApiError as error:
            status: Object = {"kind": "Status", "apiVersion": "v1", "status": "Failure"}
            status |= {"message": str(error), "reason": error.reason, "details": error.details}
            self._send(error.code, {**status, "code": error.code})

    def _overload(self) -> None:
        """API priority and fairness of 1.26.1 answers in plain text; kubectl comes again by itself.

        Unlike a disruption budget, which answers 429 with a Status.
        """
        self.server.overloaded -= 1
        payload = b"Too many requests, please try again later.\n"
        self.send_response(429)
        self.send_header("Retry-After", "1")
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def _send(self, code: int, value: object) -> None:
        payload = json.dumps(value).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)

    def _answer(self, verb: str, path: str, body: Object) -> object:
        found = discovery(path, self.server.without)
        if found is not None:
            return found
        if path.startswith("/api/v1/namespaces/") and path.count("/") == 4:
            return self._namespace(path.rpartition("/")[2])
        if path.endswith("/selfsubjectaccessreviews"):
            return self._review(body)
        match = RESOURCE.fullmatch(path)
        if match is None:
            raise _no_such_resource()
        plural, name, sub = match["plural"], match["name"] or "", match["sub"] or ""
        resource = f"{plural}/{sub}" if sub else plural
        verb = "list" if verb == "get" and not name else verb
        if (verb, resource) in self.server.denied or not self.server.rights.allow(
            verb, resource, namespaced=bool(match["namespace"])
        ):
            actual = f'{resource} is forbidden: User "test" cannot {verb} resource "{resource}"'
            # 1.26.1 asks who may before it asks whether there is such a kind at all.
            raise ApiError(403, "Forbidden", actual)
        if plural in self.server.without:
            raise _no_such_resource()
        self.server.said.append((verb, resource, name))
        return getattr(self, f"_{verb}")(plural, match["namespace"] or "", name, sub, body)

    def _exec(self, path: str, query: dict[str, list[str]]) -> None:
        """Run a command in a pod, as `kubectl exec` asks for it over SPDY."""
        if (self.headers.get("Upgrade") or "").upper() != "SPDY/3.1":
            raise ApiError(400, "BadRequest", "you must specify at least SPDY/3.1")
        match = RESOURCE.fullmatch(path)
        if match is None:
            raise _no_such_resource()
        denied = ("create", "pods/exec") in self.server.denied
        if denied or not self.server.rights.allow("create", "pods/exec", namespaced=True):
            raise ApiError(403, "Forbidden", 'pods "x" is forbidden: cannot create pods/exec')
        self.server.said.append(("create", "pods/exec", match["name"]))
        with self.server.store.lock:
            pod = self.server.store.get("pods", match["namespace"], match["name"])
            start = self.server.start_in(pod, query["container"][0], query["command"])
        self.send_response(101)
        self.send_header("Connection", "Upgrade")
        self.send_header("Upgrade", "SPDY/3.1")
        self.send_header("X-Stream-Protocol-Version", "v4.channel.k8s.io")
        self.end_headers()
        self.close_connection = True
        self.server.executions.add(self.connection)
        streams = {"error", *(s for s in ("stdin", "stdout", "stderr") if query.get(s) == ["true"])}
        try:
            ExecSession(self.rfile, self.connection.sendall).serve(streams, start)
        finally:
            self.server.executions.discard(self.connection)

    def _namespace(self, name: str) -> Object:
        if ("get", "namespaces") in self.server.denied:
            raise ApiError(403, "Forbidden", f'namespaces "{name}" is forbidden')
        if name not in self.server.namespaces:
            raise ApiError(404, "NotFound", f'namespaces "{name}" not found')
        return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}

    def _review(self, body: Object) -> Object:
        asked = body["spec"]["resourceAttributes"]
        resource = asked["resource"].partition(".")[0]
        resource += f"/{asked['subresource']}" if asked.get("subresource") else ""
        allowed = (asked["verb"], resource) not in self.server.denied
        return {**body, "status": {"allowed": allowed}}

    def _list(self, plural: str, namespace: str, _name: str, _sub: str, _body: Object) -> Object:
        items = [
            item
            for item in self.server.store.all(plural, namespace)
            if matches_labels(item, self._query.get("labelSelector", ""))
            and matches_fields(item, self._query.get("fieldSelector", ""))
        ]
        version, kind = KINDS[plural]
        return {"apiVersion": version, "kind": f"{kind}List", "metadata": {}, "items": items}

    def _get(self, plural: str, namespace: str, name: str, _sub: str, _body: Object) -> Object:
        return self.server.store.get(plural, namespace, name)

    def _create(self, plural: str, namespace: str, name: str, sub: str, body: Object) -> Object:
        if sub == "eviction":
            return self._evict(namespace, name, body)
        if plural == "jobs":
            rules.check_job_create(body)
        if plural == "pods":
            body = {**body, "status": {"phase": "Pending"}}
        return self.server.store.create(plural, namespace, body)

    def _patch(self, plural: str, namespace: str, name: str, sub: str, body: Object) -> Object:
        old = self.server.store.get(plural, namespace, name)
        new: Object = merge(old, body)
        return self._update(plural, namespace, name, sub, new)

    def _update(self, plural: str, namespace: str, name: str, sub: str, body: Object) -> Object:
        store = self.server.store
        old = store.get(plural, namespace, name)
        if sub == "status":
            new = {**old, "status": body.get("status", {})}
            new["metadata"] = {**old["metadata"], **_version(body)}
            if plural == "jobs":
                rules.check_job_status(old, new)
            return store.replace(plural, namespace, name, new)
        new = {**body, "status": old.get("status", {})}
        store.default(plural, new)
        if plural == "jobs":
            rules.check_job_update(old, new)
        if plural == "jobsets":
            rules.check_jobset_update(old, new)
        if plural == "nodes":
            rules.check_node(new)
            self._remember_manager(old, new)
        return store.replace(plural, namespace, name, new)

    def _remember_manager(self, old: Object, new: Object) -> None:
        """Who changed `unschedulable`, as managedFields tell it."""
        entries = [e for e in old["metadata"].get("managedFields", ()) if e["manager"] != "cordon"]
        if old["spec"].get("unschedulable") != new["spec"].get("unschedulable"):
            agent = (self.headers.get("User-Agent") or "unknown").split("/")[0]
            manager = self._query.get("fieldManager") or agent
            fields: Object = {"f:spec": {"f:unschedulable": {}}}
            entries = [
                {"manager": manager, "operation": "Update", "time": stamp(), "fieldsV1": fields}
            ]
        new["metadata"]["managedFields"] = entries

    def _delete(self, plural: str, namespace: str, name: str, _sub: str, body: Object) -> Object:
        store = self.server.store
        found = store.get(plural, namespace, name)
        wanted = (body.get("preconditions") or {}).get("uid")
        if wanted not in (None, found["metadata"]["uid"]):
            raise conflict(plural, name, f"Precondition failed: UID in precondition: {wanted}")
        if plural == "pods":
            grace = self._query.get("gracePeriodSeconds", body.get("gracePeriodSeconds"))
            return end_pod(store, found, None if grace is None else int(grace))
        if self._query.get("propagationPolicy", body.get("propagationPolicy")) is None:
            # The default of batch/v1, kept for old clients: the pods stay behind.
            for pod in store.all("pods", namespace):
                if owner_of(pod) == found["metadata"]["uid"]:
                    del pod["metadata"]["ownerReferences"]
        store.drop(plural, namespace, name)
        return {"kind": "Status", "apiVersion": "v1", "status": "Success"}

    def _evict(self, namespace: str, name: str, body: Object) -> Object:
        store = self.server.store
        if body.get("apiVersion") != "policy/v1" or body.get("kind") != "Eviction":
            raise ApiError(400, "BadRequest", f"no kind Eviction in {body.get('apiVersion')}")
        pod = store.get("pods", namespace, name)
        if pod["status"].get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]:
            for budget in store.all("poddisruptionbudgets", namespace):
                _must_allow(budget, pod)
        end_pod(store, pod, None)
        return {"kind": "Status", "apiVersion": "v1", "status": "Success"}


def _version(body: Object) -> Object:
    version = body.get("metadata", {}).get("resourceVersion")
    return {"resourceVersion": version} if version else {}


def _must_allow(budget: Object, pod: Object) -> None:
    wanted = budget["spec"]["selector"]["matchLabels"]
    if not wanted.items() <= labels_of(pod).items():
        return
    if budget["status"]["disruptionsAllowed"] <= 0:
        why = "Cannot evict pod as it would violate the pod's disruption budget."
        name = budget["metadata"]["name"]
        cause = f"The disruption budget {name} needs 1 healthy pods and has 1 currently"
        details = {"causes": [{"reason": "DisruptionBudget", "message": cause}]}
        raise ApiError(429, "TooManyRequests", why, details)
    budget["status"]["disruptionsAllowed"] -= 1


def end_pod(store: Store, pod: Object, grace_s: int | None) -> Object:
    """Mark a pod for graceful deletion; a later, shorter grace wins."""
    meta, spec = pod["metadata"], pod["spec"]
    wanted = spec.get("terminationGracePeriodSeconds", 30) if grace_s is None else grace_s
    if not spec.get("nodeName") or wanted == 0:
        store.drop("pods", namespace_of(pod), meta["name"])
        return pod
    meta.setdefault("deletionTimestamp", stamp())
    meta["deletionGracePeriodSeconds"] = min(wanted, meta.get("deletionGracePeriodSeconds", wanted))
    return store.touch(pod)


def _no_such_resource() -> ApiError:
    return ApiError(404, "NotFound", "the server could not find the requested resource")


def discovery(path: str, without: Collection[str] = ()) -> Object | None:
    """What kubectl wants to know before it asks for anything by name; everybody may read it."""
    if path == "/version":
        return {"major": "1", "minor": "30", "gitVersion": "v1.30.0", "platform": "stand-in"}
    if path == "/api":
        return {"kind": "APIVersions", "versions": ["v1"]}
    if path == "/apis":
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_group(g) for g in GROUPS]}
    if path == "/api/v1":
        eviction = {"name": "pods/eviction", "kind": "Eviction", "namespaced": True}
        eviction |= {"group": "policy", "version": "v1", "verbs": ["create"], "singularName": ""}
        core = [
            _resource("nodes", namespaced=False),
            _resource("pods"),
            _resource("events"),
            eviction,
        ]
        return {"kind": "APIResourceList", "groupVersion": "v1", "resources": core}
    for group, (version, plurals) in GROUPS.items():
        if path == f"/apis/{group}/{version}":
            rows = [_resource(plural) for plural in plurals if plural not in without]
            if plurals and not rows:
                return None
            return {
                "kind": "APIResourceList",
                "groupVersion": f"{group}/{version}",
                "resources": rows,
            }
    return None


def _group(name: str) -> Object:
    version = {"groupVersion": f"{name}/{GROUPS[name][0]}", "version": GROUPS[name][0]}
    return {"name": name, "versions": [version], "preferredVersion": version}


def _resource(plural: str, *, namespaced: bool = True) -> Object:
    verbs = ["create", "delete", "get", "list", "patch", "update"]
    kind = KINDS[plural][1]
    row = {"name": plural, "singularName": kind.lower(), "kind": kind, "verbs": verbs}
    return {**row, "namespaced": namespaced}
