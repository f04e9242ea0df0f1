"""Tensor-core activity on a real Hopper or later: work is told from rest."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.checks.probes import probe_path

pytestmark = pytest.mark.gpu
NAME = "gpu.clocks.tensor_pct"


def activity() -> dict[str, float]:
    """What the probe reads now, by GPU."""
    done = subprocess.run(
        [sys.executable, probe_path("gpu.clocks")],
        input=json.dumps({"tensor_sample_s": 1, "deadline_s": 30}),
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    answer = json.loads(done.stdout)
    found = {r["subject"]: r["value"] for r in answer["measurements"] if r["name"] == NAME}
    if not found:
        assert any(note.startswith(f"not supported: {NAME}") for note in answer["notes"])
        pytest.skip(f"this part has no GPM: {answer['notes']}")
    return found


@contextmanager
def products() -> Iterator[None]:
    """Matrix products on the first GPU for as long as it lasts."""
    import torch

    stop = threading.Event()
    factor = torch.randn(8192, 8192, device="cuda:0", dtype=torch.bfloat16)

    def work() -> None:
        while not stop.is_set():
            for _ in range(20):
                torch.matmul(factor, factor)
            torch.cuda.synchronize()

    worker = threading.Thread(target=work)
    worker.start()
    try:
        yield
    finally:
        stop.set()
        worker.join()


def test_matrix_products_are_seen_and_rest_is_below_a_tenth_of_them() -> None:
    """The rule `tensor-idle` has to tell these two apart."""
    with products():
        at_work = max(activity().values())
    at_rest = min(activity().values())
    assert at_work > 10.0
    assert at_rest < 0.1 * at_work
