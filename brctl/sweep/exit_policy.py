"""How much of a sweep's bad news an exit code tells: `--max-unknown --fail-on --exit-zero`."""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

from brctl.model.exit_codes import ExitCode, worst
from brctl.model.sweep import EXIT_OF, Health


@dataclass(frozen=True, slots=True)
class ExitPolicy:
    """What the caller wants to hear.

    Attributes:
        max_unknown: Silent nodes that still count as an answer: a count or `2%`.
        fail_on: `warn`, or `crit` to let warnings pass.
        exit_zero: Findings exit 0; silence and failures still do not.
    """

    max_unknown: str = "0"
    fail_on: str = "warn"
    exit_zero: bool = False

    def exit_code(self, states: Iterable[Health]) -> ExitCode:
        """The exit code of a sweep whose nodes are in these states; none at all is UNKNOWN."""
        found = list(states)
        allowed = parse_max_unknown(self.max_unknown, len(found))
        if 0 < found.count(Health.UNKNOWN) <= allowed and set(found) != {Health.UNKNOWN}:
            found = [state for state in found if state is not Health.UNKNOWN]
        code = worst(EXIT_OF[state] for state in found)
        if self.fail_on == "crit" and code is ExitCode.WARNING:
            return ExitCode.OK
        if self.exit_zero and code in (ExitCode.WARNING, ExitCode.CRITICAL):
            return ExitCode.OK
        return code


def parse_max_unknown(text: str, total: int) -> int:
    """How many nodes a count or a percentage of `total` means.

    Raises:
        ValueError: The text is neither.

    Examples:
        >>> parse_max_unknown("1%", 250)
        2
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(%?)", text.strip())
    if match is None or (not match[2] and "." in match[1]):
        raise ValueError(f"{text!r}: write a number of nodes, or a percentage such as 1%")
    return math.floor(float(match[1]) * total / 100) if match[2] else int(match[1])
