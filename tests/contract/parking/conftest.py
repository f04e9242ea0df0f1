"""A site of one test, and an interpreter that its ranks share with those of all tests of a file."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from brctl.backends.ranks import commands as rank_commands
from tests.contract.parking.site import ParkingSite, bare_python, open_parking_site


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> str:
    return bare_python(tmp_path_factory.mktemp("bare"))


@pytest.fixture
async def site(
    tmp_path: Path, python: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[ParkingSite]:
    # On a machine with twenty processes for each core, a process that answers may take its time.
    monkeypatch.setattr(rank_commands, "ANSWER_S", rank_commands.START_DEADLINE_S - 10.0)
    async for site in open_parking_site(tmp_path, python):
        yield site
