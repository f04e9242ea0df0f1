"""`job data`: the ranks that are late come first, and what that means stands below."""

from dataclasses import replace

import pytest

from brctl.evidence.job.data.skew import LoadComparison, compare_loads
from brctl.model.exit_codes import ExitCode
from brctl.model.jobs.job import example_job
from brctl.model.jobs.job_status import JobStatus, RankView
from brctl.model.jobs.replay import Replay
from brctl.view.job.data import ROWS_SHOWN, job_data_page
from tests.evidence.job.test_skew import BAD, histories, nodes
from tests.fakes.documents import check_page

STATUS = JobStatus(example_job(), (), 100, 0.1, stalled=False, silent=())


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
    page = job_data_page(STATUS, compared(**made))
    check_page(page, "lab")
    assert page.exit_code is code
    assert says in page.text.splitlines()[-1]


def test_a_slow_rank_comes_first_of_those_shown() -> None:
    page = job_data_page(STATUS, compared(skew=True, slower=1.05))
    first = page.text.splitlines()[1].split()
    assert first[0] == str(BAD)
    assert first[-2:] == ["<-", "hardware"]
    assert f"and {64 - ROWS_SHOWN} ranks" in page.text
    assert page.exit_code is ExitCode.WARNING


def test_a_slow_gpu_is_shown_beside_loaders_that_cost_more() -> None:
    page = job_data_page(STATUS, compared(skew=True, slower=1.5, load=lambda _: 8.0))
    assert page.text.splitlines()[1].split()[-2:] == ["<-", "hardware"]
    assert "all loaders are slow" in page.text.splitlines()[-2]
    assert page.text.splitlines()[-1].startswith("what costs less: slow whatever they are given")


def test_too_few_steps_are_unknown() -> None:
    page = job_data_page(STATUS, None)
    check_page(page, "lab")
    assert page.exit_code is ExitCode.UNKNOWN
    assert "UNKNOWN" in page.text


def test_other_batches_than_before_a_restart_are_a_warning_whatever_else_is_known() -> None:
    """With the number of samples and the way back; the same batches again are said, too."""
    ranks = [
        RankView(0, "n1", replay=Replay(41, 7)),
        RankView(1, "n2", replay=Replay(41, 0, 41, 3, 24)),
    ]
    page = job_data_page(replace(STATUS, ranks=tuple(ranks)), None)
    check_page(page, "lab")
    assert page.exit_code is ExitCode.WARNING
    assert "rank 1 is given other batches: 3 batches (24 samples) repeated" in page.text
    assert "go back to a checkpoint before step 40: brctl ckpt latest --job" in page.text
    page = job_data_page(replace(STATUS, ranks=tuple(ranks[:1])), compared(skew=False))
    assert page.exit_code is ExitCode.OK
    assert page.text.endswith("1 ranks had the same batches again, 7 steps")
