"""Playbooks for nodes without a job, on real SSH nodes of the lab, from command line to journal.

The GPUs and their nvidia-smi are the lab's stand-ins, and the burn-in is a short check of the
site's own; SSH, processes and the state files are real.
"""

import json
from collections.abc import Iterator

import pytest

from brctl.cli.main import run
from brctl.engine.runs.read_run import read_run
from brctl.engine.runs.remediate import history
from brctl.lab.cluster import Lab, leftovers, up
from brctl.lab.nvml.state import change_state, read_state
from brctl.lab.spec import Isolation, LabSpec
from brctl.model.runs.playbook import Json
from brctl.playbook.run import Run

pytestmark = [pytest.mark.system, pytest.mark.ssh]
SPIN = """\
apiVersion: brctl.dev/v1
kind: Check
name: site.spin
title: A second of arithmetic
why: A burn-in check of this site that needs neither torch nor minutes.
source: own
level: 1
needs: []
deadline: 120s
profiles: [burnin]
parameters: {}
measurements: {site.spin.right: {unit: flag, what: the sum came out right}}
evidence:
  - {kind: site.spin.right, when: {eq: false}, weight: convicts, fault: silent-corruption,
     say: the sum is wrong, source: own, otherwise: clears}
cross_check: by hand
"""
PROBE = """\
import json, os, sys
right = sum(n * n for n in range(100_000)) == 333328333350000
right = right and not os.path.exists(os.path.expanduser("~/wrong"))
json.dump({"measurements": [{"name": "site.spin.right", "subject": "", "value": right}],
           "notes": []}, sys.stdout)
"""
SPEC = LabSpec(nodes=2, standbys=3, gpus=2, isolation=Isolation.NONE)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        lab = up(SPEC, tmp_path_factory.mktemp("nodes") / "lab")
    record = lab.record
    check = lab.paths.root / "checks" / "site" / "spin"
    check.mkdir(parents=True)
    (check / "check.yaml").write_text(SPIN)
    (check / "probe.py").write_text(PROBE)
    yield lab
    lab.down()
    assert leftovers(record) == ()


@pytest.fixture(autouse=True)
def healed(lab: Lab) -> Iterator[None]:
    yield
    lab.heal()
    (lab.paths.state / "static" / "lab.json").unlink(missing_ok=True)


def run_brctl(lab: Lab, *arguments: str) -> int:
    return run([*arguments, "--config", str(lab.paths.config), "--no-input"])


def brctl(lab: Lab, *arguments: str) -> tuple[int, Run]:
    """The command's exit code, and the newest run."""
    code, newest = run_brctl(lab, *arguments), next(history(lab.paths.state))
    assert isinstance(newest, Run), newest.why
    return code, newest


def out_of(found: Run, step: str, key: str) -> Json:
    return found.record.steps[step].out.get(key)


def test_a_reset_clears_what_a_reset_clears_and_the_node_comes_back(lab: Lab) -> None:
    """A pending row remap is gone, counters for life stay, and a burn-in was passed before."""
    lab.break_node("gpu-ecc", "n3")
    state = lab.paths.node("n3").nvml
    assert "remap.pending=1" in state.read_text()
    code, found = brctl(
        lab, "play", "run", "reset-gpu", "--set", "nodes=n3", "--set", "duration=1s",
        "--set", "level=1", "--confirm", "reset 1",
    )  # fmt: skip
    assert (code, found.state) == (0, "ok")
    after = {key.partition(".")[2]: value for key, value in read_state(state).items()}
    assert "remap.pending" not in after
    assert after["ecc.uncorrected.aggregate"] == "4"
    assert "ecc.uncorrected.volatile" not in after
    assert out_of(found, "burnin", "passed") == ["n3"]
    assert "n3" not in (lab.paths.state / "static" / "lab.json").read_text().partition("reserv")[0]


def test_a_gpu_in_use_is_not_reset_and_a_lost_one_needs_a_reboot(lab: Lab) -> None:
    """Nothing is touched, the node stays out of service, and the sentence says what to do."""
    for node, change, expected in (
        ("n3", {"gpu0.processes": "4711:1000000"}, "processes hold"),
        ("n4", {"gpu0.*": "!15"}, "needs node.reboot"),
    ):
        change_state(lab.paths.node(node).nvml, change)
        before = lab.paths.node(node).nvml.read_text()
        code, found = brctl(
            lab, "play", "run", "reset-gpu", "--set", f"nodes={node}", "--confirm", "reset 1"
        )
        assert code == 8
        assert expected in found.record.failed_error
        assert lab.paths.node(node).nvml.read_text() == before
        assert read_run(found.run_dir).record.failed_step == "reset"
        assert node in json.loads((lab.paths.state / "static" / "lab.json").read_text())["cordons"]


def test_good_nodes_come_back_one_by_one_and_bad_ones_stay_out(lab: Lab) -> None:
    """By default all that brctl cordoned; somebody else's node is not touched."""
    assert brctl(lab, "cordon", "n[3-4]", "-m", "a test")[0] == 0
    wrong = lab.paths.node("n4").home / "wrong"
    wrong.touch()
    table = lab.paths.state / "static" / "lab.json"
    state = json.loads(table.read_text())
    state["cordons"]["n5"] = {**state["cordons"]["n4"], "owner": "dcops"}
    table.write_text(json.dumps(state))
    arguments = [
        "play", "run", "return-to-service", "--set", "level=1", "--set", "duration=1s",
        "--set", "golden=", "--set", "batch=2", "--confirm", "return-to-service",
    ]  # fmt: skip
    _, found = brctl(lab, *arguments)
    wrong.unlink()
    assert {node: node_run.result for node, node_run in found.record.node_runs.items()} == {
        "n3": "ok", "n4": "failed",
    }  # fmt: skip
    assert "the sum is wrong" in found.record.node_runs["n4"].why
    left = json.loads(table.read_text())["cordons"]
    assert {node: row["owner"].partition(":")[0] for node, row in left.items()} == {
        "n4": "brctl", "n5": "dcops",
    }  # fmt: skip


def test_the_pool_is_filled_to_its_size(lab: Lab) -> None:
    """Tested, warmed, added; the second time there is nothing to do."""
    assert run_brctl(lab, "standby", "remove", "n[4-5]") == 0
    arguments = ["play", "run", "standby-refill", "--set", "candidates=n[4-5]", "--set", "size=2"]
    code, found = brctl(lab, *arguments, "--set", "level=1", "--yes")
    assert (code, found.state) == (0, "ok")
    assert len(list(out_of(found, "add", "added") or [])) == 1  # type: ignore[arg-type]  # a list
    pool = json.loads((lab.paths.state / "static" / "lab.standbys.json").read_text())
    assert [row["node"] for row in pool["known"] if row["warmed_at"]] == pool["added"]
