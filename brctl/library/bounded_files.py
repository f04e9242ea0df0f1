"""Read a file that people or other programs wrote: reading it ends, and takes bounded memory."""

import os
import stat
from errno import EINVAL
from pathlib import Path

NOT_REGULAR = "not a regular file"


def read_beginning(path: Path, count: int) -> bytes:
    """At most so many bytes; who reads one more than his limit knows that it is too large.

    Opening a pipe waits for whoever may write it, and a device may never end: neither is read.

    Raises:
        OSError: It cannot be read, or is no regular file.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    with os.fdopen(descriptor, "rb") as stream:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(EINVAL, NOT_REGULAR, str(path))
        return stream.read(count)
