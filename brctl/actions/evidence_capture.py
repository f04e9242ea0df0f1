"""evidence.capture: keep the raw answers of suspects, and their ranks', before anything changes."""

import asyncio
import hashlib
import io
import json
import os
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from brctl.actions import arguments
from brctl.actions.context import RunContext
from brctl.actions.contract import ActionResult, ReadOnly
from brctl.model.runs.playbook import Arguments
from brctl.model.sweeps.sweep import NodeHealth
from brctl.view.redact import redact_document

BUNDLE = "evidence.tar.gz"
RECORDING = "incident.brctl.tar.zst"
"""What `incident record` writes: `incident replay` judges it again."""


class EvidenceCapture(ReadOnly):
    """One JSON file per node with everything it answered, their digests, and a bundle of all."""

    async def apply(self, context: RunContext, args: Arguments) -> ActionResult:
        folder = context.run.folder / "evidence"
        folder.mkdir(mode=0o700, exist_ok=True)
        # At once: a node without power costs the wait for a connection only one time.
        (captured, recording), job = await asyncio.gather(
            self._record(context, args), self._job(context, args)
        )
        files = {f"{health.node}.json": _encode(health) for health in captured} | job
        files["SHA256SUMS"] = _sums(files)
        for name, raw in {**files, RECORDING: recording}.items():
            (folder / name).write_bytes(raw)
        (folder / BUNDLE).write_bytes(
            _bundle(files, context.run.name, int(context.clock.now().timestamp()))
        )
        out: Arguments = {"files": sorted(files), "directory": str(folder)}
        return ActionResult(out, changed=False, say=f"{len(files)} files, secrets taken out")

    async def _record(
        self, context: RunContext, args: Arguments
    ) -> tuple[Sequence[NodeHealth], bytes]:
        job = await context.jobs.get(arguments.text(args, "job")) if "job" in args else None
        return await context.sweeps.record(arguments.nodes(args, "nodes"), job)

    async def _job(self, context: RunContext, args: Arguments) -> dict[str, bytes]:
        """What the ranks of the job say, where one is named."""
        if "job" not in args:
            return {}
        status = await context.jobs.progress(await context.jobs.get(arguments.text(args, "job")))
        return {"job.json": _as_json(asdict(status))}


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
