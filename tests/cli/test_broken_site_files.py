"""One mistake in what a site wrote itself stops nobody who takes a node out of service."""

from pathlib import Path

import pytest

from brctl.cli.main import run
from brctl.engine.job.conclude import conclude
from brctl.library.checks import site_checks, usable_checks
from brctl.model.fault import FaultClass
from brctl.model.inventory import Inventory
from brctl.view.verdict import summary_lines
from tests.fakes.nodes import NOW, clear, sweep_of
from tests.fakes.site_files import local_config, write_site

INVENTORY = """\
apiVersion: brctl.dev/v1
kind: Inventory
nodes: {n1: {address: 127.0.0.1}, n2: {address: 127.0.0.1}}
"""
BROKEN = {
    "checks/gpu/mine/check.yaml": "apiVersion: [",
    "rules.d/ours.yaml": "rules: [{pattern: '('}]",
    "playbooks/evict.yaml": "kind: Nonsense",
}


@pytest.fixture(params=[(name,) for name in BROKEN] + [tuple(BROKEN)], ids=lambda p: p[-1])
def config(tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """A site with one broken file, and one with all of them."""
    for name in request.param:
        path = tmp_path / name
        path.parent.mkdir(parents=True)
        path.write_text(BROKEN[name])
    return str(write_site(tmp_path, local_config(), INVENTORY))


def test_a_node_is_cordoned_and_given_back_beside_broken_files(
    config: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """At three in the morning a typing error in a check is somebody else's trouble."""
    assert run(["cordon", "n1", "-m", "fan", "--config", config, "--no-input"]) == 0
    assert run(["ls", "--cordoned", "-o", "name", "--config", config]) == 0
    assert capsys.readouterr().out.endswith("n1\n")
    assert run(["uncordon", "n1", "--config", config, "--no-input"]) == 0


def test_a_broken_check_leaves_only_itself_out_and_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Where it stood for a shipped one, neither is used: the limits are not the site's."""
    shipped = site_checks()
    for name in ("mine", "ecc"):
        path = tmp_path / "checks" / "gpu" / name / "check.yaml"
        path.parent.mkdir(parents=True)
        path.write_text("apiVersion: [")
    found = site_checks((tmp_path,))
    assert set(shipped) - set(found) == {"gpu.ecc"}
    assert set(found) <= set(shipped)
    said = [record.message.split(":")[0] for record in caplog.records]
    assert said == ["check gpu.ecc left out", "check gpu.mine left out"]


def test_a_broken_check_is_a_gap_of_the_verdict(tmp_path: Path) -> None:
    """What the site thought worth asking was not asked: nobody knows that nothing is wrong."""
    path = tmp_path / "checks" / "gpu" / "mine" / "check.yaml"
    path.parent.mkdir(parents=True)
    path.write_text("apiVersion: [")
    sweep, inventory = sweep_of(clear("n1")), Inventory({})
    (calm,) = conclude(sweep, None, inventory, NOW)
    (found,) = conclude(sweep, None, inventory, NOW, unusable=usable_checks((tmp_path,))[1])
    assert (calm.fault, found.fault) == (FaultClass.NO_FAULT, FaultClass.UNKNOWN)
    assert [gap.what for gap in found.not_checked] == ["gpu.mine"]
    assert "unseen: 1 things were not looked at; see `why`" in summary_lines(found)


def test_doctor_names_each_broken_file_under_its_name(
    config: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run(["doctor", "--config", config])
    output = capsys.readouterr().out
    there = [name for name in BROKEN if (Path(config).parent / name).exists()]
    words = {
        "checks/gpu/mine/check.yaml": "FAIL  checks       gpu.mine is not used",
        "rules.d/ours.yaml": "FAIL  rules        ours is not used",
        "playbooks/evict.yaml": "FAIL  playbooks    evict is not used",
    }
    assert [name for name in BROKEN if words[name] in output] == there
