"""The wheel holds all that a checkout finds beside the package, where the package looks for it."""

import json
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from brctl.library.checks import load_checks
from brctl.library.reference import page_names
from brctl.library.shipped import KINDS, shipped_dir

ROOT = Path(__file__).resolve().parents[2]

# Built with the build backend from the package index, so beside the quick tests, not among them.
pytestmark = pytest.mark.deep

ASK = """
import json, sys
import brctl
from brctl.cli.complete import words_dir
from brctl.engine.application.runs import all_playbooks
from brctl.library.checks import load_checks
from brctl.library.reference import page_names, read_page
from brctl.library.shipped import KINDS, node_program, shipped_dir

programs = json.load(sys.stdin)
print(json.dumps({
    "package": brctl.__file__,
    "kinds": [str(shipped_dir(kind)) for kind in KINDS],
    "programs": {name: node_program(name) for name in programs},
    "probes": {n: c.probe_source for n, c in load_checks([shipped_dir("checks")]).items()},
    "playbooks": sorted(all_playbooks(())),
    "words": words_dir(),
    "pages": {name: len(read_page(name)) for name in page_names()},
}))
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this source tree, unpacked as an installer would."""
    built, site = tmp_path_factory.mktemp("built"), tmp_path_factory.mktemp("site")
    pip = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(built), str(ROOT)]
    done = subprocess.run(pip, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (wheel,) = built.glob("brctl-*.whl")
    with ZipFile(wheel) as archive:
        archive.extractall(site)
    return site


def files_of(folder: Path) -> dict[str, bytes]:
    """What one folder holds, without what Python leaves behind."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_what_runs_on_nodes_and_what_people_read_is_found_from_the_wheel(
    site: Path, tmp_path: Path
) -> None:
    """A process that knows the wheel only reads the programs, playbooks and pages of this tree."""
    checks = shipped_dir("checks")
    programs = sorted(name for name in files_of(checks) if name.endswith(".py"))
    assert {"_runner.py", "_gateway.py"} < set(programs)
    assert any(name.startswith("_ranks/") for name in programs)
    done = subprocess.run(
        [sys.executable, "-P", "-c", ASK],
        cwd=tmp_path, env={"PYTHONPATH": str(site), "HOME": str(tmp_path)},
        input=json.dumps(programs), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    shipped = site / "brctl" / "_shipped"
    assert found["package"] == str(site / "brctl" / "__init__.py")
    assert found["kinds"] == [str(shipped / kind) for kind in KINDS]
    assert found["words"] == str(shipped / "completions")
    assert found["programs"] == {name: (checks / name).read_text("utf-8") for name in programs}
    assert found["probes"] == {n: c.probe_source for n, c in load_checks([checks]).items()}
    assert found["playbooks"] == sorted(p.stem for p in shipped_dir("playbooks").glob("*.yaml"))
    assert sorted(found["pages"]) == sorted(page_names())
    assert all(found["pages"].values())


@pytest.mark.parametrize("kind", KINDS)
def test_no_shipped_file_is_left_out_of_the_wheel(site: Path, kind: str) -> None:
    assert files_of(site / "brctl" / "_shipped" / kind) == files_of(shipped_dir(kind))


def test_an_installer_puts_the_man_pages_where_man_looks(site: Path) -> None:
    (data,) = site.glob("brctl-*.data/data")
    assert files_of(data / "share" / "man" / "man1") == files_of(ROOT / "brctl" / "docs" / "man")
