"""What selectors ask of this moment: where jobs run, who cordoned what, what sweeps saw.

Only what a text asks for is looked up, and only then imported: `-w gpu[1-8]` asks no scheduler and
reads no sweep.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from brctl.backends.contract import Backend
from brctl.engine.controller.people import person
from brctl.inventory.select import LiveFact, LiveState, facts_asked, jobs_asked, select
from brctl.model.errors import ConfigError
from brctl.model.inventory import Inventory
from brctl.model.jobs.job import Job
from brctl.model.sweeps.sweep import Health

NOBODY_SWEPT = "nothing was swept yet; brctl sweep"
OWN_PREFIX = "brctl:"


class SelectorContext(Protocol):
    """Whom the resolver asks: every opened context is one."""

    @property
    def inventory(self) -> Inventory: ...

    @property
    def jobs(self) -> Mapping[str, Job]: ...

    @property
    def backend(self) -> Backend: ...

    @property
    def state_dir(self) -> Path: ...


async def select_nodes(
    cluster: SelectorContext, include: str | None, exclude: str | None = None
) -> tuple[str, ...]:
    """Names of the nodes that `include` means without those `exclude` means; see `select`."""
    live = await moment_for(cluster, include, exclude)
    return select(cluster.inventory, include, exclude, live)


async def moment_for(cluster: SelectorContext, *texts: str | None) -> LiveState:
    """What these texts ask for, looked up now.

    Raises:
        BrctlError: The scheduler does not answer; its own sentence.
    """
    owner_name = facts_asked(*texts)
    jobs = await _placed(cluster, jobs_asked(*texts)) if LiveFact.PLACEMENT in owner_name else {}
    owners = await _owners(cluster) if LiveFact.CORDONS in owner_name else {}
    states = swept_states(cluster.state_dir) if LiveFact.STATES in owner_name else {}
    missing = {LiveFact.STATES: NOBODY_SWEPT} if not states else {}
    return LiveState(jobs, owners, states, person(), missing)


async def _placed(cluster: SelectorContext, names: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """Where the scheduler says the ranks are now, which is not where job.yaml put them."""
    declared = [cluster.jobs[name] for name in names if name in cluster.jobs]
    return {job.name: (await cluster.backend.place(job)).nodes for job in declared}


async def _owners(cluster: SelectorContext) -> dict[str, frozenset[str]]:
    found = (await cluster.backend.cordons()).values()
    return {c.node: names_of_owner(c.owner, asker_of(cluster.state_dir, c.owner)) for c in found}


def swept_states(state_dir: Path) -> dict[str, Health]:
    """What the newest sweeps made of each node they asked."""
    from brctl.engine.sweeps.sweep_store import latest

    swept = latest(state_dir)
    return {node.node: node.health for node in swept.nodes} if swept else {}


def asker_of(state_dir: Path, owner: str) -> str:
    """Who asked for the run that owns a cordon; "" when it is no run of this controller."""
    from brctl.engine.runs.run_files import REQUEST, load_request

    run_dir = state_dir / "runs" / owner.removeprefix(OWN_PREFIX)
    if not owner.startswith(f"{OWN_PREFIX}R-") or not (run_dir / REQUEST).is_file():
        return ""
    try:
        return load_request(run_dir).by
    except (ConfigError, OSError):
        return ""


def names_of_owner(owner: str, asker: str) -> frozenset[str]:
    """What the owner of a cordon is called in `@by:`; a run also goes by who asked for it.

    Examples:
        >>> sorted(names_of_owner("brctl:R-0012", "ann"))
        ['R-0012', 'ann', 'brctl']
    """
    prefix, _, behind = owner.partition(":")
    return frozenset(filter(None, (prefix, behind, asker)))
