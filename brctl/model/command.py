"""What reaching one node gave us. A node that cannot answer is a result, not an exception."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class Outcome(StrEnum):
    """How the attempt to run one command on one node ended; exactly one applies."""

    ANSWERED = "answered"
    REFUSED = "refused"
    UNREACHABLE = "unreachable"
    CONNECT_TIMED_OUT = "connect-timed-out"
    LOGIN_TIMED_OUT = "login-timed-out"
    COMMAND_TIMED_OUT = "command-timed-out"
    AUTHENTICATION_FAILED = "authentication-failed"
    HOST_KEY_MISMATCH = "host-key-mismatch"
    DIED = "died-while-answering"
    OUTPUT_OVER_LIMIT = "output-over-limit"
    UNPARSABLE = "unparsable"
    NOT_AVAILABLE = "not-available"
    """The scheduler does not let us ask: busy or drained. That says nothing of a node's health."""


KERNEL_RUNS = frozenset(
    {Outcome.REFUSED, Outcome.LOGIN_TIMED_OUT, Outcome.COMMAND_TIMED_OUT, Outcome.DIED}
)
"""Silence of SSH alone: something on the node still answered TCP, if only with a refusal."""

NO_LOGIN = frozenset({Outcome.REFUSED, Outcome.LOGIN_TIMED_OUT})
"""TCP was answered and no login: a host where a login worked and then hung may be wedged."""


@dataclass(frozen=True, slots=True)
class Command:
    """One program to run on a node.

    Attributes:
        argv: Program and arguments; quoted for the node's login shell, never expanded here.
        stdin: Bytes sent to it; how programs travel, so nothing is installed on a node.
        deadline_s: Seconds the command itself may take, after connect and login.
        output_limit_bytes: More than this on stdout or stderr ends the command.
        asks: What it wants to know, whatever program asks: names of checks, or one word; empty for
            a command that no diagnosis gives.
    """

    argv: tuple[str, ...]
    stdin: bytes = b""
    deadline_s: float = 30.0
    output_limit_bytes: int = 1 << 20
    asks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CommandResult:
    """One node's answer to one command; partial output is kept whatever the outcome.

    Attributes:
        exit_status: The command's own status; None when it never reported one.
        seconds: Wall time from the first connect to the last byte.
        detail: One sentence for people: what happened, with address and limit.
        ended_s: When it was here, by this machine's monotonic clock; None where nobody looked.
        came_at: The same by the controller's clock; None where nobody recorded it.
    """

    node: str
    outcome: Outcome
    exit_status: int | None
    stdout: bytes
    stderr: bytes
    seconds: float
    detail: str = ""
    ended_s: float | None = None
    came_at: datetime | None = None
