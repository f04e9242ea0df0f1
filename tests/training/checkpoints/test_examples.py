"""The examples of frameworks train, stop, resume by themselves, and end with the same bits."""

import shutil
from pathlib import Path

import pytest
import torch.multiprocessing as mp

from tests.training.checkpoints.example_scripts import run_rank

pytestmark = pytest.mark.torch


def attempt(folder: Path, name: str, number: int, steps: int) -> list[tuple[int, str]]:
    """The step each rank resumed from, and a digest of what it holds at the end."""
    mp.start_processes(
        run_rank, args=(name, str(folder), number, steps), nprocs=2, start_method="fork"
    )
    results = [(folder / f"result-{number}-{rank}").read_text().split() for rank in range(2)]
    return [(int(resumed), digest) for resumed, digest in results]


@pytest.fixture(autouse=True)
def loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")


@pytest.mark.parametrize("name", ["ddp", "fsdp", "tensor_parallel"])
def test_a_framework_resumes_with_the_same_bits(name: str, tmp_path: Path) -> None:
    """Also where one of the two machines lost its memory."""
    (tmp_path / "undisturbed").mkdir()
    (tmp_path / "disturbed").mkdir()
    expected = attempt(tmp_path / "undisturbed", name, 1, 6)
    attempt(tmp_path / "disturbed", name, 1, 3)
    shutil.rmtree(tmp_path / "disturbed" / "machine-0")
    found = attempt(tmp_path / "disturbed", name, 2, 6)
    assert [digest for _, digest in found] == [digest for _, digest in expected]
    assert {resumed for resumed, _ in found} <= {1, 2, 3}


def test_a_framework_that_calls_its_optimizer_itself_does_so_too(tmp_path: Path) -> None:
    """Imported before the ranks fork: it takes longer than they train."""
    import pytorch_lightning as _  # noqa: F401

    test_a_framework_resumes_with_the_same_bits("lightning", tmp_path)


def test_the_remote_store_is_read_where_no_memory_is_left(tmp_path: Path) -> None:
    """Both machines are gone; the step is the last one written there."""
    attempt(tmp_path, "remote_tier", 1, 5)
    for rank in range(2):
        shutil.rmtree(tmp_path / f"machine-{rank}")
    assert [resumed for resumed, _ in attempt(tmp_path, "remote_tier", 2, 6)] == [4, 4]
