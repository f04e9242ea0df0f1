"""Which nodes a text means, on Kubernetes: the real kubectl against a stand-in API server."""

import asyncio
from pathlib import Path

import pytest

from brctl.engine.application.by_hand import node_names
from brctl.library.config import load_settings
from tests.engine.controller.test_doctor_kubernetes import CONFIG, JOB
from tests.fakes.kube.cluster import kube_cluster, no_kubectl

pytestmark = pytest.mark.skipif(no_kubectl(), reason="not installed: kubectl")


def test_stand_in_the_names_of_nodes_cost_no_search_for_jobs(tmp_path: Path) -> None:
    """A cordon opens its context three times; each look for jobs was three requests in a row."""
    (tmp_path / "config.yaml").write_text(CONFIG)
    (tmp_path / "job.yaml").write_text(JOB)
    settings = load_settings({"HOME": str(tmp_path)}, config=tmp_path / "config.yaml")
    with kube_cluster(tmp_path, ["n1", "n2"]) as cluster:
        cluster.add_job("trainer", "demo", 2, ["/bin/true"])
        assert asyncio.run(node_names(settings, "n[1-2]")) == ["n1", "n2"]
        assert {resource for _, resource, _ in cluster.server.said} == {"nodes"}
