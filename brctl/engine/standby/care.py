"""Keep standbys ready: self-checks, the training environment, parked processes."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace

from brctl.backends.contract import ImagePull
from brctl.backends.ranks.parking import Parked, Parking, Setup
from brctl.engine.controller.wiring import Controller
from brctl.engine.standby.pool import Pool, Standby
from brctl.engine.sweeps.run_checks import Question, sweep_nodes
from brctl.model.command import Command, Outcome
from brctl.model.errors import UsageError
from brctl.model.jobs.job import Job
from brctl.model.nodeset import fold
from brctl.model.sweeps.sweep import Health
from brctl.model.units import rfc3339

SELF_CHECK_LEVEL = 2
WARM_DEADLINE_S = 120.0
# What a rank loads first; once read, it is in the node's page cache and the rank starts warm.
# Taking it all apart again would cost the node as much time as loading it.
_WARM_UP = (
    "import gc, os; gc.disable()\n"
    "import torch, torch.distributed, torch.distributed.checkpoint\n"
    "os._exit(0)"
)

REFERENCES = 3
"""Nodes of the job that are asked for its versions; one answer is enough."""

NOTE_LIMIT = 200


def parking(controller: Controller) -> Parking:
    """The door to parked processes."""
    return Parking(controller.transport, controller.inventory, controller.settings.ssh.fanout)


async def examine_standbys(controller: Controller, pool: Pool, nodes: Sequence[str]) -> Pool:
    """Run the self-checks of level 2 on standbys and write down what they say.

    A node that carries ranks by now is not loaded with them.
    """
    idle = [node for node in nodes if job_on(controller, node) is None]
    if not idle:
        return pool
    sweep = await sweep_nodes(controller, idle, Question(level=SELF_CHECK_LEVEL))
    at = rfc3339(controller.now())
    rows = []
    for health in sweep.nodes:
        why = next((e.text for e in health.evidence if e.fault is not None), "")
        note = "" if health.health is Health.OK else why[:NOTE_LIMIT]
        known = pool.of(health.node)
        rows.append(replace(known, tested_at=at, health=health.health.value, note=note))
    return pool.with_known(rows)


def job_on(controller: Controller, node: str) -> Job | None:
    """The job whose ranks a node carries."""
    return next((job for job in controller.jobs.values() if node in job.nodes), None)


async def warm_standbys(controller: Controller, pool: Pool, nodes: Sequence[str]) -> Pool:
    """Load the training environment on standbys, so that a swap-in does not read it from disk."""
    chosen = controller.inventory.pick(nodes)
    answers = await asyncio.gather(
        *(
            controller.transport.run(
                node,
                Command(
                    (node.torch_python or node.python, "-c", _WARM_UP), deadline_s=WARM_DEADLINE_S
                ),
            )
            for node in chosen
        )
    )
    rows = []
    for answer in answers:
        good = answer.outcome is Outcome.ANSWERED and answer.exit_status == 0
        last = answer.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
        rows.append(
            replace(
                pool.of(answer.node),
                warmed_at=rfc3339(controller.now()) if good else None,
                warm_seconds=round(answer.seconds, 2) if good else None,
                note="" if good else (answer.detail or last)[:NOTE_LIMIT],
            )
        )
    return pool.with_known(rows)


async def park_standbys(
    controller: Controller, pool: Pool, nodes: Sequence[str], job: Job, lease_s: float
) -> Pool:
    """Have processes wait on nodes to become the job's ranks: environment, self-checks, parking.

    On a node of the job itself they wait beside its ranks, for its next start. Where ranks come in
    images, these are pulled instead, and nothing waits.

    Raises:
        UsageError: The backend starts ranks in its own way, or a node carries another job.
    """
    _refuse_others(controller, nodes, job)
    pulled = await controller.backend.pull_images(job, nodes)
    if pulled:
        at = rfc3339(controller.now())
        return pool.with_known(_with_images(pool.of(n), pull, at) for n, pull in pulled.items())
    _refuse(controller, nodes)
    unfit = await _unfit(controller, job, nodes)
    pool = await examine_standbys(controller, pool, [node for node in nodes if node not in unfit])
    ill = {
        node: f"not parked, its self-checks say {pool.of(node).health}: {pool.of(node).note}"
        for node in nodes
        if node not in unfit and node not in job.nodes and pool.of(node).health != Health.OK
    }
    refused = {**unfit, **ill}
    pool = await unpark_standbys(controller, pool, list(refused))
    pool = pool.with_known(
        replace(pool.of(node), note=why[:NOTE_LIMIT]) for node, why in refused.items()
    )
    return await _park(
        controller, pool, [node for node in nodes if node not in refused], job, lease_s
    )


def _refuse(controller: Controller, nodes: Sequence[str]) -> None:
    scheduler = controller.backend.name
    if scheduler != "static":
        if not nodes:
            raise UsageError("there are no standbys to make ready", hint="brctl standby add NODES")
        raise UsageError(
            f"{scheduler} starts ranks in steps of its own; nothing can wait for them",
            hint="without --job the training environment is loaded: brctl standby warm NODES",
        )


def _refuse_others(controller: Controller, nodes: Sequence[str], job: Job) -> None:
    for node in nodes:
        other = job_on(controller, node)
        if other is not None and other.name != job.name:
            raise UsageError(f"{node} carries ranks of {other.name}; it cannot wait for {job.name}")


def _with_images(known: Standby, pull: ImagePull, at: str) -> Standby:
    """What is known of a node after the job's images were pulled there."""
    if pull.seconds is None:
        note = f"images not pulled: {pull.problem}"[:NOTE_LIMIT]
        return replace(known, warmed_at=None, warm_seconds=None, note=note)
    return replace(known, warmed_at=at, warm_seconds=round(pull.seconds, 2), note="")


async def _unfit(controller: Controller, job: Job, nodes: Sequence[str]) -> Mapping[str, str]:
    """Nodes that have not what the job's own nodes have, with what is missing or different."""
    references = [node for node in job.nodes if node not in nodes][:REFERENCES]
    found = await parking(controller).examine(job, [*nodes, *references])
    refused = next((setup.unfit for setup in found.values() if setup.unfit), "")
    if refused:
        raise UsageError(f"nothing can be parked for {job.name}: {refused}")
    wanted = next((found[node] for node in references if not found[node].problem), None)
    if wanted is None and references:
        why = f"no node of {job.name} says its versions ({fold(references)} asked)"
        return dict.fromkeys(nodes, f"not parked: {why}")
    reasons = {node: _difference(found[node], wanted or found[node]) for node in nodes}
    return {node: f"not parked: {why}" for node, why in reasons.items() if why}


def _difference(have: Setup, want: Setup) -> str:
    if have.problem:
        return have.problem
    pairs = (("Python", have.python, want.python), ("torch", have.torch, want.torch))
    return "; ".join(
        f"{name} {own or 'is absent'}, the job has {other or 'none'}"
        for name, own, other in pairs
        if own != other
    )


async def _park(
    controller: Controller, pool: Pool, nodes: Sequence[str], job: Job, lease_s: float
) -> Pool:
    if not nodes:
        return pool
    found = await parking(controller).park(job, nodes, lease_s)
    at = rfc3339(controller.now())
    return pool.with_known(
        _as_found(pool.of(node), parked, job, node in job.nodes, lease_s, at)
        for node, parked in found.items()
    )


def _as_found(
    known: Standby, parked: Parked, job: Job, beside: bool, lease_s: float, at: str
) -> Standby:
    """What is known of a node after its processes were asked for."""
    if not parked.ready:
        return known.unparked(f"not parked: {parked.why or 'no process waits'}"[:NOTE_LIMIT])
    missing = f"{parked.ready} of {parked.wanted} parked: {parked.why}"
    return replace(
        known,
        warmed_at=at,
        warm_seconds=parked.seconds,
        parked_for=job.name,
        parked_at=at,
        parked_ranks=parked.ready,
        beside=beside,
        lease_s=lease_s,
        note="" if parked.is_whole else missing[:NOTE_LIMIT],
    )


async def check_standbys(controller: Controller, pool: Pool, nodes: Sequence[str]) -> Pool:
    """Test standbys again, and bring what is parked on them to what it should be.

    Processes that wait get a new lease, or make way for fresh ones when code changed. They go from
    a node that fails its checks and from one whose place in the job is another by now.
    """
    pool = await examine_standbys(controller, pool, nodes)
    for job in controller.jobs.values():
        own = [node for node in nodes if pool.of(node).parked_for == job.name]
        gone = [node for node in own if not _belongs(controller, pool, node, job)]
        pool = await unpark_standbys(controller, pool, gone)
        for lease_s in sorted({pool.of(node).lease_s for node in own if node not in gone}):
            some = [n for n in own if n not in gone and pool.of(n).lease_s == lease_s]
            pool = await _park(controller, pool, some, job, lease_s)
    return pool


def _belongs(controller: Controller, pool: Pool, node: str, job: Job) -> bool:
    """Whether processes should still wait on a node, beside ranks or in their stead."""
    known = pool.of(node)
    if known.beside:
        return node in job.nodes
    return job_on(controller, node) is None and known.health == Health.OK


async def unpark_standbys(controller: Controller, pool: Pool, nodes: Sequence[str]) -> Pool:
    """End what waits on nodes; where that cannot be done, its lease ends it, and that is said."""
    for name in sorted({job for node in nodes if (job := pool.of(node).parked_for)}):
        some = [node for node in nodes if pool.of(node).parked_for == name]
        declared = controller.jobs.get(name)
        failed = (
            await parking(controller).unpark(declared, some)
            if declared is not None
            else dict.fromkeys(some, f"job {name} is not declared any more")
        )
        notes = {node: pool.of(node).note for node in some}
        notes |= {
            n: f"still parked for {name}? {why}; its lease ends it" for n, why in failed.items()
        }
        pool = pool.with_known(
            pool.of(node).unparked(note[:NOTE_LIMIT]) for node, note in notes.items()
        )
    return pool


async def look_at_parked(
    controller: Controller, pool: Pool, nodes: Sequence[str]
) -> Mapping[str, Parked]:
    """Who really waits where the pool's file says that somebody does."""
    found: dict[str, Parked] = {}
    for job in controller.jobs.values():
        some = [node for node in nodes if pool.of(node).parked_for == job.name]
        if some:
            found |= await parking(controller).list_parked(job, some)
    return found
