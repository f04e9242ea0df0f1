"""Numbers that are wrong and look right show in the step in which they come up."""

import json
import math
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from brctl.evidence.job.wrong_numbers import read_wrong_numbers
from brctl.training.checkpoint import directory_of, remove_old
from brctl.training.numbers.loss_jump import LossJump
from brctl.training.numbers.product_check import ProductCheck, _multiplies_in_tf32
from brctl.training.numeric_checks import NumericChecks
from brctl.training.numeric_kind import kind_of
from brctl.training.progress import Progress
from brctl.training.replica_digests import (
    EXCHANGED_BYTES,
    folded,
    folded_names,
    most_columns,
    width_of,
    words_of,
)
from tests.timeouts import TIMEOUT_S
from tests.training.numeric_ranks import WrongLinear

pytestmark = pytest.mark.torch

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("numeric")


@pytest.fixture(scope="module")
def ranks(folder: Path) -> list[dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, str(ROOT / "tests/training/numeric_ranks.py"), str(folder)],
        env={**os.environ, "PYTHONPATH": str(ROOT), "GLOO_SOCKET_IFNAME": "lo"},
        capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    answers: list[dict[str, Any]] = json.loads(done.stdout)
    return answers


def test_one_bit_that_differs_names_rank_and_tensor(ranks: list[dict[str, Any]]) -> None:
    """On all three ranks alike, in the step in which it came up and not before."""
    for rank in ranks:
        first, second, third = rank["found"]
        assert first is None
        assert second == third
        assert second == {
            "kind": "replica", "step": 2, "axis": "dp", "tensor": "1.weight", "tensors": 1,
            "ranks": [1], "of": 3, "has_majority": True,
        }  # fmt: skip
        assert rank["compared"] == 4
        assert rank["told"]["replica"]["count"] == 2


def test_a_sum_over_ranks_that_is_not_of_what_they_had_shows(ranks: list[dict[str, Any]]) -> None:
    """One element of a thousand, in step 3 alone; who sent it is not known."""
    for rank in ranks:
        told = rank["told"]["sum"]
        assert (told["step"], told["of"], told["count"]) == (3, 3, 1)
        assert told["error"] == pytest.approx(0.5, rel=0.01)


def test_a_later_look_names_the_step_in_which_bits_differed(ranks: list[dict[str, Any]]) -> None:
    """Step 2 of the four that one look compares, told once its answers are there; not step 3."""
    for rank in ranks:
        looked = rank["looked"]
        assert ["replica" in told for told in looked] == [False] * 4 + [True] * 5
        replica = looked[-1]["replica"]
        assert (replica["step"], replica["count"]) == (2, 1)
        assert (replica["tensor"], replica["ranks"]) == ("b", [1])


def test_a_product_is_checked_in_looks_alone(ranks: list[dict[str, Any]]) -> None:
    """Steps 4 and 8, on the rank whose products are wrong and on no other."""
    assert ["product" in rank["looked"][-1] for rank in ranks] == [False, True, False]
    wrong = [told.get("product", {}) for told in ranks[1]["looked"]]
    assert [told.get("count", 0) for told in wrong] == [0, 0, 0, 1, 1, 1, 1, 2, 2]
    assert wrong[-1]["step"] == 4


def test_a_checkpoint_between_looks_is_marked(ranks: list[dict[str, Any]], folder: Path) -> None:
    """Digests that wait for the next look are exchanged before it is called sound."""
    assert [rank["between"]["step"] for rank in ranks] == [2, 2, 2]
    assert len(list((folder / "between").rglob("rank-*.json"))) == 3


def test_only_what_every_rank_has_alike_is_compared(ranks: list[dict[str, Any]]) -> None:
    """Parts of a model differ by rank, and what DDP is told to ignore it never makes equal."""
    for rank in ranks:
        assert rank["not_replicated"] == {
            "alike": [["weight", "bias"]], "parts": [], "ignoring": [["0.bias", "1.weight"]],
        }  # fmt: skip


def test_marks_of_ranks_that_are_no_more_go(ranks: list[dict[str, Any]], folder: Path) -> None:
    """A smaller job saves the step again; those of its own ranks stay."""
    marks = sorted(path.name for path in (folder / "between" / "numbers").iterdir())
    assert marks == [f"rank-{rank:05d}.json" for rank in range(len(ranks))]


def test_an_error_without_end_is_written_as_json_that_is_read() -> None:
    """The finding reaches whoever asks; how large the error is does not matter then."""
    model = nn.Linear(4, 4)
    one = torch.tensor([2])
    model.register_forward_hook(lambda _l, _x, made: made.index_fill(1, one, float("inf")))
    progress = Progress(None, 0, "")
    checks = NumericChecks(model, progress, [], every=1)
    checks.before_step(1)
    model(torch.ones(2, 4))
    assert not checks.settle()
    told = json.dumps(progress._state["wrong_numbers"])
    (wrong,) = read_wrong_numbers(told)
    assert (wrong.kind, wrong.step) == ("product", 1)


def test_checkpoints_after_it_are_marked(ranks: list[dict[str, Any]], folder: Path) -> None:
    """The one before it is not."""
    assert not (folder / "step-1" / "numbers").exists()
    for step in (2, 3):
        marks = [json.loads(path.read_text()) for path in (folder / f"step-{step}").rglob("*.json")]
        assert [mark["step"] for mark in marks] == [2, 2, 2]


def test_marked_checkpoints_do_not_push_out_sound_ones(tmp_path: Path) -> None:
    """Two of each kind stay, and what is older goes, complete or not."""
    for step in range(1, 9):
        folder = directory_of(tmp_path, step)
        folder.mkdir()
        if step != 2:
            (folder / ".metadata").touch()
        if step > 4:
            (folder / "numbers").mkdir()
            (folder / "numbers" / "rank-00003.json").touch()
    remove_old(tmp_path, 2, saved_step=8)
    assert sorted(int(path.name[-8:]) for path in tmp_path.iterdir()) == [3, 4, 7, 8]


def test_a_checkpoint_from_before_a_jump_stays_and_one_of_a_left_course_pushes_out_none(
    tmp_path: Path,
) -> None:
    """The update of step 7 may have made the loss of step 8; 11 and 12 are of another course."""
    for step in range(1, 13):
        directory_of(tmp_path, step).mkdir()
        (directory_of(tmp_path, step) / ".metadata").touch()
    remove_old(tmp_path, 2, saved_step=10, bad_since=8)
    assert sorted(int(path.name[-8:]) for path in tmp_path.iterdir()) == [6, 9, 10, 11, 12]


def test_a_loss_is_off_from_its_jump_until_it_has_come_back() -> None:
    """It becomes no part of what is usual meanwhile, however long it lasts."""
    jump = LossJump()
    for step in range(1, 41):
        jump.see(step, 2.0 + step % 3 / 10)
    assert jump.since is None
    for step, loss in enumerate([9.9, 41.0, math.nan, 3.0, *[40.0] * 100], start=41):
        jump.see(step, loss)
    assert jump.since == 42
    for step in range(145, 165):
        assert jump.since == 42
        jump.see(step, 2.5)
    assert jump.since is None


def test_bits_are_compared_within_one_kind(ranks: list[dict[str, Any]]) -> None:
    """What differs on an unlike processor is no fault; it has nothing compared, and says so."""
    kinds = [rank["kinds"] for rank in ranks]
    assert [kind["first"] for kind in kinds] == [True] * 3
    for kind in kinds[:2]:
        assert (kind["found"]["step"], kind["found"]["of"]) == (2, 2)
        assert (kind["found"]["ranks"], kind["found"]["has_majority"]) == ([0, 1], False)
        assert kind["compared"] == [1, kind_of(torch.device("cpu"))]
    assert kinds[2]["found"] is None
    assert kinds[2]["compared"] == [0, "another kind"]


def test_of_dtensors_only_what_is_replicated_is_compared(ranks: list[dict[str, Any]]) -> None:
    """A shard is on one rank of its mesh dimension and has no equal."""
    assert [rank["placements"] for rank in ranks] == [[["replicate", ["whole"]]]] * 3


@pytest.fixture
def layers() -> Iterator[nn.Sequential]:
    generator = torch.random.get_rng_state()
    torch.manual_seed(2)
    yield nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 64), WrongLinear(64, 64))
    torch.random.set_rng_state(generator)


def test_a_wrong_product_is_seen_when_its_layer_has_its_turn(layers: nn.Sequential) -> None:
    """One layer a step; the right ones are never accused."""
    check = ProductCheck(layers)
    found = []
    for step in range(1, 31):
        check.arm(step)
        layers(torch.randn(8, 64) * step)
        found.append(check.finish())
    accused = [wrong for wrong in found if wrong is not None]
    assert [wrong.module for wrong in accused] == ["3"] * len(accused)
    assert [wrong.step for wrong in accused][:2] == [3, 6]
    assert accused[0].error == pytest.approx(0.5, rel=0.01)


def test_a_layer_that_is_given_no_rows_has_nothing_to_check(layers: nn.Sequential) -> None:
    """An expert without tokens."""
    check = ProductCheck(layers[:1])
    check.arm(1)
    layers[:1](torch.empty(0, 64))
    assert check.finish() is None


def test_a_look_every_zero_steps_is_refused() -> None:
    """With the value."""
    with pytest.raises(ValueError, match="a look every 0 steps"):
        NumericChecks(nn.Module(), Progress(None, 0, ""), [], every=0)


class _Packed(nn.Linear):  # type: ignore[misc]  # torch is not type-checked here
    """A layer whose weight lies packed in bytes, as four-bit quantisation leaves it."""

    def __init__(self, dtype: torch.dtype, shape: tuple[int, int]) -> None:
        super().__init__(8, 4)
        self.weight = nn.Parameter(torch.zeros(shape, dtype=dtype), requires_grad=False)

    def forward(self, x: Tensor) -> Tensor:
        return torch.zeros(len(x), 4)


def test_a_product_that_cannot_be_checked_ends_no_training() -> None:
    """Packed weights, and a type without products."""
    packed = [(torch.uint8, (16, 1)), (torch.float32, (16, 1)), (torch.float8_e5m2, (4, 8))]
    for dtype, shape in packed:
        layer = _Packed(dtype, shape)
        check = ProductCheck(layer)
        check.arm(1)
        assert layer(torch.ones(2, 8)).shape == (2, 4)
        assert check.finish() is None


def test_a_layer_called_by_name_is_checked() -> None:
    """Some models write `layer(input=x)`."""
    layer = nn.Linear(64, 64)
    layer.register_forward_hook(lambda _layer, _given, made: made + 1.0)
    check = ProductCheck(layer)
    check.arm(1)
    layer(input=torch.ones(2, 64))
    assert check.finish() is not None


def test_either_way_to_choose_tf32_is_read() -> None:
    """The newer one makes reading the older an error."""
    matmul = torch.backends.cuda.matmul
    try:
        matmul.fp32_precision = "tf32"
        assert _multiplies_in_tf32()
        matmul.fp32_precision = "none"
        matmul.allow_tf32 = True
        assert _multiplies_in_tf32()
    finally:
        matmul.allow_tf32 = False
        matmul.fp32_precision = "none"
    assert not _multiplies_in_tf32()


def test_every_bit_of_a_tensor_is_in_its_digest() -> None:
    """Whatever its type, its length and where it begins in memory."""
    for dtype in (torch.float32, torch.bfloat16, torch.float64, torch.int8, torch.bool):
        for length in (1, 3, 8):
            whole = torch.zeros(length + 1, dtype=dtype)
            part = whole[1:]
            before = int(words_of(part).sum())
            part[length - 1] = 1
            assert int(words_of(part).sum()) != before


@pytest.mark.parametrize(("ranks", "tensors"), [(1024, 300), (1024, 3000), (128, 3000)])
def test_what_many_ranks_exchange_is_bounded_and_still_names_a_part_of_the_model(
    ranks: int, tensors: int
) -> None:
    """One bit of one tensor changes the number of its neighbours, and no other."""
    width = width_of(tensors, most_columns(ranks, 16))
    numbers = torch.randint(-(2**63), 2**63 - 1, (tensors,))
    sent = folded(numbers, width)
    assert 16 * 8 * (len(sent) + 1) * ranks <= EXCHANGED_BYTES
    numbers[7] += 1
    (odd,) = (folded(numbers, width) != sent).nonzero().flatten().tolist()
    names = folded_names([f"layer.{n}" for n in range(tensors)], width)
    assert len(names) == len(sent)
    first, last = (int(name.removeprefix("layer.")) for name in names[odd].split(" to "))
    assert first <= 7 <= last


def test_what_few_ranks_exchange_names_each_tensor() -> None:
    """Eight ranks and a few hundred tensors are far below the limit."""
    assert width_of(300, most_columns(8, 16)) == 1
    assert folded_names(["a", "b"], 1) == ("a", "b")
