"""Searches on disk, one document each, and the verdicts that follow from them."""

import json
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from brctl.engine.incidents.verdict_store import save_new
from brctl.engine.runs.propose import with_next_move
from brctl.library.durable_files import private_dir, write_atomic
from brctl.model.evidence import Evidence, Gap, Role, Subject, Weight
from brctl.model.fault import FaultClass
from brctl.model.localisation import Bisection, FaultKind, Finding
from brctl.model.verdict import Verdict
from brctl.verdict.decide import DecisionContext, decide

FOLDER = "bisections"
KEPT = 50
SOURCE = "nccl bisect"
_RAW_TESTS = 6

# What failing collectives of one kind of subject speak for; a whole fabric is nobody's node.
_CLASSES = {
    FaultKind.SLOW: FaultClass.NETWORK_LINK,
    FaultKind.LINK: FaultClass.NETWORK_LINK,
    FaultKind.PAIR: FaultClass.NETWORK_LINK,
    FaultKind.LEAF: FaultClass.NETWORK_SWITCH,
    FaultKind.LEAF_PAIR: FaultClass.NETWORK_SWITCH,
    FaultKind.SCALE: FaultClass.NCCL_CONFIG,
    FaultKind.JOB: FaultClass.NUMERIC_NAN,
}


def save(state_dir: Path, search_id: str, document: Mapping[str, object]) -> Path:
    """Keep a search's document, readable by its owner only; the oldest ones go."""
    folder = state_dir / FOLDER
    private_dir(folder)
    path = folder / f"{search_id}.json"
    write_atomic(path, json.dumps(document, allow_nan=False))
    for old in sorted(folder.glob("B-*.json"))[:-KEPT]:
        old.unlink(missing_ok=True)
    return path


def load_all(state_dir: Path) -> tuple[Mapping[str, object], ...]:
    """Documents of all kept searches, newest first; what cannot be read is left out."""
    found = []
    for path in sorted((state_dir / FOLDER).glob("B-*.json"), reverse=True):
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        if isinstance(document, dict):
            found.append(document)
    return tuple(found)


def conclude_verdicts(
    state_dir: Path, context: str, search: Bisection, job: str, decided_at: datetime
) -> tuple[Verdict, ...]:
    """Store what the search says as verdicts, so that `why` explains and `fix` acts on them."""
    evidence = [item for f in search.conclusion.findings for item in evidence_of(search, f)]
    gaps = [gap for f in search.conclusion.findings for gap in gaps_of(f)]
    if not evidence:
        return ()
    decided = decide(evidence, gaps, DecisionContext(decided_at, job))
    verdicts = tuple(with_next_move(state_dir, context, v, decided_at) for v in decided)
    for verdict in verdicts:
        save_new(state_dir, verdict)
    return verdicts


def evidence_of(search: Bisection, finding: Finding) -> tuple[Evidence, ...]:
    """One piece of evidence for each node a finding names, or one for the fabric."""
    if finding.kind in (FaultKind.NONE, FaultKind.UNDECIDABLE):
        return ()
    fault = _CLASSES.get(finding.kind) or _class_of_node(search, finding)
    sole = finding.kind in (FaultKind.NODE, FaultKind.SLOW, FaultKind.LINK)
    of_nodes = sole or finding.kind is FaultKind.PAIR
    names = finding.members if of_nodes else ("",)
    text = f"{_describe(finding)}; probability {finding.posterior:.4f}"
    return tuple(
        Evidence(
            kind=f"fabric.group.{finding.kind.value}",
            subject=Subject(name),
            weight=Weight.CONVICTS if sole or not of_nodes else Weight.HINTS,
            fault=fault,
            role=Role.ROOT,
            source=SOURCE,
            text=text,
            raw=_raw(search, finding),
            at=search.started_at,
        )
        for name in names
    )


def _class_of_node(search: Bisection, finding: Finding) -> FaultClass:
    """Wrong numbers are silent corruption; groups that never end are a link's or a node's."""
    reports = {report.number: report for report in search.rounds}
    results = [reports[n].results[i] for n, i in finding.tests]
    wrong = sum(1 for result in results if result.failed and not result.silent)
    return FaultClass.SILENT_CORRUPTION if 2 * wrong > len(results) else FaultClass.NETWORK_LINK


def _describe(finding: Finding) -> str:
    who = " and ".join(finding.members) or "the fabric"
    return f"collectives with {who} fail or are slow" + (f": {finding.why}" if finding.why else "")


def _raw(search: Bisection, finding: Finding) -> str:
    """The tests behind a finding, one a line."""
    reports = {report.number: report for report in search.rounds}
    lines = []
    for number, position in finding.tests[:_RAW_TESTS]:
        group, result = reports[number].groups[position], reports[number].results[position]
        outcome = "no answer" if result.silent else f"{result.failed} of {result.reps} failed"
        lines.append(
            f"round {number}: {' '.join(group[:8])}: {outcome}, {result.busbw_gb_per_s} GB/s"
        )
    return "\n".join(lines)


def gaps_of(finding: Finding) -> tuple[Gap, ...]:
    """What stayed open, as something that was not observed."""
    if finding.kind is not FaultKind.UNDECIDABLE:
        return ()
    names = finding.members or ("",)
    return tuple(Gap(Subject(name), "collectives in groups", finding.why) for name in names)
