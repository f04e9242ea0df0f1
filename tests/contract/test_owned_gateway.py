"""A gateway that somebody owns can lie about the nodes behind it, and about nobody else."""

import dataclasses
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from brctl.engine.application.fix import choose_fix
from brctl.engine.controller.clock import now
from brctl.engine.incidents.verdict_store import StoredVerdict, VerdictState
from brctl.fanout.choose import open_transport
from brctl.fanout.contract import Transport
from brctl.fanout.gateway import transport as gateway_transport
from brctl.fanout.gather import gather
from brctl.library.config import load_settings
from brctl.model.command import Command, CommandResult, Outcome
from brctl.model.fault import Action
from brctl.model.inventory import Inventory, Node
from brctl.model.verdict import Confidence, Suspect
from brctl.playbook.recommend import recommend
from brctl.verdict.gateways import doubted, seen_through
from tests.contract.transport_sites import Site, open_site
from tests.fakes import owned_gateway
from tests.fakes.fix_site import CONFIG, INVENTORY, JOB
from tests.fakes.run_context import example_verdict
from tests.timeouts import TIMEOUT_S

PROGRAM = Path(owned_gateway.__file__)
ASKED = Command(("hostname",), deadline_s=TIMEOUT_S)
BEHIND = tuple(Node(f"n{i}", f"10.9.0.{i}", via="gw") for i in (1, 2))
Ask = Callable[[str], "AsyncIterator[CommandResult]"]


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with open_site(tmp_path, real_sshd=False) as opened:
        yield opened


def owned(site: Site, manner: str) -> tuple[Transport, dict[str, Node]]:
    """A gateway of this manner with two nodes behind it, and a node that is reached directly."""
    python = site.folder / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} {PROGRAM} {manner} "$@"\n')
    python.chmod(0o755)
    gateway = dataclasses.replace(site.good, name="gw", python=str(python))
    nodes = {node.name: node for node in (gateway, *BEHIND, site.good)}
    ssh = dataclasses.replace(site.ssh, transport="asyncssh", gateways="tree")
    return open_transport(ssh, nodes), nodes


async def ask(site: Site, manner: str, command: Command = ASKED) -> dict[str, CommandResult]:
    """Everybody's answer: those behind the gateway, and that of the node beside it."""
    transport, nodes = owned(site, manner)
    try:
        asked = [*BEHIND, nodes["good"]]
        found = [a async for a in gather(transport, asked, lambda _: command, limit=4)]
    finally:
        await transport.close()
    answers = {answer.node: answer for answer in found}
    assert len(found) == len(answers) == len(asked)
    assert answers["good"].outcome is Outcome.ANSWERED
    assert b"made up" not in answers["good"].stdout
    return answers


async def test_one_that_drops_answers_and_stays_alive_is_not_waited_for(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It beats for ever and never says a word of the nodes: the command hung for ever."""
    monkeypatch.setattr(gateway_transport, "GRACE_S", 0.2)
    command = dataclasses.replace(ASKED, deadline_s=0.2)
    hurried = dataclasses.replace(site.ssh, connect_timeout_s=3.0, login_timeout_s=4.0)
    transport, _ = owned(dataclasses.replace(site, ssh=hurried), "drop")
    found = [a async for a in gather(transport, BEHIND, lambda _: command, limit=4)]
    await transport.close()
    assert {answer.outcome for answer in found} == {Outcome.UNREACHABLE}
    assert all(a.detail.startswith("gateway gw: no answer within") for a in found)


async def test_one_that_answers_for_everybody_is_heard_for_those_that_were_asked(
    site: Site,
) -> None:
    """Numbers that nobody gave out mean nothing; under a number of its own, only the right mark."""
    answers = await ask(site, "claim")
    for node in BEHIND:
        assert answers[node.name].outcome in (Outcome.ANSWERED, Outcome.UNREACHABLE)
        assert answers[node.name].stdout in (node.address.encode(), b"made up")


async def test_what_is_said_twice_counts_once(site: Site) -> None:
    answers = await ask(site, "replay")
    for node in BEHIND:
        assert answers[node.name].stdout == node.address.encode()


async def test_it_can_exchange_two_of_its_own_nodes_and_nobody_beside_it(site: Site) -> None:
    """That is what `tree` trusts a gateway with, and why a verdict says so (decision 0045)."""
    answers = await ask(site, "swap")
    assert answers["n1"].stdout == b"10.9.0.2"


async def test_an_answer_longer_than_its_command_may_be_is_cut(site: Site) -> None:
    """Its own limit is the gateway's to keep, and it does not."""
    command = dataclasses.replace(ASKED, output_limit_bytes=1000)
    answers = await ask(site, "flood", command)
    for node in BEHIND:
        assert answers[node.name].outcome is Outcome.OUTPUT_OVER_LIMIT
        assert len(answers[node.name].stdout) == 1000


def test_whoever_acts_on_its_word_is_told_whose_word_it_is(tmp_path: Path) -> None:
    """The verdict, its documents and `fix` name the gateway; of other nodes they say nothing."""
    inventory = Inventory({"n3": Node("n3", "10.9.0.3", via="gw"), "n1": Node("n1", "10.9.0.1")})
    verdict = seen_through(example_verdict(now()), inventory)
    assert verdict.say.endswith("seen through gateway gw only")
    assert [(g.subject.node, g.what) for g in verdict.not_checked] == [("n3", "gateway")]
    for name, text in (("config", CONFIG), ("inventory", INVENTORY), ("job", JOB)):
        (tmp_path / f"{name}.yaml").write_text(text)
    settings = load_settings({"HOME": str(tmp_path)}, config=tmp_path / "config.yaml")
    fix = choose_fix(settings, StoredVerdict(verdict, VerdictState.OPEN, ""), now())
    assert "n3 was seen through gateway gw only" in fix.say
    plain = seen_through(example_verdict(now()), Inventory({"n3": Node("n3", "10.9.0.3")}))
    assert "gateway" not in plain.say


def test_one_that_accuses_all_its_nodes_convicts_none_of_them() -> None:
    """So many machines do not fail at once; of a node beside them nothing is taken back."""
    suspects = (Suspect("n1"), Suspect("n2"), Suspect("n3"))
    verdict = dataclasses.replace(example_verdict(now()), suspects=suspects, action=Action.NONE)
    nodes = {n: Node(n, "10.9.0.1", via="gw") for n in ("n1", "n2")} | {"n3": Node("n3", "x")}
    found = recommend(doubted(verdict, ("n1", "n2", "n3", "n4"), Inventory(nodes)))
    assert found.nodes == ("n3",)
    assert found.title.endswith("says gateway gw of all 2 nodes behind it")
    assert found.settle[0] == "brctl nodes show gw"
    alone = dataclasses.replace(verdict, suspects=suspects[:2])
    nobody = recommend(doubted(alone, ("n1", "n2", "n3", "n4"), Inventory(nodes)))
    assert nobody.nodes == ()
    assert nobody.confidence is Confidence.LOW
    assert nobody.action not in (Action.SWAP, Action.CORDON, Action.EVICT_GROUP)
    third = Inventory(nodes | {"n4": Node("n4", "x", via="gw")})
    assert doubted(verdict, ("n1", "n2", "n3", "n4"), third) is verdict
