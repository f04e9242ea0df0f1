"""Where a job's steps are read from when it writes no progress files: its logs."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LogProgress:
    """What job.yaml says under `progress: {log: ...}`.

    Attributes:
        log: The log, with wildcards the newest of several; "" for the log of each rank.
        format: A format brctl ships, `auto`, or `pattern` for the job's own.
        patterns: What a line of a step looks like, as regular expressions by the format's name.
    """

    log: str
    format: str
    patterns: tuple[tuple[str, tuple[str, ...]], ...]
