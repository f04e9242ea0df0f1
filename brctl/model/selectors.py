"""Every form in which nodes can be named by `@`, and what it means; the table of help and docs.

Who answers each form: `brctl/inventory/select.py`.
"""

from collections.abc import Mapping

from brctl.model.sweeps.sweep import Health

NOT_SWEPT = "not-swept"
STATES = (*(health.value for health in Health), NOT_SWEPT)

SELECTOR_FORMS: Mapping[str, str] = {
    "@all": "every node of the inventory",
    "@active": "nodes that take ranks",
    "@standby": "nodes that wait to take a node's place",
    "@GROUP": "a group of the inventory",
    "@LABEL:VALUE": "nodes with this label: @rack:r12, @leaf:L7",
    "@job:NAME": "where the ranks of a job run now, as the scheduler says",
    "@cordoned": "nodes out of service, whoever took them out",
    "@by:OWNER": "nodes cordoned by `brctl`, a run (R-0012), a person, or `me`",
    "@state:STATE": f"as the newest sweeps saw them: {' '.join(STATES)} (which is unknown too)",
}
"""Capitals stand for what the person fills in."""
