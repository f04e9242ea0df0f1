"""The tree's next move, written into what is shown: a verdict, or what logs say."""

from dataclasses import replace

from brctl.model.fault_catalogue import CATALOGUE
from brctl.model.log_verdict import LogVerdict
from brctl.model.verdict import Verdict, confidence_word
from brctl.playbook.tree import NO_HISTORY, Case, IncidentHistory, Move, next_move


def case_of(verdict: Verdict) -> Case:
    """What the tree asks of a verdict."""
    advances = None if verdict.stalled is None else not verdict.stalled
    return Case(
        verdict.fault, verdict.confidence, bool(verdict.suspects), bool(verdict.job), advances
    )


def recommend(verdict: Verdict, incident: IncidentHistory = NO_HISTORY) -> Verdict:
    """The verdict with the move that comes next."""
    return with_move(verdict, next_move(case_of(verdict), incident))


def with_move(verdict: Verdict, move: Move) -> Verdict:
    """The verdict with this move."""
    return replace(verdict, action=move.do, playbook=move.playbook, say=move.say)


def recommend_for_logs(verdict: LogVerdict) -> LogVerdict:
    """What logs say, with the first move on it; logs are a job's, and nothing was tried yet."""
    named = verdict.names_machine and CATALOGUE[verdict.fault].per_node
    move = next_move(Case(verdict.fault, confidence_word(verdict.probability), named))
    return replace(verdict, action=move.do, playbook=move.playbook, say=move.say)
