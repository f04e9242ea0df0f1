"""What does a split pipeline cost? Two minipods of two nodes, joined by a port of a limited rate.

    python -m tests.bench.placement.minipods [--steps 8] [--mbit 100]

Needs root: the nodes are a lab's, each with a network of its own. Two of them get a second bridge,
and what goes between both bridges goes through one port. The same job runs with its pipelines whole
and split, with the port open and limited. Volumes are those of Arnold's 7B GPT (arXiv 2509.15940,
appendix C), a thousandth of each: 33.6 MB of activations a micro-batch, 2.04 GB of gradients, here
with 128 micro-batches a step; at 100 Mbit/s the whole job communicates a third of its step, as
Arnold's jobs do (30 to 50 %). Exit 1 when split pipelines are not slower than whole ones.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from brctl.lab import namespaces
from brctl.lab.cluster import Lab, up
from brctl.lab.spec import Isolation, LabSpec
from brctl.view.text import columns
from tests.bench.placement.minipod_rank import DEADLINE_S, Traffic

WHOLE, SPLIT = ("n1", "n2", "n3", "n4"), ("n1", "n3", "n2", "n4")
"""Nodes in rank order; n1 and n2 stand in one minipod, n3 and n4 in the other."""
OTHER_MINIPOD = ("n3", "n4")


def main() -> None:
    """Print the table and leave with 1 when the split job is not slower."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--mbit", type=int, default=100, help="rate of the port between minipods")
    options = parser.parse_args()
    why_not = namespaces.missing()
    if why_not is not None:
        sys.exit(f"nodes with networks of their own cannot be made: {why_not}")
    traffic = Traffic(33_600, 2_040_000, 128, 0.001, options.steps)
    with tempfile.TemporaryDirectory() as folder:
        spec = LabSpec(nodes=4, standbys=0, gpus=1, isolation=Isolation.NETNS)
        lab = up(spec, Path(folder) / "lab")
        try:
            found = _measured(lab, Path(folder), traffic, options.mbit)
        finally:
            lab.down()
    sys.exit(0 if _printed(found, options.mbit) else 1)


def _measured(lab: Lab, folder: Path, traffic: Traffic, mbit: int) -> dict[tuple[str, str], float]:
    """Seconds of a step by port and order."""
    found = {}
    with _two_minipods(lab) as port:
        for name, rate in (("open", None), (f"{mbit} Mbit/s", mbit)):
            for end in port:
                namespaces.shape_link(end, _shape(rate))
            for order, nodes in (("whole", WHOLE), ("split", SPLIT)):
                found[name, order] = _step_s(lab, folder, nodes, traffic)
    return found


def _shape(rate: int | None) -> str | None:
    return None if rate is None else f"tbf rate {rate}mbit burst 128kb latency 2s"


def _printed(found: dict[tuple[str, str], float], mbit: int) -> bool:
    """The table, and whether split pipelines cost time."""
    ports = dict.fromkeys(port for port, _ in found)
    rows = []
    for port in ports:
        whole, split = found[port, "whole"], found[port, "split"]
        rows.append([port, f"{whole:.3f}", f"{split:.3f}", f"{split / whole - 1:+.1%}"])
    print(columns([["PORT BETWEEN MINIPODS", "WHOLE, S", "SPLIT, S", "SPLIT COSTS"], *rows]))
    slower = found[f"{mbit} Mbit/s", "split"] > found[f"{mbit} Mbit/s", "whole"]
    print(f"split pipelines are slower through the port: {'shown' if slower else 'NOT SHOWN'}")
    return slower


@contextmanager
def _two_minipods(lab: Lab) -> Iterator[Sequence[str]]:
    """Both ends of the port between the lab's bridge and a second one; removed afterwards."""
    record = lab.record
    bridge, near, far = (f"b{kind}{record.tag[:6]}" for kind in ("2", "p", "q"))
    cables = [f"link set {record.interface(node)} master {bridge}" for node in OTHER_MINIPOD]
    try:
        namespaces.run_ip(record, (
            f"link add {bridge} type bridge", f"link add {near} type veth peer name {far}",
            f"link set {near} master {record.bridge}", f"link set {far} master {bridge}",
            *cables, *(f"link set {name} up" for name in (bridge, near, far)),
        ))  # fmt: skip
        yield near, far
    finally:
        namespaces.run_ip(record, [f"link del {near}", f"link del {bridge}"], forgiving=True)


def _step_s(lab: Lab, folder: Path, nodes: Sequence[str], traffic: Traffic) -> float:
    """Run the job with its ranks on these nodes, place by place."""
    setup = folder / "setup.json"
    addresses = [lab.record.node(name).address for name in nodes]
    setup.write_text(json.dumps({"addresses": addresses, "traffic": asdict(traffic)}))
    ranks = [
        subprocess.Popen(
            ["nsenter", f"--net=/proc/{namespaces.node_pid(lab.paths, name)}/ns/net",
             sys.executable, "-m", "tests.bench.placement.minipod_rank", str(setup), str(place)],
            stdout=subprocess.PIPE, text=True,
        )
        for place, name in enumerate(nodes)
    ]  # fmt: skip
    try:
        said = [rank.communicate(timeout=2 * DEADLINE_S)[0] for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
            rank.wait()
    return float(json.loads(said[0])["step_s"])


if __name__ == "__main__":
    main()
