"""What a run's backend does when the scheduler does not answer."""

import asyncio
from pathlib import Path
from typing import cast

import pytest

from brctl.backends.contract import Backend
from brctl.backends.patient import PAUSES_S, PatientBackend
from brctl.model.errors import DeniedError, UnreachableError
from tests.fakes.absent_backend import AbsentBackend
from tests.fakes.file_backend import FileBackend
from tests.fakes.world_file import WorldFile


async def test_it_is_asked_again_for_about_a_minute_and_then_the_error_is_told(
    tmp_path: Path,
) -> None:
    """A run that gave up at once would leave a stopped job; one that never did, a silent one."""
    waited: list[float] = []

    async def pause(seconds: float) -> None:
        waited.append(seconds)

    world = FileBackend(WorldFile(tmp_path / "world.json"))
    gone = AbsentBackend(world, lambda: True)
    with pytest.raises(UnreachableError, match="was refused"):
        await PatientBackend(cast(Backend, gone), pause).cordons()
    assert waited == list(PAUSES_S)
    assert 50 <= sum(waited) <= 90


async def test_a_refusal_is_not_asked_again(tmp_path: Path) -> None:
    """No is an answer."""

    class Refusing:
        name = "refusing"
        asked = 0

        async def uncordon(self, nodes: object) -> None:
            self.asked += 1
            raise DeniedError("forbidden")

    refusing = Refusing()
    with pytest.raises(DeniedError):
        await PatientBackend(cast(Backend, refusing), asyncio.sleep).uncordon(["n1"])
    assert refusing.asked == 1
