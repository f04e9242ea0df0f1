"""The state of a script: bits as they were, without pickle, whatever the script is made of."""

import json
import random
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from brctl.training.checkpoints.capture import Copier
from brctl.training.checkpoints.parts import Parts, Tree, random_state, set_random_state
from brctl.training.checkpoints.slots import Header, SlotFile, SlotState, pages
from brctl.training.checkpoints.state import ForeignStateError, describe, read_state

pytestmark = pytest.mark.torch


class DataPosition:
    """A data position that a script may hand over."""

    def __init__(self) -> None:
        self.state: Tree = {"epoch": 1, "seen": [3, 4], "shuffle": ("a", None, 0.1)}

    def state_dict(self) -> Tree:
        return self.state

    def load_state_dict(self, state: Tree) -> None:
        self.state = state


def script(optimizer: type[torch.optim.Optimizer] = torch.optim.AdamW, **options: float) -> Parts:
    torch.manual_seed(3)
    model = nn.Sequential(nn.Linear(6, 6), nn.BatchNorm1d(6), nn.Linear(6, 1))
    return Parts(model, optimizer(model.parameters(), **options), {"data": DataPosition()})


def step(parts: Parts) -> None:
    parts.optimizer.zero_grad()
    parts.model(torch.randn(5, 6)).square().mean().backward()
    parts.optimizer.step()


def saved(parts: Parts, path: Path) -> memoryview:
    """The payload of a slot that holds this state."""
    snapshot = describe(parts.tree())
    slots = SlotFile.create(path, pages(snapshot.payload_bytes))
    header = Header("toy", "l", 1, 0, 1, 1, snapshot.payload_bytes, snapshot.table_at)
    Copier(lambda: None).start(slots.slots[0], snapshot, header, parts.model)
    assert slots.slots[0].state is SlotState.COPIED
    return slots.slots[0].payload[: snapshot.payload_bytes]


def table_at(parts: Parts) -> int:
    return describe(parts.tree()).table_at


def bits(parts: Parts) -> list[Tensor]:
    return [tensor.clone() for tensor in describe(parts.tree()).tensors]


@pytest.mark.parametrize(
    ("optimizer", "options"),
    [(torch.optim.AdamW, {}), (torch.optim.Adam, {"amsgrad": True}),
     (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9}), (torch.optim.SGD, {"lr": 0.1}),
     (torch.optim.Adagrad, {})],
)  # fmt: skip
def test_a_restored_script_goes_on_bit_by_bit(
    optimizer: type[torch.optim.Optimizer], options: dict[str, float], tmp_path: Path
) -> None:
    """Weights, moments, step counts, BatchNorm buffers, generators, position."""
    parts = script(optimizer, **options)
    for _ in range(3):
        step(parts)
    payload, at = saved(parts, tmp_path / "slot"), table_at(parts)
    for _ in range(2):
        step(parts)
    expected = bits(parts)
    other = script(optimizer, **options)
    torch.manual_seed(99)
    other.load(read_state(payload, at))
    for _ in range(2):
        step(other)
    assert all(torch.equal(a, b) for a, b in zip(bits(other), expected, strict=True))
    assert other.tree()["others"] == parts.tree()["others"]


def test_changing_the_live_tensors_afterwards_changes_nothing(tmp_path: Path) -> None:
    """What is saved is a copy; two steps saved one after the other differ."""
    parts = script()
    step(parts)
    before, payload, at = bits(parts), saved(parts, tmp_path / "a"), table_at(parts)
    step(parts)
    assert bytes(saved(parts, tmp_path / "b")) != bytes(payload)
    restored = script()
    restored.load(read_state(payload, at))
    assert all(torch.equal(a, b) for a, b in zip(bits(restored), before, strict=True))


def test_moments_of_another_type_than_their_weights_stay_so(tmp_path: Path) -> None:
    """Optimizer.load_state_dict would make float32 moments of bfloat16 weights bfloat16."""
    model = nn.Linear(4, 4).to(torch.bfloat16)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    moments = torch.randn(4, 4)
    optimizer.state[model.weight]["momentum_buffer"] = moments
    parts = Parts(model, optimizer)
    payload, at = saved(parts, tmp_path / "slot"), table_at(parts)
    optimizer.state.clear()
    parts.load(read_state(payload, at))
    assert torch.equal(optimizer.state[model.weight]["momentum_buffer"], moments)


@pytest.mark.parametrize("optimizer", [torch.optim.AdamW, torch.optim.SGD, torch.optim.Adagrad])
def test_the_size_is_known_before_the_first_step(optimizer: type[torch.optim.Optimizer]) -> None:
    """Moments that the first step will make are counted, and making them ready changes nothing."""
    parts = script(optimizer)
    weights, counted = bits(parts), parts.payload_bytes()
    assert all(torch.equal(a, b) for a, b in zip(bits(parts), weights, strict=True))
    step(parts)
    assert describe(parts.tree()).payload_bytes <= counted


def test_generators_of_python_and_numpy_are_kept() -> None:
    """A step may draw from any of them."""
    numpy = pytest.importorskip("numpy").random
    state = json.loads(json.dumps({k: v for k, v in random_state().items() if k == "numpy"}))
    kept = random_state() | state
    drawn = [random.random(), float(torch.rand(1)), float(numpy.rand())]
    set_random_state(kept)
    assert [random.random(), float(torch.rand(1)), float(numpy.rand())] == drawn


def test_what_cannot_be_kept_is_named_with_its_place() -> None:
    """No pickle: a set or an object is refused, not half saved."""
    with pytest.raises(TypeError, match=r"state\.others\.data\[1\] is a set"):
        describe({"others": {"data": [1, {2}]}})


def test_another_scripts_state_is_refused(tmp_path: Path) -> None:
    """With what differs."""
    parts = script()
    payload, at = saved(parts, tmp_path / "slot"), table_at(parts)
    model = nn.Linear(2, 2)
    other = Parts(model, torch.optim.AdamW(model.parameters()), {"data": DataPosition()})
    with pytest.raises(ForeignStateError, match="weights differ in name"):
        other.load(read_state(payload, at))
    with pytest.raises(ForeignStateError, match=r"saved with \['data'\]"):
        Parts(parts.model, parts.optimizer).load(read_state(payload, at))


@pytest.mark.parametrize(
    "table",
    [b"", b"[]", b"{}", b'{"tensors": [["torch.float32", [1000], 0, "cpu"]], "tree": 1}',
     b'{"tensors": [["torch.float32", [-1], 0, "cpu"]], "tree": 1}',
     b'{"tensors": [["torch.evil", [1], 0, "cpu"]], "tree": 1}',
     b'{"tensors": [], "tree": {"tensor": 0}}', b'{"tensors": [], "tree": {"dict": 7}}',
     b'{"tensors": [], "tree": {"a": [], "b": []}}',
     b'{"tensors": [], "tree": {"dict": [[[], 1]]}}',
     b"[" * 100_000],
)  # fmt: skip
def test_a_table_from_anywhere_is_refused_or_harmless(table: bytes) -> None:
    """Nothing outside of the payload is read, nothing is run."""
    payload = memoryview(bytearray(64) + table)
    try:
        assert not isinstance(read_state(payload, 64), Tensor)
    except ForeignStateError as exc:
        assert str(exc)  # noqa: PT017  # either of the two
