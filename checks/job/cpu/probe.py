"""RUNS ON THE NODE. Reads how long the job's ranks stand ready without a CPU; changes nothing."""

import json
import os
import signal
import sys
import time

from checks._progress.rank_processes import rank_processes
from checks._stacks.processes import pid_of_rank


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


SAMPLE_S = 0.4
THREADS_READ = 512


def text(path):
    with open(path) as stream:
        return stream.read(65536)


def allowed_cpus(pid, proc="/proc"):
    """How many processors a process may run on, by its affinity and its cpuset."""
    for line in text("%s/%d/status" % (proc, pid)).splitlines():
        if line.startswith("Cpus_allowed:"):
            return bin(int(line.split()[1].replace(",", ""), 16)).count("1")
    raise ValueError("no Cpus_allowed in its status")


def delays_of(pid, proc="/proc"):
    """{thread: nanoseconds it stood ready without a CPU} since it began."""
    folder = "%s/%d/task" % (proc, pid)
    delays = {}
    for thread in sorted(os.listdir(folder), key=int)[:THREADS_READ]:
        try:
            delays[thread] = int(text("%s/%s/schedstat" % (folder, thread)).split()[1])
        except (FileNotFoundError, ProcessLookupError):
            continue  # It ended while we looked.
    if not delays:
        raise FileNotFoundError("the kernel keeps no schedstat")
    return delays


def longest_wait(before, after):
    """What the thread that waited longest waited between two readings, in seconds."""
    return max([after[t] - before[t] for t in after if t in before] or [0]) / 1e9


def main_wait(pid, before, after):
    """The same of the main thread, which starts every step; None where it was not read twice."""
    main = str(pid)
    return (after[main] - before[main]) / 1e9 if main in before and main in after else None


def measure(readings, parameters):
    ranks = [int(rank) for rank in parameters.get("ranks") or []]
    if not ranks:
        readings.note("not supported: everything, no rank of the job runs here")
        return 0
    pids = pids_of(readings, parameters, ranks)
    # Each rank has its own start: reading the threads of many takes longer than the sample.
    before, began = {}, {}
    for rank, pid in sorted(pids.items()):
        began[rank] = time.monotonic()
        before[rank] = readings_of(readings, rank, delays_of, pid)
    time.sleep(SAMPLE_S if any(before.values()) else 0)
    for rank, pid in sorted(pids.items()):
        subject = "rank:%d" % rank
        cpus = readings_of(readings, rank, allowed_cpus, pid)
        if cpus is not None:
            readings.add("job.cpu.allowed", subject, cpus)
        after = readings_of(readings, rank, delays_of, pid) if before[rank] else None
        if after:
            span_s = time.monotonic() - began[rank]
            waited_s = longest_wait(before[rank], after)
            readings.add("job.cpu.waits_pct", subject, min(100.0, 100.0 * waited_s / span_s))
            main_s = main_wait(pid, before[rank], after)
            if main_s is not None:
                readings.add("job.cpu.main_waits_pct", subject, min(100.0, 100.0 * main_s / span_s))
    return 0


def pids_of(readings, parameters, ranks):
    """{rank: pid} of the ranks whose process is known."""
    pids = {}
    told = None
    for rank in ranks:
        try:
            pids[rank] = pid_of_rank(parameters.get("log_dir"), rank)
        except ValueError as exc:
            if told is None:
                told = rank_processes(int(parameters.get("world_size") or 0))
            if rank in told:
                pids[rank] = told[rank]
            else:
                readings.note("not supported: rank %d: %s" % (rank, exc))
    return pids


def readings_of(readings, rank, call, pid):
    """What a call reads of a process; None, and a note, where it cannot."""
    try:
        return call(pid)
    except (OSError, ValueError, IndexError) as exc:
        readings.note("not supported: rank %d: %s" % (rank, exc))
        return None


if __name__ == "__main__":
    sys.exit(main(measure))
