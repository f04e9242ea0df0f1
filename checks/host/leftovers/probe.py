"""RUNS ON THE NODE. Reads processes an earlier start of the job left; changes nothing."""

import json
import os
import signal
import sys


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


def environ(pid):
    """BRCTL_* environment of a process we may look at."""
    with open("/proc/%d/environ" % pid, "rb") as stream:
        pairs = stream.read(1 << 20).split(b"\0")
    found = {}
    for pair in pairs:
        name, _, value = pair.partition(b"=")
        if name.startswith(b"BRCTL_") or name == b"RANK":
            found[name.decode()] = value.decode("utf-8", "replace")
    return found


def stat(pid):
    """(state, parent) of a process."""
    with open("/proc/%d/stat" % pid) as stream:
        fields = stream.read().rsplit(")", 1)[1].split()
    return fields[0], int(fields[1])


def parked_tokens(parameters):
    """Words in the environment of processes that wait to become ranks, as brctl recorded them."""
    prefix = "parked-%s-" % parameters.get("node")
    folder = parameters.get("log_dir") or ""
    tokens = set()
    for name in os.listdir(folder) if os.path.isdir(folder) else ():
        if not (name.startswith(prefix) and name.endswith((".record", ".starting"))):
            continue
        try:
            with open(os.path.join(folder, name)) as stream:
                tokens.add(json.loads(stream.read(65536))["token"])
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return tokens


def rank_pids(parameters):
    """Processes the launcher recorded for the ranks that run here now."""
    ranks = set()
    for rank in parameters.get("ranks") or []:
        path = os.path.join(parameters.get("log_dir") or "", "rank-%05d.process.json" % int(rank))
        try:
            with open(path) as stream:
                ranks.add(int(json.loads(stream.read(65536))["pid"]))
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return ranks


def measure(readings, parameters):
    states, parents, marked, parked = {}, {}, set(), parked_tokens(parameters)
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        pid = int(name)
        try:
            states[pid], parents[pid] = stat(pid)
            found = environ(pid)
            if is_of_job(found, parameters) and found.get("BRCTL_PARKED") not in parked:
                marked.add(pid)
        except (OSError, ValueError, IndexError):
            continue  # it ended, or belongs to somebody else
    readings.add("host.leftovers.zombie_count", "", sum(s == "Z" for s in states.values()))
    readings.add("host.leftovers.blocked_count", "", sum(s == "D" for s in states.values()))
    if parameters.get("job"):
        count = len(marked - process_family(rank_pids(parameters), parents))
        readings.add("host.leftovers.count", "", count)


def is_of_job(found, parameters):
    """Whether it was started for this job on this node (several nodes may share a machine)."""
    job, node = parameters.get("job"), parameters.get("node")
    return bool(job) and found.get("BRCTL_JOB") == job and found.get("BRCTL_NODE") == node


def process_family(ranks, parents):
    """The ranks, everything they started, and the starters above them."""
    related = set(ranks)
    grown = True
    while grown:
        new = {pid for pid, parent in parents.items() if parent in related} - related
        related, grown = related | new, bool(new)
    for pid in ranks:
        while parents.get(pid, 0) > 1:
            pid = parents[pid]
            related.add(pid)
    return related


if __name__ == "__main__":
    sys.exit(main(measure))
