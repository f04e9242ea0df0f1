"""brctl's own inventory file: what it may say, and what every mistake in it gets."""

from pathlib import Path

import pytest

from brctl.inventory.facts import build_inventory
from brctl.inventory.own_yaml import load_own_yaml
from brctl.model.errors import ConfigError
from brctl.model.inventory import Inventory, NodeRole

HEAD = "apiVersion: brctl.dev/v1\nkind: Inventory\n"


def load(folder: Path, text: str) -> Inventory:
    path = folder / "inventory.yaml"
    path.write_text(HEAD + text)
    return build_inventory([load_own_yaml(path)])


def test_one_line_means_many_nodes(tmp_path: Path) -> None:
    """A folded set with addresses, racks and defaults; the node's own value beats the default."""
    inventory = load(
        tmp_path,
        "defaults: {gpus: 8, user: ops, gpu_model: H100}\n"
        "nodes:\n"
        '  gpu[001-064]: {rack: {every: 32, format: "r%02d"}, address: "10.0.0.[1-64]", gpus: 4}\n'
        "  spare1: {role: standby, port: 2222, labels: {owner: ops}}\n"
        "  plain:\n",
    )
    node = inventory.nodes["gpu033"]
    assert (node.address, node.gpus, node.user) == ("10.0.0.33", 4, "ops")
    assert node.labels == {"rack": "r01", "gpu_model": "H100"}
    assert node.origin.endswith("inventory.yaml:5")
    assert inventory.names(NodeRole.STANDBY) == ("spare1",)
    assert inventory.nodes["spare1"].labels["owner"] == "ops"
    assert (inventory.nodes["plain"].address, inventory.nodes["plain"].gpus) == ("plain", 8)


def test_groups_name_nodes_groups_and_label_files(tmp_path: Path) -> None:
    """A group may use another one; a leaf file becomes a label and so a group per leaf."""
    (tmp_path / "leaf.csv").write_text("node,leaf\nn1,L07\nn2,L08\nelsewhere,L09\n")
    inventory = load(
        tmp_path,
        "nodes: {'n[1-4]': }\n"
        "groups: {golden: 'n[1-2]', both: '@golden,n4', leaf: {file: leaf.csv}}\n",
    )
    assert inventory.groups == {"golden": ("n1", "n2"), "both": ("n1", "n2", "n4")}
    assert inventory.nodes["n1"].labels["leaf"] == "L07"


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("nodes: {n1: {adress: x}}", 3, "did you mean 'address'?"),
        ("nodes: {n1: {role: stanby}}", 3, "did you mean 'standby'?"),
        ("nodes: {n1: {port: 99999}}", 3, "'port' must be 1 to 65535"),
        ("nodes: {n1: {port: ssh}}", 3, "'port' must be a whole number"),
        ("nodes: {n1: {gpus: -1}}", 3, "'gpus' must be 0 to 1024"),
        ("nodes: {n1: [a]}", 3, "must be a mapping"),
        ("nodes:\n  n[1-3]:\n  n2:\n", 5, "node 'n2' is already in"),
        ("nodes:\n  n1:\n  'n[3-1]':\n", 5, "runs backwards"),
        ("nodes: {'n[1-999999999]': }", 3, "too large"),
        ("nodes: {'n[1-3]': {address: a}}", 3, "means 1 addresses for 3 nodes"),
        ("nodes: {n1: {rack: {every: 0}}}", 3, "'every' must be 1 to"),
        ("nodes: {n1: {rack: {format: 'r%s'}}}", 3, "'format' must hold one number"),
        ("nodes: {n1: {labels: {port: 3}}}", 3, "write it one level up"),
        ("nodes: {n1: {labels: {x: [1]}}}", 3, "must be text or a number"),
        ("nodes: {n1: }\ngroups: {all: n1}", 4, "@all is built in"),
        ("nodes: {n1: }\ngroups: {g: n2}", 4, "'n2' is not a node here"),
        ("nodes: {n1: }\ngroups: {a: '@b', b: '@a'}", 4, "groups name each other: @a -> @b -> @a"),
        ("nodes: {n1: }\ngroups: {a: '@golden'}", 4, "@golden: no such group"),
        ("nodes: {n1: }\ngroups: {leaf: {file: none.csv}}", None, "none.csv: cannot be read"),
        ("node: {n1: }", 3, "did you mean 'nodes'?"),
    ],
)
def test_a_mistake_names_file_line_and_nearest_key(
    tmp_path: Path, text: str, line: int | None, problem: str
) -> None:
    """One error, where it is, and what was probably meant."""
    with pytest.raises(ConfigError) as error:
        load(tmp_path, text)
    assert problem in str(error.value)
    place = f"inventory.yaml:{line}: " if line else str(tmp_path)
    assert place in str(error.value)


def test_a_chain_of_groups_cannot_exhaust_anything(tmp_path: Path) -> None:
    """A thousand groups of groups are an error; sixty doublings are worked out once each."""
    chain = ", ".join(f"g{i}: '@g{i + 1}'" for i in range(1000))
    with pytest.raises(ConfigError, match="groups name each other"):
        load(tmp_path, f"nodes: {{n1: }}\ngroups: {{{chain}}}")
    doubling = ", ".join(f"g{i}: '@g{i - 1},@g{i - 1}'" for i in range(1, 30))
    inventory = load(tmp_path, f"nodes: {{n1: }}\ngroups: {{g0: n1, {doubling}}}")
    assert inventory.groups["g29"] == ("n1",)


def test_a_leaf_file_without_its_column_is_named(tmp_path: Path) -> None:
    """The header line says what is there."""
    (tmp_path / "leaf.csv").write_text("name,leaf\nn1,L07\n")
    with pytest.raises(ConfigError, match=r"leaf\.csv:1: no column 'node'"):
        load(tmp_path, "nodes: {n1: }\ngroups: {leaf: {file: leaf.csv}}")
