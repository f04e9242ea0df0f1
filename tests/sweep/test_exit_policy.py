"""What a sweep's exit code tells under each flag."""

import pytest

from brctl.library.sweep_settings import parse_max_unknown
from brctl.model.exit_codes import ExitCode
from brctl.model.sweeps.sweep import Health
from brctl.sweep.exit_policy import ExitPolicy

OK, WARN, CRIT, UNKNOWN = Health.OK, Health.WARNING, Health.CRITICAL, Health.UNKNOWN


@pytest.mark.parametrize(
    ("policy", "states", "code"),
    [
        (ExitPolicy(), [OK, OK], ExitCode.OK),
        (ExitPolicy(), [OK, WARN, UNKNOWN], ExitCode.UNKNOWN),
        (ExitPolicy(), [CRIT, UNKNOWN], ExitCode.CRITICAL),
        (ExitPolicy(), [], ExitCode.UNKNOWN),
        (ExitPolicy(max_unknown="1"), [OK, UNKNOWN], ExitCode.OK),
        (ExitPolicy(max_unknown="1"), [OK, UNKNOWN, UNKNOWN], ExitCode.UNKNOWN),
        (ExitPolicy(max_unknown="50%"), [OK, WARN, UNKNOWN, UNKNOWN], ExitCode.WARNING),
        (ExitPolicy(max_unknown="100%"), [UNKNOWN, UNKNOWN], ExitCode.UNKNOWN),
        (ExitPolicy(fail_on="crit"), [OK, WARN], ExitCode.OK),
        (ExitPolicy(fail_on="crit"), [WARN, CRIT], ExitCode.CRITICAL),
        (ExitPolicy(exit_zero=True), [WARN, CRIT], ExitCode.OK),
        (ExitPolicy(exit_zero=True), [OK, UNKNOWN], ExitCode.UNKNOWN),
    ],
)
def test_silence_is_never_hidden_beyond_what_was_allowed(
    policy: ExitPolicy, states: list[Health], code: ExitCode
) -> None:
    """Findings may be turned down; a fleet that does not answer is always UNKNOWN."""
    assert policy.exit_code(states) is code


@pytest.mark.parametrize("text", ["", "-1", "x", "1.5", "1%%", "one"])
def test_a_limit_that_is_no_limit_is_refused(text: str) -> None:
    """A number of nodes or a percentage."""
    with pytest.raises(ValueError, match="write a number of nodes"):
        parse_max_unknown(text, 100)
