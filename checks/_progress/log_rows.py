"""RUNS ON THE NODE. Steps in the end of a log, by patterns the controller sends; changes nothing.

A log has no clock of its own: a row's time is what stands at its head, or, for a row that nothing
follows, when the file was last written. Neither is made up where there is none.
"""

import glob
import os
import re
import time

TAIL_BYTES = 256 << 10
ROWS_KEPT = 400
LINE_LIMIT = 2000
FILES_LIMIT = 10000
ZONE_S = 1800.0

NOISE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
DATE = re.compile(
    r"(\d{4})[-/](\d\d)[-/](\d\d)[T ](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?(Z|[+-]\d\d:?\d\d)?"
)
SHORT_DATE = re.compile(r"^\W?[IWEF](\d\d)(\d\d) (\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?")
HEAD = 120


class Log(object):
    """The end of one log, as lines with what was found in them."""

    def __init__(self, path, formats, now):
        self.path, self.now = path, now
        with open(path, "rb") as stream:
            size = stream.seek(0, os.SEEK_END)
            start = max(0, size - TAIL_BYTES)
            stream.seek(start)
            text = stream.read(TAIL_BYTES).decode("utf-8", "replace")
            self.written_at = os.fstat(stream.fileno()).st_mtime
        lines = re.split(r"[\r\n]+", NOISE.sub("", text))[1 if start else 0 :]
        self.lines = [line[:LINE_LIMIT] for line in lines if line.strip()]
        self.format, self.rows = choose(self.lines, formats)
        for row in self.rows:
            row["at"] = time_of(self.lines[row["line"]], now)

    def age_s(self):
        """Since the newest row; None when something without a time came after it."""
        if not self.rows:
            return None
        row, written = self.rows[-1], max(0.0, self.now - self.written_at)
        if row["at"] is None:
            return written if row["line"] == len(self.lines) - 1 else None
        ahead, behind = row["at"] - self.now, self.written_at - row["at"]
        in_another_zone = abs(behind) >= ZONE_S / 2 and abs(behind) % ZONE_S < 60
        if ahead > 60 or (in_another_zone and behind > 0):
            return None
        return max(0.0, -ahead)

    def gap_s(self):
        """The usual time between two rows; None where rows do not tell it."""
        gaps = []
        for before, row in zip(self.rows, self.rows[1:]):  # noqa: B905 - Python 3.8 has no strict
            if before["at"] is not None and row["at"] is not None:
                gaps.append(row["at"] - before["at"])
            elif row["seconds"] is not None:
                gaps.append(row["seconds"] * (row["step"] - before["step"]))
        gaps = sorted(gap for gap in gaps if gap > 0)
        return gaps[len(gaps) // 2] if gaps else None


def newest_log(pattern):
    """The newest of the files that a path with wildcards names; None when there is none."""
    found = []
    for path in glob.iglob(pattern):
        found.append(path)
        if len(found) >= FILES_LIMIT:
            break
    files = [path for path in found if os.path.isfile(path)]
    return max(files, key=os.path.getmtime) if files else None


def choose(lines, formats):
    """The format with the most rows and its rows, oldest first; the first of equals."""
    best = (None, [])
    for name, patterns in formats:
        rows = rows_of(lines, [re.compile(pattern) for pattern in patterns])
        if len(rows) > len(best[1]):
            best = (name, rows)
    return best


def rows_of(lines, patterns):
    """Rows of one format; a line that only has a loss adds it to the row before."""
    rows = []
    for number, line in enumerate(lines):
        for pattern in patterns:
            match = pattern.search(line)
            if match is None:
                continue
            row = read_row(match, number)
            if row["step"] is not None:
                rows.append(row)
            elif rows and row["loss"] is not None:
                rows[-1]["loss"] = row["loss"]
            break
    largest = max([row["of"] or 0 for row in rows] or [0])
    kept = [row for row in rows if (row["of"] or 0) == largest][-ROWS_KEPT:]
    return without_repeats(kept)


def read_row(match, number):
    found = match.groupdict()
    step, of = whole(found.get("step")), whole(found.get("of"))
    epoch = whole(found.get("epoch"))
    if step is not None and epoch is not None and of is not None:
        step, of = epoch * of + step, None
    seconds = decimal(found.get("step_s"))
    if seconds is None and decimal(found.get("step_ms")) is not None:
        seconds = decimal(found.get("step_ms")) / 1e3
    if seconds is None and decimal(found.get("rate")):
        seconds = 1.0 / decimal(found.get("rate"))
    loss = found.get("loss")
    row = {"step": step, "of": of, "seconds": seconds, "line": number, "loss": None}
    if loss is not None:
        row["loss"] = decimal(loss)
        row["lost"] = row["loss"] is None
    return row


def without_repeats(rows):
    """A progress bar writes a step again and again; its newest writing counts."""
    kept = []
    for row in rows:
        if kept and kept[-1]["step"] == row["step"]:
            row["loss"] = kept[-1]["loss"] if row["loss"] is None else row["loss"]
            row["first"] = kept[-1].get("first", kept[-1]["line"])
            kept.pop()
        kept.append(row)
    return kept


def whole(text):
    return int(text.replace(",", "")) if text and len(text) < 19 else None


def decimal(text):
    """A finite number; None for nan, inf and what is none."""
    try:
        value = float(text.replace(",", ""))
    except (AttributeError, ValueError):
        return None
    return value if abs(value) < 1e15 else None


def time_of(line, now):
    """The Unix time at the head of a line, in the node's own zone unless it says another."""
    match = DATE.search(line[:HEAD])
    try:
        if match is not None:
            fields = [int(text) for text in match.groups()[:6]]
            fraction = float("0.%s" % (match.group(7) or 0))
            return seconds_of(fields, match.group(8)) + fraction
        match = SHORT_DATE.search(line[:HEAD])
        if match is not None:
            fields = [time.localtime(now).tm_year] + [int(text) for text in match.groups()[:5]]
            return seconds_of(fields, None) + float("0.%s" % (match.group(6) or 0))
    except (ValueError, OverflowError):
        pass
    return None


def seconds_of(fields, zone):
    moment = (*fields, 0, 0, -1)
    if not zone:
        return time.mktime(moment)
    import calendar

    away = 0
    if zone != "Z":
        away = (int(zone[1:3]) * 60 + int(zone[-2:])) * (60 if zone[0] == "+" else -60)
    return calendar.timegm(moment) - away


def with_seconds(rows):
    """Rows as a step file has them: the time of a step from the row, else from two rows' times."""
    found = []
    for before, row in zip([None, *rows[:-1]], rows):  # noqa: B905 - Python 3.8 has no strict
        seconds = row["seconds"]
        if seconds is None and before is not None and None not in (before["at"], row["at"]):
            steps = row["step"] - before["step"]
            seconds = (row["at"] - before["at"]) / steps if steps > 0 else None
        step = {"step": row["step"], "at": row["at"]}
        if seconds is not None and seconds >= 0:
            step["seconds"] = seconds
        if row["loss"] is not None or row.get("lost"):
            step["loss"] = row["loss"]
        found.append(step)
    return found
