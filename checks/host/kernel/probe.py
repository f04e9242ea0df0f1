"""RUNS ON THE NODE. Reads the host's own trouble from the kernel log, verbatim; changes nothing."""

import errno
import json
import os
import re
import signal
import stat
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


UPTIME, COUNT, LINE = "host.kernel.uptime_s", "host.kernel.lines_read", "host.kernel.line"
WANTED = re.compile(
    r"panic|BUG|Oops|NULL pointer|LOCKUP|lockup|blocked for more|[Oo]ut of memory|oom-kill|EDAC"
    r"|[Mm]achine [Cc]heck|Hardware Error|throttled|AER|DPC|pciehp|SDES|Link Down|[Ll]ink is Down"
    r"|link becomes down|mlx5|NETDEV WATCHDOG|unplugged|PCIe [Bb]us [Ee]rror|PCIe bandwidth"
    r"|read-only|XFS|EXT4-fs error|nvme|I/O error|medium error|not responding|No space left"
    r"|nfs: server .{1,255} OK|temperature/speed normal"
)
PREFIX = re.compile(
    r"<\d+>|\d+,\d+,\d+,|\[|[a-z]+ *:[a-z]+ *:|\d{4}-\d\d-\d\dT|[A-Z][a-z]{2} [ \d]\d \d\d:"
    r"|\S+ kernel:|kernel:|NVRM:|nvidia"
)

DEVICE = "/dev/kmsg"
LINE_LIMIT = 1024
BYTES_READ = 4 << 20
BYTES_SENT = 160 << 10


def read_log(path):
    """The newest lines: of the kernel's device record by record, or of a file's tail."""
    if stat.S_ISCHR(os.stat(path).st_mode):
        return read_device(path)
    with open(path, "rb") as stream:
        stream.seek(0, os.SEEK_END)
        stream.seek(max(0, stream.tell() - BYTES_READ))
        return stream.read(BYTES_READ).decode("utf-8", "replace").splitlines()


def read_device(path):
    """/dev/kmsg gives one record a read and EAGAIN at its end; it never blocks here."""
    lines = []
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        while len(lines) < 200000:
            try:
                record = os.read(descriptor, 8192)
            except BlockingIOError:
                break
            except OSError as exc:
                if exc.errno == errno.EPIPE:  # overwritten while we read: the next read goes on
                    continue
                raise
            if not record:
                break
            lines.append(record.decode("utf-8", "replace").split("\n")[0])
    finally:
        os.close(descriptor)
    return lines


def read_as_root(command):
    """What the one command gives that the login may run as root, where it may not read the log."""
    import subprocess

    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=-1, stderr=-1, check=False)
    if done.returncode != 0:
        why = done.stderr[-200:].decode("utf-8", "replace").strip()
        raise OSError("%s: exit status %d: %s" % (" ".join(command), done.returncode, why))
    return done.stdout[-BYTES_READ:].decode("utf-8", "replace").splitlines()


def kernel_lines(parameters):
    """The log's lines; a file that a site named instead has no command that gives the same."""
    path, command = parameters.get("kernel_log") or DEVICE, parameters.get("root_command")
    try:
        return read_log(path)
    except OSError:
        if path != DEVICE or not command:
            raise
    return read_as_root(command)


def join_wrapped(lines):
    """Long messages wrap: a line without a prefix belongs to the one before it."""
    joined = []
    for line in lines:
        if joined and not PREFIX.match(line) and len(joined[-1]) < LINE_LIMIT:
            joined[-1] += " " + line.strip()
        elif line.strip():
            joined.append(line)
    return joined


def uptime_s():
    with open("/proc/uptime") as stream:
        return float(stream.read().split()[0])


def measure(readings, parameters):
    readings.read(UPTIME, "", uptime_s)
    try:
        lines = join_wrapped(kernel_lines(parameters))
    except OSError as exc:
        readings.note("kernel log: %s" % exc)
        return 1
    readings.add(COUNT, "", len(lines))
    kept, sent = [], 0
    for line in reversed([line for line in lines if WANTED.search(line)]):
        sent += min(len(line), LINE_LIMIT) + 80
        if sent > BYTES_SENT:
            readings.note("older lines left out: more than %d KiB match" % (BYTES_SENT >> 10))
            break
        kept.append(line[:LINE_LIMIT])
    for line in reversed(kept):
        readings.add(LINE, "", line)
    return 0


if __name__ == "__main__":
    sys.exit(main(measure))
