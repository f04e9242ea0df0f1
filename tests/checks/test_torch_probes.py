"""Burn-in arithmetic on the CPU: exact results, and one flipped low bit is found and placed."""

import json
import subprocess
import sys
from types import ModuleType

import pytest

from tests.checks.probes import Read, load_probe, probe_path, read

pytest.importorskip("torch")

import torch

pytestmark = pytest.mark.torch

SMALL = {"device": "cpu", "size": 256, "seconds": 0.0, "compare_every": 1}


def burn(module: ModuleType, flip: object, **parameters: object) -> Read:
    readings = module.Readings()
    device = torch.device("cpu")
    module.burn(torch, "cpu:0", device, {**SMALL, **parameters}, readings, flip)
    values = {(row["name"], row["subject"]): row["value"] for row in readings.rows}
    return Read(0, values, tuple(readings.notes))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_healthy_device_is_exact(dtype: str) -> None:
    """Products of whole numbers come out bit for bit as float64 says, in either dtype."""
    found = read("gpu.gemm", {**SMALL, "dtype": dtype})
    assert found.status == 0
    assert found.values["gpu.gemm.wrong_elements", "cpu:0"] == 0
    assert float(found.values["gpu.gemm.tflop_per_s", "cpu:0"]) > 0


def test_the_digest_is_the_same_on_any_number_of_threads() -> None:
    """The order of sums does not matter, so one digest serves a whole fleet."""
    threads = torch.get_num_threads()
    digests = set()
    for count in (1, 2):
        torch.set_num_threads(count)
        found = read("gpu.gemm", {**SMALL, "dtype": "float32"})
        digests.add(found.values["gpu.gemm.digest", "cpu:0"])
    torch.set_num_threads(threads)
    assert len(digests) == 1


def test_one_flipped_low_bit_is_found_and_placed() -> None:
    """The lowest bit of one element of one result is enough."""

    def flip(out: torch.Tensor, rounds: int) -> None:
        if rounds == 1:
            out.view(torch.int32)[17, 40] ^= 1

    found = burn(load_probe("gpu.gemm"), flip, dtype="float32")
    assert found.values["gpu.gemm.wrong_elements", "cpu:0"] == 1
    assert found.values["gpu.gemm.first_wrong_element", "cpu:0"] == "17,40"


def test_all_reduce_inside_the_node_is_exact() -> None:
    """Two gloo processes sum whole numbers without a wrong bit, and leave nothing behind."""
    wanted = {"backend": "gloo", "elements": 65536, "rounds": 2, "deadline_s": 60}
    done = subprocess.run(
        [sys.executable, probe_path("fabric.allreduce")],
        input=json.dumps(wanted), capture_output=True, text=True, timeout=90, check=True,
    )  # fmt: skip
    answer = json.loads(done.stdout)
    values = {row["name"]: row["value"] for row in answer["measurements"]}
    assert answer["notes"] == []
    assert values["fabric.allreduce.wrong_elements"] == 0
    assert values["fabric.allreduce.members"] == 2
    assert values["fabric.allreduce.bus_gb_per_s"] > 0


def test_a_node_without_gpus_is_told_from_one_that_lost_them() -> None:
    """Without CUDA the answer depends on what the inventory expects."""
    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    assert read("gpu.gemm", {"expected_gpus": 0}).status == 0
    assert read("gpu.gemm", {"expected_gpus": 8}).notes == ("torch sees no CUDA device",)
