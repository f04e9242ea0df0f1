"""What was worked out for a bundle is kept, and believed only when nobody else can write it."""

import ast
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from brctl.sweep import vendor
from brctl.sweep.cut_cache import FILES_KEPT, bundle_parts

NVML = ["import pynvml\npynvml.nvmlInit()"]
LIGHT = ["import json", *NVML]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "brctl"


@pytest.fixture
def cuts(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """Each time that pynvml is really cut."""
    made: list[tuple[str, ...]] = []

    def count(sources: tuple[str, ...]) -> str:
        made.append(sources)
        return "def nvmlInit(): ..."

    monkeypatch.setattr(vendor, "pynvml_source", count)
    return made


def test_the_second_sweep_reads_what_the_first_worked_out(
    cache: Path, cuts: list[tuple[str, ...]]
) -> None:
    """The same answer, and a file that is private."""
    first, again = bundle_parts(LIGHT, NVML), bundle_parts(LIGHT, NVML)
    assert first == again == (["json"], "def nvmlInit(): ...")
    assert len(cuts) == 1
    (kept,) = cache.iterdir()
    assert kept.stat().st_mode & 0o777 == 0o600
    bundle_parts([*LIGHT, "import os"], NVML)
    assert len(cuts) == 2


def _shared_file(kept: Path) -> None:
    kept.chmod(0o666)


def _shared_folder(kept: Path) -> None:
    kept.parent.chmod(0o777)


def _link(kept: Path) -> None:
    other = kept.rename(kept.with_suffix(".other"))
    kept.symlink_to(other)


def _stranger(kept: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a file away")
    os.chown(kept, 65534, 65534)


def _rubbish(kept: Path) -> None:
    kept.write_bytes(b"\xff{")


@pytest.mark.parametrize("spoil", [_shared_file, _shared_folder, _link, _stranger, _rubbish])
def test_what_somebody_else_may_have_written_is_not_sent_to_nodes(
    cache: Path, cuts: list[tuple[str, ...]], spoil: Callable[[Path], None]
) -> None:
    """It runs on every node: a file in doubt is made anew."""
    wanted = bundle_parts(LIGHT, NVML)
    spoil(next(cache.iterdir()))
    assert bundle_parts(LIGHT, NVML) == wanted
    assert len(cuts) == 2


def test_only_the_newest_are_kept(cache: Path, cuts: list[tuple[str, ...]]) -> None:
    """Changed checks leave files behind; they do not pile up, and no folder is no failure."""
    for number in range(FILES_KEPT + 3):
        bundle_parts([f"import json  # {number}"], [])
    assert len(list(cache.iterdir())) == FILES_KEPT
    assert cuts == []


def test_without_a_cache_a_sweep_still_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cuts: list[tuple[str, ...]]
) -> None:
    """A home that cannot be written costs time only."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert bundle_parts(LIGHT, NVML) == bundle_parts(LIGHT, NVML)
    assert len(cuts) == 2


def test_a_process_parses_a_probe_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another set of checks, or a cache that is gone, is no reason to parse the others again."""
    one, other = "import json  # of this test", "import os  # of this test"
    assert vendor.preload_modules([one]) == ["json"]
    parsed: list[str] = []
    parse = ast.parse

    def count(source: str) -> object:
        parsed.append(source)
        return parse(source)

    with monkeypatch.context() as patch:
        patch.setattr(ast, "parse", count)
        assert vendor.preload_modules([one, other]) == ["json", "os"]
    assert parsed == [other]
