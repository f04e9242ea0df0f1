"""The words of incident files as they are typed: what they print, write and exit with."""

from pathlib import Path

import pytest

from brctl.cli.commands import dx as dx_module
from brctl.cli.commands import incident as incident_module
from brctl.cli.commands import tui as tui_module
from brctl.engine.recording.archive import read
from brctl.engine.recording.export import Wanted, export
from brctl.model.errors import UsageError
from tests.cli.test_run import call
from tests.fakes.recorded_site import RecordedSite
from tests.fakes.site_files import local_config, write_site


@pytest.fixture(scope="module")
def taken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("taken")
    RecordedSite(folder / "state", "gpu-lost").diagnose()
    path = folder / "x.brctl.tar.zst"
    path.write_bytes(export(folder / "state", Wanted(), {}))
    return path


@pytest.fixture
def site(tmp_path: Path) -> Path:
    return write_site(
        tmp_path, local_config(), "apiVersion: brctl.dev/v1\nkind: Inventory\nnodes: {n1: {}}\n"
    )


def test_a_file_is_redacted_and_its_pseudonyms_are_translated_at_home(
    taken: Path, site: Path, tmp_path: Path
) -> None:
    out = tmp_path / "sent.brctl.tar.zst"
    code, text = call(
        incident_module, site, "redact", str(taken), "--profile", "public", "--out", str(out)
    )
    assert code == 0
    assert "verdict: same" in text
    assert read(out).manifest.profile == "public"
    code, text = call(incident_module, site, "names", "node-x0003")
    assert (code, text.split()[-3:]) == (0, ["node-x0003", "node", "n3"])
    assert call(incident_module, site, "names", "node-x9999")[0] == 1
    assert call(incident_module, site, "diff", str(out)) == (0, text_of_same(out))


def text_of_same(path: Path) -> str:
    """What `diff` prints where nothing differs."""
    manifest = read(path).manifest
    return f"{manifest.looks[0]}  {manifest.made_by} -> {manifest.made_by}: same\n"


def test_profiles_and_readers_are_named_where_they_are_not_known(taken: Path, site: Path) -> None:
    with pytest.raises(UsageError, match="--profile pubic: unknown"):
        call(incident_module, site, "redact", str(taken), "--profile", "pubic")
    with pytest.raises(UsageError, match="--encrypt nobody"):
        call(incident_module, site, "redact", str(taken), "--encrypt", "nobody")
    with pytest.raises(UsageError, match="--limit"):
        call(incident_module, site, "record", "--last", "2h", "--limit", "much")


def test_a_recorded_incident_is_told_and_shown_and_nothing_beside_it(
    taken: Path, site: Path
) -> None:
    code, text = call(dx_module, site, "--replay", str(taken))
    assert code == 2
    assert "gpu-lost  n3" in text
    with pytest.raises(UsageError, match="--replay tells what was recorded"):
        call(dx_module, site, "train", "--replay", str(taken))
    code, text = call(tui_module, site, "--once", "--replay", str(taken))
    assert code == 0
    assert "read-only" in text
    assert "a GPU fell off the bus" in text


def test_a_log_folder_is_imported(site: Path, tmp_path: Path) -> None:
    (tmp_path / "logs" / "n1").mkdir(parents=True)
    (tmp_path / "logs" / "n1" / "kern.log").write_text(
        "NVRM: Xid (PCI:0000:2a:00): 79, pid=0, GPU has fallen off the bus.\n"
    )
    out = tmp_path / "x.brctl.tar.zst"
    code, text = call(incident_module, site, "import", str(tmp_path / "logs"), "--out", str(out))
    assert code == 0
    assert "gpu-lost n1" in text
    assert read(out).members
