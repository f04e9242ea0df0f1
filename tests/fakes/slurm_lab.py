"""A lab whose nodes are also nodes of a real Slurm: slurmctld here, one slurmd in each node.

A node has its own network namespace with its own SSH server and its own slurmd, so one power-off
takes all of it away at once. Every process carries the lab's tag and every file lies in the lab's
directory, so whatever takes the lab down, `brctl lab down` included, takes Slurm down with it.
"""

import asyncio
import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import monotonic

import yaml

from brctl.backends.slurm.commands import STANDBY_REASON
from brctl.lab import namespaces
from brctl.lab.cluster import Lab, up
from brctl.lab.record import NODE_VARIABLE, TAG_VARIABLE
from brctl.lab.spec import LabSpec
from tests.fakes import slurm_cluster
from tests.fakes.ports import free_port
from tests.timeouts import TIMEOUT_S

CONNECT_TIMEOUT = "1s"
"""A dead node costs this in every look; a living one's kernel answers at once, however busy."""


def missing() -> str | None:
    """Why there can be no such lab here; None when there can."""
    absent = slurm_cluster.missing()
    return f"not installed: {', '.join(absent)}" if absent else namespaces.missing()


@contextmanager
def slurm_lab(directory: Path, spec: LabSpec) -> Iterator[Lab]:
    """The lab with Slurm up on every node and the standbys drained; gone afterwards."""
    before = {name: os.environ.get(name) for name in ("SLURM_CONF", TAG_VARIABLE)}
    lab = up(spec, directory)
    try:
        lab.adopt_children()
        os.environ["SLURM_CONF"] = str(write_files(lab))
        start(lab)
        yield lab
    finally:
        lab.down()
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def write_files(lab: Lab) -> Path:
    """slurm.conf, and brctl's configuration with Slurm as scheduler and source of nodes."""
    record, folder = lab.record, lab.paths.work / "slurm"
    (folder / "state").mkdir(parents=True)
    text = slurm_cluster.CONFIG.format(
        host=f"{os.uname().nodename}({record.controller_address})",
        port=free_port(),
        folder=folder,
        silence_s=slurm_cluster.SILENCE_S,
        partitions=slurm_cluster.ONE_PARTITION,
        nodes="\n".join(
            f"NodeName={node.name} NodeAddr={node.address} CPUs=4 State=UNKNOWN"
            for node in record.nodes
        ),
    )
    config = folder / "slurm.conf"
    config.write_text(text)
    settings = yaml.safe_load(lab.paths.config.read_text())
    context = settings["contexts"]["lab"]
    context |= {"scheduler": "slurm", "inventory": [{"slurm": {}}, {"file": "inventory.yaml"}]}
    settings["ssh"]["connect_timeout"] = CONNECT_TIMEOUT
    lab.paths.config.write_text(yaml.safe_dump(settings, sort_keys=False))
    return config


def start(lab: Lab) -> None:
    """Start Slurm's daemons; returns when every node is idle and the standbys are drained."""
    ask_slurm("/usr/sbin/slurmctld", "-f", os.environ["SLURM_CONF"])
    names = [node.name for node in lab.record.nodes]
    for name in names:
        start_slurmd(lab, name)
    slurm_cluster.wait_until_idle(names)
    drain([node.name for node in lab.record.nodes if node.role == "standby"], STANDBY_REASON)


def start_slurmd(lab: Lab, name: str) -> None:
    """Start a node's slurmd in its namespaces; it goes into the background once it is up."""
    config = os.environ["SLURM_CONF"]
    marks = [f"{TAG_VARIABLE}={lab.record.tag}", f"{NODE_VARIABLE}={name}", f"SLURM_CONF={config}"]
    slurmd = ["/usr/sbin/slurmd", "-f", config, "-N", name]
    namespaces.enter(lab.paths, name, ["env", *marks, *slurmd])


def drain(nodes: Sequence[str], reason: str) -> None:
    """As an administrator does it."""
    ask_slurm(
        "scontrol", "update", f"NodeName={','.join(nodes)}", "State=DRAIN", f"Reason={reason}"
    )


def ask_slurm(*argv: str) -> str:
    """What one of Slurm's programs prints; it must succeed."""
    return subprocess.run(
        argv, check=True, capture_output=True, text=True, timeout=TIMEOUT_S
    ).stdout


async def idle(*nodes: str) -> None:
    """Wait until Slurm would give all of them away; jobs that ended are completing for a while."""
    deadline = monotonic() + TIMEOUT_S
    while set(ask_slurm("sinfo", "-h", "-n", ",".join(nodes), "-o", "%T").split()) != {"idle"}:
        assert monotonic() < deadline, "the nodes do not become idle"
        await asyncio.sleep(0.05)
