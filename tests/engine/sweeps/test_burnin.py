"""A burn-in loads idle nodes, takes the sick out, refuses busy ones, and can be followed."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from brctl.engine.controller.wiring import Controller, open_controller
from brctl.engine.sweeps import burnin_store
from brctl.engine.sweeps.burnin import BurninPlan, burn_in, choose, history_of
from brctl.library.checks import load_checks
from brctl.library.config import load_settings
from brctl.library.shipped import shipped_dir
from brctl.model.errors import GuardError, UsageError
from brctl.model.sweeps.burnin import Burnin, BurninState
from brctl.view.fleet.burnin import burnin_page, results_page

pytestmark = pytest.mark.torch

CONFIG = """\
apiVersion: brctl.dev/v1
kind: Config
context: here
contexts:
  here:
    inventory: [{file: inventory.yaml}]
    jobs: [job.yaml]
    scheduler: static
ssh: {transport: local}
state_dir: state
"""
INVENTORY = """\
apiVersion: brctl.dev/v1
kind: Inventory
nodes:
  n1: &node
    address: 127.0.0.1
    gpus: 0
    python: PYTHON
    torch_python: PYTHON
    labels: {torch_device: cpu, kernel_log: FOLDER/kmsg}
  n2: *node
"""
JOB = """\
apiVersion: brctl.dev/v1
kind: Job
name: llm
nodes: n2
ranks_per_node: 1
launch: [python, train.py]
parallel: {dp: 1}
checkpoint: {directory: FOLDER/ckpt}
logs: FOLDER/log
progress: FOLDER/progress
"""
GEMM = """\
apiVersion: brctl.dev/v1
kind: Check
name: gpu.gemm
title: Products
why: A stand-in for the long burn-in with the same probe contract.
source: own
level: 2
needs: []
deadline: 30s
profiles: [burnin]
parameters: {seconds: 1}
measurements:
  gpu.gemm.wrong_elements: {unit: count, what: wrong elements}
  gpu.gemm.bf16_tflop_per_s: {unit: TFLOP/s, what: rate}
evidence:
  - kind: gpu.gemm.wrong_elements
    when: {gt: 0}
    weight: convicts
    fault: silent-corruption
    say: "{value} wrong"
    source: own
    otherwise: clears
cross_check: none
"""
PROBE = """\
import json, os
rows = [["gpu.gemm.wrong_elements", WRONG], ["gpu.gemm.bf16_tflop_per_s", 1.5]]
rows = [{"name": n, "subject": "cpu:0", "value": v} for n, v in rows]
print(json.dumps({"measurements": rows, "notes": []}))
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A context of this machine alone, whose own gpu.gemm replaces the shipped one."""
    check = tmp_path / "checks/gpu/gemm"
    check.mkdir(parents=True)
    (tmp_path / "kmsg").write_text("")
    for name, text in (
        ("config.yaml", CONFIG), ("inventory.yaml", INVENTORY), ("job.yaml", JOB),
        ("checks/gpu/gemm/check.yaml", GEMM), ("checks/gpu/gemm/probe.py", PROBE),
    ):  # fmt: skip
        text = text.replace("FOLDER", str(tmp_path)).replace("PYTHON", sys.executable)
        (tmp_path / name).write_text(text.replace("WRONG", "0"))
    return tmp_path


def plan(*nodes: str, beside_job: bool = False) -> BurninPlan:
    return BurninPlan(nodes or ("n1",), 2, 0.0, ("xid", "ecc"), beside_job)


async def burn(site: Path, wanted: BurninPlan) -> tuple[Burnin, Controller]:
    async with open_controller(load_settings(config=site / "config.yaml")) as controller:
        only = {name: controller.checks[name] for name in ("gpu.xid", "gpu.gemm")}
        controller.__dict__["checks"] = only
        return await burn_in(controller, wanted), controller


async def test_a_good_node_passes_and_is_rated(site: Path) -> None:
    """One round at least is run, and the rate it reached is kept."""
    burnin, _ = await burn(site, plan())
    assert burnin.state is BurninState.PASSED
    assert [r.value for r in burnin.nodes[0].ratings] == [1.5]
    assert burnin.nodes[0].rounds == 1


async def test_wrong_results_fail_the_node(site: Path) -> None:
    """Silent corruption ends a node's burn-in whatever --stop-on says."""
    (site / "checks/gpu/gemm/probe.py").write_text(PROBE.replace("WRONG", "3"))
    burnin, _ = await burn(site, plan())
    assert burnin.state is BurninState.FAILED
    assert burnin.nodes[0].reason == "3 wrong"
    page = burnin_page(burnin, "here")
    assert (int(page.exit_code), page.names) == (2, ("n1",))


async def test_a_new_xid_fails_the_node_and_an_old_one_does_not(site: Path) -> None:
    """What the log held before the load is no result of it."""
    line = "NVRM: Xid (PCI:0000:4b:00): 79, GPU has fallen off the bus.\n"
    (site / "kmsg").write_text(line)
    assert (await burn(site, plan()))[0].state is BurninState.PASSED
    log = site / "kmsg"
    (site / "checks/gpu/gemm/probe.py").write_text(
        f"open({str(log)!r}, 'a').write({line.replace('79', '48')!r})\n"
        + PROBE.replace("WRONG", "0")
    )
    burnin, _ = await burn(site, plan())
    assert burnin.state is BurninState.FAILED
    assert burnin.nodes[0].evidence[0].kind == "gpu.xid.48"


async def test_a_node_that_measures_nothing_did_not_pass(site: Path) -> None:
    """A probe that cannot load the hardware leaves the node unfinished, never passed."""
    (site / "checks/gpu/gemm/probe.py").write_text("raise SystemExit(3)\n")
    burnin, _ = await burn(site, plan())
    assert burnin.state is BurninState.UNFINISHED
    assert int(burnin_page(burnin, "here").exit_code) == 3


async def test_a_node_with_ranks_is_refused(site: Path) -> None:
    """Nothing is loaded beside a job unless somebody says so."""
    with pytest.raises(GuardError, match="n2 carries ranks of llm"):
        await burn(site, plan("n1", "n2"))
    burnin, _ = await burn(site, plan("n2", beside_job=True))
    assert burnin.state is BurninState.PASSED


async def test_another_terminal_can_follow_and_stop(site: Path) -> None:
    """State is on disk after every round; a stop mark ends it before the next."""
    burnin, controller = await burn(site, plan())
    state = controller.state_dir
    assert burnin_store.find(state, None) == burnin
    assert [b.id for b, _ in history_of(burnin_store.load_all(state), "n1")] == [burnin.id]
    assert "bf16_tflop_per_s" in results_page("n1", history_of([burnin], "n1")).text
    burnin_store.ask_to_stop(state, burnin)
    assert burnin_store.is_asked_to_stop(state, burnin.id)
    with pytest.raises(UsageError, match="no burn-in B-none"):
        burnin_store.find(state, "B-none")


def test_a_level_chooses_its_heavy_checks_and_the_watching_ones() -> None:
    """Level 2 leaves the memory test out; the hardware is watched at every level."""
    shipped = load_checks([shipped_dir("checks")])
    assert "gpu.hbm" not in choose(shipped, 2)
    assert {"gpu.hbm", "gpu.gemm", "gpu.xid", "gpu.ecc"} <= set(choose(shipped, 3))


COUNTING = """\
import json, sys
least = json.load(sys.stdin)["least"]
rows = [["gpu.gemm.wrong_elements", 0], ["gpu.gemm.compared_results", least]]
rows = [{"name": n, "subject": "cpu:0", "value": v} for n, v in rows]
print(json.dumps({"measurements": rows, "notes": []}))
"""


async def test_one_computation_is_repeated_as_often_as_planned(site: Path) -> None:
    """In rounds, the last no longer than what is left; then it ends before its time."""
    check = site / "checks/gpu/gemm"
    text = GEMM.replace("seconds: 1", "seconds: 1, least: 1").replace(
        "evidence:", "  gpu.gemm.compared_results: {unit: count, what: compared}\nevidence:"
    )
    (check / "check.yaml").write_text(text)
    (check / "probe.py").write_text(COUNTING)
    wanted = replace(plan(), duration_s=3600.0, only="gpu.gemm", repetitions=70)
    burnin, _ = await burn(site, wanted)
    assert burnin.state is BurninState.PASSED
    assert (burnin.nodes[0].rounds, burnin.nodes[0].repetitions) == (2, 70)
