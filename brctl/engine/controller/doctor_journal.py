"""Doctor: whether the records of runs are as they were written, and who has the key to them."""

from collections import defaultdict
from collections.abc import Iterator

from brctl.engine.runs.journals.verify import verify_journals
from brctl.library.config import Settings
from brctl.model.doctor_finding import DoctorFinding
from brctl.model.runs.journal_check import HEALTH_OF, JournalCheck, JournalState
from brctl.model.sweeps.sweep import Health

VERIFY = "brctl play verify"


def journal(settings: Settings) -> Iterator[DoctorFinding]:
    """One line for each way in which journals are not sound, naming the newest.

    Journals of before there was a key are no trouble of today; `play verify` lists them.
    """
    checks = verify_journals(settings.state_dir)
    by_state: dict[JournalState, list[JournalCheck]] = defaultdict(list)
    for check in checks:
        by_state[check.state].append(check)
    for state in (JournalState.ALTERED, JournalState.UNVERIFIED):
        if by_state[state]:
            last = by_state[state][-1]
            text = f"{len(by_state[state])} {state}, the last {last.name}: {last.problems[0]}"
            yield DoctorFinding(HEALTH_OF[state], "journal", text, VERIFY)
    sound, keyless = len(by_state[JournalState.SOUND]), len(by_state[JournalState.KEYLESS])
    if sound + keyless == len(checks):
        older = f", {keyless} without a key, as journals of older versions" if keyless else ""
        yield DoctorFinding(Health.OK, "journal", f"{sound} as they were written{older}")
