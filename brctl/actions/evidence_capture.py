"""evidence.capture: keep the raw answers of suspects before anything changes."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict

from brctl.actions import arguments
from brctl.actions.contract import Done, ReadOnly, Site
from brctl.model.playbook import Arguments
from brctl.model.sweep import NodeHealth

LEVEL = 1


class EvidenceCapture(ReadOnly):
    """One JSON file per node with everything it answered, and the digests of all of them."""

    async def apply(self, site: Site, given: Arguments) -> Done:
        folder = site.run_dir / "evidence"
        folder.mkdir(mode=0o700, exist_ok=True)
        sums = {}
        for health in await site.examine(arguments.nodes(given, "nodes"), LEVEL):
            raw = _encode(health)
            (folder / f"{health.node}.json").write_bytes(raw)
            sums[f"{health.node}.json"] = hashlib.sha256(raw).hexdigest()
        (folder / "SHA256SUMS").write_text(_sums(sums))
        out = {"files": sorted(sums), "directory": str(folder)}
        return Done(out, changed=False, say=f"{len(sums)} files")


def _encode(health: NodeHealth) -> bytes:
    return json.dumps(asdict(health), default=str, indent=1).encode()


def _sums(sums: Mapping[str, str]) -> str:
    return "".join(f"{digest}  {name}\n" for name, digest in sorted(sums.items()))
