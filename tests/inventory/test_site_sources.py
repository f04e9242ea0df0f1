"""Slurm, Kubernetes, Ansible and ClusterShell as sources of nodes and groups."""

import json
import os
from pathlib import Path

import pytest

from brctl.inventory.ansible import load_ansible
from brctl.inventory.clustershell import load_clustershell
from brctl.inventory.commands import ask_tool, with_last_good
from brctl.inventory.facts import InventorySource, NodeFacts, build_inventory
from brctl.inventory.hostlist import parse_hostlist
from brctl.inventory.kubernetes import parse_nodes
from brctl.inventory.load import load_inventory, load_sources
from brctl.inventory.slurm import parse_sinfo, with_jobs, with_topology
from brctl.library.config import Settings, SshSettings
from brctl.model.errors import BrctlError, ConfigError, UnavailableError

SINFO = b"""\
gpu01|train*|gpu:h100:8(S:0-1),nvme:1|ib,rack=r12
gpu01|debug|gpu:h100:8(S:0-1),nvme:1|ib,rack=r12
gpu02|train*|(null)|(null)
"""


def test_slurm_gives_nodes_partitions_gpus_and_racks() -> None:
    """One node in two partitions is one node."""
    inventory = build_inventory([parse_sinfo(SINFO, ())])
    assert list(inventory.nodes) == ["gpu01", "gpu02"]
    assert (inventory.nodes["gpu01"].gpus, inventory.nodes["gpu02"].gpus) == (8, None)
    assert inventory.nodes["gpu01"].labels == {"rack": "r12"}
    assert inventory.groups == {"part:train": ("gpu01", "gpu02"), "part:debug": ("gpu01",)}


def test_slurm_s_jobs_are_groups() -> None:
    """By number and, where it can be typed, by name; array tasks of one name come together."""
    raw = (
        b"7|5|gpu[01-02]|llama\n8|5|gpu03|a|b $(x)\n9|5|gpu03,other1|llama\ngarbage\n"
        b"10|5|gpu[9-1]|x\n"
    )
    nodes = tuple(NodeFacts(f"gpu0{i}", {}, "slurm") for i in range(1, 4))
    found = with_jobs(InventorySource("slurm:all", nodes, {"part:train": ("gpu01",)}), raw)
    assert found.groups == {
        "part:train": ("gpu01",),
        "job:7": ("gpu01", "gpu02"),
        "job:llama": ("gpu01", "gpu02", "gpu03"),
        "job:8": ("gpu03",),
        "job:9": ("gpu03",),
    }


TREE = b"""\
SwitchName=s0 Level=0 LinkSpeed=1 Nodes=gpu[01-02]
SwitchName=s1 Level=0 LinkSpeed=1 Nodes=gpu03
SwitchName=top Level=1 LinkSpeed=1 Nodes=gpu[01-03] Switches=s[0-1]
SwitchName=odd Level=0 LinkSpeed=1 Nodes=gpu[01-
"""


def test_slurm_s_topology_becomes_labels_and_a_feature_holds() -> None:
    """Lines of another shape, as of a cluster without topology, say nothing."""
    nodes = tuple(NodeFacts(f"gpu0{i}", {}, "slurm") for i in range(1, 3))
    nodes += (NodeFacts("gpu03", {"leaf": "x9"}, "slurm"),)
    source = InventorySource("slurm:all", nodes, {})
    found = {node.name: node.facts for node in with_topology(source, TREE).nodes}
    assert found["gpu01"] == found["gpu02"] == {"leaf": "s0", "spine": "top"}
    assert found["gpu03"] == {"leaf": "x9", "spine": "top"}
    block = b"BlockName=b1 BlockIndex=0 Nodes=gpu[01-02] BlockSize=2\n"
    assert with_topology(source, block).nodes[0].facts == {"pod": "b1"}
    assert with_topology(source, b"No topology information available\n") == source


def test_a_user_of_slurm_takes_no_name_that_is_another_s() -> None:
    """Any user may name a job like ours, or with a line break and what squeue would print."""
    forged = b"7|5|gpu01,gpu02|prod"
    raw = b"M7|5|gpu01|llama\nM8|6|gpu02|llama\nM9|6|gpu02|x\n%b\nM10|5|gpu03|prod\n" % forged
    nodes = tuple(NodeFacts(f"gpu0{i}", {}, "slurm") for i in range(1, 4))
    found = with_jobs(InventorySource("slurm:all", nodes, {}), raw, mark="M")
    assert found.groups == {
        "job:7": ("gpu01",),
        "job:8": ("gpu02",),
        "job:9": ("gpu02",),
        "job:x": ("gpu02",),
        "job:10": ("gpu03",),
        "job:prod": ("gpu03",),
    }


def test_another_tools_words_are_no_nodes() -> None:
    """A line of another shape is an error, never a node of that name."""
    with pytest.raises(UnavailableError, match="sinfo printed"):
        parse_sinfo(b"slurm_load_partitions: Unable to contact\n", ())


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ({"topology.k8s.aws/network-node-layer-1": "nn-1", "topology.k8s.aws/network-node-layer-2":
          "nn-2", "topology.k8s.aws/network-node-layer-3": "nn-3"},
         {"pod": "nn-1", "spine": "nn-2", "leaf": "nn-3"}),
        ({"cloud.google.com/gce-topology-block": "b",
          "cloud.google.com/gce-topology-subblock": "s"},
         {"pod": "b", "rack": "s"}),
        ({"network.topology.nvidia.com/leaf": "L1", "network.topology.nvidia.com/spine": "S1",
          "leaf": "by hand", "nvidia.com/gpu.clique": "c.0"},
         {"leaf": "L1", "spine": "S1", "nvlink_domain": "c.0"}),
    ],
)  # fmt: skip
def test_topology_is_read_where_each_cloud_writes_it(
    labels: dict[str, str], expected: dict[str, str]
) -> None:
    """So that `@leaf:nn-3` and guards by rack work without a file of the site."""
    item = {"metadata": {"name": "n1", "labels": labels}, "status": {}}
    found = build_inventory([parse_nodes(json.dumps({"items": [item]}).encode(), "k8s")])
    assert found.nodes["n1"].labels == expected


def test_kubernetes_gives_addresses_and_topology() -> None:
    """The internal address is where SSH goes."""
    item = {
        "metadata": {"name": "gpu01", "labels": {
            "topology.kubernetes.io/zone": "eu-1a", "fabric.topograph.run/tier-0": "sw7",
            "network.topology.nvidia.com/spine": "s2", "nvidia.com/gpu.count": "8",
            "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}},
        "status": {"addresses": [{"type": "Hostname", "address": "gpu01"},
                                 {"type": "InternalIP", "address": "10.0.0.7"}]},
    }  # fmt: skip
    node = build_inventory([parse_nodes(json.dumps({"items": [item]}).encode(), "k8s:prod")])
    assert (node.nodes["gpu01"].address, node.nodes["gpu01"].gpus) == ("10.0.0.7", 8)
    found = node.nodes["gpu01"].labels
    assert (found["zone"], found["leaf"], found["spine"]) == ("eu-1a", "sw7", "s2")


@pytest.mark.parametrize("raw", [b"", b"{}", b"[]", b'{"items": [1]}', b'{"items": [{}]}'])
def test_kubectl_that_lists_no_nodes_is_unavailable(raw: bytes) -> None:
    """Whatever else it printed is not an empty fleet."""
    with pytest.raises(UnavailableError):
        parse_nodes(raw, "k8s")


INI = """\
; the fleet
login ansible_host=10.0.0.1 ansible_port=2222
[train]
gpu[01:04:2] ansible_user=ops  # odd ones
gpu02
[train:vars]
rack=r1
ansible_user=root
[all_gpus:children]
train
spare
[spare]
gpu09 rack=r9 ansible_host={{ lookup('x') }}
"""
YAML = """\
all:
  hosts:
    login: {ansible_host: 10.0.0.1, ansible_port: 2222}
  children:
    all_gpus:
      children:
        train:
          hosts: {"gpu[01:04:2]": {ansible_user: ops}, gpu02: }
          vars: {rack: r1, ansible_user: root}
        spare:
          hosts: {gpu09: {rack: r9}}
"""
LIST = {
    "_meta": {"hostvars": {
        "login": {"ansible_host": "10.0.0.1", "ansible_port": 2222},
        "gpu01": {"ansible_user": "ops", "rack": "r1"},
        "gpu03": {"ansible_user": "ops", "rack": "r1"},
        "gpu02": {"rack": "r1", "ansible_user": "root"}, "gpu09": {"rack": "r9"}}},
    "all": {"children": ["ungrouped", "all_gpus"]}, "ungrouped": {"hosts": ["login"]},
    "all_gpus": {"children": ["train", "spare"]}, "spare": {"hosts": ["gpu09"]},
    "train": {"hosts": ["gpu01", "gpu03", "gpu02"]},
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "text"), [("hosts", INI), ("hosts.yml", YAML), ("hosts.json", json.dumps(LIST))]
)
def test_ansible_s_three_forms_say_the_same(tmp_path: Path, name: str, text: str) -> None:
    """A host's own variable beats its group's; groups of groups are worked out."""
    (tmp_path / name).write_text(text)
    inventory = build_inventory([load_ansible(tmp_path / name)])
    assert set(inventory.nodes) == {"login", "gpu01", "gpu02", "gpu03", "gpu09"}
    assert (inventory.nodes["login"].address, inventory.nodes["login"].port) == ("10.0.0.1", 2222)
    assert [inventory.nodes[n].user for n in ("gpu01", "gpu02")] == ["ops", "root"]
    assert [inventory.nodes[n].labels["rack"] for n in ("gpu01", "gpu09")] == ["r1", "r9"]
    assert inventory.nodes["gpu09"].address == "gpu09"
    assert set(inventory.groups["all_gpus"]) == {"gpu01", "gpu02", "gpu03", "gpu09"}


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("h", "[a:children]\nb\n[b:children]\na\n", "groups name each other"),
        ("h", "ok\ngpu[01:\n", "h:2: "),
        ("h", 'x y="unclosed\n', "h:1: "),
        ("h.json", "{not json", "h.json:1: not the JSON"),
        ("h.json", '{"a": [1]}', "not the JSON"),
        ("h.yml", "all: [1]\n", "must be a mapping"),
        ("h.yml", "all: !!python/object:os.system {}\n", "h.yml:1: tag"),
    ],
)
def test_a_broken_ansible_inventory_is_one_error(
    tmp_path: Path, name: str, text: str, problem: str
) -> None:
    """File and line; nothing in it is executed."""
    (tmp_path / name).write_text(text)
    with pytest.raises(ConfigError) as error:
        load_ansible(tmp_path / name)
    assert problem in str(error.value)


def test_clustershell_groups_join_the_nodes_of_other_sources(tmp_path: Path) -> None:
    """Groups of groups, lists, and `@source:group`; machines that are no nodes are left out."""
    (tmp_path / "topo.yaml").write_text(
        "roles:\n  golden: 'gpu[1-2]'\n  most: '@golden,gpu4,mgmt1'\n  some: [gpu1, gpu3]\n"
    )
    hosts = parse_hostlist(b"gpu[1-4]\n", "hosts")
    inventory = build_inventory([hosts, load_clustershell([tmp_path])])
    assert inventory.groups["most"] == ("gpu1", "gpu2", "gpu4")
    assert inventory.groups["roles:some"] == ("gpu1", "gpu3")


def test_a_scheduler_that_is_down_is_not_an_empty_fleet(tmp_path: Path) -> None:
    """What it last said well is used and marked; without that, it is an error."""
    good = InventorySource(
        "slurm:train", (NodeFacts("gpu01", {"gpus": 8}, "slurm"),), {"g": ("gpu01",)}
    )

    def down() -> InventorySource:
        raise UnavailableError("inventory: `sinfo` failed: no controller")

    with pytest.raises(UnavailableError):
        with_last_good(down, "slurm train", tmp_path)
    assert with_last_good(lambda: good, "slurm train", tmp_path) == good
    kept = with_last_good(down, "slurm train", tmp_path)
    assert (kept.nodes, kept.groups) == (good.nodes, good.groups)
    assert kept.name.startswith("slurm:train as of 20")
    assert "no controller" in kept.name
    with pytest.raises(UnavailableError):
        with_last_good(down, "slurm other", tmp_path)


def test_what_a_scheduler_told_between_two_moments_is_not_asked_again(tmp_path: Path) -> None:
    """A run's process takes what its command has just read; of the future nothing is recent."""
    asked: list[int] = []

    def read() -> InventorySource:
        asked.append(1)
        return InventorySource("k8s:prod", (NodeFacts("n1", {"gpus": 8}, "k8s"),))

    first = with_last_good(read, "k8s", tmp_path)
    (saved,) = tmp_path.iterdir()
    os.utime(saved, (1000.0, 1000.0))
    assert with_last_good(read, "k8s", tmp_path, (990.0, 1000.0)) == first
    assert len(asked) == 1
    for told in ((1000.5, 1010.0), (900.0, 999.5), None):
        with_last_good(read, "k8s", tmp_path, told)
        os.utime(saved, (1000.0, 1000.0))
    assert len(asked) == 4
    saved.write_text("{")
    os.utime(saved, (1000.0, 1000.0))
    assert with_last_good(read, "k8s", tmp_path, (990.0, 1000.0)) == first


def test_a_missing_or_failing_tool_is_named() -> None:
    """No shell, one sentence with the tool's own last line."""
    with pytest.raises(UnavailableError, match="no `brctl-test-none`"):
        ask_tool(["brctl-test-none"])
    with pytest.raises(UnavailableError, match="`sh` failed: two"):
        ask_tool(["sh", "-c", "echo one >&2; echo two >&2; exit 3"])


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ({"slurm": {"partition": ["x"]}}, "slurm must be a name or {partitions"),
        ({"slurm": {"partitions": "x"}}, "slurm must be"),
        ({"k8s": {"ctx": "x"}}, "did you mean 'context'?"),
        ({"clustershell": {"folder": "x"}}, "clustershell must be"),
        ({"slrum": {}}, "did you mean 'slurm'?"),
    ],
)
def test_a_misspelt_source_is_an_error(
    tmp_path: Path, source: dict[str, object], problem: str
) -> None:
    """Before any tool is asked."""
    settings = Settings("prod", (source,), (), "static", tmp_path, SshSettings())
    with pytest.raises(ConfigError) as error:
        load_sources(settings)
    assert problem in str(error.value)


def test_the_configured_sources_are_merged_in_order(tmp_path: Path) -> None:
    """An Ansible file and a host list make one fleet."""
    (tmp_path / "hosts.ini").write_text("[train]\ngpu[1:2] rack=r1\n")
    (tmp_path / "list").write_text("gpu[2-3]\n")
    sources = ({"ansible": str(tmp_path / "hosts.ini")}, {"hostlist": str(tmp_path / "list")})
    settings = Settings("prod", sources, (), "static", tmp_path, SshSettings())
    try:
        inventory = load_inventory(settings)
    except BrctlError as error:
        pytest.fail(str(error))
    assert list(inventory.nodes) == ["gpu1", "gpu2", "gpu3"]
    assert inventory.nodes["gpu2"].labels["rack"] == "r1"
