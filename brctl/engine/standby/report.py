"""What is known of every standby, with what waits there asked of the nodes."""

from brctl.backends.contract import Cordon, Reservation
from brctl.backends.ranks.parking import Parked
from brctl.engine.controller.wiring import Controller
from brctl.engine.standby.care import look_at_parked
from brctl.engine.standby.pool import Pool, Standby, age_s
from brctl.model.runs.playbook import Json


async def standby_rows(controller: Controller, pool: Pool) -> list[dict[str, Json]]:
    """One row a node: the pool's, then others where processes wait for the next start."""
    cordons, reservations = (
        await controller.backend.cordons(),
        await controller.backend.reservations(),
    )
    placed = [await controller.backend.place(job) for job in controller.jobs.values()]
    busy = {node: job.name for job in placed for node in job.nodes}
    nodes = tuple(dict.fromkeys([*pool.members(controller.inventory), *pool.parked()]))
    waiting = await look_at_parked(controller, pool, nodes)
    return [
        _row(
            controller,
            pool.of(node),
            _state(cordons.get(node), reservations.get(node), busy.get(node)),
            waiting.get(node),
        )
        for node in nodes
    ]


def _state(cordon: Cordon | None, reservation: Reservation | None, job: str | None) -> str:
    if cordon is not None:
        return "cordoned"
    if job is not None:
        return f"in {job}"
    return f"reserved by {reservation.owner}" if reservation is not None else "free"


def _row(
    controller: Controller, known: Standby, state: str, parked: Parked | None
) -> dict[str, Json]:
    """A row; what the file claims to be parked and nobody saw is not shown as parked."""
    claimed = known.parked_for is not None
    note = known.note or (parked.why if parked is not None and not parked.is_whole else "")
    return {
        "node": known.node,
        "state": state,
        "parked_for": known.parked_for,
        "parked_ranks": parked.ready if parked is not None else None,
        "wanted_ranks": parked.wanted if parked is not None else None,
        "parked_age_seconds": age_s(known.parked_at, controller.now()) if claimed else None,
        "warmed_age_seconds": age_s(known.warmed_at, controller.now()),
        "warm_seconds": known.warm_seconds,
        "health": known.health,
        "tested_age_seconds": age_s(known.tested_at, controller.now()),
        "note": note or None,
    }
