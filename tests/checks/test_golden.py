"""Golden situations: what a node's answer means, one file each; a new file is a new test."""

import json
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import TypedDict

import pytest

from brctl.evidence.assess import Assessment, assess
from brctl.library.checks import load_checks
from brctl.library.shipped import shipped_dir
from brctl.model.command import Outcome
from brctl.model.evidence import Weight
from brctl.model.sweeps.report import CheckResult, Measurement, NodeReport, ProbeStatus, Value

CHECKS = load_checks([shipped_dir("checks")])
FOLDER = Path(__file__).parent.parent / "golden/checks"
FILES = sorted(FOLDER.glob("*/*.json"))
AGAINST = (Weight.HINTS, Weight.CONVICTS)


class Situation(TypedDict, total=False):
    """One file: an answer, and the exact list of what speaks against whom."""

    says: str
    status: str
    measurements: list[tuple[str, str, Value]]
    before: list[tuple[str, str, Value]]
    notes: list[str]
    against: list[tuple[str, str, str, str | None]]
    clears: list[str]
    gaps: list[str]


def load(path: Path) -> Situation:
    situation: Situation = json.loads(path.read_text())
    return situation


def _report(check: str, situation: Situation, rows: list[tuple[str, str, Value]]) -> NodeReport:
    result = CheckResult(
        check=check,
        status=ProbeStatus(situation.get("status", "measured")),
        measurements=tuple(Measurement(*row) for row in rows),
        notes=tuple(situation.get("notes", ())),
    )
    at = datetime.fromisoformat("2026-01-10T12:00:00+00:00")
    return NodeReport("n1", Outcome.ANSWERED, (result,), seconds=0.5, received_at=at)


def _assess(path: Path) -> tuple[Situation, Assessment]:
    situation, check = load(path), path.parent.name
    now = _report(check, situation, situation["measurements"])
    before = _report(check, situation, situation["before"]) if "before" in situation else None
    return situation, assess(now, {check: CHECKS[check]}, before)


@pytest.mark.parametrize("path", FILES, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_a_situation_means_what_its_file_says(path: Path) -> None:
    """Exactly the listed subjects are spoken against, the listed kinds clear, the gaps are said."""
    situation, found = _assess(path)
    against = sorted(
        [e.kind, e.subject.device, e.weight.value, e.fault.value if e.fault else None]
        for e in found.evidence
        if e.weight in AGAINST
    )
    assert against == sorted(list(row) for row in situation["against"])
    clears = sorted({e.kind for e in found.evidence if e.weight is Weight.CLEARS})
    assert clears == sorted(situation.get("clears", []))
    whys = sorted(f"{gap.subject.device} {gap.why}".strip() for gap in found.gaps)
    assert whys == sorted(situation.get("gaps", []))


@pytest.mark.parametrize("path", FILES, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_every_judgement_has_words_and_a_source(path: Path) -> None:
    """Whatever speaks against a node can be explained to a person."""
    for item in _assess(path)[1].evidence:
        assert item.text
        assert item.source == path.parent.name
        assert "{" not in item.text


def _cases() -> Mapping[str, list[Situation]]:
    cases: dict[str, list[Situation]] = {name: [] for name in CHECKS}
    for path in FILES:
        cases[path.parent.name].append(load(path))
    return cases


@pytest.mark.parametrize("check", CHECKS)
def test_a_check_has_a_case_that_fires_and_one_that_must_not(check: str) -> None:
    """A check nobody saw fire, or stay quiet, is not trusted."""
    cases = _cases()[check]
    fires = [case for case in cases if case["against"]]
    quiet = [case for case in cases if not case["against"] and case["measurements"]]
    if any(rule.weight in AGAINST for rule in CHECKS[check].rules) or _has_reader(check):
        assert fires
    assert quiet


def _has_reader(check: str) -> bool:
    return any(spec.reader for spec in CHECKS[check].measurements.values())
