"""Delete a Job or JobSet and create it again, so that a crash in between loses nothing.

While the object does not exist, its manifest is a file of this user alone. Whoever starts the job
next carries a making that was cut short to its end.
"""

import asyncio
import json
from pathlib import Path

from brctl.backends.kubernetes.jobs import Workload, anew
from brctl.fanout.kubernetes.kubectl import Kubectl, Object
from brctl.library.durable_files import private_dir, write_atomic
from brctl.model.errors import UnavailableError, UsageError
from brctl.model.jobs.job import Job

DELETE_DEADLINE_S = 60.0
POLL_S = 0.5
VANISHED = ".vanishes"


class Remaking:
    """The manifests that are neither deleted nor created for good yet."""

    def __init__(self, kubectl: Kubectl, folder: Path) -> None:
        self._kubectl = kubectl
        self._folder = folder

    async def begin(self, job: Job, found: Workload, misses: str) -> None:
        """Make an object anew, which has ended or misses a way to hear of something.

        Raises:
            UsageError: Another controller owns it and would make it too.
        """
        owners = found.value["metadata"].get("ownerReferences") or ()
        if owners:
            why = found.ended or f"has no way to hear of {misses}"
            problem = f"{found.name} {why}; it belongs to a {owners[0].get('kind')}"
            raise UsageError(problem, hint="make it anew there")
        kept = {"uid": found.uid, "path": found.path, "manifest": anew(found, job)}
        _write(self._kept(job), kept)
        await self.finish(job)

    def remember(self, job: Job, found: Workload) -> None:
        """Keep what the cluster deletes by itself some time after the job has ended."""
        if found.vanishes:
            _write(self._kept(job, VANISHED), {"path": found.path, "manifest": anew(found, job)})

    async def bring_back(self, job: Job) -> None:
        """Make again, suspended, what the cluster has deleted because it had ended."""
        kept_in = self._kept(job, VANISHED)
        try:
            kept = json.loads(kept_in.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return
        path = str(kept["path"])
        if await self._uid_at(path) is None:
            await self._kubectl.post(path.rpartition("/")[0], kept["manifest"])

    async def finish(self, job: Job) -> None:
        """Carry a making to its end, also one that a process which died began."""
        kept_in = self._kept(job)
        try:
            kept = json.loads(kept_in.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return
        path, uid = str(kept["path"]), str(kept["uid"])
        await self._delete(path, uid, kept_in)
        if await self._uid_at(path) is None:
            await self._kubectl.post(path.rpartition("/")[0], kept["manifest"])
        kept_in.unlink()

    async def _delete(self, path: str, uid: str, kept_in: Path) -> None:
        if await self._uid_at(path) != uid:
            return
        # Without a policy batch/v1 leaves the pods of a deleted Job behind.
        options = {"propagationPolicy": "Background", "preconditions": {"uid": uid}}
        await self._kubectl.delete(path, **options)
        deadline = asyncio.get_running_loop().time() + DELETE_DEADLINE_S
        while await self._uid_at(path) == uid:
            if asyncio.get_running_loop().time() >= deadline:
                raise UnavailableError(f"{path} is not deleted; its manifest is in {kept_in}")
            await asyncio.sleep(POLL_S)

    async def _uid_at(self, path: str) -> str | None:
        found = await self._kubectl.get(path)
        return None if found is None else str(found["metadata"]["uid"])

    def _kept(self, job: Job, kind: str = "") -> Path:
        return self._folder / f"{job.name}{kind}.json"


def _write(path: Path, value: Object) -> None:
    private_dir(path.parent)
    write_atomic(path, json.dumps(value))
