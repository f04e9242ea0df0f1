"""The transport that is opened by the first command."""

from dataclasses import replace
from pathlib import Path

import pytest

from brctl.engine.controller.late_transport import LateTransport
from brctl.library.config import NodePods, Settings, SshSettings, load_settings
from brctl.model.command import Command, Outcome
from brctl.model.errors import GuardError
from brctl.model.inventory import Node

CONFIG = """\
apiVersion: brctl.dev/v1
kind: Config
context: here
contexts:
  here:
    inventory: [{k8s: stand-in}]
"""
N1 = Node("n1", "192.0.2.1")
TRUE = Command(("true",))


async def test_a_read_only_context_makes_no_privileged_pods(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Those of a DaemonSet that is there are used all the same."""
    monkeypatch.setenv("PATH", str(tmp_path))
    refused = LateTransport(reached_by(tmp_path, NodePods(image="busybox")), {})
    with pytest.raises(GuardError, match=r"privileged pods .* read-only"):
        await refused.run(N1, TRUE)
    allowed = LateTransport(reached_by(tmp_path, NodePods(daemonset="agent", namespace="ops")), {})
    assert (await allowed.run(N1, TRUE)).outcome is Outcome.NOT_AVAILABLE
    await allowed.close()


def reached_by(folder: Path, pods: NodePods) -> Settings:
    (folder / "config.yaml").write_text(CONFIG)
    settings = load_settings({"HOME": str(folder)}, config=folder / "config.yaml")
    ssh = SshSettings(transport="kubectl", node_pods=pods)
    return replace(settings, ssh=ssh, readonly=True)
