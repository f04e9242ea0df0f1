"""Faults that no `lab break` makes: whatever they are, no healthy machine is accused or evicted.

Each row of the table strikes a real job on one lab that all rows share. The last test prints what
the answers were worth, each half by itself, and holds a floor under them.
"""

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from time import monotonic

import pytest

from brctl.lab.cluster import Lab
from brctl.lab.spec import Isolation, LabSpec
from brctl.model.fault import FaultClass
from brctl.model.verdict import Confidence, Verdict
from tests.bench.verdicts.score import Outcome, Share, table
from tests.scenarios.fleet_incidents import FLEET, FLEET_SET_ASIDE
from tests.scenarios.later_incidents import LATER, LATER_SET_ASIDE
from tests.scenarios.live_incidents import OPEN, SET_ASIDE, LiveIncident, forget_mischief
from tests.scenarios.outside_incidents import OUTSIDE, OUTSIDE_SET_ASIDE
from tests.scenarios.site import WARM_STEPS, Site, open_site, scenario_lab

pytestmark = [
    pytest.mark.system, pytest.mark.torch, pytest.mark.netns, pytest.mark.ssh, pytest.mark.deep,
]  # fmt: skip
SPEC = LabSpec(
    nodes=4, standbys=0, gpus=2, isolation=Isolation.NETNS, collective_timeout_s=25.0,
    stall_after_s=5.0,
)  # fmt: skip
SABOTEUR = Path(__file__).with_name("saboteur.py")
PATIENCE_S = 45.0
"""How long somebody looks again and again before they take `unknown` for the answer."""

STEPS_OF_PAST, STEPS_AFTER = 110, 60
"""Of a slow-down: three windows of its past, and two of what came after."""

BITES = 1.1
"""A straggler that costs less than a tenth of a step is no fault that anybody could see."""

HALVES = {
    "open": OPEN, "set aside": SET_ASIDE,
    "outside": OUTSIDE, "outside set aside": OUTSIDE_SET_ASIDE,
    "fleet": FLEET, "fleet set aside": FLEET_SET_ASIDE,
    "later": LATER, "later set aside": LATER_SET_ASIDE,
}  # fmt: skip
SETTLED = frozenset({FaultClass.NO_FAULT, FaultClass.UNKNOWN})
FLOORS = {
    "class right": 0.75, "culprit right": 0.7, "HIGH faults right": 0.9,
    "no-fault HIGH right": 0.97,
}  # fmt: skip


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with scenario_lab(SPEC, tmp_path_factory) as lab:
        yield lab


@pytest.fixture(scope="module")
def outcomes() -> dict[str, Outcome]:
    """What was concluded of each row, by its name."""
    return {}


@pytest.fixture
async def site(lab: Lab, tmp_path: Path) -> AsyncIterator[Site]:
    async with open_site(lab, tmp_path) as site:
        # The module's name stays in the command line, by which the lab knows its trainers.
        launch = [part for part in site.job.launch if part != "-m"]
        site.job = replace(site.job, launch=(sys.executable, str(SABOTEUR), *launch[1:]))
        yield site


async def answer(site: Site, row: LiveIncident) -> tuple[Verdict, ...]:
    """Look again and again, as a person does, until something is named or patience ends."""
    deadline = monotonic() + PATIENCE_S
    while True:
        found = (await site.diagnose_once()).verdicts
        sure = found[0].fault not in SETTLED and found[0].confidence is not Confidence.LOW
        if sure or not row.waits or monotonic() > deadline:
            return found
        await asyncio.sleep(0.5)


@pytest.mark.parametrize(
    "row", [row for rows in HALVES.values() for row in rows], ids=lambda row: row.family
)
async def test_no_healthy_machine_is_accused_or_evicted(
    row: LiveIncident, site: Site, outcomes: dict[str, Outcome]
) -> None:
    """Whatever the class, and however often somebody looked until it stood."""
    forget_mischief(site.lab)
    await site.train()
    if row.slow:
        await asyncio.to_thread(row.before, site.lab)
        await site.steps_until(STEPS_OF_PAST)
    try:
        await asyncio.to_thread(row.make, site.lab)
        if row.slow:
            await site.steps_until(STEPS_OF_PAST + STEPS_AFTER)
        outcome = Outcome(row, await answer(site, row))
        times = longer_by(site) if row.makes_steps_longer else None
    finally:
        await asyncio.to_thread(row.undo, site.lab)
    sys.stdout.write(told(outcome) + "\n")
    every_look = Outcome(row, tuple(site.seen))
    assert not every_look.innocents(high=True), told(outcome)
    assert not outcome.move_evicts, told(outcome)
    if times is not None and times < BITES:
        pytest.skip(f"{row.family} does nothing here: steps took {times:.2f} times as long")
    outcomes[row.family] = outcome


def longer_by(site: Site) -> float:
    """How many times what they took on average before steps take since."""
    past_s = site.mean_step_s(WARM_STEPS, STEPS_OF_PAST)
    assert past_s > 0.0, f"no step from {WARM_STEPS} to {STEPS_OF_PAST} is on record"
    return site.mean_step_s(STEPS_OF_PAST + WARM_STEPS, site.last_step()) / past_s


def told(outcome: Outcome) -> str:
    """One line for people who read the figures."""
    main, truth = outcome.main, outcome.incident.truth
    return (
        f"{'right' if outcome.class_right else 'WRONG'} {outcome.incident.family}: {main.fault}"
        f" {main.probability:.2f} nodes {sorted(outcome.named)} places {sorted(outcome.placed)},"
        f" in truth {'/'.join(sorted(truth.classes))} {sorted(truth.blamed)}; {main.action}"
    )


@pytest.mark.parametrize("half", HALVES)
def test_the_answers_of_a_half_are_right_often_enough(
    half: str, outcomes: dict[str, Outcome]
) -> None:
    """Runs last; says nothing where most rows of the half were left out of the run."""
    rows = HALVES[half]
    mine = [outcomes[row.family] for row in rows if row.family in outcomes]
    if 2 * len(mine) < len(rows):
        pytest.skip(f"{len(mine)} of {len(rows)} rows of this half ran")
    figures = table(mine)
    lines = [f"  {name:24} {value}" for name, value in figures.items()]
    sys.stdout.write("\n".join([f"live, {half}: {len(mine)} incidents", *lines, ""]))
    for name, least in FLOORS.items():
        share = figures[name]
        assert isinstance(share, Share)
        assert share.right >= least * share.of, f"{name} {share}"
    if any(outcome.incident.truth.classes == {FaultClass.NO_FAULT} for outcome in mine):
        calm = figures["no-fault HIGH right"]
        assert isinstance(calm, Share)
        assert calm.of, "no sound job was called sound"
