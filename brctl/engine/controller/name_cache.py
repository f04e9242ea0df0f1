"""Names for TAB completion, written by every sweep and diagnosis."""

import json
import os
from pathlib import Path

from brctl.engine.controller.wiring import Controller
from brctl.engine.incidents.verdict_store import load_all
from brctl.inventory.select import known_groups
from brctl.library.config import user_cache_dir
from brctl.library.durable_files import private_dir, write_atomic
from brctl.library.shipped import shipped_dir

CACHE_FILE = "completion.json"


def write_names(controller: Controller) -> Path | None:
    """Refresh the cache; None when it cannot be written, which no command fails over."""
    playbooks = [
        shipped_dir("playbooks"),
        *(d / "playbooks" for d in controller.settings.library_dirs),
    ]
    names = {
        "nodes": list(controller.inventory.nodes),
        "groups": [f"@{name}" for name in known_groups(controller.inventory, controller.jobs)],
        "jobs": sorted(controller.jobs),
        "checks": sorted(controller.checks),
        "playbooks": sorted({path.stem for folder in playbooks for path in folder.glob("*.yaml")}),
        "verdicts": [stored.verdict.id for stored in load_all(controller.state_dir)[:50]],
        "runs": sorted((p.name for p in (controller.state_dir / "runs").glob("R-*")), reverse=True)[
            :50
        ],
    }
    path = user_cache_dir(os.environ) / CACHE_FILE
    try:
        private_dir(path.parent)
        write_atomic(path, json.dumps(names))
    except OSError:
        return None
    return path
