"""`brctl fix` from the command line: decision tree, plan, guards, run."""

import asyncio
import json
import shutil
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from brctl.cli.main import run
from brctl.engine.application.fix import (
    choose_fix,
    in_the_words_of,
    join_fixes,
    plan_fix,
    start_planned,
)
from brctl.engine.application.runs import all_playbooks, request_for
from brctl.engine.controller.clock import now
from brctl.engine.incidents import verdict_store
from brctl.engine.incidents.verdict_store import StoredVerdict, VerdictState
from brctl.engine.runs.plan import prepare
from brctl.engine.runs.read_run import read_run
from brctl.engine.runs.remediate import create_run
from brctl.engine.runs.run_files import (
    INPUTS,
    PLAYBOOK,
    REQUEST,
    RunInputs,
    RunRequest,
    save_inputs,
    save_request,
)
from brctl.journal.store import Journal, new_run
from brctl.library.config import Settings, load_settings
from brctl.library.shipped import shipped_dir
from brctl.model.errors import GuardError
from brctl.model.exit_codes import ExitCode
from brctl.model.fault import FaultClass
from brctl.model.runs.event import EventType
from brctl.model.runs.playbook import Json
from brctl.model.runs.result import RunState
from brctl.model.verdict import Suspect
from brctl.playbook.proposals import why_not
from tests.fakes.fix_site import keep, write_fix_site
from tests.fakes.run_context import example_verdict, fake_context
from tests.fakes.run_here import carry


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Three nodes with a job on them, and a standby."""
    config = write_fix_site(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("BRCTL_CONFIG", str(config))
    return load_settings({"HOME": str(tmp_path)}, config=config)


def test_a_dry_run_plans_what_the_tree_says_and_changes_nothing(
    site: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    """The only open verdict needs no name; its plan is a swap of its node."""
    keep(site)
    assert run(["fix", "-n", "-o", "json"]) == 0
    plan = json.loads(capsys.readouterr().out)["plan"]
    assert (plan["playbook"], plan["verdict"], plan["nodes"]) == ("swap-and-resume", "V-1", ["n3"])
    assert not (site.state_dir / "runs").exists()
    assert verdict_store.load(site.state_dir, "V-1").state is VerdictState.OPEN


@pytest.mark.parametrize("state", [VerdictState.DISMISSED, VerdictState.SUPERSEDED])
def test_a_closed_verdict_is_not_acted_on(
    site: Settings, capsys: pytest.CaptureFixture[str], state: VerdictState
) -> None:
    """Somebody said it is wrong, or a newer one took its place: exit 5, no run."""
    keep(site, state)
    assert run(["fix", "V-1"]) == 5
    assert f"V-1 was {state}" in capsys.readouterr().err
    assert not (site.state_dir / "runs").exists()


def test_a_read_only_context_plans_and_does_not_start(
    site: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    """The plan may be looked at; a run is refused."""
    keep(site)
    assert run(["fix", "--readonly", "-n"]) == 0
    assert run(["fix", "--readonly", "--confirm", "swap 1"]) == 5
    assert not (site.state_dir / "runs").exists()


def test_an_unsure_verdict_gets_what_the_tree_says_and_not_its_class_s_playbook(
    site: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    """No culprit is sure, so no node is swapped: every node of the stopped job is checked."""
    verdict = replace(example_verdict(now()), probability=0.3)
    verdict_store.save(site.state_dir, StoredVerdict(verdict, VerdictState.OPEN))
    assert run(["fix", "-n", "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["plan"]["playbook"] == "stop-time-checks"


@pytest.mark.parametrize(("stalled", "code"), [(False, 64), (True, 0), (None, 0)])
def test_a_job_that_advances_is_not_stopped_to_be_looked_at(
    stalled: bool | None, code: int, site: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    """An exception that the script caught is no reason to start it again."""
    verdict = replace(example_verdict(now()), fault=FaultClass.USER_CODE, stalled=stalled)
    verdict_store.save(site.state_dir, StoredVerdict(verdict, VerdictState.OPEN))
    assert run(["fix", "-n"]) == code
    output = capsys.readouterr()
    assert ("training advances and is not stopped for this" in output.err) is (code == 64)
    assert ("restart-in-place" in output.out) is (code == 0)


def test_a_playbook_that_only_stops_a_job_does_not_fit_one_that_takes_steps() -> None:
    """Whatever the tree proposes; one that takes the suspects out does."""
    verdict = replace(example_verdict(), fault=FaultClass.USER_CODE, stalled=False)
    playbooks = all_playbooks(())
    refused = why_not(playbooks["restart-in-place"], verdict)
    assert refused == "job demo took steps when V-1 was decided, restart-in-place stops it"
    assert why_not(playbooks["restart-in-place"], replace(verdict, stalled=True)) is None
    lost = replace(verdict, fault=FaultClass.GPU_LOST)
    assert why_not(playbooks["swap-and-resume"], lost) is None


def test_what_no_playbook_mends_is_left_to_a_person(
    site: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing runs, and the error names the verdict and the command that explains it."""
    verdict = replace(example_verdict(now()), fault=FaultClass.NO_FAULT)
    verdict_store.save(site.state_dir, StoredVerdict(verdict, VerdictState.OPEN))
    assert run(["fix", "V-1"]) == 64
    output = capsys.readouterr().err
    assert "a person must act" in output
    assert "brctl why V-1" in output
    assert not (site.state_dir / "runs").exists()


async def test_a_fix_is_chosen_planned_and_started_by_the_functions_every_front_end_calls(
    site: Settings, tmp_path: Path
) -> None:
    """The run has the playbook of the tree and the words that a person types."""
    verdict = keep(site)
    context = fake_context(tmp_path)
    context.verdicts.known = verdict
    fix = choose_fix(site, verdict_store.load(site.state_dir, "V-1"), now())
    planned = await plan_fix(context, fix)
    assert planned.words == "y"
    assert planned.command == "brctl fix V-1 --yes"
    request = request_for(site, typed=planned.words)
    run_dir = await start_planned(context, site, planned.prepared, request, ("true",))
    assert read_run(run_dir).playbook.name == "swap-and-resume"
    assert (run_dir / "request.json").is_file()


def an_open_run(site: Settings, verdict_id: str, end: RunState | None) -> Path:
    """A run for a verdict that asked people, or whose process still has to write its first line."""
    run_dir = new_run(site.state_dir)
    shutil.copyfile(shipped_dir("playbooks") / "swap-and-resume.yaml", run_dir / PLAYBOOK)
    save_inputs(run_dir, RunInputs({}, {}, verdict_id, {"name": "demo"}))
    save_request(run_dir, RunRequest(by="ann"))
    if end is not None:
        journal = Journal(run_dir)
        journal.append(EventType.RUN_STARTED, now(), {"by": "ann"})
        asked: dict[str, Json] = {
            "step": "stop",
            "need": 1,
            "who": "one person",
            "answer": "swap 1",
            "plan": "x",
        }
        journal.append(EventType.APPROVAL_ASKED, now(), asked)
        journal.append(EventType.END, now(), {"result": end.value, "why": "one must approve"})
        journal.close()
    return run_dir


@pytest.mark.parametrize("other", ["V-1", "V-9"])
@pytest.mark.parametrize("end", [RunState.WAITING, None])
async def test_a_second_run_for_the_same_verdict_or_job_is_not_started(
    other: str, end: RunState | None, site: Settings, tmp_path: Path
) -> None:
    """Approved later, the older one would stop a job that is well again."""
    verdict = keep(site)
    run_dir = an_open_run(site, other, end)
    context = replace(fake_context(tmp_path), state_dir=site.state_dir)
    context.verdicts.known = verdict
    fix = choose_fix(site, verdict_store.load(site.state_dir, "V-1"), now())
    planned = await plan_fix(context, fix)
    with pytest.raises(GuardError, match=f"{run_dir.name} .*for {other}") as caught:
        await start_planned(context, site, planned.prepared, request_for(site), ("true",))
    assert run_dir.name in str(caught.value.hint)
    assert [path.name for path in (site.state_dir / "runs").iterdir()] == [run_dir.name]


@pytest.mark.parametrize("end", [RunState.DENIED, RunState.EXPIRED, RunState.OK])
async def test_a_run_that_is_over_holds_up_no_other(
    end: RunState, site: Settings, tmp_path: Path
) -> None:
    """Whatever its end was."""
    verdict = keep(site)
    an_open_run(site, "V-1", end)
    context = replace(fake_context(tmp_path), state_dir=site.state_dir)
    context.verdicts.known = verdict
    fix = choose_fix(site, verdict_store.load(site.state_dir, "V-1"), now())
    planned = await plan_fix(context, fix)
    run_dir = await start_planned(context, site, planned.prepared, request_for(site), ("true",))
    assert run_dir.name == "R-0002"


def test_bare_brctl_shows_runs_that_wait_and_how_to_answer(
    site: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever comes to the terminal first sees that somebody has to say yes or no."""
    keep(site)
    an_open_run(site, "V-1", RunState.WAITING)
    assert run([]) == 0
    shown = capsys.readouterr()
    assert "run     R-0001  WAITING  swap-and-resume for V-1  one must approve" in shown.out
    assert "next: brctl play approve R-0001   or: brctl play deny R-0001" in shown.err
    run(["-o", "json"])
    document = json.loads(capsys.readouterr().out)
    assert document["open_runs"] == [
        {
            "run": "R-0001",
            "state": "waiting",
            "playbook": "swap-and-resume",
            "verdict": "V-1",
            "job": "demo",
        }
    ]


async def test_nothing_is_started_where_nothing_may_change(site: Settings, tmp_path: Path) -> None:
    """The refusal is the function's own, so that no front end can forget it."""
    verdict = keep(site)
    context = fake_context(tmp_path)
    context.verdicts.known = verdict
    fix = choose_fix(site, verdict_store.load(site.state_dir, "V-1"), now())
    planned = await plan_fix(context, fix)
    closed = replace(site, readonly=True)
    with pytest.raises(GuardError, match="read-only"):
        await start_planned(context, closed, planned.prepared, request_for(closed), ("true",))
    assert not (context.state_dir / "runs").exists()


def torn_run(site: Settings, name: str, text: str) -> None:
    """A run that ended a moment ago and of which one file is torn."""
    run_dir = new_run(site.state_dir)
    shutil.copyfile(shipped_dir("playbooks") / "swap-and-resume.yaml", run_dir / PLAYBOOK)
    save_inputs(run_dir, RunInputs({}, {}, "V-1", {"name": "demo"}))
    save_request(run_dir, RunRequest(by="ann"))
    journal = Journal(run_dir)
    journal.append(EventType.RUN_STARTED, now(), {"by": "ann"})
    journal.append(EventType.END, now(), {"result": "ok"})
    journal.close()
    (run_dir / name).write_text(text)


@pytest.mark.parametrize("torn", [INPUTS, PLAYBOOK, REQUEST])
@pytest.mark.parametrize("arguments", ["fix -n", "incident show V-1", "incident list"])
def test_a_torn_run_stops_no_command_and_is_named(
    torn: str, arguments: str, site: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    """What it did is not known; what everybody else asks does not depend on it."""
    keep(site)
    torn_run(site, torn, '{"inputs')
    assert run(arguments.split()) == 0
    assert "run R-0001 cannot be read" in caplog.text
    assert torn in caplog.text


def test_several_verdicts_are_fixed_by_one_restart(
    site: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two broken nodes of a job are swapped while it is stopped once."""
    first = keep(site)
    second = replace(first, id="V-2", suspects=(Suspect("n2"),), decided_at=now())
    verdict_store.save(site.state_dir, StoredVerdict(second, VerdictState.OPEN))
    assert run(["fix", "V-1", "V-2", "-n", "-o", "json"]) == 5
    plan = json.loads(capsys.readouterr().out)["plan"]
    refused = [guard["guard"] for guard in plan["guards"] if not guard["ok"]]
    # One standby is no two, and two of three nodes are too many: guards see the whole of it.
    assert (plan["nodes"], set(refused)) == (["n3", "n2"], {"standby", "blast_radius"})
    fixes = [choose_fix(site, verdict_store.load(site.state_dir, v), now()) for v in ("V-1", "V-2")]
    joint = join_fixes(fixes)
    assert joint.values["suspects"] == ["n3", "n2"]
    assert "also V-2" in str(joint.values["reason"])
    assert joint.also == ("V-2",)


@pytest.mark.parametrize(
    ("change", "nodes"),
    [
        ({}, ["n2", "n3"]),
        ({"probability": 0.4}, []),
        ({"playbook": ""}, []),
        ({"decided_at": datetime(2026, 1, 1, tzinfo=UTC)}, []),
    ],
)
def test_without_a_name_all_that_one_look_found_for_one_playbook_is_fixed(
    site: Settings, capsys: pytest.CaptureFixture[str], change: dict[str, object], nodes: list[str]
) -> None:
    """What else is open makes the question which one is meant, as before."""
    first = keep(site)
    second = replace(first, id="V-2", suspects=(Suspect("n2"),), probability=0.96)
    second = replace(second, **change)  # type: ignore[arg-type]  # the field a case is about
    verdict_store.save(site.state_dir, StoredVerdict(second, VerdictState.OPEN))
    code = run(["fix", "-n", "-o", "json"])
    said = capsys.readouterr()
    if nodes:
        assert sorted(json.loads(said.out)["plan"]["nodes"]) == nodes
    else:
        assert (code, "2 verdicts are open" in said.out + said.err) == (64, True)


def test_verdicts_whose_playbook_takes_no_node_share_one_run_too(site: Settings) -> None:
    """Two ranks that hang are one restart."""
    first = replace(keep(site), fault=FaultClass.USER_CODE, suspects=(), stalled=True)
    for name in ("V-1", "V-2"):
        stored = StoredVerdict(replace(first, id=name), VerdictState.OPEN)
        verdict_store.save(site.state_dir, stored)
    fixes = [choose_fix(site, verdict_store.load(site.state_dir, v), now()) for v in ("V-1", "V-2")]
    joint = join_fixes(fixes)
    assert (joint.first.playbook.name, dict(joint.values)) == ("restart-in-place", {})
    assert joint.also == ("V-2",)


def test_verdicts_that_go_different_ways_are_fixed_one_by_one(
    site: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    """No playbook does both, and the command that does the first is named."""
    first = keep(site)
    code = replace(first, id="V-2", fault=FaultClass.USER_CODE, stalled=True)
    verdict_store.save(site.state_dir, StoredVerdict(code, VerdictState.OPEN))
    assert run(["fix", "V-1", "V-2", "-n"]) == 64
    output = capsys.readouterr().err
    assert "V-1 swap-and-resume, V-2 restart-in-place" in output
    assert "brctl fix V-1" in output


def test_a_run_that_took_verdicts_along_ends_them_with_it(tmp_path: Path) -> None:
    """Else `status` would go on proposing what has been done."""
    context = fake_context(tmp_path)
    verdict = example_verdict()
    verdict_store.save_new(context.state_dir, verdict)
    verdict_store.save(
        context.state_dir, StoredVerdict(replace(verdict, id="V-2"), VerdictState.OPEN)
    )
    playbook = all_playbooks(())["swap-and-resume"]
    prepared = asyncio.run(prepare(context, playbook, verdict))
    run_dir = create_run(context, prepared, RunRequest(by="oncall", also=("V-2",)))
    assert carry(context, run_dir) is ExitCode.OK
    states = {s.verdict.id: s.state for s in verdict_store.load_all(context.state_dir)}
    assert states == {"V-1": VerdictState.ACTED_ON, "V-2": VerdictState.ACTED_ON}


def test_the_fix_of_a_replaced_verdict_is_that_of_its_successor(
    site: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    """Somebody looked again between the page and the keyboard."""
    first = keep(site)
    verdict_store.save(site.state_dir, StoredVerdict(first, VerdictState.SUPERSEDED, "V-2"))
    verdict_store.save(site.state_dir, StoredVerdict(replace(first, id="V-2"), VerdictState.OPEN))
    assert run(["fix", "V-1", "-n", "-o", "json"]) == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out)["plan"]["verdict"] == "V-2"
    assert "V-1 was replaced by V-2" in shown.err
    assert run(["why", "V-1"]) == 0
    assert capsys.readouterr().out.startswith("V-2")


def test_a_verdict_is_handed_on_without_its_secrets(
    site: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever repairs the machine gets the chain with its raw lines, in three forms."""
    secret = replace(example_verdict(now()), title="token=abcdef123 <script>x</script>")
    verdict_store.save(site.state_dir, StoredVerdict(secret, VerdictState.OPEN))
    for form in ("md", "json", "html"):
        assert run(["verdict", "export", "V-1", "--format", form]) == 0
        text = capsys.readouterr().out
        assert "V-1" in text
        assert "abcdef123" not in text
        assert ("<script>" in text) is (form == "json")
    assert run(["verdict", "export", "V-1", "--format", "pdf"]) == 64


async def test_a_fix_that_asks_people_at_its_gate_is_started_with_their_words(
    site: Settings, tmp_path: Path
) -> None:
    """Less sure, the same playbook has a gate, and both front ends ask for its words."""
    verdict = replace(keep(site), probability=0.8)
    verdict_store.save(site.state_dir, StoredVerdict(verdict, VerdictState.OPEN))
    context = fake_context(tmp_path)
    context.verdicts.known = verdict
    fix = choose_fix(site, verdict_store.load(site.state_dir, "V-1"), now())
    planned = await plan_fix(context, fix)
    assert planned.words == "swap 1"
    assert planned.command == "brctl fix V-1 --confirm 'swap 1'"


@pytest.mark.parametrize(("probability", "said"), [(0.99, (True, None)), (0.8, (False, "swap 1"))])
async def test_what_a_watcher_decided_is_started_in_the_words_of_its_own_plan(
    probability: float, said: tuple[bool, str | None], site: Settings, tmp_path: Path
) -> None:
    """So nobody has to plan before it does, only to learn what is typed."""
    verdict = replace(keep(site), probability=probability)
    verdict_store.save(site.state_dir, StoredVerdict(verdict, VerdictState.OPEN))
    context = fake_context(tmp_path)
    context.verdicts.known = verdict
    fix = choose_fix(site, verdict_store.load(site.state_dir, "V-1"), now())
    prepared = (await plan_fix(context, fix)).prepared
    request = in_the_words_of(prepared, request_for(site))
    assert (request.yes, request.typed) == said
