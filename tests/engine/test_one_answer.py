"""One next move for every fault class, whoever is asked: logs, dx, why, fix and the terminal."""

import asyncio
import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from brctl.cli.main import run
from brctl.engine.controller.clock import now
from brctl.engine.controller.wiring import open_controller
from brctl.engine.incidents import verdict_store
from brctl.engine.job.conclude import assess_ranks
from brctl.engine.job.diagnose import log_signatures
from brctl.engine.logs.classify import Blocks, Classifier
from brctl.engine.runs.propose import with_next_move
from brctl.evidence.logs.rank_logs import RankLog, assess_log_lines
from brctl.library.config import load_settings
from brctl.library.log_rules import load_log_rules, signatures_with
from brctl.model.evidence import Evidence, Gap, Role, Subject, Weight
from brctl.model.fault import FaultClass, Origin
from brctl.model.fault_catalogue import CATALOGUE
from brctl.model.jobs.job_status import JobStatus, RankView
from brctl.model.log_verdict import LogClassification, LogVerdict
from brctl.model.verdict import Verdict
from brctl.playbook.recommend import recommend_for_logs
from brctl.tui.rows.times import Times
from brctl.tui.rows.verdict_rows import verdict_rows
from brctl.tui.session.state_reader import DiskStateReader
from brctl.verdict.decide import DecisionContext, decide
from brctl.view.logs.classification import classification_page
from brctl.view.next_move import move_line
from brctl.view.verdict import diagnosis_page
from tests.cli.test_play import CONFIG, INVENTORY, JOB
from tests.fakes.nodes import sweep_of
from tests.fakes.site_files import write_site

XID_119 = "NVRM: Xid (PCI:0000:5d:00): 119, pid=1, Timeout after 45s of waiting for RPC response!"


def site(folder: Path) -> str:
    """A context of this machine alone, with a job of two nodes and a standby; its configuration."""
    return str(write_site(folder, CONFIG, INVENTORY, job=JOB))


def observed(fault: FaultClass, at: datetime) -> Evidence:
    clears = fault is FaultClass.NO_FAULT
    node = "n1" if CATALOGUE[fault].per_node or clears else ""
    weight = Weight.CLEARS if clears else Weight.CONVICTS
    # No log measures a product: stated with a strength, as lines are, wrong results are not proved.
    strength = 0.7 if fault is FaultClass.SILENT_CORRUPTION else None
    return Evidence("test", Subject(node), weight, fault, Role.ROOT, "test", f"{fault}", at=at,
                    strength=strength)  # fmt: skip


def found(state: Path, fault: FaultClass, at: datetime) -> Verdict:
    """What a diagnosis of the job concludes and keeps, from one observation of the class."""
    seen = [] if fault is FaultClass.UNKNOWN else [observed(fault, at)]
    context = DecisionContext(at, "demo", 7, stalled=fault is not FaultClass.NO_FAULT)
    (verdict,) = decide(seen, (), context)
    verdict = with_next_move(state, "here", verdict, at)
    verdict_store.save_new(state, verdict)
    return verdict


def in_logs(verdict: Verdict) -> dict[str, object]:
    """The same class from logs that are as sure and name as much."""
    named = bool(verdict.nodes)
    actual = LogVerdict("", verdict.fault, Origin.UNKNOWN, "n1" if named else None,
                      verdict.probability, names_machine=named)  # fmt: skip
    page = classification_page(LogClassification((), recommend_for_logs(actual)))
    overall = page.body["overall"]
    assert isinstance(overall, dict)
    return overall


def asked(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, object]]:
    code = run([*words, "-o", "json", "--no-input"])
    document: dict[str, object] = json.loads(capsys.readouterr().out)
    return code, document


@pytest.mark.parametrize("fault", FaultClass)
def test_every_surface_gives_one_answer(
    fault: FaultClass, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The tree's move, its playbook and its reason are the same in every document and line."""
    config = site(tmp_path)
    settings = load_settings({"HOME": str(tmp_path)}, config=Path(config))
    verdict = found(settings.state_dir, fault, now())
    assert verdict.fault is fault
    move = (verdict.action.value, verdict.playbook or None, verdict.say)

    page = diagnosis_page([verdict], None, ["n1"], 1.0)
    action = page.rows[0]["action"]
    assert isinstance(action, dict)
    assert (action["do"], action["playbook"], action["say"]) == move
    assert f"do:     {move_line(verdict)}" in page.text

    logs = in_logs(verdict)
    assert (logs["action"], logs["playbook"], logs["say"]) == move

    _, why = asked(capsys, "why", verdict.id, "--config", config)
    assert why["verdict"]["action"] == action  # type: ignore[index]  # a document

    stored = DiskStateReader(settings).read().verdict(verdict.id)
    assert stored is not None
    rows = verdict_rows(stored, 500, Times())
    shown = "\n".join(row.text for row in rows)
    assert move_line(verdict) in shown

    code, fix = asked(capsys, "fix", verdict.id, "-n", "--config", config)
    if verdict.playbook:
        assert fix["plan"]["playbook"] == verdict.playbook  # type: ignore[index]  # a document
    else:
        assert code == 64
        assert verdict.say in fix["error"]["message"]  # type: ignore[index]  # a document


def test_a_second_network_alert_is_a_swap_for_all_who_ask(tmp_path: Path) -> None:
    """The first is watched; what `why` and the terminal print changes with what was seen since."""
    at = now()
    first = found(tmp_path, FaultClass.NETWORK_IB, at)
    second = found(tmp_path, FaultClass.NETWORK_IB, at + timedelta(seconds=60))
    assert (first.action.value, second.action.value) == ("watch", "swap")
    assert with_next_move(tmp_path, "here", second, now()) == second


def said_by(lines: Sequence[str], rules: Path | None = None) -> tuple[LogVerdict, Verdict]:
    """What `logs classify` and `dx` make of the same last words of one rank."""
    signatures = signatures_with(load_log_rules([rules] if rules else []))
    text = "\n".join(lines)
    inputs = [("rank-00000.log", Blocks([text.encode()]))]
    evidence = assess_log_lines([RankLog(0, "n1", text)], signatures)
    context = DecisionContext(now(), "demo", 7, stalled=True)
    return Classifier(signatures).classify_inputs(inputs).overall, decide(evidence, (), context)[0]


def test_an_xid_119_is_one_fault_with_one_move_and_one_probability() -> None:
    logs, dx = said_by([XID_119])
    assert (logs.fault, logs.action.value) == (FaultClass.DRIVER_FIRMWARE, "swap")
    assert (dx.fault, dx.nodes) == (logs.fault, ("n1",))
    assert dx.probability == pytest.approx(logs.probability, abs=0.001)


RULES = """\
apiVersion: brctl.dev/v1
kind: LogRules
rules:
  - name: site.lustre-evicted
    contains: ["pfs-client: evicted"]
    class: storage-checkpoint
    probability: 0.9
    why: our file system says so
"""


def test_a_rule_of_the_site_is_believed_as_surely_by_dx_as_by_logs(tmp_path: Path) -> None:
    """Without the rule both know nothing of the line."""
    line = "pfs-client: evicted by oss-7"
    assert {actual.fault for actual in said_by([line])} <= {FaultClass.NO_FAULT, FaultClass.UNKNOWN}
    (tmp_path / "rules.d").mkdir()
    (tmp_path / "rules.d" / "site.yaml").write_text(RULES)
    logs, dx = said_by([line], tmp_path)
    assert logs.fault is dx.fault is FaultClass.STORAGE_CHECKPOINT
    assert dx.probability == pytest.approx(logs.probability, abs=0.001)


def last_words(folder: Path, line: str) -> tuple[tuple[Evidence, ...], tuple[Gap, ...]]:
    """What `dx` makes of a job whose first rank said this last, in the context of this folder."""
    settings = load_settings({"HOME": str(folder)}, config=Path(site(folder)))

    async def ask() -> tuple[tuple[Evidence, ...], tuple[Gap, ...]]:
        async with open_controller(settings) as controller:
            job = controller.job(None)
            views = tuple(
                RankView(rank, node, alive=False, last_words=line if rank == 0 else "")
                for node in job.nodes
                for rank in job.ranks_on(node)
            )
            status = JobStatus(job, views, 7, 99.0, stalled=True, silent=())
            signatures, unread = log_signatures(controller)
            evidence, gaps = assess_ranks(status, sweep_of(), signatures)
            return evidence, (*gaps, *unread)

    return asyncio.run(ask())


def test_dx_reads_the_rules_of_its_site(tmp_path: Path) -> None:
    """The rules.d folder beside the configuration decides a diagnosis as it decides a log."""
    line = "pfs-client: evicted by oss-7"
    assert not any(item.fault for item in last_words(tmp_path, line)[0] if item.raw == line)
    (tmp_path / "rules.d").mkdir()
    (tmp_path / "rules.d" / "site.yaml").write_text(RULES)
    (item,) = [item for item in last_words(tmp_path, line)[0] if item.raw == line]
    assert (item.kind, item.fault) == ("log.site.lustre-evicted", FaultClass.STORAGE_CHECKPOINT)


def test_a_rule_file_with_a_mistake_is_a_gap_and_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / "rules.d").mkdir()
    (tmp_path / "rules.d" / "site.yaml").write_text(RULES.replace("class:", "klass:"))
    evidence, gaps = last_words(tmp_path, XID_119)
    assert FaultClass.DRIVER_FIRMWARE in {item.fault for item in evidence}
    (gap,) = [gap for gap in gaps if gap.what == "log rules of the site"]
    assert "site.yaml:6" in gap.why
