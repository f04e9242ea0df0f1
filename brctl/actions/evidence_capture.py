"""evidence.capture: keep the raw answers of suspects, and of their job, as one bundle.

The look that came to the verdict is kept as it was recorded: it saw the job before the run touched
it, so that the run need not wait for another one. Where none is recorded, the job is looked at now.
"""

import asyncio
import hashlib
import io
import json
import os
import tarfile
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from brctl.actions import arguments
from brctl.actions.context import RunContext
from brctl.actions.contract import ActionResult, ReadOnly
from brctl.model.runs.playbook import Arguments
from brctl.model.sweeps.sweep import NodeHealth
from brctl.view.redact import redact_document

LEVEL = 1
BUNDLE = "evidence.tar.gz"
RECORDING = "incident.brctl.tar.zst"
"""What `incident record` writes: `incident replay` judges it again."""

RECORDED_WITHIN_S = 50.0
"""Since the step began; a step that ends for its time (60 s in playbooks) would count as failed."""


class EvidenceCapture(ReadOnly):
    """One JSON file per node with everything it answered, their digests, and a bundle of all."""

    async def apply(self, context: RunContext, args: Arguments) -> ActionResult:
        folder = context.run.folder / "evidence"
        folder.mkdir(mode=0o700, exist_ok=True)
        ends_at = asyncio.get_running_loop().time() + RECORDED_WITHIN_S
        verdict = arguments.text(args, "verdict", "")
        # At once: a node without power costs the wait for a connection only one time.
        captured, (recorded, job) = await asyncio.gather(
            self._nodes(context, args, folder),
            self._recording_or_job(context, args, folder, ends_at),
        )
        files = captured | job
        files["SHA256SUMS"] = _sums(files)
        _write(folder, {"SHA256SUMS": files["SHA256SUMS"]})
        (folder / BUNDLE).write_bytes(
            _bundle(files, context.run.name, int(context.clock.now().timestamp()))
        )
        if recorded is not None:
            _write(folder, {RECORDING: recorded})
            also = f"; the look of {verdict} as it was recorded"
        else:
            also = await self._record(context, args, folder, ends_at)
        out: Arguments = {"files": sorted(files), "directory": str(folder)}
        said = f"{len(files)} files, secrets taken out{also}"
        return ActionResult(out, changed=False, say=said)

    async def _nodes(self, context: RunContext, args: Arguments, folder: Path) -> dict[str, bytes]:
        """What the suspects answer, on disk as soon as they did."""
        healths = await context.sweeps.examine(arguments.nodes(args, "nodes"), LEVEL)
        return _write(folder, {f"{health.node}.json": _encode(health) for health in healths})

    async def _recording_or_job(
        self, context: RunContext, args: Arguments, folder: Path, ends_at: float
    ) -> tuple[bytes | None, dict[str, bytes]]:
        """The look of the verdict; where none was recorded what the ranks say, if there is time."""
        verdict, recorded = arguments.text(args, "verdict", ""), None
        if verdict:
            try:
                async with asyncio.timeout_at(ends_at):
                    recorded = await context.sweeps.recording_of(verdict)
            except TimeoutError:
                return None, {}
        return recorded, await self._job(context, args, folder) if recorded is None else {}

    async def _record(
        self, context: RunContext, args: Arguments, folder: Path, ends_at: float
    ) -> str:
        """Record a whole look; what to say where there was no time for it."""
        try:
            async with asyncio.timeout_at(ends_at):
                job = await context.jobs.get(arguments.text(args, "job")) if "job" in args else None
                _, recording = await context.sweeps.record(arguments.nodes(args, "nodes"), job)
        except TimeoutError:
            return f"; no recording: it was not done within {RECORDED_WITHIN_S:g} s"
        _write(folder, {RECORDING: recording})
        return "; looked anew for the recording"

    async def _job(self, context: RunContext, args: Arguments, folder: Path) -> dict[str, bytes]:
        """What the ranks of the job say, where one is named."""
        if "job" not in args:
            return {}
        status = await context.jobs.progress(await context.jobs.get(arguments.text(args, "job")))
        return _write(folder, {"job.json": _as_json(asdict(status))})


def _write(folder: Path, files: dict[str, bytes]) -> dict[str, bytes]:
    for name, raw in files.items():
        (folder / name).write_bytes(raw)
    return files


def _encode(health: NodeHealth) -> bytes:
    return _as_json(asdict(health))


def _as_json(value: Mapping[str, object]) -> bytes:
    """Redacted text by text, so that taking a secret out can never break the document."""
    return json.dumps(redact_document(value), default=str, indent=1).encode()


def _sums(files: Mapping[str, bytes]) -> bytes:
    lines = (f"{hashlib.sha256(raw).hexdigest()}  {name}\n" for name, raw in sorted(files.items()))
    return "".join(lines).encode()


def _bundle(files: Mapping[str, bytes], run: str, at: int) -> bytes:
    """All files as one archive, owned by nobody in particular."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, raw in sorted(files.items()):
            entry = tarfile.TarInfo(os.path.join(f"{run}-evidence", name))
            entry.size, entry.mtime, entry.mode = len(raw), at, 0o600
            archive.addfile(entry, io.BytesIO(raw))
    return buffer.getvalue()
