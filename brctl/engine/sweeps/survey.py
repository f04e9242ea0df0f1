"""What is known of every node without asking one: inventory, last sweep, cordons, jobs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from brctl.backends.contract import Cordon
from brctl.engine.controller.wiring import Controller
from brctl.engine.sweeps.busy_nodes import nodes_of_jobs
from brctl.engine.sweeps.sweep_store import latest
from brctl.model.inventory import Node
from brctl.model.sweeps.sweep import NodeHealth


@dataclass(frozen=True, slots=True)
class Survey:
    """Known facts by node name.

    Attributes:
        age_s: Age of the newest sweep; None when nothing was swept yet.
    """

    nodes: Sequence[Node]
    health: Mapping[str, NodeHealth]
    cordons: Mapping[str, Cordon]
    job_of: Mapping[str, str]
    age_s: float | None


async def survey(controller: Controller, names: Sequence[str]) -> Survey:
    """Collect what is on disk and what the scheduler says."""
    swept = latest(controller.state_dir)
    return Survey(
        nodes=controller.inventory.pick(names),
        health={node.node: node for node in swept.nodes} if swept else {},
        cordons=await controller.backend.cordons(),
        job_of={node: job for job, nodes in nodes_of_jobs(controller).items() for node in nodes},
        age_s=(controller.now() - swept.started_at).total_seconds() if swept else None,
    )
