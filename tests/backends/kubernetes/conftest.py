"""What tests of the backend on the stand-in cluster share."""

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import pytest

from brctl.backends.kubernetes.backend import KubernetesBackend
from brctl.model.jobs.job import Job
from tests.backends.kubernetes.site import NAMES, SLEEP, open_backend
from tests.fakes.kube.cluster import KubeCluster, kube_cluster


@pytest.fixture(scope="module")
def module_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubeCluster]:
    with kube_cluster(tmp_path_factory.mktemp("kube"), NAMES, ["s1"]) as cluster:
        yield cluster


@pytest.fixture
def cluster(module_cluster: KubeCluster) -> KubeCluster:
    """The stand-in with nothing left of the test before."""
    module_cluster.forget()
    return module_cluster


@pytest.fixture
def backend(cluster: KubeCluster, tmp_path: Path) -> KubernetesBackend:
    return open_backend(tmp_path)


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(
        name="demo",
        nodes=("n1", "n2", "n3"),
        ranks_per_node=1,
        axes=(("dp", 3),),
        launch=SLEEP,
        checkpoint_dir=PurePosixPath(tmp_path),
        log_dir=PurePosixPath(tmp_path),
        progress_dir=PurePosixPath(tmp_path),
    )
