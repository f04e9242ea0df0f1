"""A job's images on nodes that may take its ranks: what a pull pod is, and how its end is read."""

from typing import Any

import pytest

from brctl.backends.contract import ImagePull
from brctl.backends.kubernetes.backend import KubernetesBackend
from brctl.backends.kubernetes.image_pulls import LABEL, images_of, manifest, settled
from brctl.backends.kubernetes.jobs import Workload
from brctl.fanout.kubernetes.kubectl import Object
from brctl.model.jobs.job import Job
from tests.backends.kubernetes.site import SLEEP, needs_kubectl
from tests.backends.kubernetes.test_marks import job_of, plain
from tests.fakes.kube.cluster import KubeCluster


def _workload() -> Workload:
    value = plain(2)
    spec = value["spec"]["template"]["spec"]
    spec["initContainers"] = [{"name": "data", "image": "data:3"}]
    spec["containers"].append({"name": "sidecar", "image": "data:3"})
    spec |= {"imagePullSecrets": [{"name": "registry"}], "volumes": [{"name": "x", "emptyDir": {}}]}
    return Workload(value, "/path", (("", 1, 2),))


def test_a_pull_pod_has_every_image_once_and_nothing_else_of_the_job() -> None:
    """No GPU, no volume, no program, no rights; but what the registry asks for."""
    found = _workload()
    pod = manifest("p", "s1", "abc", found)
    assert images_of(found) == ("data:3", "trainer:1")
    assert [row["image"] for row in pod["spec"]["containers"]] == ["data:3", "trainer:1"]
    assert all(set(row) == {"name", "image", "command"} for row in pod["spec"]["containers"])
    assert pod["spec"]["imagePullSecrets"] == [{"name": "registry"}]
    assert "volumes" not in pod["spec"]
    assert pod["metadata"]["labels"][LABEL] == "abc"
    assert job_of(2).name not in str(pod)


def _status(*rows: Object, **more: Any) -> Object:
    spec = {"containers": [{"name": "a"}, {"name": "b"}]}
    return {"metadata": {}, "spec": spec, "status": {"containerStatuses": list(rows), **more}}


COMING = {"imageID": "", "state": {"waiting": {"reason": "ContainerCreating"}}}
HERE = {"imageID": "sha256:1", "state": {"terminated": {"exitCode": 127, "reason": "StartError"}}}


@pytest.mark.parametrize(
    ("pod", "ended"),
    [
        (_status(), None),
        (_status(HERE, COMING), None),
        (_status(HERE, HERE), ImagePull(7.0)),
        (_status(HERE, {"state": {"waiting": {"reason": "ErrImagePull", "message": "not found"}}}),
         ImagePull(None, "ErrImagePull: not found")),
        (_status(phase="Failed", reason="DeadlineExceeded"), ImagePull(None, "DeadlineExceeded")),
    ],
)  # fmt: skip
def test_images_are_there_when_every_container_names_one(
    pod: Object, ended: ImagePull | None
) -> None:
    """Whether the image has a program called `true` is of no matter."""
    assert settled(pod, 7.0) == ended


@needs_kubectl
async def test_stand_in_images_are_pulled_and_the_pods_removed(
    cluster: KubeCluster, backend: KubernetesBackend, job: Job
) -> None:
    """What is not allowed is said of each node."""
    cluster.add_job("trainer", job.name, 3, SLEEP)
    pulled = await backend.pull_images(job, ["s1"])
    assert (pulled["s1"].problem, pulled["s1"].seconds is not None) == ("", True)
    assert all("deletionTimestamp" in pod["metadata"] for pod in cluster.pods())
    cluster.server.denied.add(("create", "pods"))
    refused = await backend.pull_images(job, ["s1"])
    assert "cannot create" in refused["s1"].problem
