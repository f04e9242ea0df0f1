"""RUNS ON THE NODE. Reads the stacks of the job's ranks with py-spy; changes nothing."""

import json
import os
import shutil
import signal
import subprocess
import sys

from checks._live_queries.rank_facts import facts_of


# Every probe is one file, so this block is the same in all of them; a test compares.
class Readings(object):
    """Values read so far, and why others are missing."""

    def __init__(self):
        self.rows = []
        self.notes = []

    def add(self, name, subject, value):
        self.rows.append({"name": name, "subject": subject, "value": value})

    def note(self, text):
        self.notes.append(str(text)[:400])

    def read(self, name, subject, call, *arguments):
        """Add what the call returns and return it; a failure becomes a note, never a number."""
        try:
            value = call(*arguments)
        except Exception as exc:
            unsupported = getattr(exc, "value", None) in (3, 13)  # not supported by part, by driver
            shape = "not supported: %s %s" if unsupported else "%s %s: %s"
            self.note(shape % ((name, subject) if unsupported else (name, subject, exc)))
            return None
        if isinstance(value, bytes):
            value = value.decode("utf-8", "replace")
        self.add(name, subject, value)
        return value


class OutOfTime(BaseException):
    """The probe's own deadline; no `except Exception` may catch it as a failed reading."""


def out_of_time(signum, frame):
    raise OutOfTime()


def main(measure):
    """Read parameters, measure within the deadline, print what was read so far whatever happens."""
    parameters = json.loads(sys.stdin.read() or "{}")
    readings = Readings()
    status = 0
    signal.signal(signal.SIGALRM, out_of_time)
    signal.setitimer(signal.ITIMER_REAL, max(0.1, float(parameters.get("deadline_s", 10)) * 0.9))
    try:
        status = measure(readings, parameters) or 0
    except OutOfTime:
        readings.note("deadline_s reached")
        status = 1
    except Exception as exc:
        readings.note("%s: %s" % (type(exc).__name__, exc))
        status = 1
    signal.setitimer(signal.ITIMER_REAL, 0)
    json.dump({"measurements": readings.rows, "notes": readings.notes}, sys.stdout)
    return status


STACK_LIMIT = 4000  # the controller keeps no longer text of one reading
DUMP_S = 8
FRAMES_KEPT = 64
CHILDREN_KEPT = 16


def measure(readings, parameters):
    ranks = parameters.get("ranks") or []
    if not ranks:
        readings.note("not supported: everything, no rank of the job runs here")
        return 0
    py_spy = find_py_spy(parameters.get("python"))
    if py_spy is None:
        readings.note("py-spy is not installed here; states are read, stacks are not")
    for rank in ranks:
        measure_rank(readings, parameters, int(rank), py_spy)
    return 0 if py_spy is not None else 1


def find_py_spy(python):
    """py-spy beside the training's Python, else on the path."""
    beside = os.path.join(os.path.dirname(python), "py-spy") if python else ""
    if beside and os.access(beside, os.X_OK):
        return beside
    return shutil.which("py-spy")


def measure_rank(readings, parameters, rank, py_spy):
    subject = "rank:%d" % rank
    path = os.path.join(parameters.get("log_dir") or "", "rank-%05d.process.json" % rank)
    try:
        with open(path) as stream:
            pid = int(json.loads(stream.read(65536))["pid"])
    except (OSError, ValueError, KeyError, TypeError) as exc:
        readings.note("rank %d: its process is not known: %s" % (rank, exc))
        return
    state = process_state(pid)
    if state is None:
        readings.note("rank %d: process %d is gone" % (rank, pid))
        return
    readings.add("job.stack.state", subject, state)
    log = os.path.join(parameters.get("log_dir") or "", "rank-%05d.log" % rank)
    readings.add("job.stack.process", subject, json.dumps(facts_of(pid, log))[:STACK_LIMIT])
    wait = kernel_wait(pid)
    if wait:
        readings.add("job.stack.kernel_wait", subject, wait)
    if py_spy is None:
        return
    threads = dump(readings, rank, py_spy, pid, bool(parameters.get("native")))
    if threads is not None:
        readings.add("job.stack.threads", subject, bounded(threads))
    children = descendants(pid)[:CHILDREN_KEPT]
    if children:
        readings.add("job.stack.children", subject, json.dumps([describe(c) for c in children]))


def process_state(pid):
    """The kernel's letter, or None when the process is gone."""
    try:
        with open("/proc/%d/stat" % pid) as stream:
            return stream.read().rsplit(")", 1)[1].split()[0]
    except (OSError, IndexError):
        return None


def kernel_wait(pid):
    """The kernel function the main thread waits in; empty when running or not readable."""
    try:
        with open("/proc/%d/wchan" % pid) as stream:
            wait = stream.read(256).strip()
    except OSError:
        return ""
    return "" if wait == "0" else wait


def dump(readings, rank, py_spy, pid, native):
    """py-spy's threads. Non-blocking first: pausing a stopped multi-threaded process fails."""
    nonblocking = ["--nonblocking"]
    for flags in [["--native"], nonblocking] if native else [nonblocking, []]:
        command = [py_spy, "dump", "--json", "--pid", str(pid), *flags]
        pipe = subprocess.PIPE
        try:
            done = subprocess.run(command, stdout=pipe, stderr=pipe, timeout=DUMP_S)
        except subprocess.TimeoutExpired:
            readings.note("rank %d: py-spy %s timed out after %d s" % (rank, flags, DUMP_S))
            continue
        if done.returncode == 0:
            try:
                return json.loads(done.stdout.decode("utf-8", "replace"))
            except ValueError as exc:
                readings.note("rank %d: py-spy gave no JSON: %s" % (rank, exc))
                continue
        why = done.stderr.decode("utf-8", "replace").strip()[-200:]
        readings.note("rank %d: py-spy %s: %s" % (rank, " ".join(flags), why))
    return None


def bounded(threads):
    """Threads as JSON within the limit: main thread first, then as many others as fit."""
    rows = [trimmed(thread) for thread in threads if isinstance(thread, dict)]
    rows.sort(key=lambda row: row["thread_name"] != "MainThread")
    while rows and len(json.dumps(rows[:1])) > STACK_LIMIT and rows[0]["frames"]:
        rows[0]["frames"].pop()  # the outermost says least
    kept = []
    for row in rows:
        kept.append(row)
        if len(json.dumps(kept)) > STACK_LIMIT:
            kept.pop()
            break
    return json.dumps(kept)


def trimmed(thread):
    frames = thread.get("frames") or []
    return {
        "thread_name": thread.get("thread_name") or "",
        "active": bool(thread.get("active")),
        "owns_gil": bool(thread.get("owns_gil")),
        "frames": [
            {
                "name": f.get("name"),
                "short_filename": f.get("short_filename"),
                "line": f.get("line"),
                "place": place_of(f.get("filename") or ""),
            }
            for f in frames[:FRAMES_KEPT]
        ],
    }


def place_of(path):
    """Whose a file is: an installed package's, Python's own, or the job's."""
    if "/site-packages/" in path or "/dist-packages/" in path:
        return "package"
    if path.startswith("<") or "/lib/python3" in path:
        return "python"
    return "job"


def descendants(pid):
    """Processes below one, nearest first."""
    found = []
    generation = [pid]
    while generation and len(found) < 256:
        generation = [child for parent in generation for child in children_of(parent)]
        found += generation
    return found


def children_of(pid):
    try:
        with open("/proc/%d/task/%d/children" % (pid, pid)) as stream:
            return [int(word) for word in stream.read().split()]
    except (OSError, ValueError):
        return []


def describe(pid):
    """State, kernel wait and command of a child: a stuck data loader or writer shows here."""
    try:
        with open("/proc/%d/cmdline" % pid, "rb") as stream:
            command = stream.read(400).replace(b"\0", b" ").decode("utf-8", "replace").strip()
    except OSError:
        command = ""
    return {
        "pid": pid,
        "state": process_state(pid) or "",
        "kernel_wait": kernel_wait(pid),
        "command": command[:160],
    }


if __name__ == "__main__":
    sys.exit(main(measure))
