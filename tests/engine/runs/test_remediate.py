"""A run asks, refuses, retries and takes back as its playbook says, and the journal tells it."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from brctl.engine.runs.plan import prepare
from brctl.engine.runs.read_run import read_run
from brctl.engine.runs.remediate import answer, create_run, history, prepare_saved, resume_lists
from brctl.engine.runs.run_files import RunRequest, plan_document, save_request
from brctl.engine.runs.wait import due_at
from brctl.journal.locks import Leases
from brctl.journal.store import read_journal
from brctl.library.guards import SiteGuards
from brctl.library.playbooks import load_playbook, read_playbook
from brctl.library.shipped import shipped_dir
from brctl.model.errors import GuardError, LockedError, UsageError
from brctl.model.exit_codes import ExitCode
from brctl.model.fault import FaultClass
from brctl.model.runs.event import EventType
from brctl.model.runs.plan import GuardResult
from brctl.model.runs.playbook import GuardSpec, Json, Need, Playbook, Policy
from brctl.model.runs.result import RunState
from brctl.playbook.run import Run
from brctl.playbook.steps import StepState
from brctl.view.runs.run import run_page
from tests.fakes.run_context import NOON, FakeContext, example_verdict, fake_context
from tests.fakes.run_here import carry

SWAP = load_playbook(shipped_dir("playbooks") / "swap-and-resume.yaml")
BY_HAND: dict[str, Json] = {"suspects": "n3", "job": "demo"}
ONCALL = RunRequest(by="oncall")


def start(
    context: FakeContext,
    playbook: Playbook = SWAP,
    request: RunRequest = ONCALL,
    *,
    by_hand: bool = False,
    **values: Json,
) -> tuple[Path, ExitCode]:
    verdict = None if by_hand else example_verdict()
    arguments = {**BY_HAND, **values} if by_hand else values
    prepared = asyncio.run(prepare(context, playbook, verdict, arguments))
    run_dir = create_run(context, prepared, request)
    return run_dir, carry(context, run_dir)


def effects(context: FakeContext) -> list[str]:
    found: list[str] = context.world.read()["effects"]
    return found


def test_the_plan_says_what_would_change_and_changes_nothing(tmp_path: Path) -> None:
    """Later values are unknown, numbers are in the guards, nothing is applied."""
    context = fake_context(tmp_path)
    plan = asyncio.run(prepare(context, SWAP, example_verdict())).plan
    assert [(c.sign.value, c.subject, c.what) for c in plan.changes] == [
        ("~", "n3", 'schedulable -> cordoned "V-1 a GPU fell off the bus"'),
        ("~", "s1", "standby -> reserved"),
        ("-", "job demo", "stopped (4 ranks)"),
        ("~", "job demo rank 2", "n3 -> (known after run)"),
        ("+", "job demo", "restarted from (known after run)"),
    ]
    assert plan.people is Need.NONE
    assert effects(context) == []


def test_equal_worlds_give_equal_plans(tmp_path: Path) -> None:
    """The digest an approval is bound to depends on what would change, and on nothing else."""
    context = fake_context(tmp_path)
    first = asyncio.run(prepare(context, SWAP, example_verdict())).plan.digest
    assert asyncio.run(prepare(context, SWAP, example_verdict())).plan.digest == first
    asyncio.run(context.backend.reserve("s1", "brctl:R-9", NOON))
    assert asyncio.run(prepare(context, SWAP, example_verdict())).plan.digest != first


def test_a_guard_that_refuses_leaves_no_trace(tmp_path: Path) -> None:
    """Exit 5 names number, limit, file and line, and there is not even a run."""
    context = fake_context(tmp_path)
    context = replace(
        context, guards=SiteGuards((GuardSpec("blast_radius", {"max_nodes": 1}, "g.yaml:3"),))
    )
    asyncio.run(context.backend.cordon(["n1"], "dcops", "fan", NOON))
    with pytest.raises(GuardError) as caught:
        start(context)
    assert "1 nodes taken in 6h00 + 1 now = 2 > 1 (taken: n1 by dcops)   g.yaml:3" in str(
        caught.value
    )
    assert list(history(context.state_dir)) == []


def test_a_node_that_came_back_stops_the_swap(tmp_path: Path) -> None:
    """The deciding look is repeated right before anything changes, unless it was just done."""
    context = fake_context(tmp_path)
    with context.world.change() as data:
        data["still_true"] = False
    context.verdicts.known = example_verdict(NOON - timedelta(minutes=1))
    with pytest.raises(GuardError, match="no longer true"):
        start(context)
    context.verdicts.known = example_verdict(NOON - timedelta(seconds=20))
    _, code = start(context)
    assert code is ExitCode.OK


def test_a_job_that_takes_steps_again_is_not_restarted_for_its_stall(tmp_path: Path) -> None:
    """Whoever approves late would stop a job that is well."""
    restart = load_playbook(shipped_dir("playbooks") / "restart-in-place.yaml")
    context = fake_context(tmp_path)
    context.verdicts.known = replace(example_verdict(), fault=FaultClass.USER_CODE, stalled=True)

    def verdict_guard() -> GuardResult:
        plan = asyncio.run(prepare(context, restart, context.verdicts.known)).plan
        return next(guard for guard in plan.guards if guard.kind == "verdict")

    assert verdict_guard().ok
    with context.world.change() as data:
        data["stalled"] = False
    assert not verdict_guard().ok
    assert "job demo takes steps again" in verdict_guard().sentence


def test_the_history_of_a_node_is_of_that_node_alone(tmp_path: Path) -> None:
    """n3 is not n, though its name begins so."""
    context = fake_context(tmp_path)
    run_dir, _ = start(context)
    (found,) = history(context.state_dir, ["n3"])
    assert isinstance(found, Run)
    assert (found.run_dir, found.state, found.seconds) == (run_dir, "ok", read_run(run_dir).seconds)
    assert list(history(context.state_dir, ["n"])) == []


def test_a_person_who_names_the_node_is_asked_before_the_job_stops(tmp_path: Path) -> None:
    """Reversible steps run at once, the destructive one waits, and exit is 6."""
    context = fake_context(tmp_path)
    run_dir, code = start(context, by_hand=True)
    assert code is ExitCode.WAITING
    assert effects(context) == ["cordon n3", "reserve s1"]
    assert resume_lists(read_run(run_dir))["to_do"][0] == "stop"
    with pytest.raises(UsageError, match="type `swap 1`"):
        answer(context, run_dir, "oncall", yes=True, typed="swap 2")
    answer(context, run_dir, "oncall", yes=True, typed="swap 1")
    assert carry(context, run_dir) is ExitCode.OK
    assert context.world.read()["nodes"] == ["n1", "n2", "s1", "n4"]


def test_yes_is_not_enough_for_medium_risk_but_the_right_words_are(tmp_path: Path) -> None:
    """`--yes` counts for low risk; scripts must say what they mean."""
    context = fake_context(tmp_path)
    _, code = start(context, request=RunRequest("cron", yes=True), by_hand=True)
    assert code is ExitCode.WAITING
    (tmp_path / "b").mkdir()
    other = fake_context(tmp_path / "b")
    _, code = start(other, request=RunRequest("cron", typed="swap 1"), by_hand=True)
    assert code is ExitCode.OK


def test_a_denied_run_takes_back_what_it_did(tmp_path: Path) -> None:
    """No means the node is schedulable and the standby free again."""
    context = fake_context(tmp_path)
    run_dir, _ = start(context, by_hand=True)
    answer(context, run_dir, "lead", yes=False)
    assert carry(context, run_dir) is ExitCode.WAITING
    data = context.world.read()
    assert (data["cordons"], data["reservations"]) == ({}, {})
    assert read_run(run_dir).record.denied_by == "lead"
    assert read_run(run_dir).state is RunState.DENIED


def test_two_people_means_two_different_people(tmp_path: Path) -> None:
    """The same name twice is one person."""
    context = fake_context(tmp_path)
    context = replace(context, guards=SiteGuards((), ((Policy(Need.TWO),),)))
    run_dir, _ = start(context)
    for by, code in (("ann", ExitCode.WAITING), ("ann", ExitCode.WAITING), ("bob", ExitCode.OK)):
        answer(context, run_dir, by, yes=True, typed="swap 1")
        assert carry(context, run_dir) is code


def test_the_site_can_only_raise_the_number_of_people(tmp_path: Path) -> None:
    """A site that asks nobody does not overrule a playbook that asks one."""
    context = fake_context(tmp_path)
    context = replace(context, guards=SiteGuards((), ((Policy(Need.NONE),),)))
    assert asyncio.run(prepare(context, SWAP, None, BY_HAND)).plan.people is Need.ONE
    context = replace(context, guards=SiteGuards((), ((Policy(Need.TWO, "nodes >= 1"),),)))
    assert asyncio.run(prepare(context, SWAP, example_verdict())).plan.people is Need.TWO


def test_a_sick_standby_is_cordoned_and_the_next_one_taken(tmp_path: Path) -> None:
    """The failed spare is of no use to anybody until somebody looked at it."""
    context = fake_context(tmp_path)
    with context.world.change() as data:
        data["sick"] = ["s1"]
    _, code = start(context)
    data = context.world.read()
    assert code is ExitCode.OK
    assert data["nodes"] == ["n1", "n2", "s2", "n4"]
    assert "failed admission" in data["cordons"]["s1"]["reason"]


def test_without_a_whole_checkpoint_nothing_is_stopped(tmp_path: Path) -> None:
    """Stopping a job that cannot come back would make things worse, so all is taken back."""
    context = fake_context(tmp_path, checkpoints=lambda: [(40, False)])
    run_dir, code = start(context)
    assert code is ExitCode.ROLLED_BACK
    assert effects(context) == ["cordon n3", "uncordon n3"]
    assert "none of 1 checkpoints" in read_run(run_dir).record.failed_error


def test_the_newest_checkpoint_that_fails_its_checksum_is_passed_over(tmp_path: Path) -> None:
    """Complete is not undamaged: only what was read is chosen."""
    observations = iter(
        [[(40, True), (38, True)], [(40, False)], [(38, True)]] * 2  # list, verify 40, verify 38
    )
    context = fake_context(tmp_path, checkpoints=lambda: next(observations))
    run_dir, code = start(context)
    assert code is ExitCode.OK
    assert read_run(run_dir).record.steps["choose"].out == {
        "path": "/ckpt/step-00000038",
        "step": 38,
    }


def test_training_that_does_not_advance_needs_a_human(tmp_path: Path) -> None:
    """No second swap by itself: exit 8, everything stays, and the note says why."""
    context = fake_context(tmp_path)
    run_dir, code = start(context, steps=100_000, within="30s")
    assert code is ExitCode.NEEDS_HUMAN
    assert "no step" not in read_run(run_dir).record.failed_error
    assert "failed at prove" in (run_dir / "notes.txt").read_text()
    assert set(context.world.read()["cordons"]) == {"n3"}


def test_rolling_back_a_finished_run_stops_at_what_cannot_be_undone(tmp_path: Path) -> None:
    """After the job was restarted the swap stands; a person decides."""
    context = fake_context(tmp_path)
    run_dir, _ = start(context)
    before = context.world.read()["nodes"]
    save_request(run_dir, replace(ONCALL, undo=True))
    assert carry(context, run_dir) is ExitCode.NEEDS_HUMAN
    assert context.world.read()["nodes"] == before


def test_rolling_back_a_cordon_lifts_only_its_own(tmp_path: Path) -> None:
    """What dcops cordoned before stays cordoned."""
    context = fake_context(tmp_path)
    asyncio.run(context.backend.cordon(["n1"], "brctl:ann", "noise", NOON))
    playbook = load_playbook(shipped_dir("playbooks") / "cordon.yaml")
    context = replace(
        context, guards=SiteGuards((GuardSpec("blast_radius", {"max_nodes": 3}, "g.yaml:1"),))
    )
    prepared = asyncio.run(prepare(context, playbook, None, {"nodes": "n1,n2"}))
    run_dir = create_run(context, prepared, ONCALL)
    assert carry(context, run_dir) is ExitCode.OK
    save_request(run_dir, replace(ONCALL, undo=True))
    assert carry(context, run_dir) is ExitCode.ROLLED_BACK
    assert set(context.world.read()["cordons"]) == {"n1"}


def test_running_the_same_playbook_again_changes_nothing(tmp_path: Path) -> None:
    """Cordoning what is cordoned is done already."""
    context = fake_context(tmp_path)
    playbook = load_playbook(shipped_dir("playbooks") / "cordon.yaml")
    runs = []
    for _ in range(2):
        prepared = asyncio.run(prepare(context, playbook, None, {"nodes": "n1"}))
        runs.append(create_run(context, prepared, ONCALL))
        assert carry(context, runs[-1]) is ExitCode.OK
    run_dir = runs[-1]
    assert not any(step.changed for step in read_run(run_dir).record.steps.values())


def test_two_runs_cannot_hold_one_job(tmp_path: Path) -> None:
    """The second one is refused before it exists."""
    context = fake_context(tmp_path)
    Leases(context.state_dir).acquire(["job:demo"], "R-0099", context.clock.now())
    with pytest.raises(GuardError, match="held by another run: job:demo by R-0099"):
        start(context)


def test_a_fenced_run_stops_at_once(tmp_path: Path) -> None:
    """A run whose lease went to another run writes no further step."""
    context = fake_context(tmp_path)
    leases = Leases(context.state_dir)

    def steal() -> list[tuple[int, bool]]:
        grants = leases._dir / "leases.json"
        grants.write_text(grants.read_text().replace('"token": 1', '"token": 0'))
        return [(38, True)]

    context.sweeps.checkpoints = steal
    run_dir, code = start(context)
    assert code is ExitCode.NEEDS_HUMAN
    assert "stop rank 0" not in effects(context)
    last = [e for e in read_journal(run_dir).events if e.type is EventType.STEP_INTENT][-1]
    assert last.fields["step"] == "ckpt"


def test_only_failures_of_the_named_class_are_retried(tmp_path: Path) -> None:
    """A checkpoint that is not there yet is no transport failure, so nobody waits for it."""
    context = fake_context(tmp_path, checkpoints=lambda: [])
    run_dir, _ = start(context)
    assert read_run(run_dir).record.steps["ckpt"].attempts == 1
    with context.world.change() as data:
        data["dead"] = ["n1", "n2", "n3", "n4"]
    run_dir, _ = start(context)
    assert read_run(run_dir).record.steps["ckpt"].attempts == 3


def test_a_condition_that_does_not_hold_skips_the_step(tmp_path: Path) -> None:
    """`when` and `skip_if` are read when their turn comes, from what earlier steps gave."""
    text = SWAP.text.replace(
        b"  - id: stop\n", b"  - id: stop\n    skip_if: len(steps.reserve.out.nodes) == 1\n"
    )
    context = fake_context(tmp_path)
    run_dir, _ = start(context, read_playbook(text, "swap.yaml"))
    assert read_run(run_dir).record.steps["stop"].state is StepState.SKIPPED


def test_a_run_that_is_owned_cannot_be_carried_out_twice(tmp_path: Path) -> None:
    """The folder's lock decides, not good intentions."""
    context = fake_context(tmp_path)
    prepared = asyncio.run(prepare(context, SWAP, example_verdict()))
    run_dir = create_run(context, prepared, ONCALL)
    from brctl.journal.store import owning

    with owning(run_dir), pytest.raises(LockedError):
        carry(context, run_dir)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"suspect": "n3"}, "did you mean 'suspects'"),
        ({"suspects": "n9"}, "'n9' is not in the inventory"),
        ({"suspects": "n[3-1]"}, "runs backwards"),
        ({"steps": "many"}, "input `steps`: 'many' is not a whole number"),
        ({"steps": "0"}, "0 is less than 1"),
        ({"grace": "long"}, "input `grace`"),
    ],
)
def test_an_input_that_does_not_fit_is_refused(
    values: dict[str, Json], expected: str, tmp_path: Path
) -> None:
    """Usage errors come before any plan."""
    with pytest.raises(UsageError) as caught:
        asyncio.run(prepare(fake_context(tmp_path), SWAP, None, {**BY_HAND, **values}))
    assert expected in str(caught.value)


def test_an_approval_that_comes_too_late_frees_the_standby_and_keeps_the_cordon(
    tmp_path: Path,
) -> None:
    """`stop_safe`: the suspect stays out, the spare is free for others, and the run is over."""
    context = fake_context(tmp_path)
    run_dir, _ = start(context, by_hand=True)
    with context.world.change() as data:
        data["seconds"] += 901
    answer(context, run_dir, "oncall", yes=True, typed="swap 1")
    for _ in range(2):
        assert carry(context, run_dir) is ExitCode.WAITING
        assert read_run(run_dir).record.result == "expired"
    data = context.world.read()
    assert (set(data["cordons"]), data["reservations"]) == ({"n3"}, {})


def test_a_run_that_a_guard_pauses_after_its_approval_does_not_expire(tmp_path: Path) -> None:
    """It asks nobody any more, so no silence of people can end it again and again."""
    context = fake_context(tmp_path)
    run_dir, _ = start(context, by_hand=True)
    assert due_at(run_dir) == NOON + timedelta(minutes=15)
    answer(context, run_dir, "oncall", yes=True, typed="swap 1")
    context = replace(context, guards=SiteGuards((GuardSpec("standby", {"at_least": 9}, "g:1"),)))
    assert carry(context, run_dir) is ExitCode.WAITING
    run = read_run(run_dir)
    assert run.record.paused
    assert run.record.why.startswith("paused by standby")
    assert due_at(run_dir) is None
    assert _next_of(run_dir) == ("brctl play resume R-0001", "brctl play rollback R-0001")
    with pytest.raises(UsageError, match="asks nobody: paused by standby"):
        answer(context, run_dir, "oncall", yes=True)


def _next_of(run_dir: Path) -> tuple[str, ...]:
    run, events = read_run(run_dir), read_journal(run_dir).events
    return run_page(run.name, run.playbook, run.record, run.state, events, ()).next


def test_a_saved_plan_runs_only_in_the_world_it_was_made_for(tmp_path: Path) -> None:
    """Unchanged it is the same plan; a moved world, another text or old age refuses it."""
    context = fake_context(tmp_path)
    made = asyncio.run(prepare(context, SWAP, example_verdict()))
    saved = plan_document(made.plan)
    again = asyncio.run(prepare_saved(context, SWAP, saved, example_verdict()))
    assert again.plan.digest == made.plan.digest
    changed = read_playbook(SWAP.text + b"# note\n", "swap.yaml")
    with pytest.raises(GuardError, match="changed since it was planned"):
        asyncio.run(prepare_saved(context, changed, saved, example_verdict()))
    asyncio.run(context.backend.cordon(["n3"], "dcops", "fan", NOON))
    with pytest.raises(GuardError, match="the world moved"):
        asyncio.run(prepare_saved(context, SWAP, saved, example_verdict()))
    with context.world.change() as data:
        data["seconds"] += 1801
    with pytest.raises(GuardError, match="the plan is 30m01 old"):
        asyncio.run(prepare_saved(context, SWAP, saved, example_verdict()))


@pytest.mark.parametrize("moved", ["n3", "s1"])
def test_a_saved_plan_is_not_run_on_another_machine_of_the_same_name(
    moved: str, tmp_path: Path
) -> None:
    """Neither the suspect nor the standby may have got another address."""
    context = fake_context(tmp_path)
    saved = plan_document(asyncio.run(prepare(context, SWAP, example_verdict())).plan)
    nodes = context.inventory.nodes
    elsewhere = {**nodes, moved: replace(nodes[moved], address="192.0.2.77")}
    context = replace(context, inventory=replace(context.inventory, nodes=elsewhere))
    with pytest.raises(GuardError, match="the world moved"):
        asyncio.run(prepare_saved(context, SWAP, saved, example_verdict()))


CHECKS = load_playbook(shipped_dir("playbooks") / "stop-time-checks.yaml")


def test_stop_time_checks_replace_what_fails_and_only_that(tmp_path: Path) -> None:
    """The node that fails under load goes, the others keep their ranks."""
    context = fake_context(tmp_path)
    with context.world.change() as data:
        data |= {"sick": ["n2"], "dead": []}
    _, code = start(context, CHECKS, RunRequest("cron", typed="stop"))
    assert code is ExitCode.OK
    assert context.world.read()["nodes"] == ["n1", "s1", "n3", "n4"]


def test_stop_time_checks_that_find_nothing_restart_in_place(tmp_path: Path) -> None:
    """All clean: the fault was transient as far as anybody can tell."""
    context = fake_context(tmp_path)
    with context.world.change() as data:
        data["dead"] = []
    run_dir, code = start(context, CHECKS, RunRequest("cron", typed="stop"))
    assert code is ExitCode.OK
    skipped = read_run(run_dir).record.in_state(StepState.SKIPPED)
    assert skipped == ("cordon_wrong", "cordon", "reserve", "swap")


def test_nodes_found_during_the_run_count_against_the_limit_too(tmp_path: Path) -> None:
    """Half the fleet failing is a reason to stop and think, not to take half the fleet."""
    context = fake_context(tmp_path)
    with context.world.change() as data:
        data |= {"sick": ["n1", "n2"], "dead": []}
    run_dir, code = start(context, CHECKS, RunRequest("cron", typed="stop"))
    assert code is ExitCode.WAITING
    assert context.world.read()["cordons"] == {}
    end = read_journal(run_dir).events[-1]
    assert "0 nodes taken in 6h00 + 2 now = 2 > 1" in str(end.fields["why"])


def test_a_step_whose_verification_says_no_has_failed_and_is_undone(tmp_path: Path) -> None:
    """The node was put back, but the look after it finds it sick: it goes out again."""
    text = (shipped_dir("playbooks") / "uncordon.yaml").read_bytes()
    text += b"    verify: {uses: check.run, with: {nodes: $(inputs.nodes)}}\n"
    context = fake_context(tmp_path)
    asyncio.run(context.backend.cordon(["n1", "n2"], "brctl:ann", "test", NOON))
    with context.world.change() as data:
        data["sick"] = ["n2"]
    playbook = read_playbook(text, "uncordon.yaml")
    for node, code in (("n1", ExitCode.OK), ("n2", ExitCode.ROLLED_BACK)):
        prepared = asyncio.run(prepare(context, playbook, None, {"nodes": node}))
        assert carry(context, create_run(context, prepared, ONCALL)) is code
    assert set(context.world.read()["cordons"]) == {"n2"}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("standby: {at_least: $(1 < job.name)}", "its values cannot be evaluated: 'demo' is not a"),
        ("standby: {at_least: $(job.name)}", "its values make no sense: 'at_least' must be a n"),
        ("blast_radius: {window: $(job.name)}", "its values make no sense: 'demo': not a dura"),
    ],
)
def test_a_guard_whose_values_make_no_sense_refuses_and_names_its_line(
    line: str, expected: str, tmp_path: Path
) -> None:
    """What cannot be decided is never let through, and nobody gets a traceback for it."""
    text = SWAP.text.replace(
        b"  - verdict: {max_age: 30m, still_true: true}", b"  - " + line.encode()
    )
    with pytest.raises(GuardError, match=expected) as caught:
        start(fake_context(tmp_path), read_playbook(text, "swap.yaml"))
    number = text[: text.index(line.encode())].count(b"\n") + 1
    assert f"swap.yaml:{number}" in str(caught.value)
    assert "mend this line" in str(caught.value.hint)
