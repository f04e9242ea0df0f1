"""Where a job stands in the network, and what another rank order or other nodes would be worth."""

from dataclasses import dataclass, replace
from math import isfinite

from brctl.actions.job.order_ranks import PLACES_ITSELF
from brctl.actions.standby.acquire import find_candidates
from brctl.engine.controller.clock import now
from brctl.engine.controller.readonly import refuse_readonly
from brctl.engine.controller.wiring import open_controller
from brctl.engine.job.pace_store import measured_price
from brctl.engine.runs.context import run_context
from brctl.engine.standby.pool import daily_rate
from brctl.journal.wanted_order import WantedOrderFile
from brctl.library.config import Settings
from brctl.model.errors import UsageError
from brctl.model.jobs.job import Job
from brctl.model.jobs.wanted_order import WantedOrder
from brctl.model.runs.playbook import Json
from brctl.playbook.placement.advise import Advice, advise
from brctl.playbook.placement.domains import Domains, domains_for
from brctl.playbook.placement.price import PlacePrice
from brctl.playbook.placement.spread import layout_of
from brctl.playbook.spares import expected_uptime_s


@dataclass(frozen=True, slots=True)
class JobPlacement:
    """A job's place, and what it costs.

    Attributes:
        domains: Of its nodes and of all others.
        gone: Its nodes that the inventory does not have.
        uptime_s: How long it is expected to run until the next stop; None where nothing fails.
        rate_source: What that is taken from.
        price: What a further domain costs, and where that comes from.
        orders_ranks: The job's ranks can be given to its nodes in another order.
        waiting: The rank order that its next restart takes along; None for none.
    """

    job: Job
    domains: Domains
    advice: Advice
    gone: tuple[str, ...]
    uptime_s: float | None
    rate_source: str
    orders_ranks: bool
    price: PlacePrice
    waiting: WantedOrder | None = None


async def job_placement(settings: Settings, name: str | None, level: str) -> JobPlacement:
    """How a job stands, from the labels of the inventory; no node is asked.

    Raises:
        UsageError: `level` is a label that no node of the job has.
    """
    async with open_controller(settings) as controller:
        context = run_context(controller)
        job = await context.jobs.get(controller.job(name).name)
        free = (await find_candidates(context, job.name)).in_order
        rate = daily_rate(controller.state_dir, len(job.nodes), controller.now())
    domains = domains_for(context.inventory.labels(), job.nodes, level)
    if level and not domains.named(job.nodes):
        raise UsageError(
            f"no node of {job.name} has a label {level!r}", hint="brctl inventory show -o json"
        )
    price = measured_price(settings.state_dir, settings.context)
    advice = advise(layout_of(job), job.nodes, free, domains).priced(price.slower_a_domain)
    gone = tuple(node for node in job.nodes if node not in context.inventory.nodes)
    uptime_s = expected_uptime_s(len(job.nodes), rate.daily)
    return JobPlacement(
        job,
        domains,
        advice,
        gone,
        uptime_s if isfinite(uptime_s) else None,
        rate.source,
        context.backend.name != PLACES_ITSELF,
        price,
        context.jobs.wanted_order(job.name).waiting(),
    )


def want_rank_order(settings: Settings, found: JobPlacement, by: str) -> WantedOrder:
    """Let the next restart take the best rank order along, in place of any that waits.

    Raises:
        UsageError: No other order splits less, or the scheduler chooses it.
    """
    rank_order_inputs(found)
    refuse_readonly(settings, action=f"rank order of job {found.job.name}")
    before, after = found.advice.now.nodes, found.advice.rank_order.nodes
    at = now()
    wish = WantedOrder(f"O-{at:%Y%m%dT%H%M%S}", before, after, by, at)
    WantedOrderFile(settings.state_dir, settings.context, found.job.name).write(wish)
    return wish


def forget_rank_order(settings: Settings, found: JobPlacement) -> None:
    """Let the next restart keep the order there is.

    Raises:
        UsageError: None waits.
    """
    if found.waiting is None:
        raise UsageError(f"no rank order of {found.job.name} waits")
    refuse_readonly(settings, action=f"rank order of job {found.job.name}")
    orders = WantedOrderFile(settings.state_dir, settings.context, found.job.name)
    orders.change(found.waiting.id, lambda wish: replace(wish, run="nobody"))


def rank_order_inputs(found: JobPlacement) -> dict[str, Json]:
    """What a run is given that puts the ranks into the best order.

    Raises:
        UsageError: No other order splits less, or the scheduler chooses it.
    """
    name = found.job.name
    if not found.orders_ranks:
        raise UsageError("Kubernetes places pods itself; ranks cannot be ordered")
    if found.advice.rank_order == found.advice.now:
        raise UsageError(f"no other rank order of {name} splits fewer groups")
    before, after = found.advice.now.nodes, found.advice.rank_order.nodes
    return {"job": name, "before": list(before), "after": list(after)}
