"""Other tools' checks run as they are, and what they do not know is a gap."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from brctl.evidence.assess import Assessment, assess
from brctl.library.checks import load_check, load_checks
from brctl.library.foreign import import_nhc, parse_nhc
from brctl.library.new_check import write_new_check
from brctl.model.command import Outcome
from brctl.model.errors import ConfigError, UsageError
from brctl.model.evidence import Weight
from brctl.model.sweeps.check import Check
from brctl.model.sweeps.report import CheckResult, Measurement, NodeReport, ProbeStatus
from tests.timeouts import TIMEOUT_S

PLUGIN = """\
apiVersion: brctl.dev/v1
kind: Check
name: site.load
title: Load
why: Our monitoring already has a plugin for it, so we use that.
source: check_load
level: 1
deadline: 60s
foreign:
  command: [sh, -c, "echo 'LOAD - high'; exit CODE"]
  fault: straggler-slow
cross_check: check_load -w 5 -c 10
"""


def wrapped(folder: Path, text: str) -> Check:
    place = folder / "site/load"
    place.mkdir(parents=True, exist_ok=True)
    (place / "check.yaml").write_text(text)
    return load_check(place / "check.yaml")


def run(check: Check) -> Assessment:
    """Run the check's program as a node would, and judge what it says."""
    parameters = {**check.parameters, "deadline_s": check.deadline_s}
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", check.probe_source],
        input=json.dumps(parameters), capture_output=True, text=True, timeout=TIMEOUT_S,
        check=False,
    )  # fmt: skip
    answer = json.loads(done.stdout)
    rows = tuple(Measurement(r["name"], r["subject"], r["value"]) for r in answer["measurements"])
    status = (ProbeStatus.MEASURED, ProbeStatus.COULD_NOT_MEASURE)[done.returncode]
    result = CheckResult(check.name, status, rows, tuple(answer["notes"]))
    return assess(NodeReport("n1", Outcome.ANSWERED, (result,)), {check.name: check})


@pytest.mark.parametrize(
    ("code", "weight"), [(0, Weight.CLEARS), (1, Weight.HINTS), (2, Weight.CONVICTS)]
)
def test_a_nagios_code_means_what_nagios_says(tmp_path: Path, code: int, weight: Weight) -> None:
    """Ok clears, warning hints, critical convicts the class the file names."""
    found = run(wrapped(tmp_path, PLUGIN.replace("CODE", str(code))))
    assert [e.weight for e in found.evidence] == [weight]
    assert found.gaps == ()


@pytest.mark.parametrize("code", [3, 4, 127])
def test_a_code_that_says_unknown_is_a_gap(tmp_path: Path, code: int) -> None:
    """Unknown is never healthy."""
    found = run(wrapped(tmp_path, PLUGIN.replace("CODE", str(code))))
    assert found.evidence == ()
    assert any(f"exit {code}: LOAD - high" in gap.why for gap in found.gaps)


def test_a_program_that_is_missing_or_hangs_is_a_gap(tmp_path: Path) -> None:
    """It is named with the reason, and its process group is gone."""
    missing = wrapped(tmp_path, PLUGIN.replace("[sh, ", "[/nowhere/check_load, "))
    assert any("No such file" in gap.why for gap in run(missing).gaps)
    hangs = PLUGIN.replace("exit CODE", "sleep 600").replace("deadline: 60s", "deadline: 2s")
    assert any("did not end within" in gap.why for gap in run(wrapped(tmp_path, hangs)).gaps)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("fault: straggler-slow", "fault: slow", "'fault': unknown 'slow'"),
        ("[sh, -c, \"echo 'LOAD - high'; exit CODE\"]", "[]", "must name a program"),
        ("cross_check", "evidence: []\ncross_check", "'evidence' does not go with 'foreign'"),
        ("  fault", "  shell: true\n  fault", "unknown key 'shell'"),
    ],
)
def test_a_mistake_is_named(tmp_path: Path, old: str, new: str, expected: str) -> None:
    """Errors lead to file and line as everywhere."""
    with pytest.raises(ConfigError, match=r"check\.yaml:\d+") as caught:
        wrapped(tmp_path, PLUGIN.replace(old, new))
    assert expected in str(caught.value)


NHC = """\
# a comment
* || export MARK_OFFLINE=1
{n1,n2} || check_fs_mount_rw -t nfs4 -f /home
 * || check_hw_physmem 1024 1073741824 \\
        5%
*   ||   NVIDIA_HEALTHMON="nvidia-smi"
"""


def test_an_nhc_file_becomes_checks_that_load(tmp_path: Path) -> None:
    """One folder a line, settings passed over, continued lines joined, line numbers kept."""
    (tmp_path / "nhc.conf").write_text(NHC)
    folders = import_nhc(tmp_path / "nhc.conf", tmp_path / "checks")
    assert [f.name for f in folders] == ["line003_check_fs_mount_rw", "line004_check_hw_physmem"]
    checks = load_checks([tmp_path / "checks"])
    first = checks["nhc.line003_check_fs_mount_rw"]
    assert first.parameters["command"] == ["nhc", "-e", "check_fs_mount_rw -t nfs4 -f /home"]
    assert {rule.fault.value for rule in first.rules if rule.fault} == {"storage-checkpoint"}
    with pytest.raises(ConfigError, match="already exists"):
        import_nhc(tmp_path / "nhc.conf", tmp_path / "checks")


def test_junk_in_an_nhc_file_names_its_line() -> None:
    """A line that is neither check, setting nor comment stops the import."""
    with pytest.raises(ConfigError, match=r"nhc\.conf:3: not an NHC line"):
        parse_nhc("* || a \\\n b\nrm -rf /\n", "nhc.conf")


def test_a_new_check_runs_as_it_is(tmp_path: Path) -> None:
    """What `check new` writes loads, measures and is judged."""
    folder = write_new_check("site.tmp", tmp_path)
    found = run(load_check(folder / "check.yaml"))
    assert [e.kind for e in found.evidence] == ["site.tmp.free_bytes"]
    with pytest.raises(ConfigError, match="already exists"):
        write_new_check("site.tmp", tmp_path)
    with pytest.raises(UsageError, match=r"domain\.check"):
        write_new_check("../../etc/x", tmp_path)
