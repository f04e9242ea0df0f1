"""Whom verbs accuse of wrong results, in the words that the guard of cordons reads."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from brctl.actions.check_run import CheckRun
from brctl.actions.corruption_locate import CorruptionLocate
from brctl.actions.job.ckpt_select import CkptSelect
from brctl.actions.job.replay import JobReplay
from brctl.model.evidence import Evidence, Role, Subject, Weight
from brctl.model.fault import FaultClass
from brctl.model.fault_catalogue import WRONG_RESULTS
from brctl.model.jobs.job import Job
from brctl.model.localisation import (
    Bisection,
    Conclusion,
    Exclusion,
    FaultKind,
    Finding,
    GroupResult,
    RoundReport,
    Stage,
)
from brctl.model.runs.playbook import Arguments
from brctl.model.sweeps.sweep import NodeHealth
from tests.fakes.run_context import (
    FakeSearch,
    FakeSweeps,
    FakeVerdicts,
    example_verdict,
    fake_context,
)

NOON = datetime(2026, 7, 5, 12, 0, tzinfo=UTC)
GROUPS = (("n1", "n2"), ("n3", "n4"))


@dataclass
class WrongOnN1(FakeSweeps):
    """Of the sick nodes n1 computes wrongly; see `Sweeps`."""

    async def examine(self, nodes: Sequence[str], level: int) -> Sequence[NodeHealth]:
        found = await super().examine(nodes, level)
        wrong = Evidence(
            "gpu.gemm", Subject("n1"), Weight.CONVICTS, FaultClass.SILENT_CORRUPTION, Role.ROOT,
            "gpu.gemm", "3 wrong elements", "",
        )  # fmt: skip
        return [replace(h, evidence=(wrong,)) if h.node == "n1" else h for h in found]


async def test_stop_time_checks_tell_wrong_results_from_other_failures(tmp_path: Path) -> None:
    """One reason holds a node until it is repaired, the other until it is burnt in."""
    context = fake_context(tmp_path)
    with context.world.change() as data:
        data["sick"], data["dead"] = ["n1", "n2"], []
    sweeps = WrongOnN1(context.world, lambda: [])
    told: Arguments = {"nodes": ["n1", "n2", "n3"], "may_fail": True}
    out = (await CheckRun().apply(replace(context, sweeps=sweeps), told)).out
    assert (out["failed"], out["wrong"], out["broken"]) == (["n1", "n2"], ["n1"], ["n2"])
    assert out["wrong_reason"] == WRONG_RESULTS


@dataclass
class Replayed(FakeSearch):
    """n1 fails in both rounds, in this way; see `Search`."""

    end: GroupResult = field(default_factory=lambda: GroupResult(1, 1))

    async def replay(self, job: Job, deadline_s: float) -> Bisection:
        rounds = tuple(
            RoundReport(n, Stage.SCREEN, GROUPS, (self.end, GroupResult(1, 0)), 1.0) for n in (1, 2)
        )
        finding = Finding(FaultKind.NODE, ("n1",), 0.9, ((1, 0), (2, 0)))
        conclusion = Conclusion((finding,), Exclusion(0.1, 0.99, 0), 2, 8, complete=True)
        return Bisection(
            "B-1", NOON, 2.0, job.nodes, "replay", 0, 1, 60.0, 0, "fake", rounds, conclusion,
            "settled", unexplained=False,
        )  # fmt: skip


@pytest.mark.parametrize(
    ("end", "is_wrong"),
    [
        (GroupResult(1, 1, differs=1), True),
        (GroupResult(1, 1, nonfinite=1), True),
        (GroupResult(1, 1), False),
    ],
)
async def test_a_replay_accuses_of_wrong_results_only_who_gave_some(
    tmp_path: Path, end: GroupResult, is_wrong: bool
) -> None:
    """A rank that ends badly twice is a bad machine, and a burn-in may clear it."""
    context = fake_context(tmp_path)
    search = Replayed(context.world, context.clock, end)  # type: ignore[arg-type]  # the fake's own clock
    out = (await JobReplay().apply(replace(context, search=search), {"job": "demo"})).out
    assert out["suspects"] == ["n1"]
    assert (out["reason"] == WRONG_RESULTS) is is_wrong


async def test_what_locates_wrong_results_gives_the_same_words(tmp_path: Path) -> None:
    """One source for what the guard reads."""
    out = (await CorruptionLocate().apply(fake_context(tmp_path), {"job": "demo"})).out
    assert out["reason"] == WRONG_RESULTS


@pytest.mark.parametrize(
    ("step", "chosen", "words"),
    [
        (None, 40, ""),
        (35, 30, ", from before step 35 at which the numbers went wrong"),
        (5, 40, "; none is left from before step 5, at which the numbers went wrong"),
    ],
)
async def test_a_checkpoint_from_before_the_wrong_numbers_is_chosen(
    tmp_path: Path, step: int | None, chosen: int, words: str
) -> None:
    """Where none is left that is said, not hidden."""
    context = fake_context(tmp_path, checkpoints=lambda: [(40, True), (30, True)])
    since = "" if step is None else f" since step {step}..{step + 4}"
    item = Evidence(
        "job.steps.loss", Subject(""), Weight.HINTS, FaultClass.NUMERIC_NAN, Role.ROOT,
        "job.ranks", f"the loss is 90, 40 times what it was before (2.2),{since}", "",
    )  # fmt: skip
    verdicts = FakeVerdicts(context.world, replace(example_verdict(), evidence=(item,)))
    told = {"job": "demo", "verdict": "V-1"}
    found = await CkptSelect().apply(replace(context, verdicts=verdicts), told)
    assert found.out["step"] == chosen
    assert found.say.endswith(words)
