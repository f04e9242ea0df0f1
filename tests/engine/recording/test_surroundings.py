"""What stands around a look in its file, and what is left out where the file has a size."""

import asyncio
from dataclasses import replace
from pathlib import Path

import msgspec

from brctl.engine.recording.archive import read
from brctl.engine.recording.budget import packed_bytes
from brctl.engine.recording.contents import looks_in
from brctl.engine.recording.export import Wanted, export
from brctl.engine.recording.look import Look
from brctl.engine.recording.replay import judge_again, look_again
from brctl.engine.recording.ring import folders, look_in
from brctl.engine.runs.capabilities import FleetSweeps
from brctl.model.fault import FaultClass
from tests.fakes.recorded_site import NODES, SICK, RecordedSite


def file_of(state: Path, path: Path, limit_bytes: int = 64 << 20) -> Path:
    path.write_bytes(export(state, Wanted(), {}, limit_bytes))
    return path


def test_the_clocks_versions_and_sweeps_of_a_look_are_in_its_file(tmp_path: Path) -> None:
    site = RecordedSite(tmp_path / "state", "gpu-lost")
    site.diagnose()
    site.diagnose()
    path = file_of(tmp_path / "state", tmp_path / "x")
    file, (newest, _) = looks_in(path)
    assert set(newest.look.clock_ahead_s) == set(NODES)
    assert newest.look.versions["python"]
    sweeps = [name for name in file.members if name.startswith("sweeps/")]
    assert sweeps
    swept = msgspec.json.decode(file.members[sweeps[0]])
    assert {node["node"] for node in swept["nodes"]} <= set(NODES)


def test_whether_nccl_may_be_asked_is_recorded_as_the_site_said_it(tmp_path: Path) -> None:
    """A replay that asks what was not asked then would find a gap for it."""
    site = RecordedSite(tmp_path)
    site.controller = replace(
        site.controller, settings=replace(site.controller.settings, nccl_ras="off")
    )
    site.diagnose()
    one = look_in(folders(tmp_path)[0])
    _, asked = looked_at(one, tmp_path / "again")
    assert (one.nccl_ras, asked) == ("off", "off")


def looked_at(look: Look, folder: Path) -> tuple[str, str]:
    folder.mkdir()
    controller, _ = asyncio.run(look_again(look, (), folder))
    return look.nccl_ras, controller.settings.nccl_ras


def test_the_accused_keep_their_answers_in_a_small_file(tmp_path: Path) -> None:
    """The rest is a gap when it is judged again, and the file says so."""
    RecordedSite(tmp_path / "state", "gpu-lost", words="z" * 2000).diagnose()
    path = file_of(tmp_path / "state", tmp_path / "x")
    members = read(path).members
    look, answers = (
        packed_bytes({name: raw for name, raw in members.items() if name.endswith(end)})
        for end in ("look.json", "answers.ndjson")
    )
    small = file_of(tmp_path / "state", tmp_path / "y", look + answers // 2)
    file, (one,) = looks_in(small)
    kept = {answer.node for answer in one.answers}
    assert SICK in kept
    assert kept < set(NODES)
    assert any("for the size of the file" in cut for cut in file.manifest.cuts)
    verdict = asyncio.run(judge_again(one.look, one.answers))[0]
    assert (verdict.fault, verdict.nodes) == (FaultClass.GPU_LOST, (SICK,))
    assert verdict.not_checked


async def test_a_run_keeps_its_evidence_in_a_file_that_can_be_judged_again(tmp_path: Path) -> None:
    """What `evidence.capture` writes is what `dx --record` writes: the suspects, and their job."""
    site = RecordedSite(tmp_path / "state", "gpu-lost")
    healths, raw = await FleetSweeps(site.controller).record(NODES, site.job)
    assert {health.node for health in healths} == set(NODES)
    (tmp_path / "x").write_bytes(raw)
    _, (one,) = looks_in(tmp_path / "x")
    again = await judge_again(one.look, one.answers)
    assert again == one.look.verdicts
    assert again[0].fault is FaultClass.GPU_LOST
