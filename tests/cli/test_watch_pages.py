"""`brctl watch status|stop|policy|replay` on a context that nobody watches, and on one that is."""

import json
import re
from datetime import timedelta
from pathlib import Path

import pytest
import yaml

import brctl
from brctl.cli.main import run
from brctl.engine.controller.clock import now
from brctl.engine.watch.folder import WatchFolder
from brctl.engine.watch.leader import Leader
from brctl.model.fault import FaultClass
from brctl.model.units import rfc3339
from brctl.model.watch.state import MassEvent, Suspicion, WatchAct, WatchRecord, WatchState
from brctl.view.fleet.prometheus import METRICS, totals_text
from brctl.view.watch.metrics import watch_totals

CONFIG = """\
apiVersion: brctl.dev/v1
kind: Config
context: prod
state_dir: state
contexts: {prod: {inventory: [{hostlist: hosts}]}}
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WatchFolder:
    (tmp_path / "hosts").write_text("n[1-8]\n")
    (tmp_path / "config.yaml").write_text(CONFIG)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("BRCTL_CONFIG", str(tmp_path / "config.yaml"))
    return WatchFolder(tmp_path / "state", "prod")


def test_nobody_watches_and_that_is_unknown(
    site: WatchFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["watch", "status"]) == 3
    assert "no watcher is at work" in capsys.readouterr().out
    assert not site.path.exists(), "a look at it makes nothing"


def test_status_shows_who_leads_what_is_suspected_and_the_breaker(
    site: WatchFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    at = now()
    act = WatchAct(at, "V-1", FaultClass.GPU_LOST, ("n3",), "llm", 7, 1)
    suspicion = Suspicion("gpu", "n3", at, 4, "gpu 5 is lost", confirmed_at=at)
    untold = {"many-silent": MassEvent("many-silent", "30 of 128 nodes are silent", ("n9",))}
    site.save_state(WatchState(at, suspicions={"gpu/n3": suspicion}, acts=(act,), untold=untold))
    site.append(WatchRecord(1, at, "suspicion", {"rule": "gpu", "subject": "n3", "text": "lost"}))
    site.tell_status({"at": rfc3339(at), "holder": "ctl1 pid 7", "mode": "act", "nodes": 128,
                      "talking": 127, "silent": ["n9"], "problem": ""})  # fmt: skip
    assert run(["watch", "status"]) == 1
    text = capsys.readouterr().out
    for part in ("act  leader ctl1 pid 7", "128 nodes: 127 talking", "breaker closed 1/3 (5m00)",
                 "suspected  gpu n3: gpu 5 is lost", "silent  n9",
                 "untold  many-silent: no sink took the page yet: 30 of 128"):  # fmt: skip
        assert part in text
    assert run(["watch", "status", "-o", "json"]) == 1
    body = json.loads(capsys.readouterr().out)
    assert body["suspicions"][0]["confirmed"] is True
    assert body["records"][0]["rule"] == "gpu"
    assert body["untold"] == {"many-silent": "30 of 128 nodes are silent"}


def test_a_watcher_that_was_heard_of_minutes_ago_is_not_there(
    site: WatchFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    site.tell_status({"at": rfc3339(now() - timedelta(minutes=5)), "holder": "ctl1 pid 7"})
    assert run(["watch", "status"]) == 3


def test_stop_is_a_file_that_refuses_every_watcher_until_it_is_lifted(
    site: WatchFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["watch", "stop", "-m", "switch upgrade"]) == 0
    assert run(["watch", "--transport", "local"]) == 5
    assert "switch upgrade" in capsys.readouterr().err
    assert run(["watch", "stop", "--lift"]) == 0
    assert site.stopped() == ""


def test_a_policy_with_a_mistake_is_refused_with_its_line(
    site: WatchFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "watch.yaml"
    path.write_text("apiVersion: brctl.dev/v1\nkind: WatchPolicy\nmoed: act\n")
    assert run(["watch", "policy", str(path)]) == 78
    assert "watch.yaml:3: unknown key 'moed'" in capsys.readouterr().err
    assert run(["watch", "policy"]) == 0
    assert "observe where nothing is said" in capsys.readouterr().out


def test_closing_the_breaker_is_asked_of_the_watcher_once(site: WatchFolder) -> None:
    assert run(["watch", "policy", "--close-breaker", "it was the power of rack r7"]) == 0
    assert site.breaker_closed() == "it was the power of rack r7"
    assert site.breaker_closed() == ""


def test_a_record_that_is_none_is_said_to_be_none(
    site: WatchFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "odd.ndjson"
    path.write_bytes(b'{"seq": 1}\nnothing\n\xff\xfe\n')
    assert run(["watch", "replay", str(path)]) == 64
    assert "no line of it is a watcher's" in capsys.readouterr().err


def test_a_mode_that_does_not_exist_is_a_slip(
    site: WatchFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["watch", "--mode", "obsrve"]) == 64
    assert "did you mean 'observe'?" in capsys.readouterr().err


def test_a_damaged_state_is_set_aside_and_stops_nobody(site: WatchFolder) -> None:
    site.save_state(WatchState(now()))
    (site.path / "state.json").write_bytes(b'{"began_at": "ye')
    assert site.load_state() is None
    assert (site.path / "state.json.damaged-1").exists()


def test_a_long_record_is_put_beside(site: WatchFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("brctl.engine.watch.folder.ROTATE_BYTES", 50)
    for seq in range(3):
        site.append(WatchRecord(seq, now(), "note", {"text": "some text that is long enough"}))
    assert (site.path / "watch.ndjson.1").exists()
    assert [record.seq for record in site.records(10)] == [2]


def test_a_watcher_is_metrics_that_the_shipped_alerts_know(site: WatchFolder) -> None:
    at = now()
    suspicion = Suspicion("gpu", "n3", at, 7, "a GPU is lost")
    act = WatchAct(at, "V-1", FaultClass.GPU_LOST, ("n1",), "llm", 7, 1)
    state = WatchState(
        at, suspicions={suspicion.key: suspicion}, acts=(act,), breaker_open="it opened",
        decided={"V-1": "act", "V-2": "observe", "V-3": "observe"},
    )  # fmt: skip
    status = {"at": rfc3339(at), "nodes": 8, "talking": 7, "problem": ""}
    lines = totals_text(watch_totals(status, state, "", "prod", at)).splitlines()
    assert {
        'brctl_watch_up{context="prod"} 1',
        'brctl_watch_nodes{context="prod",state="silent"} 1',
        'brctl_watch_suspicions{context="prod",rule="gpu"} 1',
        'brctl_watch_suspicions{context="prod",rule="no-step"} 0',
        'brctl_watch_decisions{context="prod",mode="observe"} 2',
        'brctl_watch_breaker_open{context="prod"} 1',
        'brctl_watch_nodes_acted_on{context="prod"} 1',
    } <= set(lines)
    assert "# TYPE brctl_watch_up gauge" in lines
    late = watch_totals(status, state, "", "prod", at + timedelta(minutes=5))
    assert late['brctl_watch_up{context="prod"}'] == 0
    assert watch_totals({}, None, "", "prod", at) == {}


def test_every_shipped_alert_asks_for_metrics_that_are_written() -> None:
    path = Path(brctl.__file__).parent / "docs" / "prometheus-rules.yml"
    groups = yaml.safe_load(path.read_text())["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    assert len({rule["alert"] for rule in rules}) == len(rules) > 0
    for rule in rules:
        named = set(re.findall(r"brctl_\w+", rule["expr"]))
        assert named
        assert named <= set(METRICS), rule["alert"]
        assert rule["labels"]["severity"] in ("warning", "critical")
        assert "brctl " in rule["annotations"]["summary"]


def test_fix_refuses_what_a_watcher_decided_that_no_longer_leads(
    site: WatchFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before it looks for the verdict: nothing of an older leader's decision is read."""
    state_dir = site.path.parent.parent
    frozen = Leader(state_dir, "prod")
    frozen.take(now())
    frozen.release()
    leader = Leader(state_dir, "prod")
    leader.take(now())
    assert run(["fix", "V-1", "--watch-token", str(leader.token - 1)]) == 75
    assert f"watcher with number {leader.token - 1}" in capsys.readouterr().err
    assert run(["fix", "V-1", "--watch-token", str(leader.token)]) == 64
    assert "no verdict `V-1`" in capsys.readouterr().err
