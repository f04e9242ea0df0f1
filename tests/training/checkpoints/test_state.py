"""The state of a script: bits as they were, without pickle, whatever the script is made of."""

import json
import random
import runpy
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from brctl.training.checkpoints import state
from brctl.training.checkpoints.capture import Copier
from brctl.training.checkpoints.parts import (
    Parts,
    Tree,
    random_state,
    set_random_state,
    unwrapped,
)
from brctl.training.checkpoints.slots import Header, SlotFile, SlotState, pages
from brctl.training.checkpoints.state import (
    _DTYPES,
    ForeignStateError,
    describe,
    read_state,
    view_of,
)

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
    Copier(lambda: None).start(slots.slots[0], snapshot, header)
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


@pytest.mark.parametrize(("fused", "device"), [(True, "meta"), (False, "cpu")])
def test_a_fused_optimizer_counts_its_steps_where_its_weights_are(
    fused: bool,  # by pytest
    device: str,
) -> None:
    """On a GPU it refuses a count on the CPU; a device without bytes stands for that here."""
    model = nn.Linear(4, 4, bias=False)
    optimizer = torch.optim.AdamW(model.parameters())
    model.weight.grad = torch.ones(4, 4)
    optimizer.step()
    tree = Parts(model, optimizer).tree()
    elsewhere = nn.Linear(4, 4, bias=False, device="meta")
    empty = torch.optim.AdamW(elsewhere.parameters())
    tree["optimizer"]["param_groups"][0]["fused"] = fused  # type: ignore[index]  # a tree
    Parts(elsewhere, empty).load({**tree, "model": dict(elsewhere.state_dict())})
    (state,) = empty.state.values()
    assert {name: value.device.type for name, value in state.items()} == {
        "step": device, "exp_avg": "meta", "exp_avg_sq": "meta",
    }  # fmt: skip


def test_an_optimizer_that_wraps_another_is_looked_into() -> None:
    """accelerate's, which Hugging Face Trainer hands to its callbacks, takes no parameters."""

    class Wrapper(torch.optim.Optimizer):  # type: ignore[misc]  # torch is not type-checked here
        def __init__(self, inner: torch.optim.Optimizer) -> None:
            self.optimizer = inner

    inner = torch.optim.SGD(nn.Linear(2, 2).parameters())
    assert unwrapped(Wrapper(Wrapper(inner))) is inner
    assert unwrapped(inner) is inner


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


@pytest.mark.parametrize(
    ("tensor", "kind"),
    [(torch.ones(3, device="meta"), "without data"), (torch.eye(3).to_sparse(), "sparse_coo"),
     (torch.empty(2, dtype=torch.uint4), "uint4")],
    ids=["meta", "sparse", "half a byte"],
)  # fmt: skip
def test_a_tensor_that_could_not_be_put_back_is_not_saved(tensor: Tensor, kind: str) -> None:
    with pytest.raises(TypeError, match=rf"state\.model\.w is a tensor .*{kind}"):
        describe({"model": {"w": tensor}})


@pytest.mark.parametrize("dtype", sorted(_DTYPES))
def test_every_type_of_number_that_is_saved_is_put_back(dtype: str) -> None:
    """Its bytes, for not all of them can be compared."""
    whole = torch.arange(32, dtype=torch.uint8) % 2
    tensor = whole.view(_DTYPES[dtype])
    snapshot = describe([tensor])
    payload = bytearray(snapshot.payload_bytes)
    payload[snapshot.table_at :] = snapshot.table
    view_of(torch.frombuffer(payload, dtype=torch.uint8), snapshot.rows[0]).copy_(tensor)
    found = read_state(memoryview(payload), snapshot.table_at)
    assert isinstance(found, list)
    assert found[0].dtype == _DTYPES[dtype]
    assert torch.equal(found[0].view(torch.uint8), whole)


class NewKernels(torch.optim.AdamW):  # type: ignore[misc]  # torch is not type-checked here
    """Its first step needs a device, as some eight-bit optimizers' do."""

    def step(self, closure: object = None) -> None:
        raise NotImplementedError("no kernel for meta")


def test_an_optimizer_whose_state_has_no_known_size_is_refused_with_what_to_do() -> None:
    model = nn.Linear(2, 2)
    with pytest.raises(ValueError, match=r"NewKernels will be is not known: .* one step with lr=0"):
        Parts(model, NewKernels(model.parameters())).payload_bytes()


class Picky(DataPosition):
    """As loaders that assert without a word."""

    def load_state_dict(self, state: Tree) -> None:
        raise AssertionError


def test_whatever_a_script_raises_at_its_own_state_is_a_reason_and_no_traceback(
    tmp_path: Path,
) -> None:
    """As torchdata asserts its number of workers; the other ranks have to hear of it."""
    parts = script()
    payload, at = saved(parts, tmp_path / "slot"), table_at(parts)
    other = Parts(parts.model, parts.optimizer, {"data": Picky()})
    with pytest.raises(ForeignStateError, match="does not fit this script: AssertionError"):
        other.load(read_state(payload, at))


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


def test_a_torch_without_a_kind_of_numbers_has_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """2.6 has no float8_e8m0fnu."""
    monkeypatch.delattr(torch, "float8_e8m0fnu", raising=False)
    known = runpy.run_path(str(state.__file__))["_DTYPES"]
    assert "torch.float8_e8m0fnu" not in known
    assert known["torch.bfloat16"] is torch.bfloat16
