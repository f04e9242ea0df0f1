"""What jobs' steps took with their groups spread so or so, by look: the newest of each context."""

from pathlib import Path

import msgspec

from brctl.engine.controller.wiring import Controller
from brctl.journal.locks import exclusive
from brctl.library.durable_files import private_dir, set_aside, write_atomic
from brctl.model.inventory import Inventory
from brctl.model.jobs.job_status import JobStatus
from brctl.playbook.placement.domains import domains_for
from brctl.playbook.placement.price import PaceSeen, PlacePrice, place_price
from brctl.playbook.placement.spread import layout_of, spreads

KEPT = 500


def pace_of(status: JobStatus, inventory: Inventory) -> PaceSeen | None:
    """The job's newest steps and how it stands; None while it stands still, or nobody knows."""
    job, recent = status.job, status.history.recent
    if status.stalled is not False or recent is None or not recent.step_s:
        return None
    domains = domains_for(inventory.labels(), job.nodes)
    if not all(domains.known(node) for node in job.nodes):
        return None
    first = spreads(layout_of(job), [domains.of(node) for node in job.nodes])[:1]
    code = job.code.version if job.code else ""
    return next(
        (PaceSeen(job.name, code, axis.widest, recent.step_s, recent.count) for axis in first), None
    )


def keep_pace(controller: Controller, status: JobStatus) -> None:
    """Remember what a look saw of a job that trains."""
    seen = pace_of(status, controller.inventory)
    if seen is None:
        return
    path = _path(controller.state_dir, controller.settings.context)
    with exclusive(path.with_suffix(".lock"), "another command that looks at a job"):
        private_dir(path.parent)
        write_atomic(path, msgspec.json.encode((*_load(path), seen)[-KEPT:]))


def measured_price(state_dir: Path, context: str) -> PlacePrice:
    """What a further domain costs on this site; the assumed price where nobody saw it."""
    return place_price(_load(_path(state_dir, context)))


def _load(path: Path) -> tuple[PaceSeen, ...]:
    """What was seen; a damaged file is set aside, and the price is the assumed one again."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=tuple[PaceSeen, ...])
    except FileNotFoundError:
        return ()
    except msgspec.MsgspecError:
        set_aside(path)
        return ()


def _path(state_dir: Path, context: str) -> Path:
    return state_dir / "static" / f"{context}.paces.json"
