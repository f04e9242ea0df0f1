"""RUNS ON THE NODE. Reads the CPU and memory limits of the job's ranks; changes nothing."""

import json
import os
import signal
import sys
import time


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
LEAST_PERIODS = 3
NO_LIMIT = 1 << 60


def text(path):
    with open(path) as stream:
        return stream.read(4096).strip()


def pairs(path):
    """Numbers by name of a file such as cpu.stat; empty where there is none."""
    try:
        rows = [line.split() for line in text(path).splitlines()]
    except OSError:
        return {}
    return {row[0]: int(row[1]) for row in rows if len(row) == 2 and row[1].isdigit()}


def number(path):
    """The number in a file; None where there is none or it says `max`."""
    try:
        return int(text(path))
    except (OSError, ValueError):
        return None


def groups_of(pid, root):
    """(controller, directory) of a process's control groups, innermost first, version 1 and 2."""
    found = []
    for line in text("/proc/%d/cgroup" % pid).splitlines():
        _, controllers, path = line.split(":", 2)
        names = controllers.split(",") if controllers else [""]
        for name in names:
            base = os.path.join(root, name) if name else unified(root)
            found.extend((name, directory) for directory in upwards(base, path))
    return found


def unified(root):
    """Where version 2 is mounted: alone, or beside version 1."""
    beside = os.path.join(root, "unified")
    return beside if os.path.isdir(beside) else root


def upwards(base, path):
    parts = [part for part in path.split("/") if part and part != ".."]
    return [os.path.join(base, *parts[:count]) for count in range(len(parts), -1, -1)]


def cpu_limit(directory):
    """Processors' worth of time a group may use; None without a limit."""
    try:
        quota, period = text(os.path.join(directory, "cpu.max")).split()
    except (OSError, ValueError):
        quota = number(os.path.join(directory, "cpu.cfs_quota_us"))
        period = number(os.path.join(directory, "cpu.cfs_period_us"))
    if quota in (None, "max") or not period or int(quota) <= 0:
        return None
    return int(quota) / float(period)


def measure(readings, parameters):
    ranks = parameters.get("ranks") or []
    if not ranks:
        readings.note("not supported: everything, no rank of the job runs here")
        return 0
    if not parameters.get("log_dir"):
        readings.note("log_dir is not known")
        return 1
    root = parameters.get("root") or "/sys/fs/cgroup"
    groups = {}
    for rank in ranks:
        try:
            groups[int(rank)] = groups_of(pid_of(parameters["log_dir"], int(rank)), root)
        except (FileNotFoundError, ProcessLookupError):
            readings.note("not supported: rank %s has no process now" % rank)
        except (OSError, ValueError, KeyError, TypeError) as exc:
            readings.note("rank %s: %s: %s" % (rank, type(exc).__name__, exc))
    limited = {d for found in groups.values() for _, d in found if cpu_limit(d) is not None}
    before = {directory: pairs(os.path.join(directory, "cpu.stat")) for directory in limited}
    if limited:
        time.sleep(SAMPLE_S)
    for rank, found in sorted(groups.items()):
        measure_rank(readings, "rank:%d" % rank, found, before)
    return 0


def pid_of(log_dir, rank):
    path = os.path.join(log_dir, "rank-%05d.process.json" % rank)
    with open(path) as stream:
        return int(json.loads(stream.read(65536))["pid"])


def measure_rank(readings, subject, groups, before):
    own = [d for name, d in groups if name in ("", "memory")][:1]
    for directory in own:
        readings.add("job.cgroup.path", subject, directory)
    measure_cpu(readings, subject, dict.fromkeys(d for _, d in groups if d in before), before)
    for name, directory in groups:
        if name in ("", "memory") and measure_memory(readings, subject, directory):
            return


def measure_cpu(readings, subject, directories, before):
    """Of several limits on the way up, the one that throttles most."""
    worst = None
    for directory in directories:
        now = pairs(os.path.join(directory, "cpu.stat"))
        periods = now.get("nr_periods", 0) - before[directory].get("nr_periods", 0)
        throttled = now.get("nr_throttled", 0) - before[directory].get("nr_throttled", 0)
        share = 100.0 * throttled / periods if periods >= LEAST_PERIODS else 0.0
        if worst is None or share > worst[0]:
            worst = (share, cpu_limit(directory))
    if worst is not None and worst[1] is not None:
        readings.add("job.cgroup.throttled_pct", subject, worst[0])
        readings.add("job.cgroup.cpu_limit", subject, worst[1])


def measure_memory(readings, subject, directory):
    """Use and kills of the innermost group with a memory limit; whether there is one here."""
    for limit_name, used_name, kills_name in (
        ("memory.max", "memory.current", "memory.events"),
        ("memory.limit_in_bytes", "memory.usage_in_bytes", "memory.oom_control"),
    ):
        limit = number(os.path.join(directory, limit_name))
        used = number(os.path.join(directory, used_name))
        if limit is None or used is None or not 0 < limit < NO_LIMIT:
            continue
        readings.add("job.cgroup.memory_pct", subject, 100.0 * used / limit)
        kills = pairs(os.path.join(directory, kills_name)).get("oom_kill")
        if kills is not None:
            readings.add("job.cgroup.oom_kills", subject, kills)
        return True
    return False


if __name__ == "__main__":
    sys.exit(main(measure))
