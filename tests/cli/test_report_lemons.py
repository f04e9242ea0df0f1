"""`brctl report lemons`: proposes with evidence, and says when nothing was looked through."""

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from brctl.cli.main import run
from brctl.engine.controller.clock import now
from brctl.engine.incidents.verdict_store import StoredVerdict, VerdictState, save
from brctl.evidence.lemons import LemonSign, LemonSignal, lemons
from brctl.view.fleet.lemons import lemons_page
from tests.cli.test_watch_pages import CONFIG
from tests.fakes.watching import a_verdict


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "hosts").write_text("n[1-8]\n")
    (tmp_path / "config.yaml").write_text(CONFIG)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("BRCTL_CONFIG", str(tmp_path / "config.yaml"))
    return tmp_path / "state"


def test_where_nothing_was_recorded_nobody_is_healthy(
    state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["report", "lemons"]) == 3
    assert "UNKNOWN  nothing was recorded in the last 28d" in capsys.readouterr().out


def test_faults_of_weeks_are_listed_with_their_verdicts(
    state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number, days in ((1, 2), (2, 20), (3, 40)):
        verdict = replace(
            a_verdict(f"V-{number}", ("n3",), "llm"), decided_at=now() - timedelta(days)
        )
        save(state, StoredVerdict(verdict, VerdictState.ACTED_ON))
    assert run(["report", "lemons", "-o", "json"]) == 0
    body = json.loads(capsys.readouterr().out)
    (row,) = body["lemons"]
    assert (row["node"], row["lemon"], row["against"]) == ("n3", False, ["multi_node_node_fails"])
    assert row["evidence"]["multi_node_node_fails"] == ["V-1", "V-2"]
    assert (body["nodes"], body["verdicts"]) == (8, 2)


def test_a_lemon_is_proposed_with_the_words_to_type() -> None:
    signs = [
        LemonSign("n3", signal, f"{signal.value} {number}")
        for signal in (LemonSignal.XIDS, LemonSignal.MULTI_NODE_FAILS)
        for number in range(2)
    ]
    page = lemons_page(lemons(signs, 8, timedelta(28)), 8, (9, 2, 0), "28d")
    assert page.names == ("n3",)
    assert page.next == ('brctl cordon n3 -m "lemon, to repair: brctl report lemons"',)
    assert "n3  different Xids: xid_cnt 0, xid_cnt 1" in page.text
    assert "8 nodes, 9 sweeps, 2 verdicts and 0 runs" in page.text
