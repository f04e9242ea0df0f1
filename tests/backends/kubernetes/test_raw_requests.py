"""Requests without kubectl are answered as kubectl's are."""

from brctl.fanout.kubernetes.kubectl import Kubectl, Object
from brctl.model.errors import BrctlError
from tests.backends.kubernetes.site import needs_kubectl
from tests.fakes.kube.cluster import KubeCluster
from tests.fakes.kube.raw_requests import RawRequests

pytestmark = needs_kubectl
NODE = "/api/v1/nodes/n1"
STALE: Object = {"kind": "Node", "metadata": {"name": "n1", "resourceVersion": "1"}}


async def asked(client: Kubectl) -> list[object]:
    """What is there, what is not, and what is refused, each in the words that brctl gives it."""
    found: list[object] = [await client.get(NODE), await client.get(f"{NODE}0")]
    pods = "/api/v1/namespaces/train/pods"
    for refused in (
        client.put(NODE, STALE),
        client.post("/api/v1/nodes", STALE),
        client.delete(f"{pods}/missing"),
        client.get(pods),
    ):
        try:
            found.append(await refused)
        except BrctlError as exc:
            found.append((type(exc), str(exc), exc.hint))
    return found


async def test_stand_in_each_answer_is_that_of_kubectl(cluster: KubeCluster) -> None:
    cluster.server.denied = {("list", "pods")}
    expected = await asked(Kubectl())
    assert await asked(RawRequests()) == expected
    assert [type(each) for each in expected[2:]].count(tuple) == 3
