"""Why the late node is late: a setting of its GPUs that no other node's have."""

from collections.abc import Mapping

import pytest

from brctl.evidence.job.assess import assess_job
from brctl.evidence.job.late.odd_settings import odd_settings
from brctl.model.command import Outcome
from brctl.model.evidence import Evidence, Role, Subject, Weight
from brctl.model.fault import FaultClass
from brctl.model.jobs.job import example_job
from brctl.model.jobs.job_status import JobStatus, RankView, StepHistory
from brctl.model.sweeps.report import CheckResult, Measurement, NodeReport, ProbeStatus, Value
from tests.evidence.job.test_history import past

JOB = example_job()
SLOWER = past(1.0, 1.0, 1.0, recent=2.0)
FULL: Mapping[str, Value] = {
    "power_limit_w": 700.0, "default_power_limit_w": 700.0, "sm_mhz": 1900, "max_sm_mhz": 1980,
    "busy_pct": 98, "event_reasons": 0, "power_w": 300.0,
}  # fmt: skip
LATE = JOB.node_of(2)


def judge(
    odd: Mapping[str, Mapping[str, Value]],
    late: int | None = 2,
    history: StepHistory = SLOWER,
    second: Mapping[str, Value] | None = None,
) -> list[Evidence]:
    """What is found of GPUs in a job that waits for one rank; `odd` by node.

    Args:
        odd: What the first card of a node, and the node, tell otherwise than the usual one.
        late: The rank all wait for.
        history: The job's past.
        second: What the late node tells of a card more than it has ranks.
    """
    ranks = tuple(
        RankView(
            rank, JOB.node_of(rank), alive=True, step=950, phase="forward", progress_age_s=0.1,
            wait_s=0.02 if rank == late else 1.0, step_s=2.0, recent_steps=20,
        )
        for rank in range(8)
    )  # fmt: skip
    status = JobStatus(JOB, ranks, 950, 0.1, stalled=False, silent=(), history=history)
    more = {LATE: {**FULL, **second}} if second is not None else {}
    found = assess_job(
        status,
        [_answer(node, {**FULL, **odd.get(node, {})}, more.get(node, {})) for node in JOB.nodes],
    )
    return [item for item in found if item.source in ("gpu.clocks", "host.cpu")]


def _answer(node: str, values: Mapping[str, Value], second: Mapping[str, Value]) -> NodeReport:
    governor = values.get("governor")
    rows = tuple(
        Measurement(f"gpu.clocks.{name}", gpu, value)
        for gpu, card in (("gpu:0", values), ("gpu:7", second))
        for name, value in card.items()
        if name != "governor" and value is not None
    )
    check = CheckResult("gpu.clocks", ProbeStatus.MEASURED, rows)
    told = () if governor is None else (Measurement("host.cpu.governor", "", governor),)
    host = CheckResult("host.cpu", ProbeStatus.MEASURED, told)
    return NodeReport(node, Outcome.ANSWERED, (check, host))


@pytest.mark.parametrize(
    ("setting", "fault"),
    [
        ({"power_limit_w": 350.0}, FaultClass.THERMAL_POWER),
        ({"sm_mhz": 1200}, FaultClass.GPU_SLOW),
    ],
)
def test_what_only_the_late_nodes_gpu_is_held_to_is_the_reason(
    setting: Mapping[str, Value], fault: FaultClass
) -> None:
    """It was a straggler to restart in place, with the limit as an aside."""
    (item,) = judge({LATE: setting})
    assert (item.subject.node, item.fault, item.weight) == (LATE, fault, Weight.CONVICTS)


@pytest.mark.parametrize("capped", [{"event_reasons": 4}, {"power_w": 690.0}])
def test_a_card_that_computes_at_its_power_limit_while_the_others_wait_is_not_slow(
    capped: Mapping[str, Value],
) -> None:
    """It was gpu-slow at 0.95: those that wait for it in NCCL's kernels draw little."""
    assert judge({LATE: {"sm_mhz": 1500, **capped}}) == []
    (limited,) = judge({LATE: {"sm_mhz": 1500, **capped, "power_limit_w": 350.0}})
    assert limited.fault is FaultClass.THERMAL_POWER


@pytest.mark.parametrize("power_w", [520.0, None])
def test_a_low_clock_of_a_card_that_may_only_work_harder_is_a_hint(power_w: Value | None) -> None:
    told = {"sm_mhz": 1200, "power_w": power_w}
    (item,) = judge({LATE: told})  # type: ignore[dict-item]  # None: it does not tell
    assert (item.fault, item.weight) == (FaultClass.GPU_SLOW, Weight.HINTS)


def test_a_limit_of_a_card_that_the_late_rank_may_not_use_convicts_nothing() -> None:
    """A card beside the rank's sound one, idle or of another job, was thermal-power at 0.95."""
    assert judge({}, second={"power_limit_w": 350.0, "busy_pct": 0}) == []
    (item,) = judge({}, second={"power_limit_w": 350.0})
    assert (item.subject.device, item.weight) == ("gpu:7", Weight.HINTS)
    both = judge({LATE: {"power_limit_w": 350.0}}, second={"power_limit_w": 350.0})
    assert [item.weight for item in both] == [Weight.CONVICTS, Weight.CONVICTS]
    (unseen,) = judge({LATE: {"power_limit_w": 350.0, "busy_pct": None}})  # type: ignore[dict-item]
    assert unseen.weight is Weight.HINTS


def test_of_two_late_ranks_of_a_node_the_surer_one_counts() -> None:
    status = JobStatus(JOB, (), 950, 0.1, stalled=False, silent=(), history=SLOWER)
    late = [
        Evidence(
            "job.rank.waits-least", Subject(LATE, f"rank:{rank}"), weight,
            FaultClass.STRAGGLER_SLOW, Role.ROOT, "job.ranks", "it is late",
        )
        for rank, weight in enumerate((Weight.CONVICTS, Weight.HINTS))
    ]  # fmt: skip
    limited = {**FULL, "power_limit_w": 350.0}
    reports = [_answer(node, limited if node == LATE else FULL, {}) for node in JOB.nodes]
    for order in (late, late[::-1]):
        (item,) = odd_settings(status, reports, order)
        assert item.weight is Weight.CONVICTS


def test_a_hint_of_lateness_makes_the_reason_a_hint() -> None:
    (item,) = judge({LATE: {"power_limit_w": 350.0}}, history=past(2.0, 2.0, 2.0, recent=2.0))
    assert item.weight is Weight.HINTS


def test_a_setting_that_all_have_or_that_makes_nobody_late_is_no_reason() -> None:
    everywhere = {node: {"power_limit_w": 350.0} for node in JOB.nodes}
    assert judge(everywhere) == []
    assert judge({JOB.node_of(6): {"power_limit_w": 350.0}}) == []
    assert judge({LATE: {"power_limit_w": 350.0}}, late=None) == []


def test_cards_of_two_models_and_idle_ones_are_no_odd_ones() -> None:
    smaller = {"power_limit_w": 400.0, "default_power_limit_w": 400.0}
    assert judge({LATE: smaller}) == []
    assert judge({LATE: {"sm_mhz": 345, "busy_pct": 0}}) == []
    assert judge({LATE: {"default_power_limit_w": 0.0}}) == []


def test_a_late_nodes_own_governor_is_a_lead() -> None:
    saving = {node: {"governor": "performance"} for node in JOB.nodes}
    (item,) = judge({**saving, LATE: {"governor": "powersave"}})
    assert (item.subject.node, item.weight, item.fault) == (LATE, Weight.CONTEXT, None)
    assert "is chosen by powersave, on 7 other nodes by performance" in item.text
    assert judge({**saving, LATE: {"governor": "powersave"}}, late=6) == []
    assert judge({node: {"governor": "powersave"} for node in JOB.nodes}) == []
