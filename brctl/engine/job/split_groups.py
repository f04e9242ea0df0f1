"""Beside slower steps: groups split over the network slow a job down with every link sound.

The labels tell; a slow link is what the fabric's own checks convict.
"""

from collections.abc import Sequence

from brctl.evidence.job.history import slow_down
from brctl.model.evidence import Evidence, Role, Subject, Weight
from brctl.model.inventory import Inventory
from brctl.model.jobs.job_status import JobStatus
from brctl.playbook.placement.domains import domains_for
from brctl.playbook.placement.spread import layout_of, slower_by, spreads

STEPS_SLOWER = "job.steps.slower"
SPLIT_GROUPS = "job.placement.split"
TIMES_THE_PRICE = 2.0
"""Steps that are longer by more than so many times what a split costs have another cause too."""


def split_groups(
    found: Sequence[Evidence], status: JobStatus, inventory: Inventory
) -> tuple[Evidence, ...]:
    """How the groups of a job with slower steps stand; nothing where all are whole or unknown."""
    job, change = status.job, slow_down(status.history)
    growth = change.growth_s / change.before_s if change is not None else 0.0
    domains = domains_for(inventory.labels(), job.nodes)
    known = all(domains.known(node) for node in job.nodes)
    if not known or all(item.kind != STEPS_SLOWER for item in found):
        return ()
    first = spreads(layout_of(job), [domains.of(node) for node in job.nodes])[:1]
    return tuple(
        Evidence(
            kind=SPLIT_GROUPS,
            subject=Subject(""),
            weight=Weight.CONTEXT,
            fault=None,
            role=Role.CONTEXT,
            source="inventory",
            text=f"{axis.split} of {axis.groups} {axis.axis} groups are split over up to"
            f" {axis.widest} domains ({domains.level}), which alone costs about"
            f" {slower_by(first):.0%} of a step (assumed); {_rest(growth, slower_by(first))}:"
            f" brctl job place {job.name}",
        )
        for axis in first
        if axis.split
    )


def _rest(growth: float, price: float) -> str:
    """What of the longer steps is left once the split has its share."""
    if growth > TIMES_THE_PRICE * price:
        return f"steps are {growth:.0%} longer, so look for a slow link as well"
    return f"that steps are {growth:.0%} longer may be this alone"
