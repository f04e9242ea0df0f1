"""Burn-in on a real GPU: exact, fast, and able to find a flip in device memory."""

import subprocess
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

import pytest

from tests.checks.probes import load_probe

if TYPE_CHECKING:
    import torch

pytestmark = [pytest.mark.gpu, pytest.mark.torch]
TYPES = ("bf16", "fp16", "fp32", "tf32", "fp64", "int8", "fp8")


def burn(name: str, device: str, flip: object = None, **parameters: object) -> Mapping[str, object]:
    import torch

    module = load_probe(name)
    readings = module.Readings()
    wanted = {"size": 512, "depth": 4096, "seconds": 0.0, "batch": 2, **parameters}
    extra = () if flip is None else (flip,)
    module.burn(torch, readings, wanted, "x", torch.device(device), *extra)
    if any(note.startswith("not supported") for note in readings.notes):
        pytest.skip("; ".join(readings.notes))
    return {row["name"]: row["value"] for row in readings.rows}


@pytest.mark.parametrize("dtype", TYPES)
def test_the_gpu_computes_what_the_golden_tile_says(dtype: str) -> None:
    """Every data type the part has is exact on whole numbers."""
    assert burn("gpu.gemm", "cuda:0", dtypes=[dtype])["gpu.gemm.wrong_elements"] == 0


@pytest.mark.parametrize("dtype", ["bf16", "fp32", "fp64", "int8"])
def test_cpu_and_gpu_have_one_digest(dtype: str) -> None:
    """The golden digest is the same on CPU and CUDA."""
    key = f"gpu.gemm.{dtype}_digest"
    gpu, cpu = (burn("gpu.gemm", d, dtypes=[dtype])[key] for d in ("cuda:0", "cpu"))
    assert gpu == cpu


def test_a_flip_in_device_memory_is_found() -> None:
    """One low bit of one result in the GPU's memory is found and placed."""
    import torch

    def flip(out: "torch.Tensor", rounds: int) -> None:
        if rounds == 1:
            out.view(torch.int16)[300, 40] ^= 1

    found = burn("gpu.gemm", "cuda:0", flip, dtypes=["bf16"])
    assert found["gpu.gemm.wrong_elements"] == 1
    assert "element 300,40 of tile 1,0" in str(found["gpu.gemm.first_wrong"])


def test_memory_is_covered_and_good() -> None:
    """At least 95 % of the free memory is tested."""
    found = burn("gpu.hbm", "cuda:0")
    assert float(str(found["gpu.hbm.tested_pct"])) >= 95.0
    assert found["gpu.hbm.wrong_words"] == 0


def test_a_training_step_is_stable_over_processes() -> None:
    """The digest of the fixed model is the same in this process and in another one."""
    here = burn("numerics.minigpt", "cuda:0")
    code = (
        "import json\n"
        "from tests.gpu.test_burnin import burn\n"
        "print(json.dumps(burn('numerics.minigpt', 'cuda:0')))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=True
    )
    for name in ("dense", "moe"):
        assert here[f"numerics.minigpt.{name}_repeats"] is True
        assert str(here[f"numerics.minigpt.{name}_digest"]) in done.stdout


def test_burn_in_is_nearly_as_fast_as_a_bare_loop() -> None:
    """Checking every result costs at most three percent."""
    from tests.bench.burnin import compare

    assert compare("bf16", {"device": "cuda", "size": 4096, "depth": 65536}, 2.0, 5) >= 0.97
