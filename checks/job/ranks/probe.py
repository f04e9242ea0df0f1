"""RUNS ON THE NODE. Reads state, processes and last words of the job's ranks; changes nothing."""

import json
import os
import signal
import sys
import time

from checks._progress.ledger_rows import is_number, newest_steps
from checks._progress.log_rows import Log, newest_log, with_seconds
from checks._progress.rank_processes import rank_processes
from checks._progress.replayed_steps import newest_replay
from checks._stacks.processes import kernel_wait


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


LAST_WORDS_LIMIT = 4096
WRONG_NUMBERS_LIMIT = 4096
KIND_LIMIT = 200
STEPS_TAIL_BYTES = 64 << 10
STEPS_SAMPLE_BYTES = 8 << 10
SAMPLES = 6
WINDOW_STEPS = 25
RECENT_S = 6.0
OWN_LOOK_S = 10.0
WARM_UP_STEPS = 3
CLOCK_NOISE_S = 2.0


def load(path):
    """A JSON object from a file, or None when there is no such file."""
    try:
        with open(path) as stream:
            value = json.loads(stream.read(65536))
    except FileNotFoundError:
        return None
    if not isinstance(value, dict):
        raise TypeError("%s: not an object" % path)
    return value


def processes_in(container, proc="/proc"):
    """(start_ticks, pid) of the processes of a container or pod, oldest first.

    A cgroup is named after it; systemd writes the dashes of a pod's uid as underscores.
    """
    names = (container, container.replace("-", "_"))
    found = []
    for pid in filter(str.isdigit, os.listdir(proc)):
        try:
            with open("%s/%s/cgroup" % (proc, pid)) as stream:
                text = stream.read(4096)
            if any(name in text for name in names):
                found.append((start_ticks_of("%s/%s/stat" % (proc, pid)), int(pid)))
        except (OSError, ValueError, IndexError):
            continue  # It ended while we looked.
    return sorted(found)


def start_ticks_of(path):
    with open(path) as stream:
        return int(stream.read().rsplit(")", 1)[1].split()[19])


def process_of_rank(container, rank, alone, proc="/proc"):
    """The process of a rank in a container: the oldest that was told to be it, as a record.

    A launcher tells each by RANK. Where a container carries one rank, nobody need tell it.
    """
    found = processes_in(container, proc)
    for ticks, pid in found:
        if rank_told(pid, proc) == str(rank):
            return {"pid": pid, "start_ticks": ticks}
    if alone and found:
        return {"pid": found[0][1], "start_ticks": found[0][0]}
    return None


def rank_told(pid, proc):
    try:
        with open("%s/%d/environ" % (proc, pid), "rb") as stream:
            rows = stream.read(1 << 20).split(b"\0")
    except OSError:
        return ""
    told = [row[5:] for row in rows if row.startswith(b"RANK=")]
    return told[0].decode("ascii", "replace") if told else ""


def process_state(pid, start_ticks):
    """The one-letter state of exactly this process, or None: a reused pid is another process."""
    try:
        with open("/proc/%d/stat" % pid) as stream:
            fields = stream.read().rsplit(")", 1)[1].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    if start_ticks is not None and int(fields[19]) != int(start_ticks):
        return None
    return fields[0]


def measure(readings, parameters):
    ranks = parameters.get("ranks") or []
    if not ranks:
        readings.note("not supported: everything, no rank of the job runs here")
        return 0
    for name in ("log_dir", "progress_dir"):
        if not parameters.get(name):
            readings.note("%s is not known" % name)
            return 1
    parts = [measure_process, measure_progress, measure_last_words]
    if parameters.get("log_progress"):
        parts[1:2] = []
        parameters["processes"] = rank_processes(int(parameters.get("world_size") or 0))
    for rank in ranks:
        for part in parts:
            try:
                part(readings, parameters, int(rank))
            except (OSError, ValueError, TypeError, KeyError, IndexError) as exc:
                readings.note("rank %s: %s: %s" % (rank, type(exc).__name__, exc))
    if parameters.get("log_progress"):
        measure_logs(readings, parameters, parameters["log_progress"], sorted(map(int, ranks)))
    elif 0 in ranks:
        measure_steps(readings, os.path.join(parameters["progress_dir"], "steps.ndjson"))
    return 0


def measure_process(readings, parameters, rank):
    subject = "rank:%d" % rank
    base = os.path.join(parameters["log_dir"], "rank-%05d" % rank)
    container = parameters.get("container")
    if container:
        measure_contained(readings, str(container), rank, len(parameters["ranks"]) == 1)
        return
    process = load(base + ".process.json")
    if process is None and rank in parameters.get("processes", {}):
        process = {"pid": parameters["processes"][rank]}
    if process is None:
        readings.note("rank %d: it was never started here (no %s.process.json)" % (rank, base))
        return
    state = process_state(int(process["pid"]), process.get("start_ticks"))
    exited = load(base + ".exit.json")
    readings.add("job.rank.alive", subject, state not in (None, "Z", "X"))
    if state is not None:
        readings.add("job.rank.process_state", subject, state)
        add_kernel_wait(readings, subject, state, int(process["pid"]))
    # A start that was cut off with its node may still write here when its ranks give up.
    if exited is not None and exited.get("incarnation") == process.get("incarnation"):
        readings.add("job.rank.exit_status", subject, int(exited["exit_status"]))


def add_kernel_wait(readings, subject, state, pid):
    """What a blocked process waits for; a frozen one looks asleep, and only this says it."""
    wait = kernel_wait(pid) if state in ("D", "S") else ""
    if state == "D" or "freezer" in wait:
        readings.add("job.rank.kernel_wait", subject, wait)


def measure_contained(readings, container, rank, alone):
    """A rank that the cluster started: nobody but the kernel knows its process."""
    process = process_of_rank(container, rank, alone)
    state = process_state(process["pid"], process["start_ticks"]) if process else None
    if state is None:
        readings.note("rank %d: no process of it is seen in container %s" % (rank, container[:64]))
        return
    subject = "rank:%d" % rank
    readings.add("job.rank.alive", subject, state not in ("Z", "X"))
    readings.add("job.rank.process_state", subject, state)
    add_kernel_wait(readings, subject, state, process["pid"])


def measure_progress(readings, parameters, rank):
    subject = "rank:%d" % rank
    path = os.path.join(parameters["progress_dir"], "rank-%05d.json" % rank)
    progress = load(path)
    if progress is None:
        readings.note("rank %d: no progress file yet (%s)" % (rank, path))
        return
    now = time.time()
    for key, name, kind in (
        ("step", "job.rank.step", int),
        ("phase", "job.rank.phase", str),
        ("loss_finite", "job.rank.loss_finite", bool),
        ("first_nonfinite_step", "job.rank.first_nonfinite_step", int),
        ("wait_seconds", "job.rank.wait_s", float),
        ("step_seconds", "job.rank.step_s", float),
        ("grad_finite", "job.rank.grad_finite", bool),
        ("first_nonfinite_grad_step", "job.rank.first_nonfinite_grad_step", int),
        ("loss_off_since", "job.rank.loss_off_since", int),
        ("recent_steps", "job.rank.recent_steps", int),
        ("recent_wait_seconds", "job.rank.recent_wait_s", float),
        ("recent_step_seconds", "job.rank.recent_step_s", float),
        ("recent_load_seconds", "job.rank.recent_load_s", float),
        ("compared_tensors", "job.rank.compared_tensors", int),
        ("compared_kind", "job.rank.compared_kind", kind_name),
    ):
        if progress.get(key) is not None:
            readings.add(name, subject, kind(progress[key]))
    for key, name in (("phase_since", "job.rank.phase_age_s"), ("at", "job.rank.progress_age_s")):
        if progress.get(key) is not None:
            add_age(readings, name, subject, now - float(progress[key]))
    if progress.get("wrong_numbers"):
        add_wrong_numbers(readings, subject, progress["wrong_numbers"])
    longest = progress.get("longest_phases")
    if isinstance(longest, dict) and progress.get("phase") in longest:
        readings.add("job.rank.phase_longest_s", subject, float(longest[progress["phase"]]))
    path = os.path.join(parameters["progress_dir"], "ledger-%05d.ndjson" % rank)
    ledger = newest_steps(path)
    if ledger:
        readings.add("job.rank.ledger", subject, ledger)
    replay = newest_replay(path)
    if replay:
        readings.add("job.rank.replay", subject, replay)


def kind_name(told):
    """A part, its instructions and a library: longer than any is nobody's name."""
    return str(told)[:KIND_LIMIT]


def add_wrong_numbers(readings, subject, found):
    """What the rank's own checks of its numbers found, where it is of a size they write."""
    text = json.dumps(found)
    if len(text) > WRONG_NUMBERS_LIMIT:
        readings.note("%s: wrong_numbers has %d characters, not read" % (subject, len(text)))
    else:
        readings.add("job.rank.wrong_numbers", subject, text)


def add_age(readings, name, subject, age_s):
    """How long ago a moment was; one that is still to come was written by another clock."""
    if age_s < -CLOCK_NOISE_S:
        readings.note(
            "%s %s: %.0f s in the future, the clock was set back since" % (name, subject, -age_s)
        )
        return
    readings.add(name, subject, max(0.0, age_s))


def measure_logs(readings, parameters, source, ranks):
    """Steps from the log of each rank, or from the job's one log, which its first rank is given."""
    logs = {}
    if source.get("log"):
        if 0 not in ranks and int(parameters.get("world_size") or 0) - 1 not in ranks:
            return
        logs[ranks[0]] = newest_log(source["log"])
    else:
        logs = {rank: os.path.join(parameters["log_dir"], "rank-%05d.log" % rank) for rank in ranks}
    read = []
    for rank, path in sorted(logs.items()):
        try:
            if path is None:
                raise FileNotFoundError("no file is named %s" % source["log"])
            log = Log(path, source["formats"], time.time())
        except (OSError, ValueError) as exc:
            readings.note("rank %d: its log: %s" % (rank, exc))
            continue
        read.append(log)
        measure_log(readings, "rank:%d" % rank, log, bool(source.get("log")))
    best = max(read, key=lambda log: len(log.rows)) if read else None
    if best is not None and best.rows:
        windows_of_rows(readings, with_seconds(best.rows))


def measure_log(readings, subject, log, is_the_jobs):
    readings.add("job.rank.log_age_s", subject, max(0.0, time.time() - log.written_at))
    if is_the_jobs:
        text = "\n".join(log.lines[-100:])
        readings.add("job.rank.last_words", subject, text[-LAST_WORDS_LIMIT:])
    if not log.rows:
        return
    readings.add("job.rank.step", subject, log.rows[-1]["step"])
    readings.add("job.rank.progress_format", subject, log.format)
    if log.gap_s() is not None:
        readings.add("job.rank.row_gap_s", subject, log.gap_s())
    age = log.age_s()
    if age is not None:
        readings.add("job.rank.progress_age_s", subject, age)


def windows_of_rows(readings, rows):
    """Windows of the job's past as of a step file; a row of a log may stand for many steps."""
    newest = min(WINDOW_STEPS, max(1, len(rows) // 4))
    before = rows[:-newest]
    chunks = [before[i : i + WINDOW_STEPS] for i in range(0, len(before) - 9, WINDOW_STEPS)]
    for i, chunk in enumerate(spread(chunks, SAMPLES)):
        add_window(readings, "past:%d" % i, chunk)
    add_window(readings, "recent", rows[-newest:])
    add_window(readings, "last", rows[-3:])


def measure_last_words(readings, parameters, rank):
    """The end of the rank's log: what it said last, verbatim."""
    if (parameters.get("log_progress") or {}).get("log"):
        return
    path = os.path.join(parameters["log_dir"], "rank-%05d.log" % rank)
    with open(path, "rb") as stream:
        stream.seek(0, os.SEEK_END)
        stream.seek(max(0, stream.tell() - LAST_WORDS_LIMIT))
        text = stream.read(LAST_WORDS_LIMIT).decode("utf-8", "replace")
    readings.add("job.rank.last_words", "rank:%d" % rank, text[-LAST_WORDS_LIMIT:])


def measure_steps(readings, path):
    """The job's own past: windows of its step file, and the newest steps alone."""
    try:
        windows = step_windows(path)
    except FileNotFoundError:
        return
    except (OSError, ValueError, TypeError, KeyError) as exc:
        readings.note("%s: %s: %s" % (path, type(exc).__name__, exc))
        return
    for subject, rows in windows:
        add_window(readings, subject, rows)


def step_windows(path):
    """(subject, rows) in order of time: samples of the whole file, its tail, `recent`, `last`."""
    with open(path, "rb") as stream:
        size = stream.seek(0, os.SEEK_END)
        start = max(0, size - STEPS_TAIL_BYTES)
        tail = without_warm_up(rows_at(stream, start, STEPS_TAIL_BYTES))
        samples = [
            without_warm_up(rows_at(stream, start * i // SAMPLES, STEPS_SAMPLE_BYTES))
            for i in range(SAMPLES if start > SAMPLES * STEPS_SAMPLE_BYTES else 0)
        ]
    tail = [row for row in tail if not is_during(row, look_began_at())]
    newest = count_of_recent(tail)
    before = tail[: len(tail) - newest]
    # A last chunk of fewer than ten steps tells nothing, and would take the place of one that does.
    chunks = [before[i : i + WINDOW_STEPS] for i in range(0, len(before) - 9, WINDOW_STEPS)]
    past = [rows[:WINDOW_STEPS] for rows in samples] + spread(chunks, SAMPLES)
    found = [("past:%d" % i, rows) for i, rows in enumerate(past) if len(rows) >= 10]
    return [*found, ("recent", tail[-newest:] if newest else []), ("last", tail[-3:])]


def is_during(row, began_at):
    """Whether a step ended after this look began: what we cost the job is not its trouble."""
    return is_number(row.get("at")) and row["at"] > began_at


def look_began_at():
    """When the process that runs all probes began, at most some seconds ago, as a Unix time."""
    now = time.time()
    try:
        with open("/proc/%d/stat" % os.getppid()) as stream:
            ticks = int(stream.read().rsplit(")", 1)[1].split()[19])
        with open("/proc/uptime") as stream:
            age_s = float(stream.read().split()[0]) - ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return now
    return now - min(max(0.0, age_s), OWN_LOOK_S)


def spread(items, count):
    """Up to so many of them, evenly, the newest among them."""
    if len(items) <= count:
        return items
    return [items[(i + 1) * len(items) // count - 1] for i in range(count)]


def rows_at(stream, start, length):
    """The whole lines of a part of the file; a torn one is left out."""
    stream.seek(start)
    lines = stream.read(length).split(b"\n")[1 if start else 0 : -1]
    rows = []
    for line in lines:
        try:
            row = json.loads(line.decode("utf-8", "replace"))
        except ValueError:
            continue
        if isinstance(row, dict) and is_number(row.get("step")) and is_number(row.get("seconds")):
            rows.append(row)
    return rows


def without_warm_up(rows):
    """Leave out the first steps after every start: compiling and warming up are no slow steps."""
    kept, last, skip = [], None, 0
    for row in rows:
        if (last is not None and row["step"] != last + 1) or row["step"] <= 1:
            skip = WARM_UP_STEPS
        last = row["step"]
        if skip:
            skip -= 1
        else:
            kept.append(row)
    return kept


def count_of_recent(rows):
    """How many of the newest steps make `recent`: some seconds' worth, and at least six."""
    seconds, count = 0.0, 0
    for row in reversed(rows):
        if (count >= 6 and seconds >= RECENT_S) or count >= 2 * WINDOW_STEPS:
            break
        seconds += row["seconds"]
        count += 1
    return count


def add_window(readings, subject, rows):
    if not rows:
        return
    readings.add("job.steps.count", subject, len(rows))
    readings.add("job.steps.first", subject, int(rows[0]["step"]))
    # Of times the lower quartile: a neighbour's load slows some steps, a fault slows all of them.
    for key, name, part in (
        ("seconds", "job.steps.step_s", 4),
        ("wait_seconds", "job.steps.wait_s", 4),
        ("load_seconds", "job.steps.load_s", 4),
        ("loss", "job.steps.loss", 2),
        ("grad_norm", "job.steps.grad_norm", 2),
        ("tokens", "job.steps.tokens", 2),
    ):
        values = sorted(row[key] for row in rows if is_number(row.get(key)))
        if values:
            readings.add(name, subject, float(values[len(values) // part]))
    add_means(readings, subject, [row["seconds"] for row in rows if is_number(row.get("seconds"))])
    lost = [row for row in rows if "loss" in row and row["loss"] is None]
    readings.add("job.steps.nonfinite", subject, len(lost))


def add_means(readings, subject, times):
    """The mean of all, and that of all but the longest twentieth, at least one of them."""
    kept = sorted(times)[: len(times) - (len(times) + 19) // 20]
    for name, counted in (("mean_s", times), ("trimmed_mean_s", kept)):
        if counted:
            readings.add("job.steps." + name, subject, sum(counted) / float(len(counted)))


if __name__ == "__main__":
    sys.exit(main(measure))
