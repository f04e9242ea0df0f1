"""RUNS ON THE NODE. What the processes and directories of a running job say of it; changes nothing.

One JSON object on standard input: which processes (`pid`, `match`, `environment`), and how
checkpoints are named (`names`). Of the environment only names that say how a job runs leave the
node; values of all others stay here. Python 3.8, standard library only.
"""

import glob
import json
import os
import re
import stat
import sys

from checks._progress.rank_processes import environment_of, parent_of, rank_of

PROCESSES_LIMIT = 64
WORDS_LIMIT, WORD_LIMIT = 400, 4000
NAMES_LIMIT = 20000
KEPT = re.compile(
    r"(?:NCCL|GLOO|TORCH|PYTORCH|OMP|MKL|UCX|FI|TRITON|NVTE|TOKENIZERS|TRANSFORMERS)_[A-Z0-9_]+$"
    r"|CUDA_(?!VISIBLE_DEVICES)[A-Z0-9_]+$|(?:HF_HOME|HF_DATASETS_CACHE|PYTHONPATH|PYTHONUNBUFFERED"
    r"|LD_LIBRARY_PATH|MASTER_PORT|WORLD_SIZE|LOCAL_WORLD_SIZE|SLURM_NTASKS|SLURM_NTASKS_PER_NODE)$"
)
PLACES = re.compile(r"(?i)save|ckpt|checkpoint|output|root[_-]?dir|exp[_-]?dir|out[_-]?dir")
USUAL = ("", "checkpoint", "checkpoints", "ckpt", "ckpts", "output", "outputs", "out", "results")
DEEPER = ("*", "lightning_logs/version_*/checkpoints")


def find(request):
    """{pid: environment} of the processes that are asked for, without ourselves."""
    ours, found = {os.getpid(), os.getppid()}, {}
    for name in os.listdir("/proc"):
        pid = int(name) if name.isdigit() else 0
        if pid and pid not in ours:
            environment = environment_of(pid)
            if is_asked_for(request, pid, environment):
                found[pid] = environment
    return found


def is_asked_for(request, pid, environment):
    if request.get("pid"):
        return pid == request["pid"]
    if request.get("match"):
        return request["match"] in " ".join(words_of(pid))
    wanted = request.get("environment") or {}
    return bool(wanted) and all(environment.get(key) == value for key, value in wanted.items())


def ranks_among(found):
    """The processes that are ranks, once each; all that are nobody's child where none is."""
    ranks = {pid: rank_of(environment, 0) for pid, environment in found.items()}
    known = {pid: rank for pid, rank in ranks.items() if rank is not None}
    firsts = known if known else ranks
    own = [pid for pid in firsts if ranks.get(parent_of(pid), "none") != ranks[pid]]
    return sorted(own, key=lambda pid: (ranks[pid] or 0, pid))[:PROCESSES_LIMIT], ranks


def words_of(pid):
    try:
        with open("/proc/%d/cmdline" % pid, "rb") as stream:
            raw = stream.read(WORDS_LIMIT * WORD_LIMIT)
    except OSError:
        return []
    words = [word.decode("utf-8", "replace") for word in raw.split(b"\0")[:-1]]
    return [word[:WORD_LIMIT] for word in words[:WORDS_LIMIT]]


def link_of(path):
    try:
        return os.readlink(path)
    except OSError:
        return ""


def output_of(pid):
    """The file that a process, or who started it, writes its output to; "" for a pipe."""
    for _ in range(6):
        for number in (1, 2):
            path = "/proc/%d/fd/%d" % (pid, number)
            try:
                if stat.S_ISREG(os.stat(path).st_mode) and link_of(path).startswith("/"):
                    return link_of(path)
            except OSError:
                continue
        pid = parent_of(pid)
        if pid <= 1:
            break
    return ""


def describe(pid, rank, environment):
    kept = {name: value for name, value in environment.items() if KEPT.match(name)}
    return {
        "pid": pid,
        "rank": rank,
        "argv": words_of(pid),
        "cwd": link_of("/proc/%d/cwd" % pid),
        "environment": {name: value[:WORD_LIMIT] for name, value in kept.items()},
        "not_sent": len(environment) - len(kept),
        "output": output_of(pid),
    }


def places(words, cwd):
    """Directories in which the job may save: those its flags name, then the usual ones."""
    named = []
    for i, word in enumerate(words):
        flag, equals, value = word.partition("=")
        following = words[i + 1] if i + 1 < len(words) else ""
        value = value if equals else following
        if PLACES.search(flag) and value and not value.startswith("-"):
            named.append(os.path.normpath(os.path.join(cwd or "/", value)))
    usual = [os.path.normpath(os.path.join(cwd, name)) for name in USUAL] if cwd else []
    return [(path, True) for path in named] + [(path, False) for path in usual]


def saves_below(path, patterns):
    """{directory: {layout: checkpoints}} of a directory and some below it."""
    found = {}
    deeper = [f for shape in DEEPER for f in glob.glob(os.path.join(path, shape))]
    for folder in [path, *deeper[:200]]:
        try:
            names = os.listdir(folder)[:NAMES_LIMIT]
        except OSError:
            continue
        counts = {
            layout: sum(bool(pattern.match(name)) for name in names)
            for layout, pattern in patterns.items()
        }
        if any(counts.values()):
            found[folder] = counts
    return found


def main(request):
    found = find(request)
    own, ranks = ranks_among(found)
    processes = [describe(pid, ranks[pid], found[pid]) for pid in own]
    patterns = {k: re.compile(r"(?:%s)\Z" % v) for k, v in request["names"].items() if v}
    folders, seen = [], set()
    first = processes[0] if processes else None
    for path, is_named in places(first["argv"], first["cwd"]) if first else ():
        if path not in seen and os.path.isdir(path):
            seen.add(path)
            below = saves_below(path, patterns)
            folders.append({"path": path, "named": is_named, "saves": below})
        elif is_named and path not in seen:
            seen.add(path)
            folders.append({"path": path, "named": True, "saves": {}})
    json.dump({"processes": processes, "folders": folders}, sys.stdout)


if __name__ == "__main__":
    main(json.loads(sys.stdin.read()))
