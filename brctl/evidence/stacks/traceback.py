"""Reads the stacks that Python itself writes of all its threads (faulthandler's text)."""

import re
from itertools import islice

from brctl.evidence.stacks.snapshot import FRAME_LIMIT, normalise

LINES_LIMIT, LINE_LIMIT = 20_000, 2000
_THREAD = re.compile(r"(?:Current thread|Thread) 0x[0-9a-f]+.* \(most recent call first\):")
_FRAME = re.compile(r'  File "([^"]{1,1000})", line \d{1,9} in (.{1,500})')


def read_traceback(text: str) -> tuple[str, ...]:
    """The main thread's stack, innermost first; empty where it is not in the text.

    Threads come newest first, so the main one is the last, unless more than fit were left out.
    """
    threads: list[list[tuple[str, str]]] = []
    for line in islice(text.splitlines(), LINES_LIMIT):
        if _THREAD.match(line[:LINE_LIMIT]):
            threads.append([])
        elif threads and (frame := _FRAME.match(line[:LINE_LIMIT])):
            if len(threads[-1]) < FRAME_LIMIT:
                threads[-1].append((frame[2], frame[1]))
        elif line == "...":
            return ()
    return normalise(threads[-1]) if threads else ()
