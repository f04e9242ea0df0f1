"""RUNS ON THE NODE. What the ranks of a job are started with, and whether this node has it.

Python 3.8, standard library only.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from typing import Any

_PYTHON = re.compile(r"python[0-9.]*")
_SWITCHES = frozenset("bBdEIOPqsSuv")
_WITH_VALUE = ("-W", "-X")
DESCRIBE_S = 30.0

# Runs in the job's interpreter. It finds torch's version without importing it, which takes seconds
# that a training node has better use for.
_DESCRIBE = """
import importlib.util, json, os, sys
kind, target = sys.argv[1:]
if kind == "module" and "" not in sys.path:
    sys.path.insert(0, os.getcwd())
def found(name):
    try:
        return importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return None
torch = found("torch")
version = {}
if torch and torch.origin:
    path = os.path.join(os.path.dirname(torch.origin), "version.py")
    if os.path.exists(path):
        exec(open(path).read(), version)
there = bool(found(target)) if kind == "module" else os.path.isfile(target)
print(json.dumps({"python": sys.version.split()[0], "program": there,
                  "torch": torch and str(version.get("__version__", "unknown"))}))
"""


def split_launch(launch: list[str]) -> dict[str, Any]:
    """Interpreter, its flags, and the script or module it runs; else why that cannot be told."""
    refused = {"why": "its launch command is not `python SCRIPT ...` or `python -m MODULE ...`"}
    if not _PYTHON.fullmatch(os.path.basename(launch[0])):
        return refused
    at = 1
    while at < len(launch) and launch[at].startswith("-") and launch[at] != "-m":
        word = launch[at]
        if word in _WITH_VALUE:
            at += 1
        elif word[:2] not in _WITH_VALUE and not (word[1:] and set(word[1:]) <= _SWITCHES):
            return refused
        at += 1
    kind = "module" if launch[at : at + 1] == ["-m"] else "script"
    first = at + (kind == "module")
    if first >= len(launch):
        return refused
    return {
        "python": launch[:at],
        "kind": kind,
        "target": launch[first],
        "arguments": launch[first + 1 :],
    }


def job_environment(request: dict[str, Any]) -> dict[str, str]:
    """What every process of the job on this node is started with."""
    return {
        **os.environ,
        **request["environment"],
        "BRCTL_JOB": request["job"],
        "BRCTL_NODE": request["node"],
        "BRCTL_PROGRESS_DIR": request["progress_dir"],
        "BRCTL_CHECKPOINT_DIR": request["checkpoint_dir"],
    }


def rank_environment(request: dict[str, Any], rank: int, local_rank: int) -> dict[str, str]:
    """What tells a rank who it is."""
    return {
        "RANK": str(rank),
        "LOCAL_RANK": str(local_rank),
        "LOCAL_WORLD_SIZE": str(request["local_ranks"]),
        "WORLD_SIZE": str(request["world_size"]),
        "MASTER_ADDR": request["master_addr"],
        "MASTER_PORT": str(request["master_port"]),
        "BRCTL_RESUME_FROM": request["resume_from"],
    }


def examine(request: dict[str, Any]) -> dict[str, Any]:
    """Whether directory and program of the job are here, and which Python and torch run it."""
    if not os.path.isdir(request["workdir"]):
        return {"problem": f"the job's directory {request['workdir']} is not there"}
    program = shutil.which(request["launch"][0], path=job_environment(request).get("PATH"))
    if program is None:
        return {"problem": f"the launch program {request['launch'][0]} is not there"}
    launch = split_launch(request["launch"])
    return {"unfit": launch["why"]} if "why" in launch else _ask_interpreter(request, launch)


def _ask_interpreter(request: dict[str, Any], launch: dict[str, Any]) -> dict[str, Any]:
    import subprocess

    try:
        done = subprocess.run(
            [*launch["python"], "-c", _DESCRIBE, launch["kind"], launch["target"]],
            cwd=request["workdir"],
            env=job_environment(request),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=DESCRIBE_S,
            check=True,
        )
        found: dict[str, Any] = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        return {"problem": f"the job's Python does not answer: {str(error)[:200]}"}
    if not found.pop("program"):
        return {"problem": f"the job's {launch['kind']} {launch['target']} is not there", **found}
    return found
