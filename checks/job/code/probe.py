"""RUNS ON THE NODE. Digests the directory a job's code lies in; changes nothing.

What Python and git write beside the code (`__pycache__`, `.git`) is left out: it differs between
nodes that run the same code. Links are digested as links and never followed.
"""

import hashlib
import json
import os
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


LEFT_OUT = ("__pycache__", ".git")
CHUNK = 1 << 20


def files_in(root):
    """Paths below a directory, relative to it, in one order on every node."""
    found = []
    for folder, folders, names in os.walk(root, onerror=raise_error):
        links = [name for name in folders if os.path.islink(os.path.join(folder, name))]
        folders[:] = [name for name in folders if name not in LEFT_OUT and name not in links]
        wanted = [name for name in names + links if name not in LEFT_OUT]
        found += [os.path.relpath(os.path.join(folder, name), root) for name in wanted]
    return sorted(os.fsencode(path) for path in found)


def raise_error(error):
    raise error


def describe(path):
    """One file as bytes to digest, and its size: a link is where it points, a file its content."""
    found = os.lstat(path)
    if stat.S_ISLNK(found.st_mode):
        return b"link " + os.fsencode(os.readlink(path)), 0
    if not stat.S_ISREG(found.st_mode):
        raise ValueError("%s is neither file nor link" % os.fsdecode(path))
    kind = b"program " if found.st_mode & stat.S_IXUSR else b"file "
    return kind + digest_of(path).encode(), found.st_size


def digest_of(path):
    digest = hashlib.sha256()
    with open(path, "rb") as stream:
        for chunk in iter(lambda: stream.read(CHUNK), b""):
            digest.update(chunk)
    return digest.hexdigest()


def digest_tree(root, files_limit, bytes_limit):
    """(digest, files, bytes) of a release; one too large to be code is refused, not cut."""
    if not os.path.isdir(root):
        raise ValueError("there is no directory %s" % root)
    paths, digest, total = files_in(root), hashlib.sha256(), 0
    if len(paths) > files_limit:
        raise ValueError("%s has more than %d files" % (root, files_limit))
    for path in paths:
        content, size = describe(os.path.join(os.fsencode(root), path))
        total += size
        if total > bytes_limit:
            raise ValueError("%s is larger than %d bytes" % (root, bytes_limit))
        # Names and contents are kept apart by their lengths: nothing can be moved between them.
        digest.update(b"%d %s %d %s\n" % (len(path), path, len(content), content))
    return digest.hexdigest(), len(paths), total


def measure(readings, parameters):
    root = parameters.get("code_dir")
    if not root:
        readings.note("code_dir is not known: job.yaml has no `code`")
        return 1
    limits = int(parameters.get("files_limit", 100000)), int(parameters.get("bytes_limit", 4 << 30))
    try:
        digest, files, size = digest_tree(root, *limits)
    except (OSError, ValueError) as exc:
        readings.note(str(exc))
        return 1
    subject = "code:" + os.path.basename(root)
    readings.add("job.code.digest", subject, digest)
    readings.add("job.code.files", subject, files)
    readings.add("job.code.bytes", subject, size)
    if parameters.get("expected"):
        readings.add("job.code.as_recorded", subject, digest == parameters["expected"])
    return 0


if __name__ == "__main__":
    sys.exit(main(measure))
