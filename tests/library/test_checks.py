"""Every mistake in a check.yaml is one error with file, line and the nearest known word."""

from pathlib import Path

import pytest

from brctl.evidence.peers import EQUAL, NUMERIC
from brctl.library.checks import load_check, load_checks
from brctl.library.parameters import fill_parameters
from brctl.library.shipped import shipped_dir
from brctl.model.errors import ConfigError
from brctl.model.inventory import Node
from brctl.model.jobs.job import example_job

GOOD = """\
apiVersion: brctl.dev/v1
kind: Check
name: gpu.fan
title: Fans
why: Hot GPUs slow down.
source: own
level: 1
needs: [nvml]
deadline: 5s
parameters:
  expected_gpus: {from: node.gpus, default: 8}
  limit: 3
measurements:
  gpu.fan.speed_pct: {unit: percent, what: speed}
  gpu.fan.target_pct: {unit: percent, what: wanted speed}
evidence:
  - kind: gpu.fan.speed_pct
    when: {lt: {measurement: gpu.fan.target_pct}}
    weight: hints
    fault: thermal-power
    say: "{subject} runs at {value}, wanted {operand}"
    source: own
    otherwise: clears
cross_check: nvidia-smi -q
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "checks/gpu/fan"
    place.mkdir(parents=True)
    (place / "probe.py").write_text('"""RUNS ON THE NODE."""\n')
    (place / "check.yaml").write_text(GOOD)
    return place


def refusal(folder: Path, old: str, new: str) -> str:
    assert old in GOOD
    (folder / "check.yaml").write_text(GOOD.replace(old, new, 1))
    with pytest.raises(ConfigError) as caught:
        load_check(folder / "check.yaml")
    return str(caught.value).removeprefix(str(folder) + "/")


def test_a_good_check_is_read_as_written(folder: Path) -> None:
    """Every key of the file arrives in the model."""
    check = load_check(folder / "check.yaml")
    assert check.name == "gpu.fan"
    assert check.deadline_s == 5
    assert check.parameters == {"expected_gpus": 8, "limit": 3}
    assert check.parameter_sources == {"expected_gpus": "node.gpus"}
    assert check.rules[0].operand == {"measurement": "gpu.fan.target_pct"}


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("level: 1", "levle: 1", "check.yaml:7: unknown key 'levle'; did you mean 'level'?"),
        ("level: 1", "level: 9", "check.yaml:7: 'level' must be 1, 2, 3 or 4, not 9"),
        ("level: 1", "level: high", "check.yaml:7: 'level' must be a whole number, not text"),
        ("name: gpu.fan", "name: gpu.fans", "check.yaml:3: name must be 'gpu.fan'"),
        ("[nvml]", "[nvm]", "check.yaml:8: 'needs': unknown 'nvm'; did you mean 'nvml'?"),
        ("from: node.gpus", "from: node.gpu", "did you mean 'node.gpus'?"),
        ("from: node.gpus", "from: os.environ", "check.yaml:11: 'from': unknown 'os.environ'"),
        ("lt: {meas", "less: {meas", "check.yaml:18: unknown operator 'less'"),
        ("measurement: gpu.fan.target_pct", "measurement: gpu.fan.goal", "check.yaml:18:"),
        ("{lt: {measurement: gpu.fan.target_pct}}", "{lt: fast}", "'lt' needs a number"),
        ("{lt: {measurement: gpu.fan.target_pct}}", "{in: 3}", "'in' needs a list"),
        ("{lt: {measurement: gpu.fan.target_pct}}", "{gt: 1, lt: 3}", "exactly one operator"),
        ("weight: hints", "weight: blames", "check.yaml:19: 'weight': unknown 'blames'"),
        ("fault: thermal-power", "fault: thermal", "did you mean 'thermal-power'?"),
        ("    fault: thermal-power\n", "", "a rule that hints needs the key 'fault'"),
        ("{value}", "{value.__class__}", "check.yaml:21: 'say': {value.__class__} is not"),
        ("{value}", "{value", "is not a placeholder"),
        ("otherwise: clears", "otherwise: convicts", "'otherwise' can only be 'clears'"),
        ("why: Hot GPUs slow down.\n", "", "needs the key 'why'"),
        ("source: own\nlevel", "source: ''\nlevel", "check.yaml:6: 'source' must not be empty"),
        ("deadline: 5s", "deadline: 5", "'deadline' must be text"),
        ("deadline: 5s", "deadline: soon", "check.yaml:9: 'deadline': 'soon': not a duration"),
        ("title: Fans", "title: !!python/name:os.system x", "check.yaml:4: tag"),
        ("title: Fans", "title: Fans\ntitle: Fans", "check.yaml:5: duplicate key 'title'"),
        ("unit: percent,", "unit: percent, reader: eval,", "'reader': unknown 'eval'"),
    ],
)  # fmt: skip
def test_a_mistake_names_line_and_word(folder: Path, old: str, new: str, expected: str) -> None:
    """The error leads to the place and proposes what was meant."""
    assert expected in refusal(folder, old, new)


def test_a_probe_that_is_no_python_is_refused_at_load(folder: Path) -> None:
    """It never travels to a node."""
    (folder / "probe.py").write_text("def measure(:\n")
    with pytest.raises(ConfigError, match=r"probe\.py:1: not Python"):
        load_check(folder / "check.yaml")


def test_a_check_without_probe_is_refused(folder: Path) -> None:
    """Both files make a check."""
    (folder / "probe.py").unlink()
    with pytest.raises(ConfigError, match=r"probe\.py: cannot be read"):
        load_check(folder / "check.yaml")


def test_a_later_folder_replaces_a_check(folder: Path, tmp_path: Path) -> None:
    """A site's own check of the same name wins over the shipped one."""
    site = tmp_path / "site/gpu/fan"
    site.mkdir(parents=True)
    (site / "probe.py").write_text("")
    (site / "check.yaml").write_text(GOOD.replace("title: Fans", "title: Our fans"))
    found = load_checks([folder.parent.parent, tmp_path / "site"])
    assert [check.title for check in found.values()] == ["Our fans"]


def test_parameters_come_from_node_and_job(folder: Path) -> None:
    """What the inventory knows wins over the default; what it does not know leaves it."""
    check = load_check(folder / "check.yaml")
    known = fill_parameters(check, Node("n1", "n1", gpus=4), None)
    unknown = fill_parameters(check, Node("n1", "n1"), None)
    assert known == {"expected_gpus": 4, "limit": 3, "deadline_s": 5.0}
    assert unknown["expected_gpus"] == 8


def test_job_parameters_name_the_ranks_of_the_node() -> None:
    """job.ranks asks for the ranks this node carries, and only those."""
    check = load_checks([shipped_dir("checks")])["job.ranks"]
    filled = fill_parameters(check, Node("n3", "n3"), example_job())
    assert filled["ranks"] == [2]
    assert "ranks" not in fill_parameters(check, Node("n3", "n3"), None)


def test_every_shipped_check_is_complete() -> None:
    """Source, reason and a hand-run cross-check stand in every check."""
    checks = load_checks([shipped_dir("checks")])
    by_peers = {rule.kind for rule in NUMERIC} | set(EQUAL)
    for check in checks.values():
        assert len(check.why) > 40, check.name
        assert check.source, check.name
        assert check.cross_check, check.name
        assert check.profiles, check.name
        judged = {rule.kind for rule in check.rules} | by_peers & set(check.measurements)
        assert judged or any(m.reader for m in check.measurements.values()), check.name
