"""Names for TAB completion, written by every sweep and diagnosis and by `lab up`."""

import contextlib
import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from brctl.engine.controller.wiring import Controller
from brctl.engine.incidents.verdict_store import StoredVerdict, VerdictState, load_all
from brctl.inventory.select import NOTHING_KNOWN, known_groups, members_of
from brctl.library.config import Settings, user_cache_dir
from brctl.library.durable_files import private_dir, write_atomic
from brctl.library.shipped import shipped_dir
from brctl.model.errors import BrctlError
from brctl.model.inventory import Inventory
from brctl.model.nodeset import fold
from brctl.model.sweeps.check import Check
from brctl.view.text import printable

CACHE_FILE = "completion.json"
NEWEST = 50
Names = Mapping[str, str]


def write_names(controller: Controller) -> Path | None:
    """Refresh the cache; None when it cannot be written, which no command fails over."""
    settings, jobs = controller.settings, tuple(controller.jobs)
    names: dict[str, Names] = {
        **inventory_names(settings, controller.inventory, jobs),
        "checks": check_names(controller.checks.values()),
        "playbooks": playbook_names(settings),
    }
    stored = load_all(settings.state_dir)
    names["verdicts"] = {s.verdict.id: _in_words(s) for s in stored if _is_open(s)}
    names["incidents"] = {s.verdict.id: _in_words(s) for s in stored[:NEWEST]}
    names["runs"] = run_names(settings.state_dir)
    return write_cache(settings, names)


def inventory_names(
    settings: Settings, inventory: Inventory, jobs: Iterable[str] = ()
) -> dict[str, Names]:
    """Contexts, nodes, groups and jobs, each with what it is."""
    return {
        "contexts": dict.fromkeys(settings.contexts, "context"),
        "nodes": {node.name: _about_node(node.role.value, node.labels)
                  for node in inventory.nodes.values()},
        "groups": {f"@{name}": _about_group(inventory, name)
                   for name in known_groups(inventory, jobs)},
        "jobs": dict.fromkeys(sorted(jobs), "job"),
    }  # fmt: skip


def check_names(checks: Iterable[Check]) -> Names:
    """Checks of this context and their titles."""
    return {check.name: check.title for check in sorted(checks, key=lambda check: check.name)}


def playbook_names(settings: Settings) -> Names:
    """Playbooks by name; their titles would cost reading them all."""
    site = [folder / "playbooks" for folder in settings.library_dirs]
    found = {path.stem: "of this site" for folder in site for path in folder.glob("*.yaml")}
    shipped = {path.stem: "shipped" for path in shipped_dir("playbooks").glob("*.yaml")}
    return dict(sorted({**shipped, **found}.items()))


def run_names(state_dir: Path) -> Names:
    """The newest runs."""
    names = sorted((path.name for path in (state_dir / "runs").glob("R-*")), reverse=True)
    return dict.fromkeys(names[:NEWEST], "run")


def write_cache(settings: Settings, names: Mapping[str, Names]) -> Path | None:
    """Write the names of a context, and as those that count where no context is named."""
    folder = user_cache_dir(os.environ)
    try:
        private_dir(folder)
        write_atomic(folder / f"completion-{settings.context}.json", json.dumps(names))
        write_atomic(folder / CACHE_FILE, json.dumps(names))
    except OSError:
        return None
    return folder / CACHE_FILE


def forget_names(context: str) -> None:
    """TAB offers nothing of a context that is gone."""
    folder = user_cache_dir(os.environ)
    own, common = folder / f"completion-{context}.json", folder / CACHE_FILE
    with contextlib.suppress(OSError):
        if own.read_bytes() == common.read_bytes():
            common.unlink()
        own.unlink()


def _is_open(stored: StoredVerdict) -> bool:
    return stored.state is VerdictState.OPEN


def _in_words(stored: StoredVerdict) -> str:
    verdict = stored.verdict
    return f"{verdict.fault} {fold(verdict.nodes) or '-'} {stored.state.value}"[:80]


def _about_node(role: str, labels: Mapping[str, str]) -> str:
    places = [f"{key} {labels[key]}" for key in ("rack", "leaf") if key in labels]
    return printable(" ".join([role, *places]), limit=80)


def _about_group(inventory: Inventory, name: str) -> str:
    try:
        members = Counter(members_of(inventory, NOTHING_KNOWN, name))
    except BrctlError:
        return "as it is at that moment"
    return f"{len(members)} nodes"
