"""Host lists, and several sources as one inventory."""

import time
from pathlib import Path

import pytest

from brctl.inventory.facts import InventorySource, NodeFacts, build_inventory, merge
from brctl.inventory.hostlist import load_hostlist, parse_hostlist
from brctl.inventory.load import load_inventory
from brctl.library.config import Settings, SshSettings
from brctl.model.errors import ConfigError
from brctl.model.inventory import NodeRole

OWN = "apiVersion: brctl.dev/v1\nkind: Inventory\nnodes:\n  n[1-2]: {gpus: 8, role: standby}\n"


def settings(folder: Path, *sources: dict[str, object]) -> Settings:
    return Settings("prod", sources, (), "static", folder, SshSettings())


def test_a_host_list_takes_sets_comments_and_mpi_slots() -> None:
    """What people have lying around is an inventory."""
    source = parse_hostlist(b"# fleet\n\ngpu[01-03]  # rack 1\ngpu04 slots=8\n", "hosts")
    assert [node.name for node in source.nodes] == ["gpu01", "gpu02", "gpu03", "gpu04"]
    assert source.nodes[3].facts == {"slots": "8"}
    assert source.nodes[3].origin == "hostlist:hosts:4"


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        (b"n1\nn[1-2]\n", "hosts:2: node 'n1' is already in hosts:1"),
        (b"n1\n\nn[1-\n", "hosts:3: "),
        (b"n1 user=root\n", "hosts:1: 'user=root' follows a node"),
        (b"ok\n\xff\xfe\n", "hosts:2: not UTF-8"),
        (b"a;rm -rf /\n", "hosts:1: "),
    ],
)
def test_a_bad_line_is_named(raw: bytes, problem: str) -> None:
    """File, line and the faulty part."""
    with pytest.raises(ConfigError) as error:
        parse_hostlist(raw, "hosts")
    assert problem in str(error.value)


def test_a_later_source_overrules_and_both_are_remembered(tmp_path: Path) -> None:
    """The order in the configuration decides; the loser stays visible."""
    (tmp_path / "own.yaml").write_text(OWN)
    sources = [
        parse_hostlist(b"n1 slots=4\nn3\n", "hosts"),
        parse_hostlist(b"n1 slots=8\n", "newer"),
    ]
    reported = merge(sources)["n1"]["slots"]
    assert (reported.value, reported.overruled) == ("8", (("4", "hostlist:hosts:1"),))
    mixed = load_inventory(settings(tmp_path, {"file": str(tmp_path / "own.yaml")}))
    assert mixed.names(NodeRole.STANDBY) == ("n1", "n2")


def test_twenty_thousand_nodes_load_at_once(tmp_path: Path) -> None:
    """One name a line, and one line for all: under a second of CPU each."""
    (tmp_path / "hosts").write_text("".join(f"node-{i:05d}\n" for i in range(20_000)))
    (tmp_path / "own.yaml").write_text(OWN + "  gpu[00001-20000]: {rack: {every: 32}}\n")
    started = time.process_time()
    assert len(build_inventory([load_hostlist(tmp_path / "hosts")]).nodes) == 20_000
    own = load_inventory(settings(tmp_path, {"file": str(tmp_path / "own.yaml")}))
    assert own.nodes["gpu20000"].labels["rack"] == "r624"
    assert time.process_time() - started < 2.0


def test_an_empty_fleet_is_an_error(tmp_path: Path) -> None:
    """No node at all is a mistake in the configuration, never an OK about nothing."""
    (tmp_path / "hosts").write_text("# none yet\n")
    for sources in ((), ({"hostlist": str(tmp_path / "hosts")},)):
        with pytest.raises(ConfigError, match="no node in the inventory"):
            load_inventory(settings(tmp_path, *sources))


EVIL_NAMES = (
    "../../etc", "a/b", "-oProxyCommand=x", "", ".", ".hidden", "n1\n", "\x1b[2Jn1", "n 1", "n1;id",
    "n\u202e1", "n\u0661", "a" * 300,
)  # fmt: skip
EVIL_ADDRESSES = ("-oProxyCommand=id", "10.0.0.1\n", "\x1b[2J", "/etc/passwd", "a b", "")


@pytest.mark.parametrize("name", EVIL_NAMES)
def test_no_source_names_a_node_like_an_option_a_path_or_a_screen(name: str) -> None:
    """Whichever of them said it: names become folders, arguments and lines of a table."""
    with pytest.raises(ConfigError, match="is no node name"):
        build_inventory([InventorySource("ansible:x", (NodeFacts(name, {}, "ansible:x"),))])


@pytest.mark.parametrize("address", EVIL_ADDRESSES)
def test_no_source_gives_an_address_that_ssh_would_read_as_an_option(address: str) -> None:
    facts = NodeFacts("n1", {"address": address}, "kubernetes")
    with pytest.raises(ConfigError, match="is no address of n1"):
        build_inventory([InventorySource("kubernetes", (facts,))])
