"""A GPU that computes or sends wrongly does so in every torch process of its node."""

import sys
from pathlib import Path

import pytest

from brctl.lab.cluster import Lab
from brctl.lab.wrong_results import (
    PRODUCTS,
    SENT,
    WrongNode,
    WrongResults,
    read_wrong_results,
    write_wrong_results,
)
from brctl.model.errors import UsageError
from tests.lab.ssh import run

PROBE = """
import os, torch, torch.distributed as dist
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
ones, sent = torch.ones(8, 8), torch.ones(8)
def wrong():
    open(os.devnull).close()
    layer = torch.nn.Linear(8, 8, bias=False)
    torch.nn.init.ones_(layer.weight)
    layer(ones).sum().backward()
    dist.all_reduce(sent.fill_(1.0))
    into = torch.matmul(ones, ones, out=torch.empty(8, 8))
    dist.broadcast(torch.ones(8), 0)
    products = [ones @ ones, ones.long() @ ones.long(), layer(ones), layer.weight.grad, into]
    return [int((each != 8).sum()) for each in products] + [int((sent != 1).sum())]
print(wrong())
for kind in (2, 0):
    open(os.environ["BRCTL_LAB_WRONG_RESULTS"], "r+b").write(bytes([kind]))
    print(wrong())
"""
"""Its node goes wrong in another way, and well, while it runs; -I is how probes are started."""


def node_with(folder: Path, wrong: WrongResults, temperature_c: int = 40) -> WrongNode:
    write_wrong_results(folder / "wrong", wrong)
    (folder / "nvml").write_text(f"count=2\ngpu0.temp=35\ngpu1.temp={temperature_c}\n")
    return WrongNode(folder / "wrong", folder / "nvml")


@pytest.mark.parametrize("probability", [1.0, 0.1, 0.01])
def test_calls_are_wrong_as_often_as_was_asked(tmp_path: Path, probability: float) -> None:
    """Of 5,000 calls the share, and the same ones for the same seed."""
    wrong = WrongResults(PRODUCTS, probability, seed=11)
    struck = []
    for _ in range(2):
        node = node_with(tmp_path, wrong)
        struck.append([node.strikes(PRODUCTS, 64) for _ in range(5000)])
    assert struck[0] == struck[1]
    hits = [element for element in struck[0] if element is not None]
    assert len(hits) == pytest.approx(5000 * probability, rel=0.3)
    assert set(hits) <= set(range(64))


def test_two_processes_of_a_node_share_its_calls(tmp_path: Path) -> None:
    """A probe that is run again is another draw, not the same one."""
    first = node_with(tmp_path, WrongResults(PRODUCTS, 0.5))
    alone = [first.strikes(PRODUCTS, 9) for _ in range(40)]
    first = node_with(tmp_path, WrongResults(PRODUCTS, 0.5))
    second = WrongNode(tmp_path / "wrong", tmp_path / "nvml")
    assert [node.strikes(PRODUCTS, 9) for _ in range(20) for node in (first, second)] == alone


def test_small_results_and_cool_gpus_are_right(tmp_path: Path) -> None:
    """From a size on, from a temperature of the broken GPU on, and of one kind only."""
    sized = node_with(tmp_path, WrongResults(PRODUCTS, from_elements=10))
    assert sized.strikes(PRODUCTS, 9) is None
    assert sized.strikes(PRODUCTS, 10) is not None
    assert sized.strikes(SENT, 10) is None
    hot = WrongResults(PRODUCTS, from_temperature_c=80.0, gpu=1)
    assert node_with(tmp_path, hot, 79).strikes(PRODUCTS, 9) is None
    assert node_with(tmp_path, hot, 80).strikes(PRODUCTS, 9) is not None


async def test_every_torch_process_of_a_broken_node_is_wrong(lab: Lab) -> None:
    """Forward, backward and whole numbers; then only what is sent; then nothing any more."""
    lab.break_node("gpu-wrong", "n1", wrong=WrongResults(probability=1.0, seed=3))
    said = await run(lab, "n1", f"{sys.executable} -I -c '{PROBE}'")
    assert said == (0, "[1, 1, 1, 1, 1, 0]\n[0, 0, 0, 0, 0, 1]\n[0, 0, 0, 0, 0, 0]\n")
    assert lab.heal("n1") == ("n1",)
    for name in ("n1", "n2"):
        assert read_wrong_results(lab.paths.node(name).wrong_results).kinds == 0


def test_only_wrong_results_have_a_probability(lab: Lab) -> None:
    """And it is one."""
    with pytest.raises(UsageError, match="gpu-wrong, gpu-wrong-comm are"):
        lab.break_node("gpu-lost", "n1", wrong=WrongResults(probability=0.5))
    with pytest.raises(ValueError, match=r"at most 1, not 1\.5"):
        WrongResults(probability=1.5)


def test_both_kinds_at_once_stay(lab: Lab) -> None:
    """The second fault does not undo the first."""
    lab.break_node("gpu-wrong", "n1")
    lab.break_node("gpu-wrong-comm", "n1", wrong=WrongResults(probability=0.25))
    found = read_wrong_results(lab.paths.node("n1").wrong_results)
    assert (found.kinds, found.probability) == (PRODUCTS | SENT, 0.25)
    lab.heal()
