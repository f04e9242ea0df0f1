"""Labs for the tests of a module: built once, and gone afterwards whatever the tests did."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from brctl.lab import namespaces
from brctl.lab.cluster import Lab, leftovers, up
from brctl.lab.compile import Libraries, build_libraries
from brctl.lab.spec import Isolation, LabSpec


@pytest.fixture(scope="session")
def library_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="session")
def libraries(library_cache: Path) -> Libraries:
    return build_libraries(library_cache / "brctl")


@pytest.fixture(autouse=True)
def shared_cache(
    clean_environment: Path, library_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The C libraries are built once a session, not once a test."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(library_cache))


def build(directory: Path, cache: Path, isolation: Isolation) -> Iterator[Lab]:
    """A lab of two nodes and a standby; the end of it is checked, too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(cache))
        lab = up(LabSpec(nodes=2, standbys=1, gpus=8, isolation=isolation), directory)
    record = lab.record
    yield lab
    lab.down()
    assert leftovers(record) == ()
    assert not directory.exists()


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory, library_cache: Path) -> Iterator[Lab]:
    yield from build(tmp_path_factory.mktemp("none") / "lab", library_cache, Isolation.NONE)


@pytest.fixture(scope="module")
def netns_lab(tmp_path_factory: pytest.TempPathFactory, library_cache: Path) -> Iterator[Lab]:
    why_not = namespaces.missing()
    if why_not is not None:
        pytest.skip(f"nodes with network namespaces cannot be made: {why_not}")
    yield from build(tmp_path_factory.mktemp("netns") / "lab", library_cache, Isolation.NETNS)
