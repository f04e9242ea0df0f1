"""How much of a sweep's bad news an exit code tells: `--max-unknown --fail-on --exit-zero`."""

from collections.abc import Iterable
from dataclasses import dataclass

from brctl.library.sweep_settings import parse_max_unknown
from brctl.model.exit_codes import ExitCode, worst
from brctl.model.sweeps.sweep import EXIT_OF, Health


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
