"""RUNS ON THE NODE. Lists checkpoints and says which are whole; changes nothing.

Whole means: every part that the layout asks for is there, is long enough, agrees with the others
and, when asked, holds its checksums. How each framework lays them out: `checks/_checkpoints`.
"""

import json
import os
import signal
import sys
import time

from checks._checkpoints.contents import UnknownError
from checks._checkpoints.layouts import saves_of
from checks._checkpoints.loader_positions import loader_note, loader_problem, loader_remark
from checks._checkpoints.wrong_numbers import wrong_numbers_in

LISTED_LIMIT = 64


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


def measure(readings, parameters):
    for needed in ("checkpoint_dir", "names"):
        if not parameters.get(needed):
            readings.note("%s is not known" % needed)
            return 1
    try:
        saves = saves_of(parameters)
    except OSError as exc:
        readings.note("checkpoint_dir: %s" % exc)
        return 1
    verify = bool(parameters.get("verify"))
    wanted = [save for save in saves.listed if save.step in steps(parameters)]
    readings.add("job.checkpoint.count", "", len(saves.listed) + len(saves.stepless))
    for text in saves.stepless[:8]:
        readings.note("no step is known of %s" % text)
    for save in reversed(wanted):
        measure_one(readings, saves, save, verify)
    if not wanted:
        measure_newest(readings, saves, int(parameters.get("newest", 8)), verify)
    measure_pointer(readings, saves)
    return 0


def steps(parameters):
    return [int(step) for step in parameters.get("steps") or []]


def measure_newest(readings, saves, least, verify):
    """The newest, and older ones until one is whole: many damaged ones hide no sound one."""
    whole = False
    for number, save in enumerate(reversed(saves.listed[-LISTED_LIMIT:])):
        if whole and number >= least:
            return
        whole = measure_one(readings, saves, save, verify) or whole


def measure_one(readings, saves, save, verify):
    """Add what is seen of one checkpoint; whether it is whole."""
    subject = "ckpt:" + save.name
    readings.add("job.checkpoint.step", subject, save.step)
    end = saves.layout.end(save)
    there = os.path.exists(end)
    readings.read("job.checkpoint.age_s", subject, age_s, end if there else save.path)
    try:
        found = saves.inspect(save, verify)
    except UnknownError as exc:
        readings.add("job.checkpoint.problem", subject, ("not known: %s" % exc)[:300])
        return False
    except Exception as exc:
        # What nobody can read makes the checkpoint unusable: that is a reading, not silence.
        readings.add("job.checkpoint.complete", subject, False)
        readings.add("job.checkpoint.problem", subject, str(exc)[:300])
        return False
    if found.is_whole() and found.unknown:
        readings.add("job.checkpoint.problem", subject, ("not known: %s" % found.unknown)[:300])
        return False
    loader = loader_problem(saves.listed, save, verify)
    remark = loader_remark(saves.listed, save)
    if remark:
        readings.note(remark)
    marked = loader or wrong_numbers_in(save.path)
    whole = found.is_whole() and not marked
    readings.add("job.checkpoint.complete", subject, whole)
    if found.problem() or marked:
        readings.add("job.checkpoint.problem", subject, (found.problem() or marked)[:300])
    measure_loaders(readings, saves, save)
    in_writing = not found.is_whole() and not found.bad and saves.may_be_in_writing(save)
    if found.unfinished or in_writing:
        return False
    readings.add("job.checkpoint.missing_files", subject, len(found.missing))
    readings.add("job.checkpoint.short_files", subject, len(found.short) + len(found.wrong))
    if found.checksums:
        readings.add("job.checkpoint.bad_items", subject, len(found.bad))
    readings.add("job.checkpoint.bytes", subject, found.bytes)
    return whole


def measure_loaders(readings, saves, save):
    """Whether the samples that all loaders gave are those of so many steps."""
    note = loader_note(save, saves.listed, saves.told)
    if note:
        readings.add("job.checkpoint.loader", "ckpt:" + save.name, note[:300])
    if ": a restart" in note:
        readings.note("WARNING %s: %s" % (save.name, note))


def measure_pointer(readings, saves):
    """What the framework itself would load, where a file of its own says so."""
    if saves.pointer is not None:
        readings.add("job.checkpoint.pointer", "", saves.pointer[:255])
    if saves.pointer_problem():
        readings.add("job.checkpoint.pointer_problem", "", saves.pointer_problem())


def age_s(path):
    return max(0.0, time.time() - os.path.getmtime(path))


if __name__ == "__main__":
    sys.exit(main(measure))
