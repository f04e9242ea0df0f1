"""A stand-in for `nvidia-smi` on lab nodes: it resets the GPUs of the fake NVML library, no more.

What a reset does to a real GPU it does to the state file: volatile counters go to zero, a pending
row remap is carried out, clocks and links start afresh; counters for life and the serial stay. As
the real one it refuses a GPU that a process holds, and cannot bring back one that is lost.
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from brctl.lab.nvml.state import LOST, healthy, read_state, write_state

STATE = "BRCTL_FAKE_NVML_STATE"
NODE = "BRCTL_LAB_NODE"
_KEPT = ("aggregate", "remap.corrected", "remap.uncorrected", "remap.histogram", "remap.failure")
"""Parts of keys that survive a reset: counters for life, and rows that were used up."""

IN_USE, UNKNOWN_GPU, LOST_GPU, BAD_USE = 19, 6, 15, 2


def main(argv: Sequence[str]) -> int:
    """`nvidia-smi -L` or `nvidia-smi --gpu-reset [-i LIST]`."""
    path = Path(os.environ[STATE])
    state = read_state(path)
    known = [str(index) for index in range(int(state["count"]))]
    if list(argv) == ["-L"]:
        for index in known:
            _say(f"GPU {index}: NVIDIA H100 80GB HBM3 (UUID: {state[f'gpu{index}.uuid']})")
        return 0
    if not argv or argv[0] not in ("--gpu-reset", "-r") or len(argv) not in (1, 3):
        _say("fake nvidia-smi of the brctl lab: only -L and --gpu-reset [-i LIST]")
        return BAD_USE
    chosen = [_index(state, name) for name in argv[2].split(",")] if len(argv) == 3 else known
    for index in chosen:
        problem, status = _problem(state, known, index)
        if problem:
            _say(f"GPU {index}: {problem}")
            return status
    write_state(path, _after_reset(state, chosen))
    _say("".join(f"GPU {index} was successfully reset.\n" for index in chosen) + "All done.")
    return 0


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def _index(state: dict[str, str], name: str) -> str:
    """An index as it is, a UUID or PCI address as the index of its GPU."""
    for key, value in state.items():
        if key.endswith((".uuid", ".pci")) and name in (value, value.removeprefix("0000:")):
            return key.partition(".")[0].removeprefix("gpu")
    return name


def _problem(state: dict[str, str], known: Sequence[str], index: str) -> tuple[str, int]:
    if index not in known:
        return "No devices were found", UNKNOWN_GPU
    if state.get(f"gpu{index}.*") == LOST:
        return "Unable to reset: GPU is lost. Reboot the system to recover this GPU", LOST_GPU
    if state.get(f"gpu{index}.processes"):
        return "is currently in use by another process; it cannot be reset", IN_USE
    return "", 0


def _after_reset(state: dict[str, str], chosen: Sequence[str]) -> dict[str, str]:
    fresh = healthy(os.environ[NODE], int(state["count"]))
    return {
        key: fresh.get(key, value)
        for key, value in state.items()
        if key.partition(".")[0].removeprefix("gpu") not in chosen
        or key in fresh
        or any(part in key for part in _KEPT)
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
