"""What has to be the same on two ranks before their bits can be asked to be."""

import hashlib
import platform

import torch


def kind_of(device: torch.device) -> str:
    """Part, instructions and library, as check `numerics.minigpt` reads them."""
    if device.type == "cuda":
        part = f"{torch.cuda.get_device_name(device)}, CUDA {torch.version.cuda}"
    else:
        part = f"{platform.machine()} {torch.backends.cpu.get_cpu_capability()}"
    return f"{part}, torch {torch.__version__}"


def number_of(kind: str) -> int:
    """The kind as one signed 64-bit number, equal on all ranks of it."""
    return int.from_bytes(hashlib.sha256(kind.encode()).digest()[:8], "big", signed=True)
