"""A plan is made of what was observed and of nothing else."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from brctl.library.playbooks import load_playbook
from brctl.library.shipped import shipped_dir
from brctl.model.runs.plan import Change, GuardResult, Plan, PlannedStep, Sign
from brctl.model.runs.playbook import Need, Safety
from brctl.playbook.approvals import Demand
from brctl.playbook.assemble import Observed, plan_of
from brctl.playbook.run_record import blank_record

CORDON = load_playbook(shipped_dir("playbooks") / "cordon.yaml")
NOON = datetime(2026, 7, 5, 12, 0, tzinfo=UTC)
CHANGE = Change(Sign.ALTER, "n1", "schedulable -> cordoned")
STEP = PlannedStep("cordon", "Cordon", "node.cordon", Safety.REVERSIBLE, {}, (CHANGE,), node="n1")
SEEN = Observed((STEP,), (), (Demand(Need.ONE, "sre"), Demand(Need.TWO)), (("n1",),), NOON)


def planned(found: Observed) -> Plan:
    return plan_of(CORDON, {"nodes": ["n1"]}, "", blank_record(CORDON), found)


def test_the_digest_is_of_the_changes_and_not_of_the_moment() -> None:
    """Who approved at noon approved the same plan at one; another change is another plan."""
    plan = planned(SEEN)
    assert planned(replace(SEEN, at=NOON + timedelta(hours=1))).digest == plan.digest
    other = replace(STEP, changes=(replace(CHANGE, what="cordoned already"),))
    assert planned(replace(SEEN, steps=(other,))).digest != plan.digest


def test_a_node_that_a_guard_passes_over_changes_nothing_and_says_why() -> None:
    """Its steps stay in the plan, so that a person sees that they are left out."""
    guard = GuardResult("owner", True, "passed over: n1", "g.yaml:1", skips=("n1",))
    plan = planned(replace(SEEN, guards=(guard,)))
    assert plan.changes == ()
    assert plan.steps[0].skipped == "passed over: n1"


def test_the_strictest_demand_says_how_many_people_and_every_role_is_named() -> None:
    """Two of anybody and one of a group: two people, and the group among them."""
    plan = planned(SEEN)
    assert (plan.people, plan.roles) == (Need.TWO, ("sre",))
