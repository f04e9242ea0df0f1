"""`job data`: the ranks that are late come first, and what that means stands below."""

import pytest

from brctl.evidence.job.data.skew import LoadComparison, compare_loads
from brctl.model.exit_codes import ExitCode
from brctl.model.jobs.job import example_job
from brctl.view.job.data import ROWS_SHOWN, job_data_page
from tests.evidence.job.test_skew import BAD, histories, nodes
from tests.fakes.documents import check_page

JOB = example_job()


def compared(**made: object) -> LoadComparison | None:
    return compare_loads(histories(**made), nodes())  # type: ignore[arg-type]  # by name


@pytest.mark.parametrize(
    ("made", "code", "says"),
    [
        ({"skew": True}, ExitCode.WARNING, "balance by length, not by machine"),
        ({"skew": False}, ExitCode.OK, "even: no rank is late"),
        ({"skew": True, "cost": False}, ExitCode.UNKNOWN, "not told apart"),
    ],
)
def test_the_last_line_says_what_the_table_means(
    made: dict[str, object], code: ExitCode, says: str
) -> None:
    page = job_data_page(JOB, compared(**made))
    check_page(page, "lab")
    assert page.exit_code is code
    assert says in page.text.splitlines()[-1]


def test_a_slow_rank_comes_first_of_those_shown() -> None:
    page = job_data_page(JOB, compared(skew=True, slower=1.05))
    first = page.text.splitlines()[1].split()
    assert first[0] == str(BAD)
    assert first[-2:] == ["<-", "hardware"]
    assert f"and {64 - ROWS_SHOWN} ranks" in page.text
    assert page.exit_code is ExitCode.WARNING


def test_too_few_steps_are_unknown() -> None:
    page = job_data_page(JOB, None)
    check_page(page, "lab")
    assert page.exit_code is ExitCode.UNKNOWN
    assert "UNKNOWN" in page.text
