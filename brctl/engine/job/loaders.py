"""Look at the loaders of ranks that wait for a batch, and at who else reads their files."""

from brctl.engine.controller.wiring import Controller
from brctl.engine.job.conclude import NOTHING, Findings
from brctl.engine.job.stacks import ask_check
from brctl.evidence.job.data.loader_processes import read_loaders, read_path_answers
from brctl.evidence.job.data.loaders import assess_loaders, data_waiters, files_waited_for
from brctl.model.evidence_kinds import LOADER_CHECK
from brctl.model.jobs.job_status import JobStatus

NODES_LOOKED_AT = 64
"""Where more ranks than on these wait for data, what keeps them waiting is one thing."""

NODES_COMPARED = 8
"""Other nodes that try to read what workers are stuck on."""


async def examine_loaders(controller: Controller, status: JobStatus) -> Findings:
    """What keeps the ranks waiting that stand in their loader; nothing where none does."""
    waiting = data_waiters(status)
    if not waiting:
        return NOTHING
    nodes = list(dict.fromkeys(view.node for view in waiting))[:NODES_LOOKED_AT]
    ranks = {node: [v.rank for v in waiting if v.node == node] for node in nodes}
    reports = await ask_check(
        controller, status.job, LOADER_CHECK, nodes, lambda node: {"waiting": ranks[node]}
    )
    processes = read_loaders(reports)
    paths = files_waited_for(processes)
    others = [node for node in status.job.nodes if node not in nodes][:NODES_COMPARED]
    compared = (
        await ask_check(
            controller, status.job, LOADER_CHECK, others,
            lambda _: {"waiting": [], "paths": list(paths)},
        )
        if paths and others
        else []
    )  # fmt: skip
    return assess_loaders(status, processes, read_path_answers(compared))
