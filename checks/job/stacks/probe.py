"""RUNS ON THE NODE. Reads the stacks of the job's ranks with py-spy; changes nothing."""

import json
import os
import signal
import sys

from checks._live_queries.rank_facts import facts_of
from checks._stacks.processes import (
    FRAMES_KEPT,
    command_of,
    descendants,
    find_py_spy,
    frame_row,
    kernel_wait,
    pid_of_rank,
    process_state,
    threads_of,
)


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
    sys.stdout.write(json.dumps({"measurements": readings.rows, "notes": readings.notes}))
    return status


STACK_LIMIT = 4000  # the controller keeps no longer text of one reading
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


def measure_rank(readings, parameters, rank, py_spy):
    subject = "rank:%d" % rank
    try:
        pid = pid_of_rank(parameters.get("log_dir"), rank)
    except ValueError as exc:
        readings.note("rank %d: %s" % (rank, exc))
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


def dump(readings, rank, py_spy, pid, native):
    """py-spy's threads. Non-blocking first: pausing a stopped multi-threaded process fails."""
    nonblocking = ["--nonblocking"]
    for flags in [["--native"], nonblocking] if native else [nonblocking, []]:
        try:
            return threads_of(py_spy, pid, flags)
        except ValueError as exc:
            readings.note("rank %d: %s" % (rank, exc))
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
        "frames": [frame_row(frame) for frame in frames[:FRAMES_KEPT]],
    }


def describe(pid):
    """State, kernel wait and command of a child: a stuck data loader or writer shows here."""
    return {
        "pid": pid,
        "state": process_state(pid) or "",
        "kernel_wait": kernel_wait(pid),
        "command": command_of(pid)[:160],
    }


if __name__ == "__main__":
    sys.exit(main(measure))
