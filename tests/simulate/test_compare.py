"""Many runs: where they are made changes nothing, and an interrupt keeps what is finished."""

import pytest

from brctl.model.errors import UsageError
from brctl.model.exit_codes import ExitCode
from brctl.simulate.compare import Request, choose_policies, compared, simulated, swept
from brctl.view.simulation.sweep import sweep_page
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


@pytest.mark.parametrize(("at_run", "kept"), [(4, (0,)), (6, (0,)), (7, (0, 1))])
def test_an_interrupt_keeps_the_values_that_are_finished(
    at_run: int, kept: tuple[float, ...]
) -> None:
    page = sweep_page(found := swept(REQUEST, "standbys", (0, 1, 2), Interrupt(at_run)))
    assert tuple(point.value for point in found.points) == kept
    assert page.exit_code is ExitCode.UNKNOWN
    assert f"missing: {3 - len(kept)} of 3 values were not made" in page.text


def test_a_sweep_without_one_finished_value_is_no_answer() -> None:
    with pytest.raises(UsageError, match="before one value was finished"):
        swept(REQUEST, "standbys", (0, 1), Interrupt(1))


class Interrupt:
    """Ctrl+c when so many runs are done."""

    def __init__(self, at_run: int) -> None:
        self._left = at_run

    def __call__(self, _: object) -> None:
        self._left -= 1
        if not self._left:
            raise KeyboardInterrupt
