"""Beside slower steps: groups split over the network slow a job down with every link sound.

The labels tell; a slow link is what the fabric's own checks convict.
"""

from collections.abc import Sequence

from brctl.model.evidence import Evidence, Role, Subject, Weight
from brctl.model.inventory import Inventory
from brctl.model.jobs.job import Job
from brctl.playbook.placement.domains import domains_for
from brctl.playbook.placement.spread import layout_of, slower_by, spreads

STEPS_SLOWER = "job.steps.slower"
SPLIT_GROUPS = "job.placement.split"


def split_groups(found: Sequence[Evidence], job: Job, inventory: Inventory) -> tuple[Evidence, ...]:
    """How the groups of a job with slower steps stand; nothing where all are whole or unknown."""
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
            f" {slower_by(first):.0%} of a step (assumed); a slow link is another matter:"
            f" brctl job place {job.name}",
        )
        for axis in first
        if axis.split
    )
