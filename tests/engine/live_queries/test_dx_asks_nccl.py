"""`dx` asks NCCL of a job that stands still, last and carefully, and of no other job."""

import asyncio
from pathlib import Path

import pytest

from brctl.engine.recording.replay import judge_again
from brctl.engine.recording.ring import answers_in, folders, look_in
from brctl.model.evidence import Gap, Weight
from brctl.model.evidence_kinds import NCCL_RAS
from brctl.model.fault import FaultClass
from brctl.model.verdict import Confidence, Verdict
from tests.engine.live_queries.site import StalledSite
from tests.fakes.ras_reports import (
    HEALTHY,
    communicator,
    group_row,
    json_report,
    rank_row,
    text_report,
)

SOUND = ("answered", text_report("2.30.7", HEALTHY))


def one_behind(version: str = "2.30.7", pid: int = 102, listed: bool = True) -> bytes:
    """Three ranks at 64, the one of n3 at 60; with `listed` false nobody is named."""
    line = "2 ranks have launched up to operation 60"
    if listed:
        line = (
            "Rank 2 has launched up to operation 60 -- GPU 0 managed by"
            f" process {pid} on node 10.0.0.3"
        )
    warnings = f"""#0-0 (abc) MISMATCH
  Communicator ranks have different AllReduce operation counts
  3 ranks have launched up to operation 64
  {line}

"""
    return text_report(version, (group_row(0, 1, 4, errors="MISMATCH"),), warnings=warnings)


def gaps(verdicts: tuple[Verdict, ...]) -> list[Gap]:
    return [gap for v in verdicts for gap in v.not_checked if gap.what == NCCL_RAS]


def test_the_rank_that_lags_twice_is_evidence_against_its_node(tmp_path: Path) -> None:
    """All stacks are alike: only NCCL tells who never launched what the others wait in."""
    answer = ("answered", one_behind())
    site = StalledSite(tmp_path, [answer] * 3)
    (verdict, *_) = site.diagnose().verdicts
    assert (verdict.fault, verdict.nodes) == (FaultClass.HANG_MISMATCH, ("n3",))
    assert [e.kind for e in verdict.evidence if e.source == NCCL_RAS] == ["job.ras.lags"]
    asks = [command.asks for _, command in site.transport.commands]
    assert asks.index(("job.stacks",)) < asks.index(("nccl-ras:text",)), "stacks come first"
    assert site.asked == [("n1", "text"), ("n1", "text"), ("n2", "text")]


def test_one_node_alone_convicts_no_other(tmp_path: Path) -> None:
    """The second node does not say so: what the first says of n3 is a hint, and n3 is not sure."""
    lie = ("answered", one_behind())
    site = StalledSite(tmp_path, [lie, lie, SOUND])
    (verdict, *_) = site.diagnose().verdicts
    (evidence,) = [e for e in verdict.evidence if e.source == NCCL_RAS]
    assert evidence.weight is Weight.HINTS
    assert verdict.confidence is not Confidence.HIGH


def test_the_same_verdict_comes_from_the_recording(tmp_path: Path) -> None:
    """What NCCL answered is recorded, and no pause is waited for again."""
    answer = ("answered", one_behind())
    then = StalledSite(tmp_path, [answer] * 3).diagnose().verdicts
    newest = folders(tmp_path)[0]
    found = asyncio.run(judge_again(look_in(newest), answers_in(newest)))
    assert found == then


def test_counts_that_moved_accuse_nobody(tmp_path: Path) -> None:
    """Operations overtook the question."""
    later = one_behind().replace(b"64", b"70").replace(b"60", b"66")
    site = StalledSite(tmp_path, [("answered", one_behind()), ("answered", later)])
    verdicts = site.diagnose().verdicts
    assert not [e for v in verdicts for e in v.evidence if e.source == NCCL_RAS]


def test_equal_counts_are_asked_for_once(tmp_path: Path) -> None:
    """Another answer could tell nothing more."""
    site = StalledSite(tmp_path, [SOUND])
    site.diagnose()
    assert site.asked == [("n1", "text")]


def test_json_is_asked_for_where_the_text_names_nobody(tmp_path: Path) -> None:
    """Both answers that are compared are of one form."""
    counts = {0: 64, 1: 64, 2: 60, 3: 64}
    rows = [rank_row(r, 100 + r, {"AllReduce": n}, f"10.0.0.{r + 1}") for r, n in counts.items()]
    full = ("answered", json_report("2.30.7", [communicator("0xabc", rows)]))
    site = StalledSite(tmp_path, [("answered", one_behind(listed=False)), full, full, full])
    (verdict, *_) = site.diagnose().verdicts
    assert site.asked == [("n1", "text"), ("n1", "json"), ("n1", "json"), ("n2", "json")]
    assert verdict.nodes == ("n3",)


def test_a_job_that_takes_steps_gets_no_question(tmp_path: Path) -> None:
    """Not one command that could reach its NCCL is sent."""
    site = StalledSite(tmp_path, age_s=0.2)
    site.diagnose()
    assert site.asked == []


@pytest.mark.parametrize(
    ("facts", "phase", "why"),
    [
        ({"version": "2.27.3"}, "all_reduce", "NCCL 2.27.3 can crash"),
        ({"version": ""}, "all_reduce", "release is not known"),
        ({}, "load", "still starting"),
        ({"ras": {"port": 28028, "addresses": ["::1"], "sockets": ["5", "6"], "own": ["5"]}},
         "all_reduce", "other processes listen on port 28028"),
        ({"ras": {"port": 28028}}, "all_reduce", "no rank listens on port 28028"),
    ],
)  # fmt: skip
def test_a_job_that_could_be_hurt_is_a_gap(
    tmp_path: Path, facts: dict[str, object], phase: str, why: str
) -> None:
    """Nothing is sent, and the reason is said."""
    site = StalledSite(tmp_path, facts=facts, phase=phase)
    (gap, *_) = gaps(site.diagnose().verdicts)
    assert why in gap.why
    assert site.asked == []


def test_an_old_release_is_asked_where_the_site_says_so(tmp_path: Path) -> None:
    """The key is an explicit wish."""
    old = {"version": "2.27.3"}
    site = StalledSite(tmp_path, [SOUND], facts=old, choice="old-too")
    site.diagnose()
    assert site.asked == [("n1", "text")]
    site = StalledSite(tmp_path, choice="off")
    assert gaps(site.diagnose().verdicts) == []
    assert site.asked == []


def test_a_job_without_nccl_has_no_gap(tmp_path: Path) -> None:
    """A job over gloo lacks nothing."""
    none = {"library": "", "version": "", "ras": {"port": 28028}}
    site = StalledSite(tmp_path, facts=none)
    assert gaps(site.diagnose().verdicts) == []
    assert site.asked == []


def test_a_node_whose_processes_are_all_silent_leads_to_the_next(tmp_path: Path) -> None:
    """Each node is tried once, and three at most."""
    site = StalledSite(tmp_path, [("silent", b""), SOUND])
    site.diagnose()
    assert site.asked == [("n1", "text"), ("n2", "text")]
    site = StalledSite(tmp_path, [("silent", b"")] * 3)
    (gap, *_) = gaps(site.diagnose().verdicts)
    assert [node for node, _ in site.asked] == ["n1", "n2", "n3"]
    assert "its processes are stopped or hang" in gap.why


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (("not-ras", b""), "something else answered"),
        (("answered", b"\x00\xff" * 3000), "cannot be read"),
        (("late", b""), "took too long"),
        (("answered", one_behind(pid=7)), "another job's NCCL answered"),
    ],
)
def test_what_is_no_answer_of_this_job_is_a_gap(
    tmp_path: Path, reply: tuple[str, bytes], why: str
) -> None:
    """Strangers, noise, silence, and another job on the same port."""
    site = StalledSite(tmp_path, [reply] * 3)
    verdicts = site.diagnose().verdicts
    assert why in gaps(verdicts)[0].why
    assert not [e for v in verdicts for e in v.evidence if e.source == NCCL_RAS]
