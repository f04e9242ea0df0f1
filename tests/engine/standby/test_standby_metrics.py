"""The pool as numbers: every member once, parked processes by job, nothing that nobody saw."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from brctl.cli.commands import sweep as sweep_module
from brctl.engine.standby.metrics import parked_ranks, state_counts
from brctl.engine.standby.pool import Pool, Standby
from brctl.engine.standby.pool_file import save_pool
from brctl.model.inventory import Inventory, Node, NodeRole
from brctl.model.units import rfc3339
from tests.cli.test_run import call
from tests.fakes.run_context import NOON

AT = rfc3339(NOON - timedelta(minutes=10))
WARM = Standby("s1", AT, 20.0, AT, "ok")
PARKED = replace(WARM, parked_for="llm", parked_at=AT, parked_ranks=8, lease_s=3600.0)
INVENTORY = Inventory(
    {name: Node(name, "127.0.0.1", role=NodeRole.STANDBY) for name in ("s1", "s2", "s3", "s4")}
)


def pool_of(*rows: Standby) -> Pool:
    return Pool(known={row.node: row for row in rows})


def test_each_member_is_counted_once() -> None:
    pool = pool_of(PARKED, replace(WARM, node="s2"), replace(WARM, node="s3", health="critical"))
    counts = {"parked": 1, "warm": 1, "cold": 1, "bad": 1}
    assert state_counts(pool, INVENTORY, NOON) == counts
    assert state_counts(Pool(), Inventory({}), NOON) == {}


def test_after_its_lease_nothing_waits_any_more() -> None:
    """Nobody saw the processes end, and nobody may count on them."""
    beside = replace(PARKED, node="n1", beside=True, parked_ranks=4)
    pool = pool_of(PARKED, beside)
    assert parked_ranks(pool, NOON) == {"llm": 12}
    later = NOON + timedelta(hours=1)
    assert parked_ranks(pool, later) == {"llm": 0}
    assert state_counts(pool, INVENTORY, later)["warm"] == 1


CONFIG = """\
apiVersion: brctl.dev/v1
kind: Config
context: prod
state_dir: state
contexts: {prod: {inventory: [{file: own.yaml}]}}
ssh: {transport: local}
"""
OWN = """\
apiVersion: brctl.dev/v1
kind: Inventory
nodes: {n1: {}, s1: {role: standby}}
"""


def test_a_sweep_writes_them_and_a_damaged_pool_leaves_them_out(tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text(OWN)
    config = tmp_path / "config.yaml"
    config.write_text(CONFIG)
    save_pool(tmp_path / "state", "prod", pool_of(replace(PARKED, lease_s=0.0)))
    prom = tmp_path / "brctl.prom"
    words = ("--checks", "host.memory", "--exit-zero", "--prom", str(prom))
    call(sweep_module, config, *words)
    text = prom.read_text()
    assert 'brctl_standby_nodes{context="prod",state="parked"} 1\n' in text
    assert 'brctl_standby_parked_ranks{context="prod",job="llm"} 8\n' in text
    assert "# TYPE brctl_standby_nodes gauge" in text
    next((tmp_path / "state" / "static").glob("*.standbys.json")).write_text("{")
    call(sweep_module, config, *words)
    assert "brctl_standby" not in prom.read_text()
