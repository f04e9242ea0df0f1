"""Every error brctl raises on purpose, by whose fault it is and what to do now.

BrctlError
├── UsageError         you typed something that makes no sense      64
├── ConfigError        a file you wrote is wrong (file and line)    78
├── DeniedError        SSH, scheduler or cluster said no             4
├── GuardError         a guard refused; nothing was changed          5
├── NeedsHumanError    failed with changes left in place             8
├── CancelledError     you answered no                               9
├── UnavailableError   scheduler, API or tool is not there          69
│   └── UnreachableError   it did not answer just now; asking again may help
└── LockedError        another run holds it                         75

What goes wrong on a node is not an exception but a `CommandResult` with an outcome:
in a fan-out, an error is a result.
"""

from collections.abc import Iterable
from difflib import get_close_matches
from itertools import accumulate
from pathlib import Path
from typing import ClassVar

from brctl.model.exit_codes import ExitCode


class BrctlError(Exception):
    """An error a person can act on.

    Attributes:
        cause: Why it happened, one sentence, or None when the message says it all.
        hint: What to try next, or None.
    """

    exit_code: ClassVar[ExitCode] = ExitCode.BUG

    def __init__(self, message: str, *, cause: str | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.cause = cause
        self.hint = hint


class UsageError(BrctlError):
    """Something typed makes no sense: bad flag, no such name, no node matched."""

    exit_code = ExitCode.USAGE


class ConfigError(BrctlError):
    """A file is invalid; the message starts with its name and line."""

    exit_code = ExitCode.CONFIG

    @classmethod
    def at(
        cls, path: Path | str, line: int | None, problem: str, *, hint: str | None = None
    ) -> "ConfigError":
        """Build the error with `file:line: problem` as its message."""
        location = f"{path}:{line}" if line is not None else str(path)
        return cls(f"{location}: {problem}", hint=hint)


class NoConfigError(ConfigError):
    """There is no configuration at all."""


class DeniedError(BrctlError):
    """SSH, the scheduler or the cluster refused us."""

    exit_code = ExitCode.DENIED


class GuardError(BrctlError):
    """A guard refused the plan; nothing was changed."""

    exit_code = ExitCode.REFUSED


class NeedsHumanError(BrctlError):
    """A run failed and left changes in place."""

    exit_code = ExitCode.NEEDS_HUMAN


class CancelledError(BrctlError):
    """The person said no."""

    exit_code = ExitCode.CANCELLED


class UnavailableError(BrctlError):
    """A scheduler, an API or a tool that is needed does not answer."""

    exit_code = ExitCode.UNAVAILABLE


class UnreachableError(UnavailableError):
    """It did not answer just now, or said that it is too busy; the same question may be repeated.

    Whether a change that was asked for happened is not known.
    """


class LockedError(BrctlError):
    """Another run holds the lock."""

    exit_code = ExitCode.LOCKED


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A sentence that names the nearest known word, or the known words when none is near.

    Examples:
        >>> did_you_mean("swapin", ["swap_in", "cordon"])
        "did you mean 'swap_in'?"
    """
    choices = sorted(set(known))
    near = get_close_matches(word, choices, n=1, cutoff=0.6)
    if near:
        return f"did you mean '{near[0]}'?"
    return f"known: {_some_of(choices)}" if choices else "none are known"


def _some_of(choices: list[str]) -> str:
    """As many as one reads: a line or two."""
    shown = [c for c, end in zip(choices, accumulate(map(len, choices)), strict=True) if end < 160]
    left = len(choices) - len(shown)
    return ", ".join(shown or choices[:1]) + (f" and {left} more" if left and shown else "")
