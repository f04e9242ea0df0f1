"""The bench's incidents hold what verdicts promise: whom they accuse, and what they propose."""

from random import Random

import pytest

from brctl.model.fault import Action, FaultClass
from tests.bench.verdicts import calm, code, machines
from tests.bench.verdicts.__main__ import run
from tests.bench.verdicts.conclude import conclude
from tests.bench.verdicts.families import HALVES
from tests.bench.verdicts.incident import Tell
from tests.bench.verdicts.score import Share, table

EVICTIONS = (Action.SWAP, Action.EVICT_GROUP, Action.CORDON)

CODE_ON_SOUND_MACHINES = (
    code.deadlock, code.endless_loop, code.sleeping_hook_for_ever, code.order_mismatch,
    code.shape_mismatch, code.one_slow, code.two_slow, code.stopped_by_a_person,
    code.long_evaluation_by_one, code.sshd_hangs_and_deadlock,
)  # fmt: skip


@pytest.mark.parametrize("tell", CODE_ON_SOUND_MACHINES, ids=lambda tell: tell.__name__)
@pytest.mark.parametrize("seed", range(3))
def test_code_on_sound_machines_evicts_none_of_them(tell: Tell, seed: int) -> None:
    """Each of these had a healthy machine swapped once."""
    fleet, _ = tell(Random(seed))
    assert not {verdict.action for verdict in conclude(fleet)} & {*EVICTIONS}


@pytest.mark.parametrize(
    "tell", [machines.gpu_ecc, machines.gpu_lost, machines.node_dead], ids=lambda t: t.__name__
)
def test_a_bad_machine_is_evicted_at_once(tell: Tell) -> None:
    fleet, truth = tell(Random(7))
    main = conclude(fleet)[0]
    assert main.action is Action.SWAP
    assert set(main.nodes) == truth.broken


@pytest.mark.parametrize("tell", [calm.healthy, calm.ended_well], ids=lambda t: t.__name__)
def test_a_healthy_fleet_is_called_so(tell: Tell) -> None:
    fleet, _ = tell(Random(3))
    assert [verdict.fault for verdict in conclude(fleet)] == [FaultClass.NO_FAULT]


FLOORS = {
    "class right": 0.85, "culprit right": 0.85, "HIGH faults right": 0.95,
    "no-fault HIGH right": 0.97,
}  # fmt: skip
NOT_THERE_YET = {
    "clusters set aside": {"class right": 0.75, "culprit right": 0.65},
    "today set aside": {"class right": 0.75, "culprit right": 0.8},
    "today": {"culprit right": 0.8},
    "tomorrow": {"class right": 0.8, "culprit right": 0.7},
    "adversary set aside": {"culprit right": 0.75},
}
"""No family set aside was looked at to mend a rule. Two families of `today` have counters without
an earlier reading, which accuse nobody; what all nodes have alike names none any more (0468)."""


@pytest.mark.long
@pytest.mark.parametrize("half", HALVES)
def test_no_half_of_the_bench_gets_worse(half: str) -> None:
    """Floors under what was reached; the bench prints the figures themselves."""
    figures = table(run(half, 1))
    for name, least in {**FLOORS, **NOT_THERE_YET.get(half, {})}.items():
        found = figures[name]
        assert isinstance(found, Share)
        assert found.right >= least * found.of, f"{half}: {name} {found}"
    for name in ("innocents named HIGH", "healthy eviction", "stopped in vain"):
        found = figures[name]
        assert isinstance(found, Share)
        assert found.right == 0, f"{half}: {name} {found}"
