"""`brctl notify` and `sweep --cron` as an operator types them, against a real server."""

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from brctl.cli.commands import dx as diagnose_module
from brctl.cli.commands import notify as notify_module
from brctl.cli.commands import sweep as sweep_module
from brctl.cli.commands import verdict as verdict_module
from brctl.engine.incidents.verdict_store import load_all, save, save_new
from brctl.model.errors import GuardError, UsageError
from tests.cli.test_run import call
from tests.fakes.http_sink import HANG, HttpSink, Reply, http_sink
from tests.fakes.run_context import example_verdict

CONFIG = """\
apiVersion: brctl.dev/v1
kind: Config
context: prod
state_dir: state
contexts: {prod: {inventory: [{file: own.yaml}]}}
ssh: {transport: local}
"""
OWN = """\
apiVersion: brctl.dev/v1
kind: Inventory
nodes: {n1: {labels: {kernel_log: %s}}}
"""
XID = "3,88213,%d,-;NVRM: Xid (PCI:0000:9b:00): 79, pid=1234, GPU has fallen off the bus.\n"
ASKED = ("--checks", "gpu.xid", "--exit-zero")


@pytest.fixture
def server() -> Iterator[HttpSink]:
    with http_sink() as sink:
        yield sink


@pytest.fixture
def config(tmp_path: Path, server: HttpSink) -> Path:
    """One node whose kernel tells of a lost GPU, and PagerDuty."""
    (tmp_path / "own.yaml").write_text(OWN % (tmp_path / "kmsg"))
    (tmp_path / "kmsg").write_text(XID % int(time.monotonic() * 1e6))
    (tmp_path / "key").write_text("routing-key\n")
    (tmp_path / "key").chmod(0o600)
    notify = f"notify: {{pagerduty: {{routing_key_file: key, url: {server.url}}}}}\n"
    (tmp_path / "config.yaml").write_text(CONFIG + notify)
    return tmp_path / "config.yaml"


def actions(server: HttpSink) -> list[str]:
    return [body["event_action"] for body in server.bodies]


def test_cron_pages_a_new_fault_once_and_keeps_its_verdict(config: Path, server: HttpSink) -> None:
    """The page names a verdict that `why` and `fix` know; the next sweep adds neither."""
    for _ in range(2):
        call(sweep_module, config, *ASKED, "--cron")
    assert actions(server) == ["trigger"]
    (stored,) = load_all(config.parent / "state")
    payload = server.bodies[0]["payload"]
    assert payload["custom_details"]["why"] == f"brctl why {stored.verdict.id}"
    assert payload["class"] == stored.verdict.fault.value


def test_a_sweep_by_hand_pages_nobody(config: Path, server: HttpSink) -> None:
    call(sweep_module, config, *ASKED)
    assert server.requests == []


def test_a_diagnosis_pages_what_it_is_sure_of(config: Path, server: HttpSink) -> None:
    code, _ = call(diagnose_module, config, "-w", "n1")
    assert code == 2
    assert actions(server) == ["trigger"]


def test_a_dead_pager_is_said_and_counted_and_the_sweep_stays_the_same(
    config: Path, server: HttpSink, capfd: pytest.CaptureFixture[str]
) -> None:
    text = config.read_text()
    config.write_text(text.replace("notify: {", "notify: {deadline: 1s, "))
    server.always = Reply(manner=HANG)
    prom = config.parent / "brctl.prom"
    code, _ = call(sweep_module, config, "--checks", "gpu.xid", "--cron", "--prom", str(prom))
    assert code == 2
    assert "warning: pagerduty was not told" in capfd.readouterr().err
    assert 'brctl_notify_failures_total{sink="pagerduty"} 1\n' in prom.read_text()
    assert "# TYPE brctl_notify_failures_total counter" in prom.read_text()


def test_a_node_that_is_well_again_closes_its_page(config: Path, server: HttpSink) -> None:
    call(sweep_module, config, *ASKED, "--cron")
    (config.parent / "kmsg").write_text("")
    for _ in range(2):
        call(sweep_module, config, *ASKED, "--cron")
    assert actions(server) == ["trigger", "resolve"]


def dismiss_the_one(config: Path) -> str:
    newest = load_all(config.parent / "state")[0].verdict
    return call(verdict_module, config, "dismiss", newest.id, "-m", "a test of ours")[1]


def test_a_dismissed_verdict_closes_its_page_and_stays_silent(
    config: Path, server: HttpSink
) -> None:
    """The same key is resolved, once; sweeps that see the same go on saying nothing."""
    call(sweep_module, config, *ASKED, "--cron")
    dismiss_the_one(config)
    dismiss_the_one(config)
    assert actions(server) == ["trigger", "resolve"]
    assert len({body["dedup_key"] for body in server.bodies}) == 1
    call(sweep_module, config, *ASKED, "--cron")
    assert actions(server) == ["trigger", "resolve"]
    assert len(load_all(config.parent / "state")) == 1


def test_what_was_dismissed_pages_again_when_it_comes_back(config: Path, server: HttpSink) -> None:
    """Well in between, so it is a new fault and not the one the person spoke of."""
    call(sweep_module, config, *ASKED, "--cron")
    dismiss_the_one(config)
    kmsg = (config.parent / "kmsg").read_text()
    for text in ("", "", kmsg, kmsg):
        (config.parent / "kmsg").write_text(text)
        call(sweep_module, config, *ASKED, "--cron")
    assert actions(server) == ["trigger", "resolve", "trigger"]


def test_a_read_only_context_dismisses_nothing(
    config: Path, server: HttpSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    call(sweep_module, config, *ASKED, "--cron")
    monkeypatch.setenv("BRCTL_READONLY", "1")
    with pytest.raises(GuardError, match="read-only"):
        dismiss_the_one(config)
    assert actions(server) == ["trigger"]


def test_a_page_that_another_open_verdict_keeps_stays_open(
    config: Path, server: HttpSink, capfd: pytest.CaptureFixture[str]
) -> None:
    call(sweep_module, config, *ASKED, "--cron")
    first = load_all(config.parent / "state")[0]
    twin = replace(first, verdict=replace(first.verdict, id="V-9"))
    save(config.parent / "state", twin)
    call(verdict_module, config, "dismiss", first.verdict.id, "-m", "a test of ours")
    assert actions(server) == ["trigger"]
    assert "its page stays open: V-9 says the same" in capfd.readouterr().err


def test_render_shows_the_body_and_sends_nothing(config: Path, server: HttpSink) -> None:
    """The secret is named, never shown."""
    save_new(config.parent / "state", example_verdict())
    _, text = call(notify_module, config, "render", "V-1", "--to", "pagerduty")
    body = json.loads(text)
    assert body["dedup_key"] == "brctl/prod/demo/gpu-lost"
    assert body["routing_key"] == "<routing_key_file>"
    assert server.requests == []
    with pytest.raises(UsageError, match="did you mean 'slack'"):
        call(notify_module, config, "render", "V-1", "--to", "slak")


def test_a_trial_is_marked_and_leaves_nothing_open(config: Path, server: HttpSink) -> None:
    code, text = call(notify_module, config, "test")
    assert (code, text.split()[:2]) == (0, ["pagerduty", "sent"])
    assert actions(server) == ["trigger", "resolve"]
    assert "TEST" in server.bodies[0]["payload"]["summary"]
    server.always = Reply(403)
    assert call(notify_module, config, "test")[0] == 69


def test_the_list_says_what_keeps_a_sink_from_working(config: Path) -> None:
    assert call(notify_module, config, "list")[0] == 0
    (config.parent / "key").chmod(0o644)
    code, text = call(notify_module, config, "list")
    assert code == 1
    assert "others may read or write this secret (mode 0644)" in text
    assert "routing-key" not in text


def test_without_notifiers_the_list_says_so(config: Path) -> None:
    config.write_text(CONFIG)
    assert "nobody is told" in call(notify_module, config, "list")[1]
    with pytest.raises(UsageError, match="no notifier configured"):
        call(notify_module, config, "test")
