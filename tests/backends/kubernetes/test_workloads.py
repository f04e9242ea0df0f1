"""How nodes of a job are looked up, without any cluster."""

import re

from brctl.backends.kubernetes.workloads import NODES_PATH, Workloads
from brctl.fanout.kubernetes.kubectl import Kubectl, Object
from brctl.model.errors import UnavailableError

LONG = "gpu-" + "x" * 60


class _NodesApi(Kubectl):
    """An API server with nodes that are ready; a label value of a selector has 63 characters."""

    def __init__(self, *names: str) -> None:
        super().__init__()
        self._names = names
        self.singly: list[str] = []

    async def get(self, path: str, **query: str) -> Object | None:
        values = re.findall(r"[^(),= ]+", query.get("labelSelector", ""))
        if any(len(value) > 63 for value in values):
            raise UnavailableError(
                "unable to parse requirement: must be no more than 63 characters"
            )
        if path == NODES_PATH:
            return {"metadata": {}, "items": [_ready(n) for n in self._names if n in values]}
        self.singly.append(path.rpartition("/")[2])
        return _ready(self.singly[-1]) if self.singly[-1] in self._names else None


def _ready(name: str) -> Object:
    status = {"conditions": [{"type": "Ready", "status": "True"}]}
    return {"metadata": {"name": name}, "spec": {}, "status": status}


async def test_a_node_whose_name_is_no_label_value_is_asked_for_by_itself() -> None:
    """A selector with it would be refused, and with it the question about all nodes."""
    server = _NodesApi("n1", "n2", LONG)
    silent = await Workloads(server).not_ready("demo", ["n1", LONG, "n2", "gone"])
    assert silent == {"gone": "no such node in the cluster"}
    assert server.singly == [LONG, "gone"]
