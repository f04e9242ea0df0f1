"""Many runs: where they are made changes nothing, and an interrupt keeps what is finished."""

import pytest

from brctl.model.errors import UsageError
from brctl.simulate.compare import Request, choose_policies, compared, simulated
from tests.simulate.fleets import MEANS

REQUEST = Request(MEANS, choose_policies(["oracle"]), 7, 3)


def test_an_interrupt_keeps_the_runs_that_are_finished() -> None:
    done: list[object] = []

    def interrupt(runs: object) -> None:
        done.append(runs)
        if len(done) == 2:
            raise KeyboardInterrupt

    found = compared(REQUEST, simulated(REQUEST, REQUEST.seeds(), interrupt), 3)
    assert found.unfinished == ("1 of 3 runs were not made",)
    assert found.scores[0].runs == 2


def test_without_one_finished_run_there_is_no_answer() -> None:
    with pytest.raises(UsageError, match="before one run was finished"):
        compared(REQUEST, [], 3)


def test_parts_have_all_seeds_and_none_twice() -> None:
    request = Request(MEANS, (), 7, 10)
    parts = [seed for part in (1, 2, 3) for seed in request.seeds(part, 3)]
    assert sorted(parts) == list(range(7, 17))
