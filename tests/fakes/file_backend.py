"""A scheduler whose nodes, ranks and cordons lie in one file."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from brctl.backends.contract import (
    Cordon,
    ImagePull,
    Label,
    Reservation,
    StartReport,
    StopReport,
    labelled,
    unlabelled,
)
from brctl.model.jobs.job import Job
from brctl.model.jobs.job_run_state import JobRunState
from brctl.model.units import parse_rfc3339, rfc3339
from tests.fakes.world_file import WorldFile


class FileBackend:
    """A scheduler over a WorldFile; see `Backend`."""

    name = "fake"

    def __init__(self, world: WorldFile) -> None:
        self._world = world

    async def cordons(self) -> Mapping[str, Cordon]:
        rows = self._world.read()["cordons"]
        return {
            n: Cordon(n, r["owner"], r["reason"], parse_rfc3339(r["at"])) for n, r in rows.items()
        }

    async def cordon(self, nodes: Sequence[str], owner: str, reason: str, at: datetime) -> None:
        with self._world.change() as data:
            for node in nodes:
                if node not in data["cordons"]:
                    data["cordons"][node] = {"owner": owner, "reason": reason, "at": rfc3339(at)}
                    data["effects"].append(f"cordon {node}")

    async def uncordon(self, nodes: Sequence[str]) -> None:
        with self._world.change() as data:
            for node in nodes:
                if data["cordons"].pop(node, None):
                    data["effects"].append(f"uncordon {node}")

    async def reservations(self) -> Mapping[str, Reservation]:
        rows = self._world.read()["reservations"]
        return {n: Reservation(n, r["owner"], parse_rfc3339(r["at"])) for n, r in rows.items()}

    async def reserve(self, node: str, owner: str, at: datetime) -> bool:
        with self._world.change() as data:
            held = data["reservations"].get(node)
            if held is None:
                data["reservations"][node] = {"owner": owner, "at": rfc3339(at)}
                data["effects"].append(f"reserve {node}")
            return held is None or held["owner"] == owner

    async def release(self, nodes: Sequence[str], owner: str) -> None:
        with self._world.change() as data:
            for node in nodes:
                if data["reservations"].get(node, {}).get("owner") == owner:
                    del data["reservations"][node]
                    data["effects"].append(f"release {node}")

    async def idle_nodes(self, job: Job | None = None) -> tuple[str, ...]:
        return tuple(self._world.read()["spare"])

    async def labels(self, nodes: Sequence[str], key: str) -> Mapping[str, Label]:
        rows = self._world.read()["labels"]
        return {node: Label(*rows[node][key]) for node in nodes if key in rows.get(node, {})}

    async def label(self, nodes: Sequence[str], key: str, value: str, owner: str) -> None:
        self._relabel(nodes, key, lambda before: labelled(before, value, owner))

    async def unlabel(self, nodes: Sequence[str], key: str, owner: str) -> None:
        self._relabel(nodes, key, lambda before: unlabelled(before, owner))

    def _relabel(
        self, nodes: Sequence[str], key: str, change: Callable[[Label | None], Label | None]
    ) -> None:
        with self._world.change() as data:
            for node in nodes:
                rows = data["labels"].setdefault(node, {})
                before = Label(*rows[key]) if key in rows else None
                after = change(before)
                rows.pop(key, None)
                if after is not None:
                    rows[key] = [after.value, after.owner, after.former]
                if after != before:
                    data["effects"].append(f"label {node} {key}={after and after.value}")

    async def work_on(self, nodes: Sequence[str], jobs: Sequence[Job]) -> Mapping[str, str]:
        guests = self._world.read()["guests"]
        return {node: guests[node] for node in nodes if node in guests}

    async def evict(self, nodes: Sequence[str], jobs: Sequence[Job]) -> Mapping[str, str]:
        """Work that goes when it is asked; it is gone the next time."""
        with self._world.change() as data:
            left = {node: "pod x is ending" for node in nodes if data["guests"].pop(node, None)}
            data["effects"] += [f"evict {node}" for node in left]
        return left

    async def place(self, job: Job) -> Job:
        return replace(job, nodes=tuple(self._world.read()["nodes"]))

    async def pull_images(self, job: Job, nodes: Sequence[str]) -> Mapping[str, ImagePull]:
        return {}

    async def must_control(self, job: Job, verb: str) -> None:
        pass

    async def replace_nodes(self, job: Job, swaps: Mapping[str, str]) -> Job:
        with self._world.change() as data:
            after = [swaps.get(node, node) for node in data["nodes"]]
            if after != data["nodes"]:
                data["effects"].append(f"replace {dict(swaps)}")
            data["nodes"] = after
        return replace(job, nodes=tuple(after))

    async def start_job(self, job: Job, checkpoint: str, incarnation: str) -> StartReport:
        with self._world.change() as data:
            failed = {n: "no answer" for n in data["nodes"] if n in data["dead"]}
            if not failed:
                for rank in range(job.world_size):
                    if data["ranks"].get(str(rank)) != incarnation:
                        data["ranks"][str(rank)] = incarnation
                        data["effects"].append(f"start rank {rank} from {checkpoint}")
        return StartReport(() if failed else tuple(range(job.world_size)), failed)

    async def stop_job(self, job: Job, grace_s: float) -> StopReport:
        with self._world.change() as data:
            stuck = [r for r in data["ranks"] if data["nodes"][int(r)] in data.get("undying", ())]
            for rank in [rank for rank in data["ranks"] if rank not in stuck]:
                if data["nodes"][int(rank)] not in data["dead"]:
                    data["effects"].append(f"stop rank {rank}")
                del data["ranks"][rank]
            silent = {n: "no answer" for n in data["nodes"] if n in data["dead"]}
        ended = tuple(rank for rank in range(job.world_size) if str(rank) not in stuck)
        return StopReport(ended, (), tuple(map(int, stuck)), silent)

    async def scheduler_view(self, job: Job) -> JobRunState | None:
        return None

    async def job_status(self, job: Job) -> JobRunState:
        data = self._world.read()
        silent = {n: "no answer" for n in data["nodes"] if n in data["dead"]}
        observed = [r for r in range(job.world_size) if data["nodes"][r] not in silent]
        alive = tuple(r for r in observed if str(r) in data["ranks"])
        return JobRunState(
            alive=alive,
            gone=tuple(r for r in observed if r not in alive),
            incarnations=frozenset(data["ranks"][str(r)] for r in alive),
            unreachable=silent,
            exits={},
        )
