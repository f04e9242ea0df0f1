"""A made-up fleet on disk, as large as a sweep of it really is."""

from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from brctl.engine.sweeps.node_states import remember_nodes
from brctl.library.config import Settings, load_settings
from brctl.model.command import Outcome
from brctl.model.evidence import Evidence, Gap, Role, Subject, Weight
from brctl.model.fault import FaultClass
from brctl.model.sweeps.report import CheckResult, Measurement, NodeReport, ProbeStatus
from brctl.model.sweeps.sweep import Health, NodeHealth, Sweep

NOON = datetime(2026, 7, 5, 12, 0, tzinfo=UTC)
GPUS = 8
BATCH = 250
CHECKS = 12
MEASURED_PER_GPU = 140
"""Readings of one GPU in a level 1 sweep of the lab, its 18 NVLinks included."""
CLEARED_PER_GPU = 40
CONFIG = """\
apiVersion: brctl.dev/v1
kind: Config
context: big
contexts: {big: {inventory: [{file: inventory.yaml}], scheduler: static}}
ssh: {user: root}
state_dir: state
"""


def names(count: int) -> list[str]:
    """Names as fleets have them."""
    return [f"gpu{n:04d}" for n in range(1, count + 1)]


def healthy(name: str, at: datetime) -> NodeHealth:
    """A node that answered every question and is well."""
    subjects = [f"gpu:GPU-{name}-0000-0000-0000-{n:012d}" for n in range(GPUS)]
    results = tuple(
        CheckResult(
            f"gpu.check{check:02d}",
            ProbeStatus.MEASURED,
            tuple(
                Measurement(f"gpu.check{check:02d}.value_{k}", subject, 40 + k)
                for subject in subjects
                for k in range(MEASURED_PER_GPU // CHECKS + 1)
            ),
            seconds=0.04,
        )
        for check in range(CHECKS)
    )
    evidence = tuple(
        Evidence(
            f"gpu.check{k:02d}.value_0", Subject(name, subject), Weight.CLEARS,
            FaultClass.GPU_MEMORY_ECC, Role.CONTEXT, f"gpu.check{k:02d}",
            "0 uncorrected memory errors since the driver was loaded", "0", at,
        )
        for subject in subjects
        for k in range(CLEARED_PER_GPU)
    )  # fmt: skip
    report = NodeReport(name, Outcome.ANSWERED, results, "", 0.9, at, "3.11.2", 0.2)
    return NodeHealth(name, Health.OK, report, evidence, ())


def unwell(name: str, at: datetime, health: Health) -> NodeHealth:
    """A node with something wrong, or without an answer."""
    node = healthy(name, at)
    if health is Health.UNKNOWN:
        report = NodeReport(name, Outcome.CONNECT_TIMED_OUT, detail="no answer in 10 s")
        return NodeHealth(name, health, report, (), (Gap(Subject(name), "node", "no answer"),))
    weight = Weight.CONVICTS if health is Health.CRITICAL else Weight.HINTS
    wrong = Evidence(
        "gpu.xid.79", Subject(name, "gpu:GPU-5"), weight, FaultClass.GPU_LOST, Role.ROOT,
        "gpu.xid", "Xid 79: GPU 5 has fallen off the bus", "NVRM: Xid 79", at,
    )  # fmt: skip
    return NodeHealth(name, health, node.report, (wrong, *node.evidence), ())


def health_of(index: int) -> Health:
    """Two per cent of the fleet is not well."""
    kinds = {7: Health.CRITICAL, 57: Health.UNKNOWN, 107: Health.WARNING}
    return kinds.get(index % 150, Health.OK)


def make_fleet(folder: Path, count: int) -> Settings:
    """Write configuration, inventory and one sweep of the fleet."""
    (folder / "config.yaml").write_text(CONFIG)
    (folder / "inventory.yaml").write_text(
        "apiVersion: brctl.dev/v1\nkind: Inventory\nnodes:\n"
        f'  "gpu[0001-{count:04d}]": {{gpus: 8, rack: {{every: 32, format: "r%03d"}}}}\n'
    )
    settings = load_settings({"HOME": str(folder)}, config=folder / "config.yaml")
    remember(settings.state_dir, count)
    return settings


def remember(state_dir: Path, count: int) -> None:
    """What `sweep_store.save` keeps of a sweep, without holding the whole fleet in memory."""
    everyone = names(count)
    for start in range(0, count, BATCH):
        batch = range(start, min(start + BATCH, count))
        nodes = tuple(_node(everyone[index], health_of(index)) for index in batch)
        sweep = Sweep("S-20260705T120000000", 1, ("gpu.ecc",), NOON, 9.0, nodes)
        remember_nodes(state_dir, sweep)


@cache
def _like(health: Health) -> NodeHealth:
    return healthy("gpu0000", NOON) if health is Health.OK else unwell("gpu0000", NOON, health)


def _node(name: str, health: Health) -> NodeHealth:
    """One of a kind under another name; only the size of its answers matters."""
    node = _like(health)
    return replace(node, node=name, report=replace(node.report, node=name))
