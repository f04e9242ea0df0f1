"""Candidates for one TAB, from two small files; imports nothing but json and os.

`completions/words.json` is generated from the commands and tested for drift. The cache is written
by every sweep and diagnosis; a TAB never asks the network.
"""

import json
import os
import sys

WORDS_FILE = "words.json"
CACHE_FILE = "completion.json"
NODE_FLAGS = ("-w", "--nodes", "-x", "--exclude")
# command path -> kind of its free arguments in the cache
ARGUMENTS = {
    "why": "verdicts", "fix": "verdicts", "verdict show": "verdicts",
    "verdict explain": "verdicts", "verdict confirm": "verdicts", "verdict dismiss": "verdicts",
    "cordon": "nodes", "uncordon": "nodes", "swap": "nodes", "dx": "jobs", "job show": "jobs",
    "job start": "jobs", "job stop": "jobs", "job watch": "jobs", "check run": "checks",
    "check explain": "checks", "play show": "playbooks", "play run": "playbooks",
    "play plan": "playbooks", "play resume": "runs", "play rollback": "runs",
}  # fmt: skip


def complete(arguments: list[str]) -> int:
    """Print candidates for word number `arguments[0]` of the line that follows; always exits 0."""
    try:
        position, line = int(arguments[0]), arguments[1:]
    except (ValueError, IndexError):
        return 0
    line += [""] * (position + 1 - len(line))
    typed = line[position]
    sys.stdout.write("\n".join(candidates(line[1:position], typed)))
    return 0


def candidates(before: list[str], typed: str) -> list[str]:
    """Words that may stand at the cursor."""
    if before and before[-1] in NODE_FLAGS:
        return node_candidates(typed)
    path, tree = "", load(os.path.join(words_dir(), WORDS_FILE))
    for word in before:
        if not word.startswith("-") and f"{path} {word}".strip() in tree:
            path = f"{path} {word}".strip()
    kind = ARGUMENTS.get(path)
    if typed.startswith("-"):
        words = tree.get(path, {}).get("flags", [])
    elif kind == "nodes":
        return node_candidates(typed)
    else:
        words = tree.get(path, {}).get("words", []) + (
            load(cache_path()).get(kind, []) if kind else []
        )
    return [word for word in words if word.startswith(typed)]


def node_candidates(typed: str) -> list[str]:
    """The last name of a node set that is being typed."""
    cut = max((typed.rfind(mark) for mark in ",!&^"), default=-1) + 1
    known = load(cache_path())
    names = known.get("groups", []) + known.get("nodes", [])
    return [typed[:cut] + name for name in names if name.startswith(typed[cut:])][:200]


def words_dir() -> str:
    """The folder of the generated word list, installed or in a checkout."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    installed = os.path.join(package, "_shipped", "completions")
    return installed if os.path.isdir(installed) else os.path.join(package, "..", "completions")


def cache_path() -> str:
    """Where the names of nodes, jobs and verdicts are kept for completion."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.environ.get("HOME", "/"), ".cache")
    return os.path.join(cache, "brctl", CACHE_FILE)


def load(path: str) -> dict:  # type: ignore[type-arg]  # whatever the file holds
    """A JSON object, or nothing: a TAB never fails."""
    try:
        with open(path, encoding="utf-8") as stream:
            value = json.load(stream)
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}
