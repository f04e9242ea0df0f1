"""Answers that nodes of a lab gave, kept beside the bench as what differs from a healthy node's.

`answers.json` holds one healthy node in full, the checks that differed under each fault, and what
the culprit's rank and a bystander's said last. Names of devices and paths are made up.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from brctl.engine.job.stack_store import newest_folder
from brctl.evidence.stacks.snapshot import read_threads
from brctl.model.errors import UsageError
from brctl.model.jobs.job import Job
from brctl.model.sweeps.report import CheckResult, Measurement, NodeReport, ProbeStatus, Value

FILE = Path(__file__).with_name("answers.json")
CULPRIT, BYSTANDER = "n3", "n2"
KEPT_NODES = (BYSTANDER, CULPRIT)
RANKS = "job.ranks"

_NOISE = {"host.cpu", "host.memory", "host.leftovers", "gpu.processes", "host.clock", "job.code"}
_OF_FAULT = {"clock-skew": {"host.clock"}}
_UUID = re.compile(r"GPU-[0-9a-f]{8}-[0-9a-f-]{27}")
_PACKAGES = re.compile(r"/[^\s\"]*/site-packages/")
_PROGRAM = re.compile(r"/[^\s\"]*/brctl/training/")

Answer = dict[str, CheckResult]
"""A node's answers by check."""


@dataclass(frozen=True, slots=True)
class Recording:
    """What the nodes of a lab said under one fault, "" for none."""

    fault: str
    reports: Mapping[str, NodeReport]
    stacks: Mapping[int, tuple[str, ...]]


def stacks_of(state_dir: Path, job: Job) -> dict[int, tuple[str, ...]]:
    """The stacks of the newest look; none when it captured none."""
    try:
        folder = newest_folder(state_dir, job.name) / "round-1"
    except UsageError:
        return {}
    documents = [json.loads(path.read_text()) for path in sorted(folder.glob("rank-*.json"))]
    return {one["rank"]: read_threads(one["threads"]) for one in documents}


def tidied(text: str, home: Path) -> str:
    """A recording without the paths of the machine that made it."""
    text = _PROGRAM.sub("/srv/site/code/", text.replace(str(home), "/srv/site"))
    return _PACKAGES.sub("/srv/site/packages/", text)


def distil(recordings: Mapping[str, Recording]) -> dict[str, object]:
    """What the bench keeps of recordings."""
    healthy = _answers(recordings["healthy"].reports[BYSTANDER])
    return {
        "healthy": {name: _plain(result) for name, result in healthy.items()},
        "faults": {
            fault: {name: _plain(r) for name, r in _differing(one, fault).items()}
            for fault, one in recordings.items()
            if fault != "healthy" and not fault.startswith(("rank-", "loader-"))
        },
        "words": {
            fault: {who: _words(one.reports[node]) for who, node in _WHO.items()}
            for fault, one in recordings.items()
        },
        "stacks": {
            fault: {"culprit": one.stacks[2], "bystander": one.stacks[1]}
            for fault, one in recordings.items()
            if one.stacks
        },
    }


_WHO = {"culprit": CULPRIT, "bystander": BYSTANDER}


def _words(report: NodeReport) -> str:
    for result in report.results:
        for m in result.measurements:
            if m.name == "job.rank.last_words":
                return str(m.value)
    return ""


def _differing(one: Recording, fault: str) -> Answer:
    mine, other = _answers(one.reports[CULPRIT]), _answers(one.reports[BYSTANDER])
    noise = _NOISE - _OF_FAULT.get(fault, set())
    return {
        name: result
        for name, result in mine.items()
        if name not in noise and _essence(result) != _essence(other[name])
    }


def _essence(result: CheckResult) -> object:
    """What a fault changes and the passing of time does not."""
    keep = [m for m in result.measurements if not m.name.endswith(("uptime_s", "free_bytes"))]
    coarse = [(m.name, m.subject, _coarse(m.value)) for m in keep]
    return (result.status, result.notes, sorted(coarse, key=str))


def _coarse(value: Value) -> Value:
    return round(value, 0) if isinstance(value, float) else value


def _answers(report: NodeReport) -> Answer:
    """All answers but the ranks', with devices and moments every node could have."""
    names: dict[str, str] = {}
    for result in report.results:
        for m in result.measurements:
            for found in _UUID.findall(m.subject):
                names.setdefault(found, f"GPU-{len(names):08d}-0000-0000-0000-000000000000")
    return {
        result.check: _renamed(result, names) for result in report.results if result.check != RANKS
    }


def _renamed(result: CheckResult, names: Mapping[str, str]) -> CheckResult:
    def new(text: str) -> str:
        return _UUID.sub(lambda m: names.get(m[0], m[0]), text)

    rows = tuple(
        Measurement(m.name, new(m.subject), new(m.value) if isinstance(m.value, str) else m.value)
        for m in result.measurements
    )
    return CheckResult(result.check, result.status, rows, result.notes)


def _plain(result: CheckResult) -> dict[str, object]:
    rows = [[m.name, m.subject, m.value] for m in result.measurements]
    return {"status": result.status, "notes": result.notes, "measurements": rows}


def _result(check: str, plain: Mapping[str, object]) -> CheckResult:
    rows = plain["measurements"]
    notes = plain["notes"]
    assert isinstance(rows, list)
    assert isinstance(notes, list)
    measured = tuple(Measurement(*row) for row in rows)
    return CheckResult(check, ProbeStatus(str(plain["status"])), measured, tuple(notes))


@cache
def _file() -> dict[str, Any]:
    """The file, whose shape `distil` gives it."""
    loaded: dict[str, Any] = json.loads(FILE.read_text())
    return loaded


@cache
def healthy() -> Mapping[str, CheckResult]:
    """What a healthy node answers, all but its ranks."""
    return {check: _result(check, one) for check, one in _file()["healthy"].items()}


@cache
def changed_by(fault: str) -> Mapping[str, CheckResult]:
    """The answers that differ under a fault of the lab."""
    return {check: _result(check, one) for check, one in _file()["faults"][fault].items()}


def faults() -> tuple[str, ...]:
    """The faults of the lab under which a node's answers differ."""
    return tuple(sorted(_file()["faults"]))


def words(fault: str, who: str) -> str:
    """The last words of the culprit's rank, or of a bystander's."""
    return str(_file()["words"][fault][who])


def stack(fault: str, who: str) -> tuple[str, ...]:
    """Where the culprit's rank stood, or a bystander's; innermost frame first."""
    return tuple(_file()["stacks"][fault][who])
