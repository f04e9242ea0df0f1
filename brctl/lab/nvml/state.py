"""The state file of one node's fake NVML library: `key=value` lines, replaced whole."""

import hashlib
import uuid
from collections.abc import Mapping
from pathlib import Path

from brctl.library.durable_files import write_atomic

LOST = "!15"
"""nvmlReturn_t 15, GPU is lost."""

PCI_BUSES = ("18", "2a", "3a", "5d", "9a", "ab", "ba", "db")
"""Where eight GPUs sit in an HGX H100 board; fake_nvml.c has the same table as its default."""


def gpu_uuid(node: str, index: int) -> str:
    """A GPU's identity: stable for a node name and slot, different everywhere else."""
    return f"GPU-{uuid.uuid5(uuid.NAMESPACE_DNS, f'{node}.gpu{index}.lab.brctl.dev')}"


def gpu_pci(index: int) -> str:
    """PCI address of a slot, `0000:9a:00.0`."""
    return f"0000:{PCI_BUSES[index % 8]}:{index // 8:02x}.0"


def healthy(node: str, gpus: int) -> dict[str, str]:
    """State of a node whose GPUs are all well; what is not named here, fake_nvml.c defaults."""
    state = {"count": str(gpus)}
    for index in range(gpus):
        number = int.from_bytes(hashlib.sha256(f"{node}/{index}".encode()).digest()[:4], "big")
        state[f"gpu{index}.uuid"] = gpu_uuid(node, index)
        state[f"gpu{index}.pci"] = gpu_pci(index)
        state[f"gpu{index}.serial"] = f"165{number % 10**10:010d}"
        state[f"gpu{index}.temp"] = str(38 + number % 7)
    return state


def read_state(path: Path) -> dict[str, str]:
    """The keys and values of a state file."""
    pairs = (line.partition("=") for line in path.read_text().splitlines())
    return {key: value for key, _, value in pairs if key and not key.startswith("#")}


def write_state(path: Path, state: Mapping[str, str]) -> None:
    """Replace a state file at once: a reader sees the old one or the new one."""
    write_atomic(path, "".join(f"{key}={value}\n" for key, value in state.items()))


def change_state(path: Path, changes: Mapping[str, str | None]) -> None:
    """Set keys, or remove those whose new value is None."""
    state = read_state(path)
    for key, value in changes.items():
        if value is None:
            state.pop(key, None)
        else:
            state[key] = value
    write_state(path, state)
