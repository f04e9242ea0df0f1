"""A node's kernel log: one /dev/kmsg record a line, `priority,sequence,microseconds,-;text`."""

import time
from pathlib import Path

from brctl.lab.nvml.state import gpu_pci

KERNEL_ERROR, KERNEL_INFO = 3, 6
_BOOT = (
    "Linux version 6.8.0-lab (brctl embedded cluster)",
    "nvidia: loading out-of-tree module taints kernel.",
    "NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  570.148.08",
)


def boot_messages(gpus: int) -> str:
    """What a healthy node logs while it boots."""
    probed = tuple(
        f"nvidia {gpu_pci(index)}: enabling device (0000 -> 0002)" for index in range(gpus)
    )
    now_us = _uptime_us()
    return "".join(
        _line(KERNEL_INFO, sequence, now_us + sequence, text)
        for sequence, text in enumerate(_BOOT + probed)
    )


def append(path: Path, texts: tuple[str, ...], priority: int = KERNEL_ERROR) -> None:
    """Log messages as the kernel does, now."""
    sequence = path.read_text().count("\n")
    with path.open("a") as stream:
        for index, text in enumerate(texts):
            stream.write(_line(priority, sequence + index, _uptime_us(), text))


def _uptime_us() -> int:
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000


def _line(priority: int, sequence: int, at_us: int, text: str) -> str:
    return f"{priority},{sequence},{at_us},-;{text}\n"
