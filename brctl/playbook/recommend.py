"""The tree's next move, written into what is shown: a verdict, or what logs say."""

from collections.abc import Iterator
from dataclasses import replace

from brctl.model.evidence import Evidence, Role, Weight
from brctl.model.evidence_kinds import AT_WORK, HELD_BACK, REPLAY_DIFFERS, WAY_TO_NODES
from brctl.model.fault import Action, Branch, FaultClass
from brctl.model.fault_catalogue import CATALOGUE
from brctl.model.log_verdict import LogVerdict
from brctl.model.verdict import Verdict, confidence_word
from brctl.playbook.past_searches import with_searches
from brctl.playbook.tree import NO_HISTORY, Case, IncidentHistory, Move, next_move

_OF_MACHINE = (Branch.MACHINE, Branch.NETWORK)
_COST_OF = {Action.RESTART: "the time of one restart", Action.WATCH: ""}
"""Moves that cost what they cost, whatever the class."""
_GO_BACK = "training advances on other samples: go back to an earlier checkpoint if they matter"
PROCESS_STATE, IN_KERNEL = "job.rank.process_state", "D"


def case_of(verdict: Verdict) -> Case:
    """What the tree asks of a verdict."""
    busy = verdict.fault is FaultClass.UNKNOWN and any(i.kind == AT_WORK for i in verdict.evidence)
    advances = None if verdict.stalled is None else not verdict.stalled or busy
    return Case(
        verdict.fault,
        verdict.confidence,
        bool(verdict.suspects),
        bool(verdict.job),
        advances,
        clean=not any(_is_of_machine(item) for item in _on_suspects(verdict)),
        unreached=any(item.kind == WAY_TO_NODES for item in verdict.evidence),
        proved=any(_proves(item, verdict) for item in verdict.evidence),
    )


def _proves(item: Evidence, verdict: Verdict) -> bool:
    """A measurement of the machine itself; a line of a log is stated with a strength."""
    convicts = item.weight is Weight.CONVICTS and item.role is Role.ROOT and item.strength is None
    return convicts and item.fault is verdict.fault and item.subject.node in verdict.nodes


def _on_suspects(verdict: Verdict) -> Iterator[Evidence]:
    """What speaks of the suspects, but for kernels that wait for something outside of them.

    While a job makes steps its ranks write files, and are blocked for a moment when one looks.
    """
    held = {item.subject for item in verdict.evidence if item.kind == HELD_BACK}
    return (
        item
        for item in verdict.evidence
        if item.subject.node in verdict.nodes
        and not (item.kind == PROCESS_STATE and (verdict.stalled is False or item.subject in held))
    )


def _is_of_machine(item: Evidence) -> bool:
    """Speaks of the machine itself; a process that waits in its kernel does so as well."""
    if item.kind == PROCESS_STATE and item.raw.endswith(f" {IN_KERNEL}"):
        return True
    if item.weight not in (Weight.CONVICTS, Weight.HINTS) or item.fault is None:
        return False
    return item.role is Role.ROOT and CATALOGUE[item.fault].branch in _OF_MACHINE


def recommend(verdict: Verdict, incident: IncidentHistory = NO_HISTORY) -> Verdict:
    """The verdict with the move that comes next."""
    of_numbers = CATALOGUE[verdict.fault].branch is Branch.NUMBERS
    if of_numbers or verdict.fault is FaultClass.SILENT_CORRUPTION:
        verdict = replace(verdict, evidence=with_searches(verdict, incident.searched))
    move = next_move(case_of(verdict), incident)
    if move.do is Action.WATCH and any(e.kind == REPLAY_DIFFERS for e in verdict.evidence):
        move = replace(move, say=_GO_BACK)
    return with_move(verdict, move)


def with_move(verdict: Verdict, move: Move) -> Verdict:
    """The verdict with this move, and what that costs when it was something else."""
    unreached = any(item.kind == WAY_TO_NODES for item in verdict.evidence)
    usual = verdict.cost_if_wrong if unreached else CATALOGUE[verdict.fault].cost_if_wrong
    return replace(
        verdict,
        action=move.do,
        playbook=move.playbook,
        say=move.say,
        cost_if_wrong=_COST_OF.get(move.do, usual),
    )


def recommend_for_logs(verdict: LogVerdict) -> LogVerdict:
    """What logs say, with the first move on it; logs are a job's, and nothing was tried yet."""
    named = verdict.names_machine and CATALOGUE[verdict.fault].per_node
    case = Case(verdict.fault, confidence_word(verdict.probability), named, clean=True)
    move = next_move(case)
    return replace(verdict, action=move.do, playbook=move.playbook, say=move.say)
