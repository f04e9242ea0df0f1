"""Write a lab's files: keys, configuration, inventory, job and the state of each node."""

import os
import shlex
from collections.abc import Mapping
from pathlib import Path

import yaml

from brctl.lab.environment import kernel_log, user_name
from brctl.lab.kernel_log import boot_messages
from brctl.lab.nvml.state import gpu_pci, healthy, write_state
from brctl.lab.record import LabNode, LabRecord
from brctl.lab.site import write_clock, write_faults
from brctl.lab.spec import Isolation, LabPaths, LabSpec
from brctl.lab.wrong_results import WrongResults, write_wrong_results
from brctl.model import API_VERSION

JOB_NAME = "lab-train"
DUMP_SHARE = 0.6
"""Dumps of the flight recorder are written at this share of `stall_after`, so `dx` finds them."""
LOADER_SHARE = 0.4
"""A loader's worker is silent at this share of `stall_after`, so it is replaced before a stall."""

REPLAY_STEPS = 20
"""More than lie between two checkpoints, so that a step that went wrong is among them."""

FAKE_NVIDIA_SMI = "brctl.lab.nvml.fake_nvidia_smi"

LEAST_STEP_S = 0.1
STEP_S_PER_RANK = 0.02
"""A step costs a rank some 10 ms of CPU time; this leaves most of two cores to brctl itself."""

_GUARDS = {"blast_radius": {"max_nodes": 4, "max_percent": 50}}
"""More than a production default allows, so that one can practise more than one swap in a row."""


def write_files(record: LabRecord, paths: LabPaths, master_port: int) -> None:
    """Write everything that must be there before the first node starts."""
    # Imported here: it brings asyncssh, half of what `lab status` would cost.
    from brctl.lab.keys import write_keys

    for directory in (paths.keys, paths.state, paths.scratch, paths.memory, *_work(paths).values()):
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    for node in record.nodes:
        _write_node(record, paths, node)
    write_keys(record, paths)
    _write_yaml(paths.config, "Config", _config())
    _write_yaml(paths.guards, "Guards", _GUARDS)
    _write_yaml(paths.inventory, "Inventory", _inventory(record, paths))
    _write_yaml(paths.job, "Job", _job(record, paths, master_port))


def _work(paths: LabPaths) -> dict[str, Path]:
    return {name: paths.work / name for name in ("checkpoints", "logs", "progress")}


def _write_yaml(path: Path, kind: str, content: Mapping[str, object]) -> None:
    document = {"apiVersion": API_VERSION, "kind": kind, **content}
    path.write_text(yaml.safe_dump(document, sort_keys=False, default_flow_style=None, width=100))


def _write_node(record: LabRecord, paths: LabPaths, node: LabNode) -> None:
    node_paths = paths.node(node.name)
    node_paths.home.mkdir(parents=True, exist_ok=True)
    for index in range(record.spec.gpus):
        slot = node_paths.pci / gpu_pci(index)
        slot.mkdir(parents=True, exist_ok=True)
        (slot / "vendor").write_text("0x10de\n")
        (slot / "class").write_text("0x030200\n")
    node_paths.programs.mkdir(exist_ok=True)
    smi = node_paths.programs / "nvidia-smi"
    smi.write_text(f'#!/bin/sh\nexec {record.spec.python} -P -m {FAKE_NVIDIA_SMI} "$@"\n')
    smi.chmod(0o755)
    reset_node(record, paths, node.name)


def reset_node(record: LabRecord, paths: LabPaths, name: str) -> None:
    """Give a node the state of a healthy machine that just booted."""
    node_paths = paths.node(name)
    write_state(node_paths.nvml, healthy(name, record.spec.gpus))
    write_faults(node_paths.faults, {})
    write_clock(node_paths.clock, 0.0)
    write_wrong_results(node_paths.wrong_results, WrongResults())
    # Written in place, never replaced: in a netns lab the file is bound over /dev/kmsg.
    node_paths.kernel_log.write_text(boot_messages(record.spec.gpus))


def _config() -> dict[str, object]:
    return {
        "context": "lab",
        "state_dir": "state",
        "ssh": {
            "user": user_name(),
            "identity_file": "keys/client",
            "known_hosts": "keys/known_hosts",
            "connect_timeout": "3s",
            "login_timeout": "3s",
        },
        "contexts": {
            "lab": {
                "inventory": [{"file": "inventory.yaml"}],
                "jobs": ["job.yaml"],
                "scheduler": "static",
            }
        },
    }


def _inventory(record: LabRecord, paths: LabPaths) -> dict[str, object]:
    python = record.spec.python
    return {
        "defaults": {
            "gpus": record.spec.gpus,
            "python": python,
            "torch_python": python,
            "gpu_model": "H100",
        },
        "nodes": {node.name: _node(record, paths, node) for node in record.nodes},
    }


def _node(record: LabRecord, paths: LabPaths, node: LabNode) -> dict[str, object]:
    labels = {
        "kernel_log": str(kernel_log(record, paths, node.name)),
        "pci_root": str(paths.node(node.name).pci),
        "torch_device": "cpu",
    }
    if record.isolation is Isolation.NETNS:
        labels["scratch"] = str(paths.scratch)
    return {
        "address": node.address,
        "port": node.port,
        "role": node.role,
        "rack": node.rack,
        "leaf": node.leaf,
        "labels": labels,
    }


def _job(record: LabRecord, paths: LabPaths, master_port: int) -> dict[str, object]:
    spec, work = record.spec, _work(paths)
    parallel = spec.parallel()
    return {
        "name": JOB_NAME,
        "nodes": [node.name for node in record.nodes if node.role == "active"],
        "ranks_per_node": spec.ranks_per_node,
        "parallel": {"order": list(parallel), **parallel},
        "launch": [spec.python, "-m", "brctl.training", *_trainer_flags(spec)],
        "workdir": str(paths.work),
        "environment": _job_environment(record, work),
        "warm": ["brctl.training.trainer"],
        "checkpoint": _checkpoint(spec, paths),
        "logs": str(work["logs"]),
        "progress": str(work["progress"]),
        "stall_after": f"{spec.stall_after_s:g}s",
        "master_port": master_port,
    }


def _checkpoint(spec: LabSpec, paths: LabPaths) -> dict[str, str]:
    slots = {"slots": str(paths.memory / "slots")} if spec.every_step else {}
    return {"directory": str(_work(paths)["checkpoints"]), "layout": "torch-dcp", **slots}


def _trainer_flags(spec: LabSpec) -> list[str]:
    sizes = ",".join(f"{axis}={size}" for axis, size in spec.parallel().items())
    return [
        *([f"--axes={sizes}"] if spec.every_step else []),
        *_loader_flags(spec),
        f"--steps={spec.steps}",
        f"--pace={max(LEAST_STEP_S, STEP_S_PER_RANK * spec.world_size):g}",
        f"--checkpoint-every={spec.checkpoint_every}",
        f"--collective-timeout={spec.collective_timeout_s:g}",
        f"--dump-after={DUMP_SHARE * spec.stall_after_s:g}",
    ]


def _loader_flags(spec: LabSpec) -> list[str]:
    if not spec.on_loader:
        return []
    silent_after_s = LOADER_SHARE * spec.stall_after_s
    return [f"--on-loader={spec.on_loader}", f"--loader-silent-after={silent_after_s:g}"]


def _replay_command(spec: LabSpec, checkpoints: Path) -> str:
    """From the newest checkpoint; one of a job cut by tensors and stages fits no other cut."""
    words = [
        spec.python, "-m", "brctl.training", f"--replay={REPLAY_STEPS}",
        f"--data-ranks={spec.world_size}",
        f"--collective-timeout={spec.collective_timeout_s:g}",
        *([] if spec.every_step else [f"--checkpoints={checkpoints}"]),
    ]  # fmt: skip
    return shlex.join(words)


def _job_environment(record: LabRecord, work: Mapping[str, Path]) -> dict[str, str]:
    interface = "eth0" if record.isolation is Isolation.NETNS else "lo"
    return {
        "GLOO_SOCKET_IFNAME": interface,
        "OMP_NUM_THREADS": "1",
        "PYTHONUNBUFFERED": "1",
        "TORCH_FR_DUMP_TEMP_FILE": str(work["logs"] / "flight-"),
        "BRCTL_REPLAY_COMMAND": _replay_command(record.spec, work["checkpoints"]),
        "PYTHONPATH": os.pathsep.join(_import_path()),
    }


def _import_path() -> list[str]:
    """Where brctl itself is, for ranks that start in another directory."""
    return [str(Path(__file__).resolve().parents[2])]
