"""What was recorded is judged again: the same verdict, and a gap for what nobody recorded."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from brctl.engine.recording.look import Look, encode, read_look
from brctl.engine.recording.replay import NOT_RECORDED, judge_again
from brctl.engine.recording.ring import RecordedLook, answers_in, looks
from brctl.model.fault import FaultClass
from brctl.model.verdict import Verdict
from tests.fakes.recorded_site import SICK, RecordedSite

Change = Callable[[Look], Look]


def recorded(state: Path) -> RecordedLook:
    """The newest look on disk."""
    folder, look = next(looks(state))
    return RecordedLook(look, answers_in(folder))


def again(one: RecordedLook) -> tuple[Verdict, ...]:
    return asyncio.run(judge_again(one.look, one.answers))


@pytest.mark.parametrize(
    ("fault", "silent"), [("", False), ("gpu-lost", True), ("clock-skew", False)]
)
def test_the_same_version_comes_to_the_same_verdicts(
    fault: str, silent: bool, tmp_path: Path
) -> None:
    """To the byte, whatever the order in which the nodes answer and the time it is now."""
    site = RecordedSite(tmp_path, fault, silent=silent, words="token 7")
    site.diagnose()
    then = site.diagnose().verdicts
    one = recorded(tmp_path)
    assert one.look.verdicts == then
    assert again(one) == then
    assert read_look(encode(one.look)) == one.look


def test_what_was_not_recorded_is_a_gap_and_never_health(tmp_path: Path) -> None:
    """A node without its answer is not known to be well."""
    RecordedSite(tmp_path).diagnose()
    one = recorded(tmp_path)
    assert one.look.verdicts[0].fault is FaultClass.NO_FAULT
    rest = tuple(answer for answer in one.answers if answer.node != SICK)
    (found, *_) = again(replace(one, answers=rest))
    assert found.fault is not FaultClass.NO_FAULT
    assert any(gap.subject.node == SICK and NOT_RECORDED in gap.why for gap in found.not_checked)


def test_a_check_that_is_new_is_a_gap_and_the_rest_is_found_again(tmp_path: Path) -> None:
    """An older recording knows nothing of it; what it holds still convicts."""
    then = RecordedSite(tmp_path, "gpu-lost").diagnose().verdicts[0]
    one = recorded(tmp_path)
    older = [replace(a, asks=tuple(n for n in a.asks if n != "host.disk"),
                     stdout="\n".join(line for line in a.stdout.split("\n")
                                      if '"host.disk"' not in line))
             for a in one.answers]  # fmt: skip
    found = again(replace(one, answers=tuple(older)))[0]
    assert (found.fault, found.nodes) == (then.fault, then.nodes)
    assert any(gap.what == "host.disk" and NOT_RECORDED in gap.why for gap in found.not_checked)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda look: replace(look, nodes=("n9",)), "n9"),
        (lambda look: replace(look, clock=()), "clock"),
        (lambda look: replace(look, job=replace(look.job, ranks_per_node=10**9)), "ranks"),
    ],
)
def test_a_look_that_does_not_fit_together_is_refused(
    change: Change, said: str, tmp_path: Path
) -> None:
    RecordedSite(tmp_path).diagnose()
    with pytest.raises(ValueError, match=said):
        read_look(encode(change(recorded(tmp_path).look)))
