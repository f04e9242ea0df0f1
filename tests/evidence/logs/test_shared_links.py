"""Links that go down together have a cause in common, and it is no cable."""

import pytest

from brctl.model.fault import FaultClass
from tests.evidence.logs.test_attribution import classify

DOWN = "Mar  2 04:10:{:02d} {} kernel: mlx5_core 0000:9a:00.0 eth4: Link down"
LEG = "[ 811.2{:03d}] bond3: link status definitely down for interface {}, disabling it"


@pytest.mark.parametrize(
    "line",
    [
        DOWN,
        "{1}:88:99 [2] NCCL INFO NET/IB : mlx5_2:1 async fatal event on port: port error",
        "{1}: mlx5_core 0000:9a:00.0 eth4: Link down",
    ],
)
def test_ports_of_three_hosts_hang_on_one_switch(line: str) -> None:
    """Each host's own line tells of its own cable; only the switch has them all."""
    lines = [line.format(second, host) for second, host in enumerate(("q1", "q2", "q3"))]
    actual = classify(log=lines)
    assert actual.fault is FaultClass.NETWORK_SWITCH
    assert actual.culprit_host == ""
    assert classify(log=lines[:2]).fault is not FaultClass.NETWORK_SWITCH


def test_ports_that_go_down_minutes_apart_have_no_switch_in_common() -> None:
    """Three cables in ten minutes are three cables."""
    lines = [
        f"Mar  2 04:{minute}:00 q{minute} kernel: mlx5_core 0000:9a:00.0 eth4: Link down"
        for minute in (10, 15, 20)
    ]
    assert classify(log=lines).fault is FaultClass.NETWORK_LINK


def test_hosts_far_apart_in_a_log_without_clocks_are_not_together() -> None:
    """Lines tell the order and not the time: on one page they belong together, in a file not."""
    plain = "q{}: mlx5_core 0000:9a:00.0 eth4: Link down"
    lines = [plain.format(1), *["all is well"] * 60, plain.format(2), plain.format(3)]
    assert classify(log=lines).fault is FaultClass.NETWORK_LINK


def test_every_leg_of_a_bond_at_once_is_the_hosts_own_doing() -> None:
    """No adapter says that its link is gone: what the bonding driver sees is the host's set-up."""
    lines = [LEG.format(at, leg) for at, leg in enumerate(("eno7", "eno8", "ens9"))]
    assert classify(log=lines).fault is FaultClass.NETWORK_ETH
    assert classify(log=lines[:1]).fault is FaultClass.NETWORK_LINK


def test_a_bond_whose_adapters_lose_their_links_too_has_bad_links() -> None:
    """The adapter's own word is nearer to the cable than the bond's."""
    lines = [LEG.format(at, leg) for at, leg in enumerate(("eno7", "eno8", "ens9"))]
    own = "[ 811.100] ixgbe 0000:03:00.0 eno7: NIC Link is Down"
    assert classify(log=[own, *lines]).fault is FaultClass.NETWORK_LINK


def test_links_of_three_hosts_that_are_up_again_accuse_nobody() -> None:
    """What is over is no longer read."""
    ports = [("q1", "eth4"), ("q2", "eth5"), ("q3", "eth6")]
    said = "Mar  2 04:10:0{} {} kernel: mlx5_core 0000:9a:00.0 {}: Link is {}"
    down = [said.format(1, *port, "Down") for port in ports]
    up = [said.format(9, *port, "Up") for port in ports]
    assert classify(log=down).fault is FaultClass.NETWORK_SWITCH
    assert classify(log=[*down, *up]).fault is not FaultClass.NETWORK_SWITCH
