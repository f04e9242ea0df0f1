"""`brctl play|fix|cordon|job|ckpt|standby` from the command line to the exit code."""

import asyncio
import contextlib
import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from time import monotonic, sleep

import pytest

from brctl.cli.main import run
from brctl.engine.controller.clock import now
from brctl.engine.runs.read_run import read_run
from brctl.engine.runs.remediate import expire_overdue
from brctl.engine.runs.wait import due_at, overdue
from tests.fakes.site_files import local_config, write_site
from tests.timeouts import TIMEOUT_S

CONFIG = local_config("job")
INVENTORY = """\
apiVersion: brctl.dev/v1
kind: Inventory
defaults: {gpus: 8, python: PYTHON}
nodes:
  n1: {address: 127.0.0.1}
  n2: {address: 127.0.0.1}
  n3: {address: 127.0.0.1}
  s1: {address: 127.0.0.1, role: standby}
"""
JOB = """\
apiVersion: brctl.dev/v1
kind: Job
name: demo
nodes: n[1-2]
launch: [/bin/sh, -c, "while :; do sleep 0.05; done"]
checkpoint: {directory: FOLDER/ckpt}
logs: FOLDER/logs
progress: FOLDER/progress
"""

Brctl = Callable[..., int]


@pytest.fixture
def brctl(tmp_path: Path) -> Iterator[Brctl]:
    """The command line on a context whose nodes are all this machine.

    Without their folders, processes that wait for an answer leave.
    """
    config = str(write_site(tmp_path, CONFIG, INVENTORY, job=JOB))
    yield lambda *arguments: run([*arguments, "--config", config, "--no-input"])
    shutil.rmtree(tmp_path / "state", ignore_errors=True)


def document(capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    found: dict[str, object] = json.loads(capsys.readouterr().out)
    assert found["apiVersion"] == "brctl.dev/v1"
    return found


def test_playbooks_can_be_looked_at_before_anything_is_configured(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Reading what ships needs no inventory."""
    assert run(["play", "list", "-o", "name"]) == 0
    assert "swap-and-resume" in capsys.readouterr().out.splitlines()
    assert run(["play", "show", "swap-and-resume"]) == 0
    assert run(["play", "validate"]) == 0
    assert run(["play", "show", "swap-and-resum"]) == 64
    assert "did you mean 'swap-and-resume'" in capsys.readouterr().err


def test_validate_lists_every_mistake_and_ends_with_78(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each mistake with file and line, as text and as a document."""
    path = tmp_path / "my.yaml"
    path.write_text(
        "apiVersion: brctl.dev/v1\nkind: Playbook\nmetadata: {name: x, title: X}\n"
        "steps:\n  - {id: a, uses: node.cordn, safety: reversible, undo: auto}\n"
    )
    assert run(["play", "validate", str(path), "--json"]) == 78
    mistakes = document(capsys)["mistakes"]
    assert isinstance(mistakes, list)
    assert mistakes[0] == f"{path}:5: unknown verb 'node.cordn'; did you mean 'node.cordon'?"


def test_a_node_is_cordoned_and_given_back_and_the_runs_are_on_record(
    brctl: Brctl, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both are runs with a journal; history shows them, newest first."""
    assert brctl("cordon", "n1", "-m", "fan", "--json") == 0
    found = document(capsys)
    assert found["kind"] == "Run"
    assert brctl("cordon", "n2", "-m", "fan") == 5
    assert "blast_radius: 1 nodes taken" in capsys.readouterr().err
    assert brctl("uncordon", "n1") == 0
    capsys.readouterr()
    assert brctl("play", "history", "--json") == 0
    runs = document(capsys)["runs"]
    assert isinstance(runs, list)
    assert [(r["playbook"], r["state"]) for r in runs] == [("uncordon", "ok"), ("cordon", "ok")]
    assert brctl("play", "history", "--node", "n2", "-o", "name") == 0
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("name", ["inputs.json", "request.json", "playbook.yaml"])
def test_a_torn_run_is_listed_as_unreadable_and_hides_no_other(
    name: str, brctl: Brctl, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With its reason, in text and in the document; of any filter, for it may be about that."""
    assert brctl("cordon", "n1", "-m", "fan") == 0
    assert brctl("uncordon", "n1") == 0
    (tmp_path / "state" / "runs" / "R-0001" / name).write_text('{"by": "a')
    capsys.readouterr()
    assert brctl("play", "history", "--json") == 3
    runs = document(capsys)["runs"]
    assert isinstance(runs, list)
    assert [(r["run"], r["state"]) for r in runs] == [("R-0002", "ok"), ("R-0001", "unreadable")]
    assert runs[0]["problem"] is None
    assert name in runs[1]["problem"]
    assert brctl("play", "history", "--node", "n3") == 3
    text = capsys.readouterr().out
    assert "R-0002" not in text
    assert "run R-0001 cannot be read: " in text


def test_a_runs_journal_is_replayed_line_by_line(
    brctl: Brctl, capsys: pytest.CaptureFixture[str]
) -> None:
    """`-o ndjson` gives the very events: `version` first, `end` last, no gap between."""
    assert brctl("cordon", "n1", "-m", "fan") == 0
    capsys.readouterr()
    assert brctl("play", "show", "latest", "-o", "ndjson") == 0
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert (events[0]["type"], events[-1]["type"]) == ("version", "end")
    assert [event["seq"] for event in events] == list(range(len(events)))


def test_rolling_back_gives_back_what_the_run_took(
    brctl: Brctl, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit 7 says that all is as before."""
    assert brctl("cordon", "n1", "-m", "fan") == 0
    assert brctl("play", "rollback", "latest") == 7
    capsys.readouterr()
    assert brctl("uncordon", "n1", "--json") == 0
    steps = document(capsys)["run"]["steps"]  # type: ignore[index]  # a mapping
    assert [step["changed"] for step in steps] == [False]


def test_a_plan_changes_nothing_and_a_saved_one_is_kept_to(
    brctl: Brctl, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The saved plan runs while the world stands still, and is refused when it moved."""
    saved = str(tmp_path / "plan.json")
    arguments = ("play", "plan", "cordon", "--set", "nodes=n1", "-o", "json", "--out", saved)
    assert brctl(*arguments) == 0
    assert brctl("play", "history", "-o", "name") == 0
    assert capsys.readouterr().out == ""
    assert brctl("play", "run", "--plan", saved) == 0
    assert brctl("play", "run", "--plan", saved) == 5
    assert "the world moved" in capsys.readouterr().err


def test_a_job_is_started_and_stopped_only_when_its_words_are_typed(
    brctl: Brctl, capsys: pytest.CaptureFixture[str]
) -> None:
    """Starting needs no confirmation; stopping waits (exit 6) until `stop` is typed."""
    assert brctl("job", "start") == 0
    try:
        assert brctl("job", "stop", "--yes") == 6
        assert brctl("play", "approve", "latest", "--confirm", "start") == 64
        assert brctl("play", "deny", "latest") == 6
    finally:
        assert brctl("job", "stop", "--confirm", "stop") == 0
    capsys.readouterr()
    assert brctl("job", "show", "--json") in (2, 3)
    ranks = document(capsys)["ranks"]
    assert isinstance(ranks, list)
    assert [rank["alive"] for rank in ranks] == [False, False]


def test_a_read_only_context_refuses_every_change(
    brctl: Brctl, capsys: pytest.CaptureFixture[str]
) -> None:
    """--readonly lets one plan, and nothing else."""
    assert brctl("cordon", "n1", "-m", "x", "--readonly") == 5
    assert brctl("standby", "add", "n3", "--readonly") == 5
    assert "read-only" in capsys.readouterr().err
    assert brctl("cordon", "n1", "-m", "x", "--readonly", "--dry-run") == 0


def test_the_pool_takes_free_nodes_and_says_how_many_are_needed(
    brctl: Brctl, capsys: pytest.CaptureFixture[str]
) -> None:
    """A node that carries a job cannot wait for another; too few is a warning."""
    assert brctl("standby", "add", "n3") == 0
    assert brctl("standby", "add", "n1") == 64
    assert brctl("standby", "remove", "s1") == 0
    capsys.readouterr()
    assert brctl("standby", "list", "-o", "name") == 0
    assert capsys.readouterr().out == "n3\n"
    assert brctl("standby", "size", "--rate", "0.6", "--json") == 1
    assert document(capsys)["needed"] == 2


def test_checkpoints_that_are_not_there_are_no_restart(
    brctl: Brctl, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An empty folder is critical, a folder nobody can read is unavailable."""
    assert brctl("ckpt", "latest") == 69
    (tmp_path / "ckpt").mkdir()
    assert brctl("ckpt", "latest", "--json") == 2
    assert document(capsys)["latest"] is None


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("fix",), 64),
        (("play", "show", "R-0404"), 64),
        (("play", "run", "no-such"), 64),
        (("play", "run"), 64),
        (("play", "run", "cordon", "--set", "nodes"), 64),
        (("cordon", "n9", "-m", "x"), 64),
        (("uncordon", "n1", "--take-over"), 64),
        (("play", "abort", "latest"), 64),
        (("job", "show", "other"), 64),
    ],
)
def test_what_makes_no_sense_is_a_usage_error(
    arguments: tuple[str, ...], code: int, brctl: Brctl, tmp_path: Path
) -> None:
    """One error, exit 64, and no run is made."""
    assert brctl(*arguments) == code
    assert not (tmp_path / "state" / "runs").exists()


ASKS = """\
apiVersion: brctl.dev/v1
kind: Playbook
metadata: {name: asks, title: Cordon and ask, risk: medium}
inputs: {nodes: {type: nodeset, required: true}}
approval: {gate_before: look, policy: [{need: one}], expires: EXPIRES, on_expire: abort}
steps:
  - id: cordon
    uses: node.cordon
    with: {nodes: $(inputs.nodes), reason: test}
    safety: reversible
    undo: auto
  - {id: look, uses: check.run, with: {nodes: $(inputs.nodes)}, safety: read}
"""


def _state_of(folder: Path, run: str) -> str:
    return str(read_run(folder / "state" / "runs" / run).record.result or "")


def _until(state: str, folder: Path, run: str) -> None:
    deadline = monotonic() + TIMEOUT_S
    while _state_of(folder, run) != state:
        assert monotonic() < deadline, _state_of(folder, run)
        sleep(0.05)


def test_silence_is_noticed_without_a_person(brctl: Brctl, tmp_path: Path) -> None:
    """Nobody answers and nobody types a command: the cordon is taken back when the time is up."""
    playbook = tmp_path / "asks.yaml"
    playbook.write_text(ASKS.replace("EXPIRES", "5s"))
    assert brctl("play", "run", str(playbook), "--set", "nodes=n3") == 6
    _until("expired", tmp_path, "R-0001")
    assert "n3" not in (tmp_path / "state" / "static" / "here.json").read_text()


def test_an_answer_ends_the_vigil(brctl: Brctl, tmp_path: Path) -> None:
    """Once denied there is nothing left to wait for, and the waiting process leaves."""
    playbook = tmp_path / "asks.yaml"
    playbook.write_text(ASKS.replace("EXPIRES", "1h"))
    assert brctl("play", "run", str(playbook), "--set", "nodes=n3") == 6
    run_dir = tmp_path / "state" / "runs" / "R-0001"
    waiting = [p for p in Path("/proc").glob("[0-9]*") if _waits_for(p, run_dir)]
    assert len(waiting) <= 1
    assert brctl("play", "deny", "R-0001") == 6
    deadline = monotonic() + TIMEOUT_S
    while any(_waits_for(p, run_dir) for p in Path("/proc").glob("[0-9]*")):
        assert monotonic() < deadline
        sleep(0.1)


def _waits_for(process: Path, run_dir: Path) -> bool:
    try:
        arguments = (process / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return str(run_dir).encode() in arguments


def test_a_run_whose_waiting_process_died_is_found_by_the_next_sweep(
    brctl: Brctl, tmp_path: Path
) -> None:
    """After a reboot nobody waits any more; cron's sweep carries out what silence means."""
    run_dir = tmp_path / "state" / "runs" / "R-0001"
    due = _left_alone(brctl, run_dir, "n3", expires_s=3)
    if now() > due:  # its time was up before its process was killed: a busy machine
        run_dir = run_dir.with_name("R-0002")
        due = _left_alone(brctl, run_dir, "n2", expires_s=60)
    assert overdue(tmp_path / "state", due) == ()
    sleep(max(0.0, (due - now()).total_seconds()) + 0.1)
    assert asyncio.run(expire_overdue(tmp_path / "state", now())) == (run_dir.name,)
    _until("expired", tmp_path, run_dir.name)
    assert asyncio.run(expire_overdue(tmp_path / "state", now())) == ()


def _left_alone(brctl: Brctl, run_dir: Path, node: str, expires_s: int) -> datetime:
    """When the time is up of a new run that waits for an answer and whose process was killed."""
    playbook = run_dir.parents[2] / "asks.yaml"
    playbook.write_text(ASKS.replace("EXPIRES", f"{expires_s}s"))
    assert brctl("play", "run", str(playbook), "--set", f"nodes={node}") == 6
    due, deadline = due_at(run_dir), monotonic() + TIMEOUT_S
    assert due is not None
    while not (found := [p for p in Path("/proc").glob("[0-9]*") if _waits_for(p, run_dir)]):
        assert monotonic() < deadline
        if now() > due:
            break
        sleep(0.05)
    for process in found:
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(process.name), signal.SIGKILL)
    return due


def test_people_label_nodes_and_take_their_labels_back(
    brctl: Brctl, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Set, changed, taken back as runs; labels of others and of brctl itself are refused."""
    table = tmp_path / "state" / "static" / "here.json"

    def labels() -> dict[str, dict[str, str]]:
        found = json.loads(table.read_text())["labels"]
        return {node: {k: v["value"] for k, v in of.items()} for node, of in found.items() if of}

    assert brctl("nodes", "label", "n[1-2]", "ticket=RMA-1", "brctl.dev/watch=yes") == 0
    assert brctl("nodes", "label", "n1", "ticket=RMA-2") == 0
    assert labels()["n1"] == {"ticket": "RMA-2", "watch": "yes"}
    capsys.readouterr()
    assert brctl("nodes", "label", "n[1-2]", "ticket-", "--dry-run") == 0
    assert "label ticket: RMA-2 -> none" in capsys.readouterr().out
    assert brctl("nodes", "label", "n[1-2]", "ticket-") == 0
    assert brctl("nodes", "label", "n[1-2]", "ticket-") == 0  # nothing is left to do
    assert labels() == {"n1": {"watch": "yes"}, "n2": {"watch": "yes"}}
    state = json.loads(table.read_text())
    state["labels"]["n1"]["burnin"] = {"value": "R-0007", "owner": "brctl:R-0007", "former": None}
    state["labels"]["n2"]["rack"] = {"value": "r1", "owner": "", "former": None}
    table.write_text(json.dumps(state))
    for arguments, output in (
        (("n[1-2]", "burnin-"), "n1: label burnin was set by run R-0007"),
        (("n[1-2]", "rack=r2"), "n2: label rack was set by somebody else"),
    ):
        assert brctl("nodes", "label", *arguments) == 5
        assert output in capsys.readouterr().err
    for wrong in (["n1", "role=x"], ["n1", "a b=c"], ["n1", "ticket"], ["n1", "a=1", "a-"], ["n1"]):
        assert brctl("nodes", "label", *wrong) == 64
    assert state == json.loads(table.read_text())


HALF_WAY = """\
apiVersion: brctl.dev/v1
kind: Playbook
metadata: {name: half, title: Fails behind a step nobody can undo, risk: low}
inputs: {node: {type: nodeset, default: n3}}
approval: {gate_before: burn, policy: [{need: none}]}
steps:
  - {id: burn, run: "echo burnt >> FOLDER/burnt", safety: destructive}
  - id: mark
    uses: node.label
    with: {nodes: $(inputs.node), set: {half: way}}
    safety: reversible
    undo: auto
  - {id: look, run: "test -e FOLDER/flag", safety: read}
"""


def test_a_stopped_rollback_is_resumed_forward_and_that_is_said_first(
    brctl: Brctl, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit 8, then 0: what was burnt is not burnt again, what was taken back is done again."""
    path = tmp_path / "half.yaml"
    path.write_text(HALF_WAY.replace("FOLDER", str(tmp_path)))
    assert brctl("play", "run", str(path)) == 8
    (tmp_path / "flag").touch()
    capsys.readouterr()
    assert brctl("play", "resume", "latest", "--json") == 0
    output = capsys.readouterr()
    assert "goes forward again: burn cannot be undone, so the rollback ends there" in output.err
    assert "to do     mark look" in output.err
    states = {s["id"]: s["state"] for s in json.loads(output.out)["run"]["steps"]}
    assert states == {"burn": "done", "mark": "done", "look": "done"}
    assert (tmp_path / "burnt").read_text() == "burnt\n"
    assert brctl("play", "resume", "latest", "--forward") == 64
    assert "--forward is for a run whose rollback ended" in capsys.readouterr().err
