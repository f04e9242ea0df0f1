"""Whatever stops a real job, the verdict says what it is and names nobody who is innocent.

One lab of four nodes with namespaces and OpenSSH of their own; in each scenario a real torch job
trains on it until one thing breaks.
"""

import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from time import monotonic

import pytest

from brctl.engine.controller.wiring import open_controller
from brctl.lab.cluster import Lab
from brctl.lab.faults import FAULTS
from brctl.lab.processes import send
from brctl.lab.site import FaultSite
from brctl.lab.spec import Isolation, LabSpec
from brctl.model.fault import FaultClass
from brctl.model.verdict import Verdict
from tests.scenarios.site import Site, open_site, scenario_lab
from tests.timeouts import TIMEOUT_S

pytestmark = [pytest.mark.system, pytest.mark.torch, pytest.mark.netns, pytest.mark.ssh]
SPEC = LabSpec(
    nodes=4, standbys=0, gpus=2, isolation=Isolation.NETNS, collective_timeout_s=25.0,
    stall_after_s=5.0,
)  # fmt: skip
CULPRIT = "n3"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A lab that is gone afterwards, whatever the scenarios did to it."""
    with scenario_lab(SPEC, tmp_path_factory) as lab:
        yield lab


@pytest.fixture
async def site(lab: Lab, tmp_path: Path) -> AsyncIterator[Site]:
    """A sound job in training on a healed lab."""
    async with open_site(lab, tmp_path) as site:
        await site.train()
        yield site


def say(verdict: Verdict) -> str:
    """The whole chain, for the message of a failure."""
    head = f"{verdict.fault} {verdict.nodes} {verdict.probability:.2f}"
    return "\n".join([head, *(f"{e.weight} {e.role} {e.kind} {e.text}" for e in verdict.evidence)])


async def ends_in(site: Site, fault: str, nodes: set[str]) -> Verdict:
    """The verdict after a fault of the culprit; its class is that of the fault's row."""
    await site.break_node(fault, CULPRIT)
    found = await site.verdict()
    main = found.verdicts[0]
    assert main.fault == FAULTS[fault].expected, say(main)
    assert set(main.nodes) == nodes, say(main)
    assert site.named() <= {CULPRIT}, "\n".join(map(say, site.seen))
    return main


async def test_a_rank_slower_than_the_others_is_named_while_training_goes_on(site: Site) -> None:
    """The rank that waits least is the one the others wait for."""
    main = await ends_in(site, "rank-slow", {CULPRIT})
    deadline = monotonic() + TIMEOUT_S
    # Its own steps may tell of it before the waits of the others do.
    while not any(item.kind == "job.rank.waits-least" for item in main.evidence):
        assert monotonic() < deadline, say(main)
        main = (await site.verdict()).verdicts[0]
        assert site.named() == {CULPRIT}, "\n".join(map(say, site.seen))


async def test_a_refused_login_is_no_verdict_while_steps_advance(site: Site) -> None:
    """The node is not dead: its ranks take part in every step."""
    await site.break_node("ssh-refused", CULPRIT)
    # A connection from before the refusal still works; a person would bring a new one.
    async with open_controller(site.controller.settings) as controller:
        other_site = Site(site.lab, controller)
        found = await other_site.diagnose_once()
        deadline = monotonic() + TIMEOUT_S
        # Beside other tests a rank may lack a CPU for the length of a look, which is a lead.
        while any(item.kind == "job.cpu.waits" for item in found.verdicts[0].evidence):
            assert monotonic() < deadline, say(found.verdicts[0])
            found = await other_site.diagnose_once()
    main = found.verdicts[0]
    assert main.fault == FAULTS["ssh-refused"].expected, say(main)
    assert {gap.subject.node for gap in main.not_checked} == {CULPRIT}
    assert {node for verdict in found.verdicts for node in verdict.nodes} == set()
    await site.steps_until(site.last_step() + 3)


async def test_a_loss_that_is_not_a_number_is_found_where_it_began(site: Site) -> None:
    """One step later every rank has it; the first one is named."""
    await ends_in(site, "rank-nan", {CULPRIT})


async def test_a_crash_of_the_training_code_blames_no_node(site: Site) -> None:
    """The rank that raised ends first, its peers lose it."""
    await ends_in(site, "rank-crash", set())


async def test_a_killed_data_loader_blames_no_node(site: Site) -> None:
    """PyTorch's own text decides over the exception it arrives in."""
    await ends_in(site, "loader-killed", set())


async def test_a_rank_that_hangs_is_named(site: Site) -> None:
    """It never enters the collective the others wait in: phase, stacks and recorder agree."""
    main = await ends_in(site, "rank-hang", {CULPRIT})
    assert {"job.ranks", "job.stacks", "flight-recorder"} <= {e.source for e in main.evidence}
    assert main.playbook == "restart-in-place", say(main)


async def test_a_stopped_rank_is_named(site: Site) -> None:
    """A process in state T, wherever it stood."""
    main = await ends_in(site, "rank-stop", {CULPRIT})
    assert any("state T" in item.text for item in main.evidence)
    assert main.playbook == "restart-in-place", say(main)


async def test_a_rank_in_another_collective_is_named(site: Site) -> None:
    """All ranks wait in a collective by their own account; only recorder and stacks differ."""
    main = await ends_in(site, "rank-mismatch", {CULPRIT})
    assert any(item.kind == "job.flight.mismatch" for item in main.evidence)
    assert main.playbook == "restart-in-place", say(main)


async def test_a_killed_rank_is_a_lead_and_no_node_is_blamed(site: Site) -> None:
    """Nobody says who sent the signal: memory comes first, and two commands would settle it."""
    send(FaultSite(site.lab.record, site.lab.paths, CULPRIT).trainers(), signal.SIGKILL)
    deadline = monotonic() + TIMEOUT_S
    main = (await site.diagnose_once()).verdicts[0]
    while not main.settle:
        assert monotonic() < deadline, say(main)
        main = (await site.diagnose_once()).verdicts[0]
    assert main.fault is FaultClass.UNKNOWN, say(main)
    assert (main.alternatives[0].fault, main.alternatives[0].nodes) == (
        FaultClass.CPU_OOM,
        (CULPRIT,),
    )
    assert site.named() == set()


async def test_a_node_without_power_is_named(site: Site) -> None:
    """It answers nobody, and its peers hang."""
    await ends_in(site, "node-dead", {CULPRIT})


async def test_a_node_behind_a_cut_cable_is_named(site: Site) -> None:
    """From here it looks dead; until the job stands still that is no proof."""
    await ends_in(site, "link-cut", {CULPRIT})
