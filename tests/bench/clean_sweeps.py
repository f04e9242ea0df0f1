"""Sweep a clean lab many times and count the sweeps that found anything; also probe CPU per node.

    python -m tests.bench.clean_sweeps --sweeps 200

CPU is what the Python on a node used for all probes of a level-1 sweep, itself included.
"""

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

from brctl.engine.controller.wiring import Controller, open_controller
from brctl.engine.sweeps.run_checks import Question, choose_checks, sweep_nodes
from brctl.lab.cluster import up
from brctl.lab.spec import Isolation, LabSpec
from brctl.library.config import load_settings
from brctl.library.parameters import fill_parameters
from brctl.model.evidence import Weight
from brctl.model.sweeps.sweep import Health
from brctl.sweep.bundle import pack_bundle

CPU_RUNS = 15
_AGAINST = (Weight.CONVICTS, Weight.HINTS)


async def bench(config: Path, sweeps: int) -> int:
    """Print both figures; the number of sweeps that were not clean."""
    async with open_controller(load_settings(config=config)) as controller:
        await print_cpu(controller)
        return await print_sweeps(controller, sweeps)


async def print_cpu(controller: Controller) -> None:
    """CPU seconds that a node's runner counts at the end of a sweep."""
    node = next(iter(controller.inventory.nodes.values()))
    checks = choose_checks(controller.checks, Question())
    parameters = {
        name: {**c.parameters, **fill_parameters(c, node, None), "deadline_s": c.deadline_s}
        for name, c in checks.items()
    }
    command = pack_bundle(checks).command(node, parameters)
    spent = []
    for _ in range(CPU_RUNS):
        answer = await controller.transport.run(node, command)
        spent.append(float(json.loads(answer.stdout.splitlines()[-1])["cpu_s"]) * 1e3)
    print(
        f"probe CPU of one node, {len(checks)} checks, {node.gpus} GPUs: "
        f"median {statistics.median(spent):.0f} ms, best {min(spent):.0f}, worst {max(spent):.0f}"
    )


async def print_sweeps(controller: Controller, sweeps: int) -> int:
    """Each sweep must find every node well."""
    names = tuple(controller.inventory.nodes)
    unclean = 0
    seconds = []
    for number in range(1, sweeps + 1):
        began = time.monotonic()
        result = await sweep_nodes(controller, names, Question())
        seconds.append(time.monotonic() - began)
        faulty = [node for node in result.nodes if node.health is not Health.OK]
        unclean += bool(faulty)
        for node in faulty:
            against = [e.text for e in node.evidence if e.weight in _AGAINST]
            actual = against + [gap.why for gap in node.gaps]
            print(f"sweep {number}: {node.node} {node.health.value}: {'; '.join(actual)[:300]}")
    print(
        f"{sweeps} sweeps of {len(names)} clean nodes: {unclean} found something; "
        f"median {statistics.median(seconds):.2f} s, worst {max(seconds):.2f} s"
    )
    return unclean


def main() -> int:
    """Bring a lab up, measure, take it down."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sweeps", type=int, default=200)
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--isolation", type=Isolation, default=Isolation.AUTO)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="brctl-bench-") as folder:
        spec = LabSpec(nodes=options.nodes, standbys=0, isolation=options.isolation)
        lab = up(spec, Path(folder) / "lab")
        try:
            return int(asyncio.run(bench(lab.paths.config, options.sweeps)) > 0)
        finally:
            lab.down()


if __name__ == "__main__":
    sys.exit(main())
