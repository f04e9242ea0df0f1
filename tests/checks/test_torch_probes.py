"""Burn-in arithmetic on the CPU: exact results, and one flipped low bit is found and placed."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping

import pytest

from tests.checks.probes import Read, Value, load_probe, probe_path, read

pytest.importorskip("torch")

import torch

from tests.timeouts import TIMEOUT_S

pytestmark = pytest.mark.torch

SMALL = {"device": "cpu", "size": 512, "depth": 512, "seconds": 0.0, "batch": 2}
CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def _torch_as_it_was() -> Iterator[None]:
    """Probes own their process and set it up; here they share one with other tests."""
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(False)


def burn(name: str, flip: object = None, **parameters: object) -> Read:
    module = load_probe(name)
    readings = module.Readings()
    extra = () if flip is None else (flip,)
    module.burn(torch, readings, {**SMALL, **parameters}, "cpu:0", CPU, *extra)
    values = {(row["name"], "cpu:0"): row["value"] for row in readings.rows}
    return Read(0, values, ())


def value(found: Read, name: str) -> Value:
    return found.values[name, "cpu:0"]


@pytest.mark.parametrize("dtype", ["fp32", "bf16", "fp64", "int8"])
def test_a_healthy_device_is_exact(dtype: str) -> None:
    """Products of whole numbers come out bit for bit as float64 says, in any data type."""
    found = burn("gpu.gemm", dtypes=[dtype])
    assert value(found, "gpu.gemm.wrong_elements") == 0
    assert value(found, "gpu.gemm.compared_results") == 2
    assert ("gpu.gemm.first_wrong", "cpu:0") not in found.values


def test_the_digest_is_the_same_on_any_number_of_threads() -> None:
    """The order of sums does not matter, so one digest serves a whole fleet."""
    digests = set()
    for count in (1, 2):
        torch.set_num_threads(count)
        digests.add(value(burn("gpu.gemm", dtypes=["fp32"]), "gpu.gemm.fp32_digest"))
    assert len(digests) == 1


@pytest.mark.parametrize(("dtype", "kind"), [("fp32", torch.int32), ("bf16", torch.int16)])
def test_one_flipped_low_bit_in_one_result_is_found_and_placed(
    dtype: str, kind: torch.dtype
) -> None:
    """The lowest bit of one element of one result is enough, although the next result is right."""

    def flip(out: torch.Tensor, rounds: int) -> None:
        if rounds == 1:
            out.view(kind)[300, 40] ^= 1

    found = burn("gpu.gemm", flip, dtypes=[dtype])
    assert value(found, "gpu.gemm.wrong_elements") == 1
    assert value(found, "gpu.gemm.first_wrong") == (
        f"{dtype}, by result 2: element 300,40 of tile 1,0"
    )


def test_what_was_found_before_the_deadline_is_told() -> None:
    """On a busy machine it ends a burn-in of many results, and the wrong one may be behind it."""
    module = load_probe("gpu.gemm")

    def flip(out: torch.Tensor, rounds: int) -> None:
        if rounds == 2:
            out.view(torch.int32)[3, 5] ^= 1
        if rounds == 5:
            raise module.OutOfTime

    readings = module.Readings()
    parameters = {**SMALL, "dtypes": ["fp32"], "least": 64}
    with pytest.raises(module.OutOfTime):
        module.burn(torch, readings, parameters, "cpu:0", CPU, flip)
    assert {row["name"]: row["value"] for row in readings.rows} == {
        "gpu.gemm.wrong_elements": 1,
        "gpu.gemm.compared_results": 4,
        "gpu.gemm.first_wrong": "fp32, by result 2: element 3,5 of tile 0,0",
    }


def test_a_product_of_random_numbers_must_repeat_itself() -> None:
    """A flip in a later run of the same product is an element that did not repeat."""

    def flip(out: torch.Tensor, rounds: int) -> None:
        if rounds == 2:
            out.view(torch.int32)[7, 7] ^= 1

    name = "gpu.gemm.fp32_unrepeatable_elements"
    assert value(burn("gpu.gemm", dtypes=["fp32"]), name) == 0
    assert value(burn("gpu.gemm", flip, dtypes=["fp32"]), name) == 1


def test_a_column_checksum_places_a_flipped_low_bit() -> None:
    """Sums of whole numbers are exact, so the checksum of a column is off by exactly the flip."""
    module = load_probe("gpu.gemm")
    a, b, _ = module.operands(torch, SMALL, torch.float32, CPU)
    checksum = a.double().sum(0) @ b.double()
    out = a @ b
    assert module.wrong_columns(torch, out, checksum) == []
    out.view(torch.int32)[17, 41] ^= 1
    assert module.wrong_columns(torch, out, checksum) == [41]


def test_memory_that_drops_a_bit_is_found_and_placed() -> None:
    """A stuck bit in one word of the tested memory shows in a pattern and is placed."""
    module = load_probe("gpu.hbm")
    errors = module.Errors(torch, CPU)
    cells = torch.full((1024,), 0x55555555, dtype=torch.int32)
    cells[77] ^= 4
    errors.compare(cells, 0x55555555, 3)
    assert int(errors.count) == 1
    assert (
        errors.place("read", [], 4096) == "read: byte 12596 of the tested memory reads 0x55555551"
    )


def test_good_memory_passes_every_step() -> None:
    """Patterns, march and addresses over good memory find nothing."""
    found = burn("gpu.hbm", cpu_bytes=4 << 20, block_bytes=1 << 20)
    assert value(found, "gpu.hbm.wrong_words") == 0
    assert value(found, "gpu.hbm.tested_pct") == 25.0


def test_copies_arrive_unchanged() -> None:
    """What went out and came back is equal."""
    assert value(burn("gpu.copy", bytes=1 << 20, rounds=1), "gpu.copy.wrong_words") == 0


class Sensed:
    """What torch.cuda would read of one GPU, look after look; milliwatts, as torch says them."""

    def __init__(self, *observations: tuple[int, int, int]) -> None:
        self.looks = list(observations)

    def temperature(self, device: object) -> int:
        if not self.looks:
            raise ModuleNotFoundError("no module pynvml")
        return self.looks[0][0]

    def power_draw(self, device: object) -> int:
        return self.looks[0][1]

    def clock_rate(self, device: object) -> int:
        return self.looks.pop(0)[2]


class Gpu:
    type = "cuda"


def test_the_worst_of_the_sensors_during_the_load_is_told() -> None:
    """The hottest, the most power and the slowest clock; a failing look ends the looking."""
    module = load_probe("gpu.load")
    sensors = module.Sensors(Sensed((61, 690_000, 1980), (83, 655_000, 1410)))
    for _ in range(4):
        sensors.sample(0, Gpu())
    readings = module.Readings()
    sensors.tell(readings, ["gpu:GPU-0"])
    found = {row["name"].rpartition(".")[2]: row["value"] for row in readings.rows}
    assert found == {"hottest_c": 83, "most_w": 690.0, "slowest_mhz": 1410}
    assert readings.notes == [
        "not supported: sensors during the load, ModuleNotFoundError: no module pynvml"
    ]


def test_ramps_of_load_are_compared_with_each_other() -> None:
    """A GPU that is a quarter slower in the last ramp than in the first droops by 25 percent."""
    module = load_probe("gpu.load")
    readings = module.Readings()
    module.tell_rates(readings, "gpu:GPU-0", 400.0, 300.0, 1000)
    found = {row["name"].rpartition(".")[2]: row["value"] for row in readings.rows}
    assert found == pytest.approx(
        {"first_tflop_per_s": 0.8, "last_tflop_per_s": 0.6, "droop_pct": 25.0}
    )


def test_a_cpu_is_loaded_but_its_droop_is_not_judged() -> None:
    """Other work on the machine slows a CPU as heat would: no reading, and the reason is said."""
    found = read("gpu.load", {"device": "cpu", "seconds": 0.2, "ramps": 2, "size": 128})
    assert float(value(found, "gpu.load.first_tflop_per_s")) > 0
    assert ("gpu.load.droop_pct", "cpu:0") not in found.values
    assert any("gpu.load.droop_pct" in note for note in found.notes)


def test_a_training_step_gives_the_same_bits_every_time() -> None:
    """Two runs of the fixed model, dense and mixed, have one digest each."""
    found = burn("numerics.minigpt")
    assert value(found, "numerics.minigpt.dense_repeats") is True
    assert value(found, "numerics.minigpt.moe_repeats") is True
    again = burn("numerics.minigpt")
    assert value(again, "numerics.minigpt.moe_digest") == value(
        found, "numerics.minigpt.moe_digest"
    )


def test_the_usual_digest_speaks_for_a_device_that_errs_now_and_then() -> None:
    """Of many runs the odd one shows that they differ, and is no yardstick for the fleet."""
    usual: Callable[[Mapping[str, int]], str] = load_probe("numerics.minigpt").usual
    assert usual({"bent": 1, "right": 3}) == "right"
    assert usual({"b": 2, "a": 2}) == usual({"a": 2, "b": 2}) == "a"


def test_as_many_products_are_compared_as_were_asked_for() -> None:
    """A number of repetitions is kept to however fast the device is."""
    found = burn("gpu.gemm", dtypes=["fp32"], least=5)
    assert float(value(found, "gpu.gemm.compared_results")) >= 5


def test_one_low_bit_inside_a_training_step_changes_its_digest() -> None:
    """A flip in one of sixty thousand logits is seen in outputs or gradients."""
    module = load_probe("numerics.minigpt")

    def flip(logits: torch.Tensor) -> None:
        logits.data.view(torch.int32)[1, 2, 3] ^= 1

    clean = module.digest(torch, module.step(torch, CPU, torch.float32, 1))
    assert module.digest(torch, module.step(torch, CPU, torch.float32, 1, flip)) != clean


@pytest.mark.parametrize("name", ["fabric.allreduce", "fabric.alltoall"])
def test_a_collective_inside_the_node_is_exact(name: str) -> None:
    """Two gloo processes move whole numbers without a wrong bit, and leave nothing behind."""
    wanted = {"backend": "gloo", "elements": 65536, "rounds": 2, "deadline_s": 60}
    done = subprocess.run(
        [sys.executable, probe_path(name)],
        input=json.dumps(wanted), capture_output=True, text=True, timeout=TIMEOUT_S, check=True,
    )  # fmt: skip
    answer = json.loads(done.stdout)
    values = {row["name"]: row["value"] for row in answer["measurements"]}
    assert answer["notes"] == []
    assert values[f"{name}.wrong_elements"] == 0
    assert values[f"{name}.members"] == 2
    assert values[f"{name}.bus_gb_per_s"] > 0


def test_a_node_without_gpus_is_told_from_one_that_lost_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without CUDA the answer depends on what the inventory expects."""
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    assert read("gpu.gemm", {"expected_gpus": 0}).status == 0
    lost = read("gpu.gemm", {"expected_gpus": 8})
    assert (lost.status, lost.notes) == (1, ("torch sees no CUDA device",))
