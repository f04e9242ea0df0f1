"""RUNS ON THE NODE. Looks again and again, prints what changed and a heartbeat; changes nothing.

It arrives on the standard input of one Python and stays as long as that input does: at its end, or
when the controller has sent nothing for `lost_s`, it ends too, so that nothing stays behind after
a cut cable. The looks are the probes of a sweep, run by its runner; the parent calls no driver.

The caller executes it as `__main__` with WATCH in its globals: `runner` (source), `rounds` (each
`every_s`, `probes`, `total_s`, `on_log`), `unsent` (measurements that stay here), `kernel_log`,
`preload`, `shared` (a program that loads what probes import of brctl's own), `pynvml`, `beat_s`,
`lost_s`, and `node` with `parameters` by check.
"""

import errno
import gc
import json
import os
import select
import signal
import stat
import struct
import sys
import time

PARALLEL = 4
DEVICE = "/dev/kmsg"
LINE_LIMIT_BYTES = 256 * 1024
UNREADABLE_LOG_S = 60.0  # where the login may not follow the log, its probes look so often
RANKS_CHECK = "job.ranks"
RANKS_S = 2.0  # so often ranks are looked at from outside, which runs no probe
RANKS_LATE_S = 10.0  # a look that takes longer waits for the file system of the log folder
RANKS_LINE = struct.Struct("=?d")  # whether something changed, and CPU seconds used until then
FILE_LIMIT_BYTES = 64 * 1024
WAIT_S = 1.0
CHANGES = ("exit", "timed_out", "over_limit", "abandoned", "stdout", "stderr")


class KernelLog(object):
    """Tells whether the kernel wrote something; what it was is read by the probes."""

    def __init__(self, path):
        self.path = path
        self.descriptor = None
        self.seen = None
        if stat.S_ISCHR(os.stat(path).st_mode):
            self.descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
            os.lseek(self.descriptor, 0, os.SEEK_END)
        else:
            self.seen = self.size()

    def size(self):
        """Which file it is and how long: a rotated log is another one."""
        about = os.stat(self.path)
        return about.st_ino, about.st_size

    def grew(self):
        if self.descriptor is None:
            before, self.seen = self.seen, self.size()
            return self.seen != before
        found = False
        while True:
            try:
                found = bool(os.read(self.descriptor, 8192)) or found
            except BlockingIOError:
                return found
            except OSError as exc:
                if exc.errno != errno.EPIPE:  # overwritten before we read it
                    raise
                found = True


def open_log(path):
    try:
        return KernelLog(path)
    except OSError as exc:
        tell({"type": "note", "text": "the kernel log is not followed: %s" % exc})
        return None


class Ranks(object):
    """Tells whether a rank started or ended: what it was is read by the probe of the ranks."""

    def __init__(self, parameters):
        self.folder = parameters.get("log_dir") or ""
        self.ranks = (parameters.get("ranks") or []) if self.folder else []
        self.processes = {}
        self.seen = self.marks()

    def changed(self):
        before, self.seen = self.seen, self.marks()
        return self.seen != before

    def marks(self):
        return [self.mark(int(rank)) for rank in self.ranks]

    def mark(self, rank):
        base = os.path.join(self.folder, "rank-%05d" % rank)
        started, ended = stamp(base + ".process.json"), stamp(base + ".exit.json")
        if self.processes.get(rank, (None, None))[0] != started:
            self.processes[rank] = (started, pid_in(base + ".process.json"))
        return started, ended, is_alive(self.processes[rank][1]) if started else None


def stamp(path):
    """Which version of a file it is; None where there is none."""
    try:
        about = os.stat(path)
    except OSError:
        return None
    return about.st_ino, about.st_mtime_ns, about.st_size


def pid_in(path):
    """The process that a rank's file names; None where it names none."""
    try:
        pid = json.loads(start_of(path)).get("pid")
    except (OSError, ValueError, AttributeError, RecursionError):
        return None
    return pid if type(pid) is int and pid > 0 else None


def start_of(path):
    """The first bytes of a regular file; opening a FIFO would wait until somebody writes to it."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ValueError("no regular file")
        return os.read(descriptor, FILE_LIMIT_BYTES)
    finally:
        os.close(descriptor)


def is_alive(pid):
    """Whether a process is there and no zombie; None where nobody can tell."""
    if pid is None:
        return None
    try:
        with open("/proc/%d/stat" % pid) as stream:
            return stream.read(4096).rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False
    except (OSError, IndexError):
        return None


class RanksProcess(object):
    """Looks at the ranks in one process of its own: a log folder that hangs, hangs that one only.

    While it hangs it is left alone, and no second one is started beside it.
    """

    def __init__(self, parameters, now):
        self.pid = self.descriptor = None
        self.cpu_s, self.heard_at, self.is_late = 0.0, now, False
        if parameters.get("log_dir") and parameters.get("ranks"):
            self.descriptor, writes = os.pipe()
            os.set_blocking(self.descriptor, False)
            self.pid = os.fork()
            if self.pid == 0:
                os.close(self.descriptor)  # Else it would be a reader of its own lines.
                look_at_ranks(parameters, writes)
            os.close(writes)

    def changed(self, now):
        """Whether a look since the last call saw a change; tells once of looks that do not end."""
        if self.descriptor is None:
            return False
        try:
            raw = os.read(self.descriptor, 256 * RANKS_LINE.size)
        except BlockingIOError:
            if now - self.heard_at > RANKS_LATE_S and not self.is_late:
                self.is_late = True
                tell({"type": "note", "text": "the job's log folder does not answer"})
            return False
        if not raw:
            self.take_in()
            return False
        self.heard_at, self.is_late = now, False
        lines = list(RANKS_LINE.iter_unpack(raw))
        self.cpu_s = lines[-1][1]
        return any(changed for changed, _ in lines)

    def take_in(self):
        """It ended by itself, as by a kill: the probe of the ranks still looks."""
        os.close(self.descriptor)
        os.waitpid(self.pid, 0)
        self.pid, self.descriptor, self.cpu_s = None, None, 0.0
        tell({"type": "note", "text": "the process that looks at ranks has ended"})

    def end(self):
        if self.pid is not None:
            os.kill(self.pid, signal.SIGKILL)


def look_at_ranks(parameters, writes):
    """One line a look, until nobody reads them; never returns."""
    try:
        nowhere = os.open(os.devnull, os.O_RDWR)
        for standard in (0, 1, 2):  # Else a login would wait for it when the parent has ended.
            os.dup2(nowhere, standard)
        ranks = Ranks(parameters)
        while True:
            time.sleep(RANKS_S)
            changed, used = ranks.changed(), os.times()
            os.write(writes, RANKS_LINE.pack(changed, used.user + used.system))
    finally:
        os._exit(0)


class Round(object):
    """Probes that are run together every so many seconds."""

    def __init__(self, about, watch, runner):
        self.about, self.watch, self.make = about, watch, runner
        self.every_s = float(about["every_s"])
        self.probes = [with_code(one) for one in about["probes"]]
        self.due_at = 0.0
        self.look = self.done = 0
        self.running = None
        self.hurried = set()
        self.told = {}
        self.left = {}

    def start_if_due(self, now, log):
        if self.running is not None or not self.about["probes"]:
            return
        if now < self.due_at:
            if self.hurried:
                self.start([one for one in self.probes if one["check"] in self.hurried])
            return
        self.due_at = now + self.every_s
        if self.about["on_log"]:
            if log is None:
                self.due_at = now + UNREADABLE_LOG_S
            elif self.look and not log.grew():
                self.look += 1
                self.done = self.look
                return
        self.look += 1
        self.start(self.probes)

    def start(self, probes):
        self.hurried = set()
        self.left = {check: pid for check, pid in self.left.items() if hangs(pid)}
        bundle = {
            # What told of one that hangs still stands; a second one would hang beside it.
            "probes": [one for one in probes if one["check"] not in self.left],
            "total_s": self.about["total_s"],
            "parallel": PARALLEL, "node": self.watch["node"],
        }  # fmt: skip
        self.running = self.make(bundle)
        self.running.emit = self.take

    def go_on(self):
        if self.running is not None and not self.running.go_on():
            self.running.selector.close()
            self.left.update(self.running.left)
            self.running = None
            self.done = self.look

    def take(self, result):
        """Print a probe's answer if it is another one than before."""
        result["stdout"] = without(result["stdout"], self.watch["unsent"])
        now = tuple(result[key] for key in CHANGES)
        if self.told.get(result["check"]) != now:
            self.told[result["check"]] = now
            result.update(look=self.look, every_s=self.every_s)
            tell(result)

    def hurry(self, check):
        """Ask this check now: what it tells of has changed.

        It counts as no look, for two looks that confirm a suspicion are a whole interval apart.
        """
        if any(one["check"] == check for one in self.probes):
            self.hurried.add(check)

    def next_at(self):
        return 0.0 if self.hurried else self.due_at

    def end(self):
        if self.running is not None:
            self.running.kill()


def with_code(probe):
    """A probe with its code: a look would pay more for compiling it than for what it reads."""
    if probe["torch"]:
        return probe
    try:
        return dict(probe, code=compile(probe["source"], probe["check"], "exec"))
    except (SyntaxError, ValueError):
        return probe  # Its own process says so, as in a sweep.


def hangs(pid):
    """Whether a process that was left behind is still there; one that ended is taken in."""
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == 0
    except ChildProcessError:
        return False


def without(stdout, names):
    """A probe's envelope without some measurements; what is no envelope is left as it is."""
    if not names or not any(name in stdout for name in names):
        return stdout
    try:
        envelope = json.loads(stdout)
        rows = [row for row in envelope["measurements"] if row["name"] not in names]
    except (ValueError, TypeError, KeyError):
        return stdout
    return json.dumps(dict(envelope, measurements=rows))


def tell(line):
    text = json.dumps(line) + "\n"
    if len(text) > LINE_LIMIT_BYTES:
        text = json.dumps({"type": "note", "text": "an answer was too long: %d bytes" % len(text)})
        text += "\n"
    sys.stdout.write(text)
    sys.stdout.flush()


def beat(rounds, began, beside_s=0.0):
    used = os.times()
    cpu_s = used.user + used.system + used.children_user + used.children_system + beside_s
    looks = {"%g" % r.every_s: r.done for r in rounds}
    tell({"type": "beat", "looks": looks, "cpu_s": round(cpu_s, 3),
          "up_s": round(time.monotonic() - began, 3)})  # fmt: skip


def heard(timeout_s, other=None):
    """True for a word of the controller, None for none, False for the end of our input.

    What comes from `other` ends the wait too.
    """
    waited = [0] if other is None else [0, other]
    if 0 not in select.select(waited, [], [], timeout_s)[0]:
        return None
    try:
        return bool(os.read(0, 4096))
    except OSError:
        return False


def loop(watch, rounds, ranks):
    began = heard_at = time.monotonic()
    log = open_log(watch["kernel_log"])
    beat_at = 0.0
    while True:
        now = time.monotonic()
        if ranks.changed(now):
            for one in rounds:
                one.hurry(RANKS_CHECK)
        for one in rounds:
            one.start_if_due(now, log)
            one.go_on()
        if now >= beat_at:
            beat_at = now + watch["beat_s"]
            beat(rounds, began, ranks.cpu_s)
        busy = any(one.running for one in rounds)
        wait_s = 0.0 if busy else max(0.0, min(WAIT_S, next_at(rounds, beat_at) - now))
        word = heard(wait_s, ranks.descriptor)
        if word is False:
            return 0
        if word:
            heard_at = time.monotonic()
        if time.monotonic() - heard_at > watch["lost_s"]:
            return 1


def next_at(rounds, other_at):
    return min([other_at] + [one.next_at() for one in rounds if one.about["probes"]])


def main(watch):
    names = {"__name__": "runner"}
    exec(compile(watch["runner"], "runner", "exec"), names)  # noqa: S102 - our own program
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(143))
    os.nice(10)
    tell({"type": "hello", "python": "%d.%d.%d" % sys.version_info[:3],
          "node": os.uname().nodename})  # fmt: skip
    names["preload"](watch["preload"])
    exec(compile(watch["shared"], "shared", "exec"), {"__name__": "shared"})  # noqa: S102
    if watch.get("pynvml"):
        names["install_pynvml"](watch["pynvml"])
    gc.freeze()
    rounds = [Round(about, watch, names["Runner"]) for about in watch["rounds"]]
    asked = watch["node"]["parameters"].get(RANKS_CHECK) or {}
    ranks = RanksProcess(asked, time.monotonic())
    try:
        return loop(watch, rounds, ranks)
    except BrokenPipeError:
        return 1
    finally:
        for one in [ranks, *rounds]:
            one.end()


if __name__ == "__main__":
    sys.exit(main(globals()["WATCH"]))
