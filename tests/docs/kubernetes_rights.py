"""The rights of brctl in a Kubernetes cluster as a manifest for `kubectl apply`."""

from collections.abc import Iterable, Iterator

from brctl.backends.kubernetes.permissions import PERMISSIONS, NeededFor, Permission, Scope

_ROLES = (
    ("ClusterRole", "brctl", "", Scope.CLUSTER),
    ("Role", "brctl-jobs", "train", Scope.JOBS),
    ("Role", "brctl-node-pods", "ops", Scope.NODE_PODS),
)


def manifest() -> str:
    """A role and a binding for each scope."""
    return "\n---\n".join(
        text
        for kind, name, namespace, scope in _ROLES
        for text in (
            "\n".join(_role(kind, name, namespace, scope)),
            "\n".join(_binding(kind, name, namespace)),
        )
    )


def _role(kind: str, name: str, namespace: str, scope: Scope) -> Iterator[str]:
    yield from _head(kind, name, namespace)
    yield "rules:"
    yield from _rules(row for row in PERMISSIONS if row.scope is scope)


def _head(kind: str, name: str, namespace: str) -> Iterator[str]:
    where = f", namespace: {namespace}" if namespace else ""
    yield "apiVersion: rbac.authorization.k8s.io/v1"
    yield f"kind: {kind}"
    yield f"metadata: {{name: {name}{where}}}"


def _rules(rows: Iterable[Permission]) -> Iterator[str]:
    for row in rows:
        base, _, part = row.resource.partition("/")
        plural, _, group = base.partition(".")
        resource = f"{plural}/{part}" if part else plural
        only = "" if row.need is NeededFor.ALWAYS else f"; {row.need}".replace("`", "")
        yield (
            f"- {{apiGroups: [{group or chr(34) * 2}], resources: [{resource}],"
            f" verbs: [{', '.join(row.verbs)}]}}  # {row.purpose.replace('`', '')}{only}"
        )


def _binding(kind: str, name: str, namespace: str) -> Iterator[str]:
    yield from _head(f"{kind}Binding", name, namespace)
    yield f"roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: {kind}, name: {name}}}"
    yield "subjects:"
    yield "- {apiGroup: rbac.authorization.k8s.io, kind: Group, name: brctl}"
