"""Which level of checks would tell more than the last look, and which jobs it would slow."""

from collections.abc import Collection, Sequence

from brctl.engine.controller.wiring import Controller
from brctl.engine.sweeps.busy_nodes import nodes_of_jobs
from brctl.engine.sweeps.run_checks import Question, choose_checks
from brctl.model.deeper_look import DeeperLook
from brctl.model.fault import FaultClass
from brctl.model.jobs.job import Job
from brctl.model.sweeps.check import Check

HIGHEST_LEVEL = 4


def deeper_look(
    controller: Controller,
    job: Job | None,
    names: Sequence[str],
    level: int,
    leads: Collection[FaultClass] | None = None,
) -> DeeperLook | None:
    """The lowest level above `level` that asks more, of these leads if given; None for none."""
    asked = choose_checks(controller.checks, Question(level=level, job=job))
    for higher in range(level + 1, HIGHEST_LEVEL + 1):
        chosen = choose_checks(controller.checks, Question(level=higher, job=job))
        more = {
            name: check
            for name, check in chosen.items()
            if name not in asked and (leads is None or _speaks_of(check, leads))
        }
        if more:
            at_most_s = sum(check.deadline_s for check in more.values())
            return DeeperLook(higher, tuple(sorted(more)), at_most_s, _busy(controller, names))
    return None


def _speaks_of(check: Check, leads: Collection[FaultClass]) -> bool:
    return any(rule.fault in leads for rule in check.rules)


def _busy(controller: Controller, names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    wanted = frozenset(names)
    found = {
        job: tuple(node for node in nodes if node in wanted)
        for job, nodes in nodes_of_jobs(controller).items()
    }
    return {job: nodes for job, nodes in sorted(found.items()) if nodes}
