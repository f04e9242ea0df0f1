"""What one look adds to the health over time: nothing that was not read, and no step twice."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from brctl.evidence import trends
from brctl.evidence.trends import CounterTotals, StepMark, counted, job_samples, node_samples
from brctl.model.command import Outcome
from brctl.model.jobs.job_status import JobStatus, StepHistory, StepWindow
from brctl.model.sweeps.report import CheckResult, Measurement, NodeReport, ProbeStatus
from tests.fakes.run_context import example_job

WINDOW = StepWindow(90, 10, 0.5, loss=2.5, grad_norm=1.25)
STATUS = JobStatus(
    example_job(), (), 100, 0.5, False, (), StepHistory(recent=WINDOW, last=WINDOW)
)  # fmt: skip


def of_job(status: JobStatus, earlier: StepMark | None) -> dict[str, float]:
    return {sample.metric: sample.value for sample in job_samples(status, earlier, 160.0)}


def test_a_look_with_new_steps_tells_their_rate_time_loss_and_gradient() -> None:
    found = of_job(STATUS, StepMark(40, 100.0))
    assert found == {"steps_per_s": 1.0, "step_s": 0.5, "loss": 2.5, "grad_norm": 1.25}


def test_a_job_that_stands_has_the_rate_zero_and_no_step_time() -> None:
    """The time of its last step says nothing of the minute in which it made none."""
    assert of_job(STATUS, StepMark(100, 100.0)) == {"steps_per_s": 0.0}
    assert of_job(replace(STATUS, stalled=True), None) == {}


def test_a_job_that_tells_the_tokens_of_a_step_has_their_rate() -> None:
    """A job that stands makes none; one that does not tell them has no such number."""
    last = replace(WINDOW, tokens=4096.0)
    told = replace(STATUS, history=StepHistory(recent=WINDOW, last=last))
    assert of_job(told, StepMark(40, 100.0))["tokens_per_s"] == 4096.0
    assert of_job(told, StepMark(100, 100.0))["tokens_per_s"] == 0.0
    assert "tokens_per_s" not in of_job(told, None)


def test_a_restart_and_a_first_look_have_no_rate() -> None:
    assert "steps_per_s" not in of_job(STATUS, None)
    assert of_job(STATUS, StepMark(180, 100.0)) == {}


def test_a_job_of_which_no_rank_was_read_adds_nothing() -> None:
    assert of_job(replace(STATUS, step=None), StepMark(40, 100.0)) == {}


def test_a_loss_that_is_no_number_is_left_out() -> None:
    last = replace(WINDOW, loss=float("nan"))
    found = of_job(replace(STATUS, history=StepHistory(recent=WINDOW, last=last)), None)
    assert found == {"step_s": 0.5, "grad_norm": 1.25}


def test_of_a_node_the_hottest_gpu_the_power_of_all_and_the_sum_of_errors_count() -> None:
    """What was not read is no zero, and a text is no number."""
    rows = (
        Measurement("gpu.clocks.temperature_c", "gpu:A", 41),
        Measurement("gpu.clocks.temperature_c", "gpu:B", 73),
        Measurement("gpu.clocks.power_w", "gpu:A", 300.5),
        Measurement("gpu.clocks.power_w", "gpu:B", 310.0),
        Measurement("fabric.eth.rx_errors", "eth0", 4),
        Measurement("fabric.ibport.symbol_error", "mlx5_0/1", 3),
        Measurement("gpu.ecc.volatile_corrected", "gpu:A", "many"),
    )
    result = CheckResult("gpu.clocks", ProbeStatus.MEASURED, rows)
    found = list(node_samples([NodeReport("n1", Outcome.ANSWERED, (result,))]))
    assert {(s.subject, s.metric, s.value) for s in found} == {
        ("n1", "temperature_c", 73.0), ("n1", "power_w", 610.5), ("n1", "link_errors", 7.0),
    }  # fmt: skip
    assert list(node_samples([NodeReport("n2", Outcome.CONNECT_TIMED_OUT)])) == []


@pytest.mark.parametrize("status", [s for s in ProbeStatus if s is not ProbeStatus.MEASURED])
def test_a_sum_of_which_a_part_was_not_read_is_left_out(status: ProbeStatus) -> None:
    """Else the next whole look would show all errors of the missing link as new."""
    eth = CheckResult(
        "fabric.eth", ProbeStatus.MEASURED, (Measurement("fabric.eth.rx_errors", "nic:eth0", 4),)
    )
    ports = CheckResult("fabric.ibport", status)
    assert list(node_samples([NodeReport("n1", Outcome.ANSWERED, (eth, ports))])) == []


def test_a_node_without_rdma_ports_has_the_errors_of_its_ethernet() -> None:
    eth = CheckResult(
        "fabric.eth", ProbeStatus.MEASURED, (Measurement("fabric.eth.rx_errors", "nic:eth0", 4),)
    )
    none = CheckResult("fabric.ibport", ProbeStatus.MEASURED)
    (found,) = node_samples([NodeReport("n1", Outcome.ANSWERED, (eth, none))])
    assert (found.metric, found.value) == ("link_errors", 4.0)


def ports(**errors: int) -> NodeReport:
    """A look that found these ports of n1, with their counts."""
    rows = tuple(Measurement("fabric.ibport.symbol_error", p, n) for p, n in errors.items())
    result = CheckResult("fabric.ibport", ProbeStatus.MEASURED, rows)
    return NodeReport("n1", Outcome.ANSWERED, (result,))


@pytest.mark.parametrize(
    ("looks", "grown"),
    [
        ([ports(a=50, b=3), ports(b=3), ports(a=50, b=3)], 0),
        ([ports(a=50, b=3), ports(b=5), ports(a=54, b=5)], 6),
        ([ports(b=3), ports(a=50, b=3), ports(a=51, b=3)], 1),
        ([ports(a=50, b=3), ports(b=3), ports(a=2, b=3)], 2),
        ([ports(a=50, b=3), ports(), ports(a=50, b=4)], 1),
    ],
    ids=["back as it was", "grown meanwhile", "new", "counts anew", "all away"],
)
def test_a_part_that_goes_and_comes_back_makes_no_growth_and_hides_none(
    looks: list[NodeReport], grown: int
) -> None:
    """What a link counted before it was first seen is its past, not news."""
    totals: Mapping[str, CounterTotals] = {}
    shown = []
    for look in looks:
        totals = counted([look], totals)
        shown += [sample.value for sample in node_samples([look], totals)]
    assert shown == sorted(shown)
    assert shown[-1] - shown[0] == grown


def test_a_node_that_names_ever_new_parts_is_not_remembered_without_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(trends, "PARTS_KEPT", 3)
    totals: Mapping[str, CounterTotals] = {}
    for number in range(9):
        totals = counted([ports(**{f"p{number}": 1})], totals)
    assert len(totals["n1"].newest) <= 3


def test_a_node_of_which_one_gpu_tells_no_power_draws_no_less_than_the_others() -> None:
    """The lowest power is what is looked for: a GPU that was not read is not idle."""
    rows = (
        Measurement("gpu.clocks.temperature_c", "gpu:A", 41),
        Measurement("gpu.clocks.temperature_c", "gpu:B", 73),
        Measurement("gpu.clocks.power_w", "gpu:A", 300.5),
    )
    result = CheckResult("gpu.clocks", ProbeStatus.MEASURED, rows)
    found = node_samples([NodeReport("n1", Outcome.ANSWERED, (result,))])
    assert [sample.metric for sample in found] == ["temperature_c"]
