"""How many people must say yes, and whether what they typed says it."""

from collections.abc import Mapping, Sequence

from brctl.model.playbook import Need, Playbook, Policy, Risk
from brctl.playbook.expressions import ExpressionError, Scope, is_true

STRICTNESS = (Need.NONE, Need.ONE, Need.TWO)
PEOPLE: Mapping[Need, int] = {Need.NONE: 0, Need.ONE: 1, Need.TWO: 2}


def people_needed(playbook: Playbook, site: Sequence[Policy], scope: Scope) -> Need:
    """The need of a run: the playbook's first matching row, raised by the site's, never lowered.

    A row whose condition cannot be decided counts as matching with the strictest need there is.
    """
    if playbook.approval is None:
        return Need.NONE
    needs = [_first_match(playbook.approval.policy, scope), _first_match(site, scope, Need.NONE)]
    return max(needs, key=STRICTNESS.index)


def _first_match(rows: Sequence[Policy], scope: Scope, otherwise: Need = Need.ONE) -> Need:
    for row in rows:
        try:
            matches = is_true(row.when, scope) if row.when else True
        except ExpressionError:
            matches = None
        if matches is None:
            return Need.TWO
        if matches:
            return row.need
    return otherwise


def confirmation_text(playbook: Playbook, node_count: int, job: str) -> str:
    """What a person types to go on: `y`, the verb and the count, or the job's name."""
    if playbook.risk is Risk.LOW:
        return "y"
    if playbook.risk is Risk.HIGH:
        return job or playbook.name
    verb = playbook.name.split("-")[0]
    return f"{verb} {node_count}" if node_count else verb


def is_confirmed(playbook: Playbook, typed: str | None, *, yes: bool, expected: str) -> bool:
    """Whether an approval given on the command line counts; `--yes` does for low risk only."""
    if typed is not None:
        return typed.strip() == expected
    return yes and playbook.risk is Risk.LOW
