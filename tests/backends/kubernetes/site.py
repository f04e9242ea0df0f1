"""Four nodes of the stand-in cluster, and a backend on them."""

import asyncio
import subprocess
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from time import monotonic

import pytest

from brctl.backends.kubernetes.backend import KubernetesBackend
from brctl.backends.kubernetes.control import AskNodes, nobody_asked
from brctl.fanout.kubernetes.kubectl import Kubectl
from brctl.model.inventory import Inventory, Node, NodeRole
from tests.fakes.kube.cluster import no_kubectl
from tests.fakes.kube.raw_requests import RawRequests
from tests.timeouts import TIMEOUT_S

needs_kubectl = pytest.mark.skipif(no_kubectl(), reason="not installed: kubectl")
NAMES = ("n1", "n2", "n3", "s1")
SLEEP = ("/bin/sleep", "600")


def open_backend(
    folder: Path, ask: AskNodes = nobody_asked, kubectl: Kubectl | None = None
) -> KubernetesBackend:
    nodes = {name: Node(name, "127.0.0.1") for name in NAMES}
    nodes["s1"] = replace(nodes["s1"], role=NodeRole.STANDBY)
    found = KubernetesBackend(kubectl or RawRequests(), Inventory(nodes), folder / "keep", ask)
    found.control.start_deadline_s = TIMEOUT_S
    found.control.settle_s = 0.3
    return found


def kubectl(*argv: str) -> None:
    subprocess.run(["kubectl", *argv], check=True, capture_output=True)


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    """Wait for what the stand-in's controllers do next."""
    limit_s = monotonic() + TIMEOUT_S
    while monotonic() < limit_s:
        if await holds():
            return
        await asyncio.sleep(0.05)
    pytest.fail("it does not come")
