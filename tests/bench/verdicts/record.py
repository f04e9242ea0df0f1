"""Record what nodes of a lab answer, once healthy and once under each fault, for the bench.

    python -m tests.bench.verdicts.record

Needs network namespaces and about ten minutes; writes `answers.json` beside this file.
"""

import asyncio
import json
import tempfile
from pathlib import Path

import msgspec

from brctl.engine.controller.wiring import open_controller
from brctl.engine.job.diagnose import diagnose_once
from brctl.lab.cluster import up
from brctl.lab.spec import Isolation, LabSpec
from brctl.library.config import load_settings
from tests.bench.verdicts.answers import (
    CULPRIT,
    FILE,
    KEPT_NODES,
    Recording,
    distil,
    stacks_of,
    tidied,
)
from tests.scenarios.site import Site

FAULTS = (
    "", "gpu-ecc", "row-remap-failure", "gpu-lost", "pcie-degraded", "thermal", "nvlink-down",
    "rank-hang", "rank-stop", "rank-mismatch", "rank-slow", "rank-nan", "rank-crash",
    "loader-killed", "disk-full", "clock-skew",
)  # fmt: skip
SPEC = LabSpec(
    nodes=4, standbys=0, gpus=2, isolation=Isolation.NETNS, collective_timeout_s=25.0,
    stall_after_s=5.0,
)  # fmt: skip
SETTLE_S = 12.0


async def record_fault(site: Site, fault: str) -> Recording:
    """A sound job, one fault, the time a stall takes to show, and every node's answer."""
    await site.train()
    if fault:
        await site.break_node(fault, CULPRIT)
    await asyncio.sleep(SETTLE_S)
    found = await diagnose_once(site.controller, site.job, site.job.nodes)
    reports = {node.node: node.report for node in found.sweep.nodes if node.node in KEPT_NODES}
    return Recording(fault, reports, stacks_of(site.controller.state_dir, site.job))


async def record_all(home: Path) -> dict[str, Recording]:
    """One recording a fault, from one lab."""
    lab = up(SPEC, home / "lab")
    try:
        settings = load_settings({"HOME": str(home)}, config=lab.paths.config)
        async with open_controller(settings) as controller:
            site = Site(lab, controller)
            return {fault or "healthy": await record_fault(site, fault) for fault in FAULTS}
    finally:
        lab.down()


def main() -> None:
    with tempfile.TemporaryDirectory() as home:
        recordings = asyncio.run(record_all(Path(home)))
        text = tidied(msgspec.json.encode(recordings).decode(), Path(home))
    tidy = msgspec.json.decode(text, type=dict[str, Recording])
    FILE.write_text(json.dumps(distil(tidy), separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
