"""How many people must say yes, who counts, and whether what they typed says it."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from brctl.model.runs.plan import Plan
from brctl.model.runs.playbook import Json, Need, Playbook, Policy, Risk, Safety
from brctl.playbook.expressions import ExpressionError, Scope, is_true

STRICTNESS = (Need.NONE, Need.ONE, Need.TWO)
PEOPLE: Mapping[Need, int] = {Need.NONE: 0, Need.ONE: 1, Need.TWO: 2}
YES = "y"
"""What is typed where nobody's words are needed."""
GroupsOf = Callable[[str], Collection[str]]
"""The unix groups of a person."""


@dataclass(frozen=True, slots=True)
class Demand:
    """What one policy asks for; all of them must be met.

    Attributes:
        role: Unix group of those who count; "" counts everybody.
        starter_counts: Whoever started the run may be one of several.
    """

    need: Need
    role: str = ""
    starter_counts: bool = False

    def counts(self, person: str, starter: str, groups_of: GroupsOf) -> bool:
        """Whether this person's yes is worth something here."""
        if self.role and self.role not in groups_of(person):
            return False
        return self.need is not Need.TWO or self.starter_counts or person != starter

    def includes(self, other: "Demand") -> bool:
        """Whether whoever meets this one meets the other, too."""
        as_many = STRICTNESS.index(self.need) >= STRICTNESS.index(other.need)
        same_people = other.role in ("", self.role)
        return as_many and same_people and (other.starter_counts or not self.starter_counts)

    def as_json(self) -> dict[str, Json]:
        """For the journal, so that whoever answers later is told at once whether it helps."""
        return {
            "need": self.need.value, "role": self.role, "starter_counts": self.starter_counts,
        }  # fmt: skip


def read_demand(row: Mapping[str, Json]) -> Demand:
    """What `as_json` wrote."""
    return Demand(Need(str(row["need"])), str(row["role"]), row["starter_counts"] is True)


def demands_of(
    playbook: Playbook, site: Sequence[Sequence[Policy]], scope: Scope, site_scope: Scope
) -> tuple[Demand, ...]:
    """What the playbook's first matching row asks for, and that of every file of the site.

    Files add to each other, so the site can only raise what is needed. A row whose condition
    cannot be decided counts as matching with the strictest need there is.
    """
    if playbook.approval is None:
        return ()
    found = [_first_match(playbook.approval.policy, scope, Demand(Need.ONE))]
    found += [_first_match(rows, site_scope, Demand(Need.NONE)) for rows in site]
    required = dict.fromkeys(demand for demand in found if demand.need is not Need.NONE)
    return tuple(d for d in required if not any(e.includes(d) for e in required if e != d))


def _first_match(rows: Sequence[Policy], scope: Scope, otherwise: Demand) -> Demand:
    for row in rows:
        try:
            matches = is_true(row.when, scope) if row.when else True
        except ExpressionError:
            matches = None
        if matches is None:
            return Demand(Need.TWO, row.role)
        if matches:
            return Demand(row.need, row.role, row.starter_counts)
    return otherwise


def strictest(demands: Iterable[Demand]) -> Need:
    """How many people it takes at least."""
    return max((d.need for d in demands), key=STRICTNESS.index, default=Need.NONE)


def missing(
    demands: Sequence[Demand], given: Collection[str], starter: str, groups_of: GroupsOf
) -> tuple[str, ...]:
    """What is still asked for, one phrase each; nothing when the run may go on."""
    phrases: list[str] = []
    for demand in demands:
        count = sum(demand.counts(person, starter, groups_of) for person in given)
        lacking = PEOPLE[demand.need] - count
        if lacking > 0:
            phrases.append(_phrase(demand, lacking, count, starter))
    return tuple(dict.fromkeys(phrases))


def _phrase(demand: Demand, lacking: int, count: int, starter: str) -> str:
    more = " more" if count else ""
    who = f"one{more} person" if lacking == 1 else f"{lacking}{more} people"
    role = f" of group {demand.role}" if demand.role else ""
    alone = demand.need is Need.TWO and not demand.starter_counts
    other = f" other than {starter}, who started it" if alone and starter else ""
    return f"{who}{role}{other}"


def why_not_counted(
    demands: Sequence[Demand], person: str, starter: str, groups_of: GroupsOf
) -> str | None:
    """Why this person's yes would help nobody, or None when it helps."""
    if not demands or any(d.counts(person, starter, groups_of) for d in demands):
        return None
    roles = sorted({d.role for d in demands if d.role and d.role not in groups_of(person)})
    if roles:
        return f"{person} is not in group {' or '.join(roles)}"
    return f"{person} started this run, and it takes two other people"


def confirmation_text(playbook: Playbook, node_count: int, job: str) -> str:
    """What a person types to go on: `y`, the verb and the count, or the job's name.

    Words are for what reading them may stop: so many nodes, or a job that stays down.
    """
    if playbook.risk is Risk.HIGH:
        return job or playbook.name
    if playbook.risk is Risk.LOW or (not node_count and _restarts(playbook)):
        return YES
    return f"{_verb(playbook)} {node_count}" if node_count else _verb(playbook)


def _verb(playbook: Playbook) -> str:
    return playbook.name.split("-")[0]


def _restarts(playbook: Playbook) -> bool:
    """It starts the job again itself: what is lost are the steps since the checkpoint."""
    return any(step.uses == "job.restart" for step in playbook.steps)


def agrees(playbook: Playbook, typed: str, expected: str) -> bool:
    """Whether what was typed is what was asked for; the verb says no less than a `y`."""
    said = typed.strip()
    return said == expected or (expected == YES and said == _verb(playbook))


def needs_a_yes(plan: Plan, words: str = "") -> bool:
    """Whether ranks end, or something else without a way back is done, and a y before is enough.

    So it is where no gate asks anybody, and where the gate asks one person for no more `words`:
    whoever sits there sees the plan first, and says y.
    """
    final = any(s.safety is Safety.DESTRUCTIVE and not s.skipped for s in plan.steps)
    enough = plan.people is Need.NONE or (plan.people is Need.ONE and words == YES)
    return final and enough and not plan.refused


def is_confirmed(playbook: Playbook, typed: str | None, *, yes: bool, expected: str) -> bool:
    """Whether an approval given on the command line counts; `--yes` does for low risk only."""
    if typed is not None:
        return agrees(playbook, typed, expected)
    return yes and playbook.risk is Risk.LOW
