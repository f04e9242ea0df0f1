"""Park, find and end processes that wait to become ranks, on nodes reached over SSH.

Only where brctl itself starts the ranks: a scheduler starts them inside a step of its own.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from brctl.backends.ranks.commands import (
    EXAMINE_DEADLINE_S,
    LOOK_DEADLINE_S,
    PARK_DEADLINE_S,
    RankNodes,
    examine_request,
    park_request,
    parked_request,
)
from brctl.fanout.contract import Transport
from brctl.model.inventory import Inventory, Node
from brctl.model.jobs.job import Job
from brctl.model.runs.playbook import Json

TEXT_LIMIT = 300


@dataclass(frozen=True, slots=True)
class Setup:
    """What a node has of what a job's ranks need.

    Attributes:
        problem: What is missing, or why nobody could look; "" when all is there.
        unfit: Why a process cannot be parked for this job on any node.
    """

    problem: str = ""
    unfit: str = ""
    python: str | None = None
    torch: str | None = None


@dataclass(frozen=True, slots=True)
class Parked:
    """The parked processes of one node.

    Attributes:
        ready: How many wait at the barrier; None when the node could not be asked.
        wanted: How many its ranks need.
        why: What is wrong with the others.
        seconds: The longest preparation of those that wait.
    """

    ready: int | None
    wanted: int
    why: str = ""
    seconds: float | None = None
    gpu: str | None = None

    @property
    def is_whole(self) -> bool:
        """Every rank of the node can start warm."""
        return self.ready == self.wanted


class Parking:
    """See the head of this file."""

    def __init__(self, transport: Transport, inventory: Inventory, fanout: int) -> None:
        self._ranks = RankNodes(transport, inventory, fanout)

    async def examine(self, job: Job, nodes: Sequence[str]) -> Mapping[str, Setup]:
        """Whether directory and program are there, and which Python and torch."""
        answered, failed = await self._ranks.ask(
            nodes, lambda node: examine_request(job, node), EXAMINE_DEADLINE_S
        )
        found = {node: Setup(problem=why) for node, why in failed.items()}
        return {**found, **{node: _setup(value) for node, value in answered.items()}}

    async def park(self, job: Job, nodes: Sequence[str], lease_s: float) -> Mapping[str, Parked]:
        """Have one process wait for every local rank; those that are fit stay."""
        return await self._parked(
            job,
            nodes,
            lambda node: park_request(job, node, lease_s, gpu=node.name not in job.nodes),
            PARK_DEADLINE_S,
        )

    async def list_parked(self, job: Job, nodes: Sequence[str]) -> Mapping[str, Parked]:
        """Who waits now."""
        return await self._parked(
            job, nodes, lambda node: parked_request(job, node, "parked"), LOOK_DEADLINE_S
        )

    async def unpark(self, job: Job, nodes: Sequence[str]) -> Mapping[str, str]:
        """End who waits; the nodes where that could not be done, with the reason."""
        answered, failed = await self._ranks.ask(
            nodes, lambda node: parked_request(job, node, "unpark"), LOOK_DEADLINE_S
        )
        return failed | {
            n: str(v["error"])[:TEXT_LIMIT] for n, v in answered.items() if "error" in v
        }

    async def _parked(
        self,
        job: Job,
        nodes: Sequence[str],
        request: Callable[[Node], Mapping[str, Json]],
        deadline_s: float,
    ) -> Mapping[str, Parked]:
        answered, failed = await self._ranks.ask(nodes, request, deadline_s)
        wanted = job.ranks_per_node
        found = {node: Parked(None, wanted, why) for node, why in failed.items()}
        return {**found, **{node: _processes(value, wanted) for node, value in answered.items()}}


def _setup(value: Mapping[str, Json]) -> Setup:
    return Setup(
        problem=_text(value, "problem") or _text(value, "error"),
        unfit=_text(value, "unfit"),
        python=_text(value, "python") or None,
        torch=_text(value, "torch") or None,
    )


def _processes(value: Mapping[str, Json], wanted: int) -> Parked:
    rows = value.get("processes")
    known = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    alive = [row for row in known if row.get("alive") is True]
    reasons = [_text(value, "error"), *(_text(row, "why") for row in known)]
    seconds = [s for row in alive if isinstance(s := row.get("seconds"), int | float)]
    return Parked(
        ready=min(len(alive), wanted),
        wanted=wanted,
        why="; ".join(dict.fromkeys(reason for reason in reasons if reason)),
        seconds=max(seconds, default=None),
        gpu=next((gpu for row in alive if (gpu := _text(row, "gpu"))), None),
    )


def _text(value: Mapping[str, Json], key: str) -> str:
    found = value.get(key)
    return found[:TEXT_LIMIT] if isinstance(found, str) else ""
