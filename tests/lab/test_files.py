"""What the lab writes is what brctl reads."""

import asyncio

from brctl.inventory.load import load_inventory
from brctl.lab.cluster import Lab
from brctl.lab.files import JOB_NAME
from brctl.library.config import load_settings
from brctl.library.jobs import load_job
from brctl.model.inventory import NodeRole
from tests.lab.ssh import run


def test_brctl_reads_the_configuration(lab: Lab) -> None:
    """Context lab, checked host keys, state inside the lab's directory."""
    settings = load_settings(environ={"BRCTL_LAB_DIR": str(lab.paths.root)}, context="lab")
    assert settings.ssh.known_hosts == lab.paths.known_hosts
    assert settings.ssh.identity_files == (lab.paths.client_key,)
    assert settings.state_dir == lab.paths.state
    assert settings.scheduler == "static"


def test_brctl_reads_the_inventory(lab: Lab) -> None:
    """Roles, addresses, GPUs and where each node's kernel log is."""
    inventory = load_inventory(load_settings(environ={}, config=lab.paths.config))
    assert inventory.names(NodeRole.ACTIVE) == ("n1", "n2")
    assert inventory.names(NodeRole.STANDBY) == ("n3",)
    node = inventory.nodes["n2"]
    assert (node.address, node.port) == (lab.nodes["n2"].address, lab.nodes["n2"].port)
    assert node.gpus == 8
    assert node.labels["kernel_log"] == str(lab.paths.node("n2").kernel_log)
    assert node.labels["rack"] == "r01"


def test_brctl_reads_the_job(lab: Lab) -> None:
    """The training job runs on the active nodes and saves inside the lab's directory."""
    job = load_job(lab.paths.job)
    assert job.name == JOB_NAME
    assert job.nodes == ("n1", "n2")
    assert job.world_size == 2
    assert str(job.checkpoint_dir).startswith(str(lab.paths.root))


def test_the_private_key_is_private(lab: Lab) -> None:
    """OpenSSH refuses a key that others may read."""
    assert lab.paths.client_key.stat().st_mode & 0o077 == 0


def test_a_node_finds_its_own_state(lab: Lab) -> None:
    """Programs on a node are told where its GPUs, faults and log are, and nothing of ours."""
    status, text = asyncio.run(run(lab, "n2", "env"))
    variables = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    own = lab.paths.node("n2")
    assert status == 0
    assert variables["BRCTL_LAB_NODE"] == "n2"
    assert variables["BRCTL_FAKE_NVML_STATE"] == str(own.nvml)
    assert variables["BRCTL_LAB_KERNEL_LOG"] == str(own.kernel_log)
    assert variables["HOME"] == str(own.home)
    assert "PYTEST_CURRENT_TEST" not in variables
