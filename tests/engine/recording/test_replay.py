"""What was recorded is judged again: the same verdict, and a gap for what nobody recorded."""

import asyncio
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from brctl.engine.recording.look import Look, encode, read_answers, read_look
from brctl.engine.recording.replay import NOT_RECORDED, judge_again
from brctl.engine.recording.ring import RecordedLook, answers_in, folders, look_in
from brctl.model.errors import ConfigError
from brctl.model.fault import FaultClass
from brctl.model.verdict import Verdict
from tests.fakes.recorded_site import SICK, RecordedSite

Change = Callable[[Look], Look]


def recorded(state: Path) -> RecordedLook:
    """The newest look on disk."""
    newest = folders(state)[0]
    return RecordedLook(look_in(newest), answers_in(newest))


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


PATHS = ("", ".", "..", "../up", "/abs", "a/b", "a\0b", "a\n", "x" * 101, "\N{GRINNING FACE}" * 60)


def test_a_look_whose_names_would_lead_out_of_its_folder_is_refused(tmp_path: Path) -> None:
    """A replay names files by the look, its context and its job."""
    RecordedSite(tmp_path).diagnose()
    look = recorded(tmp_path).look
    assert look.job is not None
    for path in PATHS:
        for hostile in (
            replace(look, id=path),
            replace(look, context=path),
            replace(look, job=replace(look.job, name=path)),
        ):
            with pytest.raises(ValueError, match="cannot name a file"):
                read_look(encode(hostile))
    for name in ("lab", "EU west: b\u00fcro 2", "[redacted]", "j" * 63):
        named = replace(look, context=name, job=replace(look.job, name=name))
        assert read_look(encode(named)) == named


MOMENT = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z")
NO_MOMENTS = ("2026-01-01T00:00:00", "9999-12-31T23:59:59Z")


def _each_moment_as(document: object, text: str) -> Iterator[object]:
    """The document once for every moment in it, with that one replaced."""
    if isinstance(document, str) and MOMENT.fullmatch(document):
        yield text
    if isinstance(document, dict):
        for key, value in document.items():
            yield from (document | {key: other} for other in _each_moment_as(value, text))
    if isinstance(document, list):
        for at, value in enumerate(document):
            others = _each_moment_as(value, text)
            yield from ([*document[:at], other, *document[at + 1 :]] for other in others)


@pytest.mark.parametrize("text", NO_MOMENTS)
def test_a_moment_without_a_zone_or_in_no_sane_year_is_refused_wherever_it_stands(
    text: str, tmp_path: Path
) -> None:
    site = RecordedSite(tmp_path, "gpu-lost")
    site.diagnose()
    site.diagnose()
    one = recorded(tmp_path)
    changed = list(_each_moment_as(json.loads(encode(one.look)), text))
    assert len(changed) > len(one.look.clock) + len(one.look.before)
    for document in changed:
        with pytest.raises(ValueError, match="no moment"):
            read_look(json.dumps(document).encode())
    for answer in _each_moment_as(json.loads(encode(one.answers[0])), text):
        with pytest.raises(ValueError, match="no moment"):
            read_answers(json.dumps(answer).encode())


STRANGE_NAMES = {
    "too shallow": "checks/a",
    "too deep": "checks/a/b/c/check.yaml",
    "a folder in rules.d": "rules.d/a/b.yaml",
    "upwards": "checks/../b/check.yaml",
    "absolute": "/etc/baseline.yaml",
    "too long": f"rules.d/{'a' * 300}.yaml",
    "too long for a disk": f"rules.d/{'é' * 190}.yaml",
}


@pytest.mark.parametrize("case", STRANGE_NAMES)
def test_a_recorded_rule_file_of_a_strange_name_is_refused(case: str, tmp_path: Path) -> None:
    """Elsewhere than a site's are, or too long for a disk."""
    RecordedSite(tmp_path).diagnose()
    one = recorded(tmp_path)
    with pytest.raises(ConfigError, match="rule file"):
        again(replace(one, look=replace(one.look, site={STRANGE_NAMES[case]: ""})))


def test_other_rules_leave_the_recorded_baseline_as_it_was(tmp_path: Path) -> None:
    """A baseline that is none is complained about, so it is read."""
    rules = tmp_path / "rules"
    rules.mkdir()
    RecordedSite(tmp_path / "state").diagnose()
    one = recorded(tmp_path / "state")
    look = replace(one.look, site={"baseline.yaml": "kind: Nonsense"})
    with pytest.raises(ConfigError, match=r"baseline\.yaml"):
        asyncio.run(judge_again(look, one.answers, rules))
