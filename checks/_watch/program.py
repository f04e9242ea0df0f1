"""RUNS ON THE NODE. Looks again and again, prints what changed and a heartbeat; changes nothing.

It arrives on the standard input of one Python and stays as long as that input does: at its end, or
when the controller has sent nothing for `lost_s`, it ends too, so that nothing stays behind after
a cut cable. The looks are the probes of a sweep, run by its runner; the parent calls no driver.

The caller executes it as `__main__` with WATCH in its globals: `runner` (source), `rounds` (each
`every_s`, `probes`, `total_s`, `on_log`), `unsent` (measurements that stay here), `kernel_log`,
`preload`, `pynvml`, `beat_s`, `lost_s`, and `node` with `parameters` by check.
"""

import errno
import gc
import json
import os
import select
import signal
import stat
import sys
import time

PARALLEL = 4
DEVICE = "/dev/kmsg"
LINE_LIMIT_BYTES = 256 * 1024
UNREADABLE_LOG_S = 60.0  # where the login may not follow the log, its probes look so often
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


class Round(object):
    """Probes that are run together every so many seconds."""

    def __init__(self, about, watch, runner):
        self.about, self.watch, self.make = about, watch, runner
        self.every_s = float(about["every_s"])
        self.due_at = 0.0
        self.look = self.done = 0
        self.running = None
        self.told = {}
        self.left = {}

    def start_if_due(self, now, log):
        if self.running is not None or now < self.due_at or not self.about["probes"]:
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
        self.left = {check: pid for check, pid in self.left.items() if hangs(pid)}
        bundle = {
            # What told of one that hangs still stands; a second one would hang beside it.
            "probes": [one for one in self.about["probes"] if one["check"] not in self.left],
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

    def end(self):
        if self.running is not None:
            self.running.kill()


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


def beat(rounds, began):
    used = os.times()
    cpu_s = used.user + used.system + used.children_user + used.children_system
    looks = {"%g" % r.every_s: r.done for r in rounds}
    tell({"type": "beat", "looks": looks, "cpu_s": round(cpu_s, 3),
          "up_s": round(time.monotonic() - began, 3)})  # fmt: skip


def heard(timeout_s):
    """True for a word of the controller, None for none, False for the end of our input."""
    if not select.select([0], [], [], timeout_s)[0]:
        return None
    try:
        return bool(os.read(0, 4096))
    except OSError:
        return False


def loop(watch, rounds):
    began = heard_at = time.monotonic()
    log = open_log(watch["kernel_log"])
    beat_at = 0.0
    while True:
        now = time.monotonic()
        for one in rounds:
            one.start_if_due(now, log)
            one.go_on()
        if now >= beat_at:
            beat_at = now + watch["beat_s"]
            beat(rounds, began)
        busy = any(one.running for one in rounds)
        word = heard(0.0 if busy else max(0.0, min(WAIT_S, next_at(rounds, beat_at) - now)))
        if word is False:
            return 0
        if word:
            heard_at = time.monotonic()
        if time.monotonic() - heard_at > watch["lost_s"]:
            return 1


def next_at(rounds, beat_at):
    return min([beat_at] + [one.due_at for one in rounds if one.about["probes"]])


def main(watch):
    names = {"__name__": "runner"}
    exec(compile(watch["runner"], "runner", "exec"), names)  # noqa: S102 - our own program
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(143))
    os.nice(10)
    tell({"type": "hello", "python": "%d.%d.%d" % sys.version_info[:3],
          "node": os.uname().nodename})  # fmt: skip
    names["preload"](watch["preload"])
    if watch.get("pynvml"):
        names["install_pynvml"](watch["pynvml"])
    gc.freeze()
    rounds = [Round(about, watch, names["Runner"]) for about in watch["rounds"]]
    try:
        return loop(watch, rounds)
    except BrokenPipeError:
        return 1
    finally:
        for one in rounds:
            one.end()


if __name__ == "__main__":
    sys.exit(main(globals()["WATCH"]))
