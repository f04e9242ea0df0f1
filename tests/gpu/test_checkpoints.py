"""Checkpoints of every step on a real GPU: fast out of it, hardly felt, the same bits back."""

import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.gpu.device_to_host import Size, copy_rates, train

pytestmark = [pytest.mark.gpu, pytest.mark.torch]

HALF_A_GB = Size(layers=10, width=2048, batch=65536)
"""42 million float32 weights, 0.5 GB with AdamW's moments; a step takes some tenths of a second."""

SMALL = Size(layers=4, width=256, batch=64)
STEPS = 30
NEEDED_BYTES = 1_100_000_000
"""Two slots of half a gigabyte; a container may have 64 MB of shared memory."""


@pytest.fixture
def memory() -> Iterator[Path]:
    """A folder of its own in shared memory, where slots lie."""
    if shutil.disk_usage("/dev/shm").free < NEEDED_BYTES:
        pytest.skip(f"less than {NEEDED_BYTES / 1e9} GB free in /dev/shm")
    folder = Path(tempfile.mkdtemp(prefix="brctl-test-", dir="/dev/shm"))
    yield folder
    shutil.rmtree(folder)


def say(text: str) -> None:
    """For tests/gpu/RESULTS.md; `pytest -s` shows it."""
    sys.stdout.write(text + "\n")


def test_copies_into_a_slot_are_as_fast_as_page_locked_memory_allows(memory: Path) -> None:
    """The link's own limit is what PyTorch's pinned memory reaches beside it."""
    rates = copy_rates("cuda", 512, memory)
    say(f"GB/s: slot {rates.slot / 1e9:.1f}, pinned {rates.pinned / 1e9:.1f},"
        f" pageable {rates.pageable / 1e9:.1f}")  # fmt: skip
    assert rates.slot >= 0.85 * rates.pinned


def test_half_a_gigabyte_a_step_is_hardly_felt(memory: Path) -> None:
    """Under 1 % of a step, and at most 0.04 s in which training waits."""
    without = train("cuda", HALF_A_GB, STEPS, None)
    kept = train("cuda", HALF_A_GB, STEPS, memory)
    say(f"step {without.step_s:.4f} s, with every step kept {kept.step_s:.4f} s, blocked"
        f" {kept.blocked_s:.4f} s, {kept.saved} of {STEPS} saved")  # fmt: skip
    assert kept.digest == without.digest
    assert kept.blocked_s <= 0.04
    assert kept.step_s <= 1.01 * without.step_s


@pytest.mark.parametrize("fused", [False, True])
def test_a_restart_on_a_gpu_goes_on_bit_by_bit(memory: Path, *, fused: bool) -> None:
    undisturbed = train("cuda", SMALL, 12, None, fused=fused)
    train("cuda", SMALL, 6, memory, fused=fused)
    resumed = train("cuda", SMALL, 12, memory, fused=fused)
    assert 1 <= resumed.resumed <= 6
    assert resumed.digest == undisturbed.digest


def test_where_page_locking_is_refused_the_bits_are_the_same(
    memory: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A size of zero is refused by the driver itself, with the error it leaves behind."""
    import torch

    register = torch.cuda.cudart().cudaHostRegister

    class Refusing:
        def cudaHostRegister(self, address: int, size: int, flags: int) -> object:  # noqa: N802  # CUDA's
            return register(address, 0, flags)

    undisturbed = train("cuda", SMALL, 12, None)
    monkeypatch.setattr(torch.cuda, "cudart", Refusing)
    train("cuda", SMALL, 6, memory)
    resumed = train("cuda", SMALL, 12, memory)
    assert "cudaHostRegister refused" in capsys.readouterr().err
    assert resumed.digest == undisturbed.digest
