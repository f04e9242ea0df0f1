"""Stacks of a job that takes steps accuse nobody."""

from brctl.evidence.stacks.advancing import at_work
from brctl.model.exit_codes import ExitCode
from brctl.model.jobs.hang import StackAnalysis
from brctl.view.job.stacks import stacks_page


def test_ranks_at_work_differ_and_none_is_suspected() -> None:
    """A healthy job ended `stacks dump` with 2 and half of its nodes as suspects."""
    found = StackAnalysis((), (2, 3), (), None, (), (2, 3), ("n3", "n4"), "outliers of tp")
    assert stacks_page(found).exit_code is ExitCode.CRITICAL
    page = stacks_page(at_work(found, 7))
    assert (page.exit_code, page.names, page.next) == (ExitCode.OK, (), ())
    assert "takes steps (step 7)" in page.text
