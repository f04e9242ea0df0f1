"""The lab builds its C libraries itself, or says which package is missing."""

import os
from pathlib import Path

import pytest

from brctl.lab.compile import BUILDS_KEPT, build_libraries, forget_libraries
from brctl.model.errors import UnavailableError


def test_without_a_compiler_the_package_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine without cc and gcc is told what to install, and nothing is left half built."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UnavailableError) as error:
        build_libraries(tmp_path / "into")
    assert "gcc" in str(error.value.hint)
    assert not list((tmp_path / "into").rglob("*.so*"))


def test_a_broken_compiler_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the compiler said reaches the reader."""
    compiler = tmp_path / "cc"
    compiler.write_text("#!/bin/sh\necho 'cannot find crt1.o' >&2\nexit 1\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}/usr/bin{os.pathsep}/bin")
    with pytest.raises(UnavailableError) as error:
        build_libraries(tmp_path / "into")
    assert "cannot find crt1.o" in str(error.value.cause)


def test_a_library_is_built_once(tmp_path: Path) -> None:
    """A second lab takes what the first one built."""
    first = build_libraries(tmp_path)
    built_at = first.clock.stat().st_mtime_ns
    assert build_libraries(tmp_path) == first
    assert first.clock.stat().st_mtime_ns == built_at


def test_old_builds_go_and_all_of_them_when_asked(tmp_path: Path) -> None:
    """Each version of brctl left its own behind; what else is in the cache is not ours."""
    for age in range(BUILDS_KEPT + 2):
        old = tmp_path / f"fake_clock-{age}"
        old.mkdir()
        os.utime(old, (age, age))
    (tmp_path / "names.json").write_text("{}")
    built = build_libraries(tmp_path)
    kept = {path.name for path in tmp_path.glob("fake_clock-*")}
    assert kept == {built.clock.parent.name, *(f"fake_clock-{age}" for age in (3, 4, 5))}
    forget_libraries(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["names.json"]


def test_a_cache_that_cannot_be_written_is_an_error_with_a_way_out(tmp_path: Path) -> None:
    """The variable that moves the cache is named."""
    (tmp_path / "file").write_text("")
    with pytest.raises(UnavailableError) as error:
        build_libraries(tmp_path / "file" / "cache")
    assert "XDG_CACHE_HOME" in str(error.value.hint)
