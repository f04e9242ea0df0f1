"""How far each journal had come, kept beside the operator's key and not in the state.

Lines cut off the end of a journal leave one that fits. Whoever may write the state but not the
operator's configuration cannot take back what stands here: that this journal, which began with
that line, had so many lines when a process of ours last let go of it.
"""

import json
import logging
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from brctl.journal.chain_key import key_file
from brctl.library.durable_files import private_dir, write_atomic
from brctl.library.trusted_files import read_beginning

FOLDER = "journal.heads"
_SIZE_LIMIT = 1024


@dataclass(frozen=True, slots=True)
class JournalLength:
    """How far a journal had come.

    Attributes:
        first: Digest of its first line: after a state was wiped, a number begins another run.
        lines: How many it had.
    """

    first: str
    lines: int


def head_file(run_dir: Path) -> Path:
    """Where the head of this journal stands; state directories do not share names of runs."""
    state = sha256(str(run_dir.parent.resolve()).encode()).hexdigest()[:16]
    return key_file().parent / FOLDER / state / run_dir.name


def note_head(run_dir: Path, head: JournalLength) -> None:
    """Keep it; where that cannot be done, it is said and stops nothing, as with the key."""
    path = head_file(run_dir)
    try:
        private_dir(path.parent)
        write_atomic(path, json.dumps({"first": head.first, "lines": head.lines}))
    except OSError as exc:
        text = "warning: %s: %s; an end cut off the journal will not show"
        logging.getLogger(__name__).warning(text, path, exc.strerror or exc)


def read_head(run_dir: Path) -> JournalLength | None:
    """What was kept last; None where nothing was, or nobody can read it."""
    try:
        found = json.loads(read_beginning(head_file(run_dir), _SIZE_LIMIT))
        return JournalLength(str(found["first"]), int(found["lines"]))
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
