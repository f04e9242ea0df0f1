"""The same file is judged the same: anywhere, at any time, by a later version, asked otherwise."""

import asyncio
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
import zstandard

from brctl.engine.application.incident_files import replay
from brctl.engine.recording.archive import read
from brctl.engine.recording.contents import looks_in
from brctl.engine.recording.export import Wanted, export
from brctl.engine.recording.look import RecordedAnswer
from brctl.engine.recording.replay import ReplayTransport, judge_again
from brctl.model.command import Command, Outcome
from brctl.model.errors import ConfigError
from brctl.model.exit_codes import ExitCode
from brctl.model.fault import FaultClass
from brctl.model.inventory import Node
from tests.fakes.recorded_site import RecordedSite

FIRST_OF_ITS_SCHEMA = Path(__file__).with_name("schema-1.brctl.tar.zst")
"""Written by the first version with this format; every later one reads it."""


@pytest.fixture(scope="module")
def taken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("taken")
    RecordedSite(folder / "state", "gpu-lost").diagnose()
    path = folder / "x.brctl.tar.zst"
    path.write_bytes(export(folder / "state", Wanted(), {}))
    return path


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Another time zone and locale."""
    monkeypatch.setenv("TZ", "Pacific/Kiritimati")
    monkeypatch.setenv("LC_ALL", "tr_TR.UTF-8")
    time.tzset()
    yield
    monkeypatch.delenv("TZ")
    time.tzset()


def test_again_and_again_in_another_time_zone_it_is_the_same(taken: Path, elsewhere: None) -> None:
    """No clock of today, no network and no configuration plays a part."""
    _, (one,) = looks_in(taken)
    for _ in range(3):
        assert asyncio.run(judge_again(one.look, one.answers)) == one.look.verdicts


def test_the_first_file_of_this_schema_is_read_for_ever() -> None:
    file, (one,) = looks_in(FIRST_OF_ITS_SCHEMA)
    assert file.manifest.schema == "brctl.incident/1"
    first = asyncio.run(judge_again(one.look, one.answers))[0]
    assert (first.fault, first.nodes) == (FaultClass.GPU_LOST, ("n3",))
    assert replay(FIRST_OF_ITS_SCHEMA, None).exit_code in (ExitCode.OK, ExitCode.WARNING)


def _answer(text: str) -> RecordedAnswer:
    asked = ("stacks",)
    at = datetime(2026, 7, 5, tzinfo=UTC)
    return RecordedAnswer("n1", asked, Outcome.ANSWERED, 0, 0.1, at, stdout=text)


async def test_each_round_gets_its_own_answer_whatever_program_asks_for_it() -> None:
    """A later version sends other probes for the same question."""
    transport = ReplayTransport([_answer("first"), _answer("second"), _answer("third")])
    said = [
        await transport.run(Node("n1", "n1"), Command(("python", f"v{n}"), asks=("stacks",)))
        for n in range(4)
    ]
    assert [result.stdout for result in said] == [b"first", b"second", b"third", b""]
    assert said[3].outcome is Outcome.NOT_AVAILABLE


@pytest.mark.parametrize("part", ["look.json", "answers.ndjson", "incidents.json"])
def test_a_flipped_bit_of_a_member_or_its_header_is_refused(
    part: str, taken: Path, tmp_path: Path
) -> None:
    """By the digest in the manifest, and the sum of the header."""
    raw = zstandard.ZstdDecompressor().decompressobj().decompress(taken.read_bytes())
    header = raw.rindex(part.encode())
    for where in (header, header + 512):
        flipped = bytearray(raw)
        flipped[where] ^= 0x10
        (tmp_path / "x").write_bytes(zstandard.ZstdCompressor().compress(bytes(flipped)))
        with pytest.raises(ConfigError, match="not an incident that can be read"):
            looks_in(tmp_path / "x")


@pytest.mark.parametrize("tenth", [1, 3, 5, 7, 9])
def test_a_flipped_bit_of_the_packed_file_is_refused(
    tenth: int, taken: Path, tmp_path: Path
) -> None:
    """The manifest's too, which nothing else names: its digest is what the file is known by."""
    raw = bytearray(taken.read_bytes())
    raw[len(raw) * tenth // 10] ^= 1
    (tmp_path / "x").write_bytes(raw)
    with pytest.raises(ConfigError, match="not an incident that can be read"):
        read(tmp_path / "x")
