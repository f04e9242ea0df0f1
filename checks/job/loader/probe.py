"""RUNS ON THE NODE. Looks at the job's data-loader workers and what they read; changes nothing."""

import functools
import json
import os
import re
import signal
import sys
import time

from checks._stacks.processes import (
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
WORKERS_KEPT = 16
DUMP_S = 4.0
FRAMES_KEPT = 24
ANSWER_S = 2.0
READ_BYTES = 4096
PATHS_TRIED = 4
NO_DATA = ("/dev/", "/proc/", "/sys/", "/net/", "//")
LOADER_FILES = re.compile(
    r"^(?:dataloader|fetch(?:er)?s?|worker|queues|supervised_loader|loader_process)\.py$"
)
PIN_LOOP = "_pin_memory_loop"
NO_WORKERS = re.compile(r"resource_tracker|forkserver import main|py-spy")
PATH_NAMES = ("path", "file", "filename", "fname", "shard", "url", "key")
SAMPLES = "possibly_batched_index"
REMOTE = ("nfs", "nfs4", "lustre", "ceph", "fuse", "gpfs", "beegfs", "cifs", "9p")


def measure(readings, parameters):
    ranks = parameters.get("ranks") or []
    if not ranks:
        readings.note("not supported: everything, no rank of the job runs here")
        return 0
    for path in (parameters.get("paths") or [])[:PATHS_TRIED]:
        measure_path(readings, str(path))
    waiting = parameters.get("waiting")
    for rank in ranks if waiting is None else waiting:
        look_twice(readings, parameters, int(rank))
    return 0


def look_twice(readings, parameters, rank):
    """The rank's process and its workers, now and after some seconds."""
    try:
        pid = pid_of_rank(parameters.get("log_dir"), rank)
    except ValueError as exc:
        readings.note("rank %d: %s" % (rank, exc))
        return
    py_spy = find_py_spy(parameters.get("python"))
    if py_spy is None:
        readings.note("rank %d: py-spy is not installed here; stacks are not read" % rank)
    left = subjects_of(readings, rank, pid)
    states = {child: process_state(child) for child in left}
    try:
        apart_s = float(parameters.get("apart_s") or 10.0)
        look = functools.partial(threads_in, readings, py_spy)
        measure_twice(readings, left, states, apart_s, look)
    finally:
        # py-spy takes seconds for each process in state D; the deadline must not hide the others.
        for child, subject in left.items():
            measure_unread(readings, subject, child, states[child])


def subjects_of(readings, rank, pid):
    """The processes to look at, and how each is called; all are counted, looked at or not."""
    children = [child for child in descendants(pid) if not NO_WORKERS.search(command_of(child))]
    readings.add("job.loader.children", "rank:%d" % rank, len(children))
    kept = awake_first(children)[:WORKERS_KEPT]
    return dict([(pid, "rank:%d" % rank)] + [(kid, "rank:%d/%d" % (rank, kid)) for kid in kept])


def measure_twice(readings, left, states, apart_s, look):
    """Two looks at each process; whose are done are taken out of `left`."""
    began = time.monotonic()
    before = {pid: look(pid) for pid in left}
    time.sleep(max(0.0, apart_s - (time.monotonic() - began)))
    for pid in list(left):
        stays_unread = before[pid] is None and states[pid] == "D"
        after = None if stays_unread else look(pid)
        subject = left.pop(pid)
        measure_process(readings, subject, pid, before[pid], after)
        readings.add("job.loader.apart_s", subject, round(time.monotonic() - began, 3))


def awake_first(pids):
    """Who sleeps may be idle: where not all can be looked at, the others tell more."""
    return sorted(pids, key=lambda pid: process_state(pid) == "S")


def measure_unread(readings, subject, pid, before):
    """A process without a stack: only a state that lasts tells anything."""
    state = process_state(pid)
    if state is not None and state == before:
        readings.add("job.loader.state", subject, state)
        readings.add("job.loader.kernel_wait", subject, kernel_wait(pid))


def threads_in(readings, py_spy, pid):
    """Its threads with their frames and variables, innermost first; None where not read."""
    if py_spy is None:
        return None
    # Not pausing it first: that fails with a stopped process. A busy one may slip through then.
    for flags in (["--nonblocking", "--locals"], ["--locals"]):
        try:
            threads = threads_of(py_spy, pid, flags, DUMP_S)
            main_frames(threads)
        except (ValueError, IndexError, KeyError, TypeError, AttributeError) as exc:
            readings.note("process %d: %s" % (pid, exc))
        else:
            return threads
        if process_state(pid) == "D":
            return None
    return None


def main_frames(threads):
    main = [t for t in threads if t.get("thread_name") == "MainThread"] or threads
    return [frame for frame in main[0]["frames"] if isinstance(frame, dict)]


def pins_memory(threads):
    """Whether a thread copies batches to pinned memory: it stands between workers and rank."""
    return any(
        isinstance(frame, dict) and str(frame.get("name")).endswith(PIN_LOOP)
        for thread in threads
        for frame in thread.get("frames") or []
    )


def measure_process(readings, subject, pid, before, after):
    state = process_state(pid)
    if state is None:
        readings.note("%s: process %d ended between two looks" % (subject, pid))
        return
    readings.add("job.loader.state", subject, state)
    readings.add("job.loader.kernel_wait", subject, kernel_wait(pid))
    frames = main_frames(after or [{"frames": []}])
    if after is not None:
        readings.add("job.loader.stack", subject, bounded(frames))
        readings.add("job.loader.pins_memory", subject, pins_memory(after))
    if after is not None and before is not None:
        readings.add("job.loader.moved", subject, where(main_frames(before)) != where(frames))
    sample = samples_in(frames)
    if sample:
        readings.add("job.loader.sample", subject, sample)
    path = path_in(frames) or newest_file(pid)
    if path:
        readings.add("job.loader.file", subject, path)
        measure_mount(readings, subject, mount_of(path))


def bounded(frames):
    """Frames as JSON within the limit: the loader's own stay, the others go from their middle."""
    rows = [frame_row(frame) for frame in frames]
    weakest_last = sorted(
        range(len(rows)),
        key=lambda at: (not is_of_loader(rows[at]), min(at, 2 * (len(rows) - 1 - at))),
    )
    for kept in range(FRAMES_KEPT, 0, -1):
        text = json.dumps([rows[at] for at in sorted(weakest_last[:kept])])
        if len(text) <= STACK_LIMIT:
            return text
    return "[]"


def is_of_loader(row):
    return bool(LOADER_FILES.match(str(row["short_filename"]).rsplit("/", 1)[-1]))


def where(frames):
    """What two looks at a process that is stuck have in common.

    A sample that is still worked on, else the job's own functions: what these call in a loop is
    somewhere else in every look.
    """
    own = [f.get("name") for f in frames if frame_row(f)["place"] == "job"]
    return samples_in(frames) or "", own or [f.get("name") for f in frames]


def variables(frame):
    rows = frame.get("locals")
    return {
        row["name"]: str(row.get("repr") or "")
        for row in (rows if isinstance(rows, list) else [])
        if isinstance(row, dict) and isinstance(row.get("name"), str)
    }


def samples_in(frames):
    """The indices that PyTorch's fetcher was asked for; "" where no frame is one."""
    for frame in frames:
        if str(frame.get("name")).endswith("fetch"):
            return variables(frame).get(SAMPLES, "")[:200]
    return ""


def path_in(frames):
    """A path in a variable of the job's innermost frames, by its usual names alone."""
    for frame in frames[:FRAMES_KEPT]:
        if frame_row(frame)["place"] == "job":
            found = variables(frame)
            for name in PATH_NAMES:
                path = found.get(name, "").strip("'\"")
                if path.startswith("/") and len(path) < 1000:
                    return path
    return ""


def newest_file(pid):
    """The file opened last for reading alone, of those that are no part of the system."""
    try:
        names = sorted(map(int, os.listdir("/proc/%d/fd" % pid)), reverse=True)
    except OSError:
        return ""
    for name in names[:64]:
        try:
            path = os.readlink("/proc/%d/fd/%d" % (pid, name))
            if is_data(path) and opened_for_reading(pid, name):
                return path[:1000]
        except OSError:
            continue
    return ""


def is_data(path):
    return path.startswith("/") and not path.startswith(NO_DATA)


def opened_for_reading(pid, name):
    with open("/proc/%d/fdinfo/%d" % (pid, name)) as stream:
        flags = re.search(r"^flags:\s*(\d+)", stream.read(4096), re.MULTILINE)
    return flags is not None and int(flags.group(1), 8) & os.O_ACCMODE == os.O_RDONLY


def mount_of(path, mounts="/proc/self/mountinfo"):
    """(mount point, type, source) of the file system a path is on; None where it is not known."""
    best = None
    try:
        with open(mounts, errors="replace") as stream:
            rows = stream.read(1 << 20).splitlines()
    except OSError:
        return None
    for row in rows:
        left, _, right = row.partition(" - ")
        point, rest = left.split()[4:5], right.split()
        if not point or len(rest) < 2 or not is_below(path, point[0]):
            continue
        if best is None or len(point[0]) >= len(best[0]):
            best = (point[0], rest[0], rest[1])
    return best


def is_below(path, point):
    return point == "/" or path == point or path.startswith(point + "/")


def measure_mount(readings, subject, mount):
    if mount is not None:
        readings.add("job.loader.mount", subject, ("%s on %s" % (mount[2], mount[0]))[:1000])
        readings.add("job.loader.is_remote", subject, mount[1].split(".")[0] in REMOTE)


def measure_path(readings, path):
    """How long the same file takes here; asked by a child, which may hang where workers do."""
    if not is_data(path) or os.path.normpath(path) != path:
        readings.note("%s: no data file, not opened" % path)
        return
    began = time.monotonic()
    child = os.fork()
    if child == 0:
        try:
            read_a_little(os.path.realpath(path))
        except OSError:
            os._exit(1)
        os._exit(0)
    while time.monotonic() - began < ANSWER_S:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            readings.add("job.loader.path_answers", "path:" + path, status == 0)
            readings.add("job.loader.path_s", "path:" + path, round(time.monotonic() - began, 4))
            return
        time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    readings.add("job.loader.path_answers", "path:" + path, False)
    readings.note("%s: no answer within %g s" % (path, ANSWER_S))


def read_a_little(path):
    """Ask the file system, and a plain file for its beginning: a pipe would lose what is read."""
    if not is_data(path):
        raise OSError("it leads to no data")
    os.statvfs(path)
    if os.path.isfile(path):
        with open(path, "rb", buffering=0) as stream:
            stream.read(READ_BYTES)


if __name__ == "__main__":
    sys.exit(main(measure))
