"""Model values as the keys of versioned documents; names carry units, not measured is null."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from brctl.model.deeper_look import DeeperLook
from brctl.model.evidence import Evidence, Gap, Role, Weight
from brctl.model.nodeset import fold
from brctl.model.sweeps.sweep import Health, NodeHealth, Sweep
from brctl.model.units import rfc3339
from brctl.model.verdict import Verdict
from brctl.view.next_move import move_command
from brctl.view.notices.page import Json
from brctl.view.schema import (
    DeeperDocument,
    EvidenceDocument,
    GapDocument,
    NodeDocument,
    NodeSetDocument,
    VerdictBody,
)

Sign = Literal["for", "against", "follows", "context"]
_SIGNS: Mapping[Weight, Sign] = {
    Weight.CONVICTS: "for",
    Weight.HINTS: "for",
    Weight.CLEARS: "against",
    Weight.CONTEXT: "context",
}


def node_set(names: Iterable[str]) -> NodeSetDocument:
    """A node set both ways: expanded for programs, folded for people."""
    listed = list(names)
    return {"nodes": listed, "folded": fold(listed)}


def evidence_document(number: int, item: Evidence) -> EvidenceDocument:
    """One line of an evidence chain."""
    return {
        "n": number,
        "sign": "follows" if item.role is Role.VICTIM else _SIGNS[item.weight],
        "weight": item.weight.value,
        "role": item.role.value,
        "class": item.fault.value if item.fault else None,
        "node": item.subject.node or None,
        "device": item.subject.device or None,
        "at": rfc3339(item.at) if item.at else None,
        "kind": item.kind,
        "source": item.source,
        "text": item.text,
        "raw": item.raw,
    }


def deeper_document(deeper: DeeperLook) -> DeeperDocument:
    """A look that would tell more, and what it costs."""
    return {
        "level": deeper.level,
        "checks": list(deeper.checks),
        "at_most_seconds": deeper.at_most_s,
        "slows": [{"job": job, **node_set(nodes)} for job, nodes in deeper.busy.items()],
    }


def gap_document(gap: Gap) -> GapDocument:
    """One thing that could not be looked at."""
    return {
        "node": gap.subject.node or None,
        "device": gap.subject.device or None,
        "what": gap.what,
        "why": gap.why,
    }


def verdict_document(verdict: Verdict) -> VerdictBody:
    """The `verdict` key of a Verdict document."""
    return {
        "id": verdict.id,
        "class": verdict.fault.value,
        "title": verdict.title,
        "origin": verdict.origin.value,
        "confidence": verdict.confidence.value,
        "probability": round(verdict.probability, 4),
        "suspects": {
            **node_set(verdict.nodes),
            "devices": [{"node": s.node, "device": d} for s in verdict.suspects for d in s.devices],
            "ranks": [rank for s in verdict.suspects for rank in s.ranks],
        },
        "places": [{"node": p.node, "ranks": list(p.ranks)} for p in verdict.places],
        "job": {"name": verdict.job, "step": verdict.job_step} if verdict.job else None,
        "action": {
            "do": verdict.action.value,
            "playbook": verdict.playbook or None,
            "say": verdict.say or None,
            "command": move_command(verdict) or None,
        },
        "cost_if_wrong": verdict.cost_if_wrong or None,
        "evidence": [evidence_document(n, e) for n, e in enumerate(verdict.evidence, start=1)],
        "alternatives": [
            {"class": a.fault.value, **node_set(a.nodes), "probability": round(a.probability, 4)}
            for a in verdict.alternatives
        ],
        "settle": list(verdict.settle),
        "ruled_out": [
            {"class": r.fault.value, "by": list(r.by), "why": r.why} for r in verdict.ruled_out
        ],
        "not_checked": [gap_document(gap) for gap in verdict.not_checked],
        "decided_at": rfc3339(verdict.decided_at),
    }


def node_document(node: NodeHealth) -> NodeDocument:
    """One node of a sweep."""
    return {
        "node": node.node,
        "state": node.health.value,
        "outcome": node.report.outcome.value,
        "detail": node.report.detail or None,
        "seconds": round(node.report.seconds, 3),
        "evidence": [evidence_document(n, e) for n, e in enumerate(node.evidence, start=1)],
        "not_checked": [gap_document(gap) for gap in node.gaps],
    }


def sweep_document(sweep: Sweep, nodes: Sequence[NodeDocument]) -> dict[str, Json]:
    """The keys of a Sweep document."""
    return {
        "sweep": {
            "id": sweep.id,
            "level": sweep.level,
            "checks": list(sweep.checks),
            "started_at": rfc3339(sweep.started_at),
            "seconds": round(sweep.seconds, 3),
        },
        "summary": {
            health.value: node_set(node.node for node in sweep.of(health)) for health in Health
        },
        "nodes": nodes,
    }


def verdicts_document(verdicts: Sequence[Verdict]) -> dict[str, Json]:
    """The keys of a document that holds several verdicts, likeliest first."""
    return {"verdicts": [verdict_document(verdict) for verdict in verdicts]}
