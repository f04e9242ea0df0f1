"""Sweeps and verdicts as people read them: worst first, folded, hostile text harmless."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from brctl.model.deeper_look import DeeperLook
from brctl.model.evidence import Evidence, Gap, Role, Subject, Weight
from brctl.model.exit_codes import ExitCode
from brctl.model.fault import FaultClass
from brctl.model.verdict import Verdict
from brctl.playbook.recommend import recommend
from brctl.verdict.decide import DecisionContext, decide
from brctl.view.documents import verdict_document
from brctl.view.fleet.sweep import sweep_page
from brctl.view.verdict import diagnosis_page, why_page
from tests.fakes.nodes import NOW, clear, health, seen, silent, sweep_of
from tests.fakes.run_context import example_verdict


def test_a_sweep_names_the_worst_first_and_accounts_for_every_node() -> None:
    page = sweep_page(
        sweep_of(clear("n1"), silent("n2"), health("n3", [seen("n3")]), clear("n4"), silent("n5")),
        "prod-a",
    )
    assert page.text.splitlines() == [
        "sweep S-1  prod-a  5 nodes  2 checks  level 1  1.2 s",
        "CRIT     1  n3      gpu.xid  Xid 79: GPU has fallen off the bus (pci:0000:9b:00.0)",
        "UNKNOWN  2  n[2,5]  node     connect-timed-out: no TCP connection within 10 s",
        "OK       2  n[1,4]",
    ]
    assert page.exit_code is ExitCode.CRITICAL
    assert page.next == ("brctl dx -w n[2-3,5]",)


def test_silence_alone_exits_3_and_a_hint_alone_1() -> None:
    hint = health("n1", [seen("n1", weight=Weight.HINTS)])
    assert sweep_page(sweep_of(clear("n1"), silent("n2")), "c").exit_code is ExitCode.UNKNOWN
    assert sweep_page(sweep_of(hint), "c").exit_code is ExitCode.WARNING
    assert sweep_page(sweep_of(clear("n1")), "c").exit_code is ExitCode.OK


def test_equal_reasons_share_one_line_though_they_name_their_node() -> None:
    nodes = [
        health(name, [seen(name, text=f"{name} lost a GPU", device="")]) for name in ("n1", "n2")
    ]
    page = sweep_page(sweep_of(*nodes), "c")
    assert "n[1-2]" in page.text
    assert "NODE lost a GPU" in page.text


def test_escapes_and_markup_from_a_node_are_shown_and_not_obeyed() -> None:
    hostile = health("n1", [seen("n1", text="\x1b[2J[bold]gone[/bold]\r\n\u202e", device="")])
    text = sweep_page(sweep_of(hostile), "c").text
    assert "\x1b" not in text
    assert "\\x1b[2J[bold]gone[/bold]\\r\\n\\u202e" in text


def decided(
    evidence: Sequence[Evidence], gaps: Sequence[Gap], context: DecisionContext
) -> list[Verdict]:
    """Verdicts with the tree's move, as the engine hands them out."""
    return [recommend(verdict) for verdict in decide(evidence, gaps, context)]


def test_a_diagnosis_ends_in_the_next_command() -> None:
    (verdict,) = decided([seen("n3")], (), DecisionContext(NOW, "llm", 7, stalled=True))
    page = diagnosis_page([verdict], None, ["n3"], 1.0)
    assert page.exit_code is ExitCode.CRITICAL
    assert page.next[0] == f"brctl fix {verdict.id}"
    assert "HIGH" in page.text
    assert "do:     swap (playbook swap-and-resume): a machine is at fault, evict it" in page.text


def test_why_and_dx_print_one_next_move() -> None:
    """The line and the document of both are the tree's."""
    (verdict,) = decided([seen("n3")], (), DecisionContext(NOW, "llm", 7, stalled=True))
    line = "swap (playbook swap-and-resume): a machine is at fault, evict it"
    assert f"do:        {line}" in why_page(verdict, "open", "").text
    reported = {
        "do": "swap", "playbook": "swap-and-resume", "say": "a machine is at fault, evict it",
        "command": f"brctl fix {verdict.id}",
    }  # fmt: skip
    assert verdict_document(verdict)["action"] == reported


def test_a_low_confidence_lead_is_never_followed_by_fix() -> None:
    for job in ("", "llm"):
        context = DecisionContext(NOW, job, stalled=True)
        (verdict,) = decided([seen("n3", weight=Weight.HINTS)], (), context)
        page = diagnosis_page([verdict], None, ["n3"], 1.0)
        assert page.exit_code is ExitCode.WARNING
        assert page.next == (f"brctl why {verdict.id}",)


def test_why_shows_the_chain_what_is_ruled_out_and_what_was_not_seen() -> None:
    evidence = [
        seen("n3"),
        seen("n5", role=Role.VICTIM, weight=Weight.CONTEXT, fault=FaultClass.NETWORK_ETH,
             text="rank 4 lost its peer", source="rank-00004.log"),
        seen("n3", weight=Weight.CLEARS, fault=FaultClass.PCIE, source="gpu.pcie", text="width 16"),
    ]  # fmt: skip
    gap = Gap(Subject("n3"), "gpu.nvlink", "timed out after 10 s")
    (verdict,) = decided(evidence, [gap], DecisionContext(NOW, "llm", 7, stalled=True))
    text = why_page(verdict, "open", "").text
    assert " 1  +  03:02:09Z  decides  gpu.xid" in text
    assert ".  03:02:09Z  follows  rank-00004.log" in text
    assert "ruled out: pcie, width 16" in text
    assert "not seen:  n3 gpu.nvlink: timed out after 10 s" in text


def test_a_silent_node_is_one_line_and_not_one_for_every_check() -> None:
    names = ("gpu.ecc", "gpu.xid", "gpu.pcie", "gpu.nvlink")
    gaps = [Gap(Subject("n3"), name, "unreachable: no route to host") for name in names]
    (verdict,) = decided([seen("n3")], gaps, DecisionContext(NOW, "llm", 7, stalled=True))
    text = why_page(verdict, "open", "").text
    assert "not seen:  n3 4 checks (gpu.ecc, gpu.nvlink, gpu.pcie, ...): unreachable" in text
    assert text.count("not seen:") == 1


@pytest.mark.parametrize(
    ("state", "note", "steps"),
    [
        ("open", "", ["brctl fix"]),
        ("acted-on", "R-0002", ["brctl play show R-0002"]),
        ("dismissed", "the cable was pulled on purpose", []),
    ],
)
def test_why_ends_with_what_is_left_to_do(state: str, note: str, steps: list[str]) -> None:
    (verdict,) = decided([seen("n3")], (), DecisionContext(NOW, "llm", 7, stalled=True))
    left = why_page(verdict, state, note).next
    assert [step.removesuffix(f" {verdict.id}") for step in left] == steps


def test_what_is_too_weak_to_be_named_is_still_a_lead() -> None:
    """A node that just went silent is no verdict yet, and still where to look first."""
    silent = Evidence(
        "node.silent", Subject("n3"), Weight.HINTS, FaultClass.NODE_FAILURE, Role.ROOT, "ssh",
        "no route to host", at=NOW,
    )  # fmt: skip
    going = replace(silent, source="job", weight=Weight.CLEARS, text="steps advance")
    gap = Gap(Subject("n3"), "node", "unreachable: no route to host")
    (verdict,) = decided([silent, going], [gap], DecisionContext(NOW, "llm", 7, stalled=False))
    assert verdict.fault is FaultClass.UNKNOWN
    text = diagnosis_page([verdict], None, ["n3"], 1.0).text
    assert "leads:  node-failure n3 0.1" in text


DEEPER = DeeperLook(2, ("fabric.pairs", "gpu.gemm"), 120.0, {"llm": ("n1", "n2")})


def test_a_look_that_left_something_open_names_the_next_one_and_its_price() -> None:
    """LOW leads and quiet looks ended without a word of what would tell more."""
    (verdict,) = decided(
        [seen("n3", weight=Weight.HINTS)], (), DecisionContext(NOW, "", stalled=None)
    )
    page = diagnosis_page([verdict], None, ["n1", "n2"], 1.0, DEEPER)
    assert page.text.splitlines()[-1] == (
        "more:   level 2 asks 2 checks more (fabric.pairs, gpu.gemm), at most 2m00 a node; it loads"
        " GPUs and links beside a job: n[1-2] carry llm"
    )
    assert page.next[-1] == "brctl dx -w 'n[1-2]' --level 2"
    assert page.body["deeper"] == {
        "level": 2, "checks": ["fabric.pairs", "gpu.gemm"], "at_most_seconds": 120.0,
        "slows": [{"job": "llm", "nodes": ["n1", "n2"], "folded": "n[1-2]"}],
    }  # fmt: skip


def test_a_sure_verdict_asks_for_no_deeper_look() -> None:
    (verdict,) = decided([seen("n3")], (), DecisionContext(NOW, "llm", 7, stalled=True))
    page = diagnosis_page([verdict], None, ["n3"], 1.0, DEEPER)
    assert "more:" not in page.text
    assert page.body["deeper"] is None


def test_what_nothing_was_found_for_is_unknown_and_exits_3() -> None:
    (verdict,) = decided((), (), DecisionContext(NOW, "llm", stalled=True))
    page = diagnosis_page([replace(verdict)], None, ["n1"], 1.0)
    assert page.exit_code is ExitCode.UNKNOWN


def test_verdicts_of_one_playbook_are_fixed_in_one_run() -> None:
    """The command that stops the job once stands first; a lead is taken along by nobody."""
    first = replace(example_verdict(), playbook="swap-and-resume", probability=0.95)
    alike = replace(first, id="V-2")
    other = replace(first, id="V-3", playbook="restart-in-place")
    lead = replace(first, id="V-4", probability=0.3)
    page = diagnosis_page([first, alike, other, lead], None, ["n3"], 1.0)
    assert page.next == (f"brctl fix {first.id} V-2", f"brctl why {first.id}")
