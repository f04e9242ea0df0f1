"""RUNS ON THE NODE. A rank's processes, and where py-spy sees them; changes nothing."""

import json
import os
import shutil
import subprocess

DUMP_S = 8
FRAMES_KEPT = 64
THREADS_ASKED = 1024
CGROUPS = "/sys/fs/cgroup"
FROZEN_WAIT = "do_freezer_trap"


def find_py_spy(python):
    """py-spy beside the training's Python, else on the path."""
    beside = os.path.join(os.path.dirname(python), "py-spy") if python else ""
    if beside and os.access(beside, os.X_OK):
        return beside
    return shutil.which("py-spy")


def pid_of_rank(log_dir, rank):
    """The process its launcher wrote down; a ValueError says why it is not known."""
    path = os.path.join(log_dir or "", "rank-%05d.process.json" % rank)
    try:
        with open(path) as stream:
            return int(json.loads(stream.read(65536))["pid"])
    except (OSError, ValueError, KeyError, TypeError) as exc:
        raise ValueError("its process is not known: %s" % exc) from None


def process_state(pid):
    """The kernel's letter, or None when the process is gone."""
    try:
        with open("/proc/%d/stat" % pid) as stream:
            return stream.read().rsplit(")", 1)[1].split()[0]
    except (OSError, IndexError):
        return None


def kernel_wait(pid):
    """The kernel function the main thread waits in; empty when running or not readable.

    Of a frozen process Linux 6.1 and newer tell the function that it slept in before.
    """
    if frozen_by_group(pid):
        return FROZEN_WAIT
    wait = head_of("/proc/%d/wchan" % pid)[:256].strip()
    return "" if wait == "0" else wait


def frozen_by_group(pid, root=CGROUPS):
    """Whether a control group of a process is frozen, as `docker pause` does; False if unread."""
    return any(word in head_of(os.path.join(root, path)) for path, word in freezers_of(pid))


def freezers_of(pid):
    """Files that tell whether a process's groups are frozen, and the word that says so."""
    for line in head_of("/proc/%d/cgroup" % pid).splitlines():
        controllers, _, group = line.partition(":")[2].partition(":")
        if "freezer" in controllers.split(","):
            yield os.path.join("freezer", group.lstrip("/"), "freezer.state"), "FROZEN"
        elif not controllers:
            yield os.path.join(group.lstrip("/"), "cgroup.events"), "frozen 1"


def head_of(path):
    """The beginning of a small file of the kernel; empty where there is none."""
    try:
        with open(path, errors="replace") as stream:
            return stream.read(16384)
    except OSError:
        return ""


def descendants(pid):
    """Processes below one, nearest first."""
    found = []
    generation = [pid]
    while generation and len(found) < 256:
        generation = [child for parent in generation for child in children_of(parent)]
        found += generation
    return found


def children_of(pid):
    """Those that any of its threads started: a loader made in a thread has its workers there."""
    try:
        threads = os.listdir("/proc/%d/task" % pid)[:THREADS_ASKED]
    except OSError:
        return []
    return [child for thread in threads for child in children_of_thread(pid, thread)]


def children_of_thread(pid, thread):
    try:
        with open("/proc/%d/task/%s/children" % (pid, thread)) as stream:
            return [int(word) for word in stream.read().split()]
    except (OSError, ValueError):
        return []


def command_of(pid):
    """Its command line, bounded."""
    try:
        with open("/proc/%d/cmdline" % pid, "rb") as stream:
            return stream.read(400).replace(b"\0", b" ").decode("utf-8", "replace").strip()
    except OSError:
        return ""


def threads_of(py_spy, pid, flags, wait_s=DUMP_S):
    """py-spy's threads of a process; a ValueError says why there are none."""
    command = [py_spy, "dump", "--json", "--pid", str(pid), *flags]
    pipe = subprocess.PIPE
    try:
        done = subprocess.run(command, stdout=pipe, stderr=pipe, timeout=wait_s)
    except subprocess.TimeoutExpired:
        raise ValueError("py-spy %s timed out after %g s" % (flags, wait_s)) from None
    if done.returncode != 0:
        why = done.stderr.decode("utf-8", "replace").strip()[-200:]
        raise ValueError("py-spy %s: %s" % (" ".join(flags), why))
    try:
        return json.loads(done.stdout.decode("utf-8", "replace"))
    except ValueError as exc:
        raise ValueError("py-spy gave no JSON: %s" % exc) from None


def frame_row(frame):
    """What is kept of a frame."""
    return {
        "name": frame.get("name"),
        "short_filename": frame.get("short_filename"),
        "line": frame.get("line"),
        "place": place_of(frame.get("filename") or ""),
    }


def place_of(path):
    """Whose a file is: an installed package's, Python's own, or the job's."""
    if "/site-packages/" in path or "/dist-packages/" in path:
        return "package"
    if path.startswith("<") or "/lib/python3" in path:
        return "python"
    return "job"
