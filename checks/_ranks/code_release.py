"""RUNS ON THE NODE. Lets a process that was parked in one release of the job's code start another.

What is parked holds torch and what `warm:` lists. As long as none of that came from the release it
waited in, and the new release brings nothing under the name of a module it holds, a fresh start of
the new release would hold the same. Python 3.8, standard library only.
"""

from __future__ import annotations

import importlib.machinery
import os
import sys
from typing import Any

CODE_DIR, CODE_VERSION = "BRCTL_CODE_DIR", "BRCTL_CODE_VERSION"


def whatever_release(request: dict[str, Any]) -> list[Any]:
    """Environment and directory of a job's ranks, as they are in each of its releases."""
    environment, workdir = request["environment"], request["workdir"]
    if CODE_DIR not in environment:
        return [environment, workdir]
    within = "" if workdir == environment[CODE_DIR] else workdir
    return [{**environment, CODE_DIR: "", CODE_VERSION: ""}, within]


def release_of(request: dict[str, Any]) -> dict[str, Any]:
    """What a parked process has to be told of the release that is to start."""
    environment = request["environment"]
    known = {name: environment[name] for name in (CODE_DIR, CODE_VERSION) if name in environment}
    return {"environment": known, "workdir": request["workdir"]}


def search_folder(request: dict[str, Any], workdir: str) -> str | None:
    """Where a fresh interpreter looks first for the job's modules; None when nowhere of its own."""
    if sys.flags.isolated or getattr(sys.flags, "safe_path", False):
        return None
    if request["kind"] == "module":
        return os.path.realpath(workdir)
    return os.path.dirname(os.path.realpath(os.path.join(workdir, request["target"])))


def why_not_release(request: dict[str, Any], release: dict[str, Any]) -> str | None:
    """Why this process is not what a fresh start of a release would be; None when it is."""
    old, new = os.environ.get(CODE_DIR), release["environment"].get(CODE_DIR)
    if old is None or old == new:
        return None
    if not os.path.isdir(release["workdir"]):
        return f"the directory {release['workdir']} is not there"
    held = next((path for path in held_paths() if is_within(path, old)), None)
    if held is not None:
        return f"it holds {held} of the release it was parked in, and {new} is to start"
    folder = search_folder(request, release["workdir"])
    hidden = hidden_module(folder) if folder is not None else None
    return f"{folder} has a module {hidden}, and it holds another" if hidden else None


def held_paths() -> list[str]:
    """Files and directories of all modules, and where it looks for more beside the job's own."""
    # Of their dictionaries: torch has modules that answer every other name with an object.
    held = [getattr(module, "__dict__", {}) for module in list(sys.modules.values())]
    files = [names.get("__file__") for names in held]
    folders = [path for names in held for path in names.get("__path__") or ()]
    paths = [path for path in (*files, *folders, *sys.path[1:]) if isinstance(path, str)]
    return [path for path in paths if os.path.isabs(path) or os.path.exists(path)]


def is_within(path: str, folder: str) -> bool:
    """Whether a path is a directory or lies in it, by its name or in truth."""
    folders = (folder, os.path.realpath(folder))
    return any(
        name == root or name.startswith(root.rstrip(os.sep) + os.sep)
        for name in (path, os.path.realpath(path))
        for root in folders
    )


def hidden_module(folder: str) -> str | None:
    """A module of a directory that a fresh start would import in place of one that is loaded."""
    loaded = {name.partition(".")[0] for name in sys.modules} - {"__main__"}
    there = {name.partition(".")[0] for name in os.listdir(folder)}
    for name in sorted(there & loaded - set(sys.builtin_module_names)):
        spec = importlib.machinery.PathFinder.find_spec(name, [folder])
        if spec is not None and spec.loader is not None and spec.has_location:
            return name
    return None
