"""Everything here needs a real NVIDIA GPU; without one each test is skipped and says so."""

import pytest


def _missing() -> str:
    try:
        import torch
    except ImportError:
        return "torch is not installed"
    return "" if torch.cuda.is_available() else "no NVIDIA GPU on this machine"


@pytest.fixture(autouse=True)
def _gpu() -> None:
    reason = _missing()
    if reason:
        pytest.skip(f"needs a real GPU: {reason}; see tests/gpu/RESULTS.md")
