"""The copy out of a GPU, its steps in order; tests/gpu measures it where there is one."""

import os
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

from brctl.training.checkpoints import capture
from brctl.training.checkpoints.capture import Copier
from brctl.training.checkpoints.parts import Parts
from brctl.training.checkpoints.slots import Header, Slot, SlotFile, SlotState, pages
from brctl.training.checkpoints.state import Snapshot, describe, read_state
from tests.fakes.cuda import FakeCuda, FakeGpuTensor
from tests.training.checkpoints.filler import header

pytestmark = pytest.mark.torch
Told = list[str]


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], FakeCuda]:
    """A GPU in place of none, for the copier alone."""

    def install(refuses: int = 0) -> FakeCuda:
        fake = FakeCuda(refuses)

        class Torch:
            cuda = fake
            ones = staticmethod(fake.ones)
            frombuffer, uint8, no_grad = torch.frombuffer, torch.uint8, torch.no_grad
            OutOfMemoryError = torch.OutOfMemoryError

        monkeypatch.setattr(capture, "torch", Torch)
        return fake

    return install


def on_gpu(*numbers: float) -> FakeGpuTensor:
    return torch.tensor(numbers).as_subclass(FakeGpuTensor)  # type: ignore[no-any-return]


def slot_for(snapshot: Snapshot, path: Path) -> tuple[Slot, Header]:
    file = SlotFile.create(path / "rank-00000.own", pages(snapshot.payload_bytes))
    return file.slots[0], replace(
        header(7), payload_bytes=snapshot.payload_bytes, table_at=snapshot.table_at
    )


def test_a_copy_runs_beside_the_next_step_and_is_whole_only_when_it_has_ended(
    cuda: Callable[[int], FakeCuda], tmp_path: Path
) -> None:
    """On the tensors' own device; until then the slot is none that a restart would take."""
    fake, told = cuda(0), Told()
    weights, count = on_gpu(1, 2, 3), torch.tensor(5)
    snapshot = describe({"weights": weights, "count": count})
    slot, table = slot_for(snapshot, tmp_path)
    copier = Copier(lambda: told.append("told"))
    copier.pin(slot)
    copier.pin(slot)
    copier.start(slot, snapshot, table)
    assert (slot.state, told) == (SlotState.WRITING, [])
    fake.copied.set()
    copier.wait()
    assert (slot.state, told) == (SlotState.COPIED, ["told"])
    saved = read_state(slot.payload[: snapshot.payload_bytes], snapshot.table_at)
    assert isinstance(saved, dict)
    assert (saved["weights"].tolist(), saved["count"].item()) == ([1, 2, 3], 5)
    assert fake.calls == [
        f"register {len(slot.payload)}", "cuda:3 waits for the update on cuda:3",
        "copy begins on cuda:3", "event recorded",
    ]  # fmt: skip


def test_what_changes_before_the_next_update_is_cloned_for_the_copy(
    cuda: Callable[[int], FakeCuda], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """BatchNorm's buffers and an average of the weights: a copy under way has them of its step."""
    cuda(0)
    cloned: list[int] = []
    clone = FakeGpuTensor.clone

    def note(tensor: FakeGpuTensor) -> torch.Tensor:
        cloned.append(tensor.data_ptr())
        return clone(tensor)

    monkeypatch.setattr(FakeGpuTensor, "clone", note)
    weights, average = on_gpu(1, 2), on_gpu(3, 4)
    snapshot = describe({"weights": weights, "average": average})
    slot, table = slot_for(snapshot, tmp_path)
    Copier(lambda: None).start(slot, snapshot, table, moving=[average])
    assert cloned == [average.data_ptr()]


@pytest.mark.parametrize("cloned_bytes", [0, 1 << 20])
def test_what_moves_and_is_too_large_to_clone_is_copied_before_training_goes_on(
    cuda: Callable[[int], FakeCuda],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    cloned_bytes: int,
) -> None:
    """An average of all weights on a GPU that is nearly full ended training."""
    fake = cuda(0)
    fake.copied.set()

    def refuse(tensor: FakeGpuTensor) -> torch.Tensor:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(FakeGpuTensor, "clone", refuse)
    monkeypatch.setattr(capture, "CLONED_BYTES", cloned_bytes)
    average = on_gpu(3, 4)
    snapshot = describe({"weights": on_gpu(1, 2), "average": average})
    slot, table = slot_for(snapshot, tmp_path)
    copier = Copier(lambda: None)
    copier.start(slot, snapshot, table, moving=[average])
    average.zero_()
    copier.wait()
    saved = read_state(slot.payload[: snapshot.payload_bytes], snapshot.table_at)
    assert isinstance(saved, dict)
    assert (saved["weights"].tolist(), saved["average"].tolist()) == ([1, 2], [3, 4])


def test_buffers_and_whatever_stands_beside_model_and_optimizer_may_move() -> None:
    model = nn.BatchNorm1d(3)
    average = torch.zeros(3)

    class Average:
        def state_dict(self) -> dict[str, object]:
            return {"weights": average, "updates": 4}

        def load_state_dict(self, state: dict[str, object]) -> None:
            raise NotImplementedError

    parts = Parts(model, torch.optim.SGD(model.parameters(), lr=0.1), {"average": Average()})
    moving = {tensor.data_ptr() for tensor in parts.moving(parts.tree())}
    assert moving == {t.data_ptr() for t in (*model.buffers(), average)}


def test_slots_are_unlocked_at_the_end_once_and_where_nobody_ended_them(
    cuda: Callable[[int], FakeCuda], tmp_path: Path
) -> None:
    """Memory that went away while CUDA had it locked makes the next mapping there fail."""
    fake = cuda(0)
    file = SlotFile.create(tmp_path / "rank-00000.own", 4096)
    copier = Copier(lambda: None)
    for slot in file.slots:
        copier.pin(slot)
    copier.close()
    copier.close()
    assert fake.calls == ["register 4096"] * 2 + ["unregister"] * 2
    forgotten = Copier(lambda: None)
    forgotten.pin(file.slots[0])
    del forgotten
    assert fake.calls[4:] == ["register 4096", "unregister"]


def test_a_forked_worker_does_not_unlock_its_parents_slots(
    cuda: Callable[[int], FakeCuda], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A data loader's worker has the objects, and CUDA refuses a forked process."""
    fake = cuda(0)
    slot = SlotFile.create(tmp_path / "rank-00000.own", 4096).slots[0]
    copier = Copier(lambda: None)
    copier.pin(slot)
    monkeypatch.setattr(os, "getpid", lambda: -1)
    copier.close()
    assert fake.calls == ["register 4096"]


def test_where_no_thread_is_to_be_had_the_copy_is_waited_for(
    cuda: Callable[[int], FakeCuda], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user's limit of processes is slower then, and ends no training."""
    fake = cuda(0)
    fake.copied.set()
    snapshot = describe({"weights": on_gpu(1)})
    slot, table = slot_for(snapshot, tmp_path)

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    Copier(lambda: None).start(slot, snapshot, table)
    assert slot.state is SlotState.COPIED


def test_memory_that_may_not_be_page_locked_is_said_and_costs_no_later_kernel(
    cuda: Callable[[int], FakeCuda], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """CUDA gives a refusal to the next kernel as well, which would be the model's own."""
    fake = cuda(2)
    slot = SlotFile.create(tmp_path / "rank-00000.own", 4096).slots[0]
    copier = Copier(lambda: None)
    copier.pin(slot)
    copier.close()
    assert fake.calls == ["register 4096", "kernel on cuda"]
    assert "cudaHostRegister refused 4096 bytes (error 2)" in capsys.readouterr().err
