"""Ask the pods of a node to go, through the eviction API, as `kubectl drain` does."""

import asyncio

from brctl.backends.kubernetes.marks import labels_of, notes_of
from brctl.fanout.kubernetes.kubectl import BudgetError, GoneError, Kubectl, Object
from brctl.model.errors import DeniedError, UnavailableError, UnreachableError

_MIRROR = "kubernetes.io/config.mirror"
_NAMED_AT_MOST = 3


async def evict_node(kubectl: Kubectl, node: str) -> str:
    """Ask every pod of a node to go; one sentence about those that are still there, or ""."""
    pods = await pods_on(kubectl, node)
    version = await _eviction_version(kubectl) if pods else ""
    asked = await asyncio.gather(*(_ask(kubectl, pod, version) for pod in pods))
    left = [why for why in asked if why]
    more = f" and {len(left) - _NAMED_AT_MOST} more" if len(left) > _NAMED_AT_MOST else ""
    # What refuses is named first: the others go by themselves.
    reasons = sorted(left, key=lambda why: why.endswith("is ending"))[:_NAMED_AT_MOST]
    return "; ".join(reasons) + more


async def pods_on(kubectl: Kubectl, node: str) -> list[Object]:
    """The pods of a node that an eviction would end."""
    found = await kubectl.get("/api/v1/pods", fieldSelector=f"spec.nodeName={node}")
    return [pod for pod in (found or {}).get("items") or () if is_ours_to_ask(pod)]


def names_of(pods: list[Object]) -> str:
    """Some pods by name, those first that lose something, and how many more."""
    rows = sorted(pods, key=lambda pod: not _loss(pod))
    names = [f"{p['metadata']['namespace']}/{p['metadata']['name']}{_loss(p)}" for p in rows]
    more = len(names) - _NAMED_AT_MOST
    return ", ".join(names[:_NAMED_AT_MOST]) + (f" and {more} more" if more > 0 else "")


def _loss(pod: Object) -> str:
    """What does not come back once it is evicted; `kubectl drain` wants a flag for each."""
    bare = not pod["metadata"].get("ownerReferences")
    volumes = pod["spec"].get("volumes") or ()
    losses = ["no controller makes it again"] if bare else []
    losses += ["its emptyDir is lost"] if any("emptyDir" in row for row in volumes) else []
    return f" ({', '.join(losses)})" if losses else ""


def is_ours_to_ask(pod: Object) -> bool:
    """Not a pod that a DaemonSet or the kubelet itself brings back, and not one that has ended."""
    owners = pod["metadata"].get("ownerReferences") or ()
    stays = any(owner.get("kind") == "DaemonSet" and owner.get("controller") for owner in owners)
    ended = pod.get("status", {}).get("phase") in ("Succeeded", "Failed")
    return not stays and not ended and _MIRROR not in notes_of(pod)


async def _eviction_version(kubectl: Kubectl) -> str:
    """`policy/v1`, or `policy/v1beta1` before Kubernetes 1.22, as the server itself says."""
    core = await kubectl.get("/api/v1") or {}
    for row in core.get("resources") or ():
        if row.get("name") == "pods/eviction":
            return f"{row.get('group')}/{row.get('version')}"
    raise UnavailableError("this API server has no eviction API")


async def _ask(kubectl: Kubectl, pod: Object, version: str) -> str:
    meta = pod["metadata"]
    namespace, name = str(meta["namespace"]), str(meta["name"])
    where = f"{namespace}/{name}"
    if "deletionTimestamp" in meta:
        return f"pod {where} is ending"
    request = {
        "apiVersion": version,
        "kind": "Eviction",
        "metadata": {"name": name, "namespace": namespace},
        "deleteOptions": {"preconditions": {"uid": meta["uid"]}},
    }
    try:
        await kubectl.post(f"/api/v1/namespaces/{namespace}/pods/{name}/eviction", request)
    except GoneError:
        return ""
    except BudgetError:
        return f"pod {where} is kept by {await _budgets(kubectl, pod)}"
    except UnreachableError:
        raise
    except UnavailableError as exc:
        return f"pod {where}: {exc}"
    return f"pod {where} is ending"


async def _budgets(kubectl: Kubectl, pod: Object) -> str:
    """The PodDisruptionBudgets that cover a pod; the refusal itself does not reach us by name."""
    namespace = pod["metadata"]["namespace"]
    try:
        path = f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets"
        found = await kubectl.get(path)
    except DeniedError:
        found = None
    items = (found or {}).get("items") or ()
    names = [str(item["metadata"]["name"]) for item in items if covers(item, pod)]
    return f"PodDisruptionBudget {', '.join(names)}" if names else "a PodDisruptionBudget"


def covers(budget: Object, pod: Object) -> bool:
    """Whether a budget's selector means this pod."""
    selector, labels = budget["spec"].get("selector") or {}, labels_of(pod)
    wanted = selector.get("matchLabels") or {}
    rules = selector.get("matchExpressions") or ()
    return wanted.items() <= labels.items() and all(_holds(rule, labels) for rule in rules)


def _holds(rule: Object, labels: object) -> bool:
    known = labels if isinstance(labels, dict) else {}
    key, values = rule.get("key"), rule.get("values") or ()
    there = key in known
    return {
        "In": there and known.get(key) in values,
        "NotIn": not there or known.get(key) not in values,
        "Exists": there,
        "DoesNotExist": not there,
    }.get(str(rule.get("operator")), False)
