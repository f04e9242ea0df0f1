"""A playbook over nodes: canaries first, then batches side by side, each node with its own fate.

The cluster is a fake one in a file, see `tests.fakes.run_context`.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from brctl.backends.contract import Cordon
from brctl.engine.incidents.verdict_store import save_new
from brctl.engine.runs.plan import prepare
from brctl.engine.runs.read_run import read_run
from brctl.engine.runs.remediate import answer, create_run
from brctl.engine.runs.run_files import RunRequest, load_result, save_request
from brctl.journal.store import read_journal
from brctl.library.guards import SiteGuards
from brctl.library.playbooks import read_playbook
from brctl.model.errors import ConfigError, GuardError, UsageError
from brctl.model.exit_codes import ExitCode
from brctl.model.runs.event import Event, EventType
from brctl.model.runs.playbook import GuardSpec, Json
from brctl.model.sweeps.sweep import NodeHealth
from brctl.playbook.node_runs import too_many_failed, waves_of
from brctl.playbook.plan import longest_path_s
from brctl.playbook.steps import StepState
from brctl.tui.rows.run_rows import run_rows
from brctl.tui.rows.times import Times
from brctl.view.runs.plan import plan_page
from brctl.view.runs.run import run_page
from tests.fakes.run_context import NOON, FakeContext, example_verdict, fake_context
from tests.fakes.run_here import carry
from tests.timeouts import TIMEOUT_S

ROLLING = """\
apiVersion: brctl.dev/v1
kind: Playbook
metadata: {name: rolling, title: Look at nodes one after the other, risk: low}
inputs:
  nodes: {type: nodeset, required: true}
  batch: {type: int, default: 2}
approval:
  gate_before: cordon
  policy: [{need: one}]
defaults: {timeout: 1m, on_failure: next_node}
for_each: {node: $(inputs.nodes), batch: $(inputs.batch), canary: 1, max_failed: 50%}
steps:
  - id: cordon
    uses: node.cordon
    with: {nodes: $(node), reason: "for $(run.id)"}
    safety: reversible
    undo: auto
  - id: checks
    uses: check.run
    with: {nodes: $(node)}
    safety: disruptive
  - id: release
    uses: node.uncordon
    with: {nodes: $(steps.checks.out.passed)}
    safety: reversible
    undo: auto
  - id: note
    uses: incident.note
    with: {text: "$(node) failed at $(failed.step)"}
    after: failure
    safety: read
"""
ALL = "n[1-4],s1"
AGREED = RunRequest("cron", yes=True)


def cluster(folder: Path, faulty: Sequence[str] = ()) -> FakeContext:
    context = fake_context(folder)
    context = replace(
        context, guards=SiteGuards((GuardSpec("blast_radius", {"max_nodes": 6}, "g.yaml:1"),))
    )
    with context.world.change() as data:
        data |= {"sick": list(faulty), "dead": []}
    return context


def start(
    context: FakeContext, text: str = ROLLING, request: RunRequest = AGREED, **values: Json
) -> tuple[Path, ExitCode]:
    playbook = read_playbook(text.encode(), "rolling.yaml")
    prepared = asyncio.run(prepare(context, playbook, None, {"nodes": ALL, **values}))
    run_dir = create_run(context, prepared, request)
    return run_dir, carry(context, run_dir)


def lane_results(run_dir: Path) -> dict[str, str]:
    runs = read_run(run_dir).record.node_runs
    return {node: str(node_run.result or "") for node, node_run in runs.items()}


def of_type(run_dir: Path, kind: EventType) -> list[Event]:
    return [event for event in read_journal(run_dir).events if event.type is kind]


def test_every_node_goes_through_all_steps_the_canary_alone_and_first(tmp_path: Path) -> None:
    """One after the canary, two side by side, two more; at the end all are back in service."""
    context = cluster(tmp_path)
    run_dir, code = start(context)
    assert code is ExitCode.OK
    assert set(lane_results(run_dir).values()) == {"ok"}
    assert context.world.read()["cordons"] == {}
    began = [e.fields["node"] for e in of_type(run_dir, EventType.NODE_STARTED)]
    ended = [e.fields["node"] for e in of_type(run_dir, EventType.NODE_ENDED)]
    seqs = {(e.type, e.fields["node"]): e.seq for e in read_journal(run_dir).events
            if e.type in (EventType.NODE_STARTED, EventType.NODE_ENDED)}  # fmt: skip
    assert sorted(map(str, began)) == sorted(map(str, ended)) == ["n1", "n2", "n3", "n4", "s1"]
    assert seqs[EventType.NODE_ENDED, "n1"] < seqs[EventType.NODE_STARTED, "n2"]
    assert seqs[EventType.NODE_ENDED, "n3"] < seqs[EventType.NODE_STARTED, "n4"]


def test_nodes_of_a_batch_run_side_by_side(tmp_path: Path) -> None:
    """Two checks of a batch are in flight at the same moment, and never more than the batch."""
    context, now, most = cluster(tmp_path), [0], [0]
    examine, batch = context.sweeps.examine, asyncio.Barrier(2)

    async def slow(nodes: Sequence[str], level: int) -> Sequence[NodeHealth]:
        now[0] += 1
        most[0] = max(most[0], now[0])
        if list(nodes) != ["n1"]:  # the canary is alone; each other waits for its neighbour
            async with asyncio.timeout(TIMEOUT_S):
                await batch.wait()
        await asyncio.sleep(0.02)
        now[0] -= 1
        return await examine(nodes, level)

    context.sweeps.examine = slow  # type: ignore[method-assign]  # a slower cluster
    assert start(context)[1] is ExitCode.OK
    assert most[0] == 2


def test_a_failed_node_is_given_up_and_the_others_go_on(tmp_path: Path) -> None:
    """Its own cordon is lifted, its note is written, exit 1 says that not all went well."""
    context = cluster(tmp_path, faulty=["n3"])
    run_dir, code = start(context)
    assert code is ExitCode.WARNING
    run = read_run(run_dir)
    assert run.state == "partial"
    assert lane_results(run_dir) == {"n1": "ok", "n2": "ok", "n3": "failed", "n4": "ok", "s1": "ok"}
    assert run.record.steps["cordon@n3"].state is StepState.UNDONE
    assert run.record.steps["release@n3"].state is StepState.PENDING
    assert run.record.steps["note@n2"].state is StepState.SKIPPED
    assert (run_dir / "notes.txt").read_text().strip().endswith("n3 failed at checks")
    assert context.world.read()["cordons"] == {}
    result = load_result(run_dir)
    assert result is not None
    assert result.node_runs["n3"]["why"] == "checks: 0 of 1 nodes pass, n3 fails"


def test_when_no_node_gets_through_the_run_has_failed(tmp_path: Path) -> None:
    """All was undone: exit 7, not a success with footnotes."""
    text = ROLLING.replace("canary: 1, max_failed: 50%", "canary: 0")
    run_dir, code = start(cluster(tmp_path, faulty=["n1", "n2"]), text, nodes="n1,n2")
    assert code is ExitCode.ROLLED_BACK
    assert "no node got through" in str(read_journal(run_dir).events[-1].fields["why"])


def test_a_failed_canary_pauses_the_run_until_a_person_says_go_on(tmp_path: Path) -> None:
    """`--yes` was for another question; the answer is typed, and no node is done twice."""
    context = cluster(tmp_path, faulty=["n1"])
    run_dir, code = start(context)
    assert code is ExitCode.WAITING
    assert lane_results(run_dir) == {"n1": "failed", "n2": "", "n3": "", "n4": "", "s1": ""}
    assert carry(context, run_dir) is ExitCode.WAITING
    with pytest.raises(UsageError, match="type `go on after 1`"):
        answer(context, run_dir, "ann", yes=True, typed="yes")
    answer(context, run_dir, "ann", yes=True, typed="go on after 1")
    assert carry(context, run_dir) is ExitCode.WARNING
    assert sorted(lane_results(run_dir).values()) == ["failed", "ok", "ok", "ok", "ok"]
    effects = context.world.read()["effects"]
    assert len(effects) == len(set(effects)) == 10


def test_saying_no_takes_back_what_is_left_to_take_back(tmp_path: Path) -> None:
    """Denied means denied for the nodes that went well, too."""
    context = cluster(tmp_path, faulty=["n2", "n3"])
    run_dir, code = start(context)
    assert code is ExitCode.WAITING
    answer(context, run_dir, "ann", yes=False)
    assert carry(context, run_dir) is ExitCode.WAITING
    assert read_run(run_dir).record.denied_by == "ann"
    assert read_run(run_dir).record.steps["release@n1"].state is StepState.UNDONE


@pytest.mark.parametrize(
    ("max_failed", "faulty", "ran"),
    [("0", ["n2"], 3), ("1", ["n2", "n3"], 3), ("1", ["n2"], 5), ("40%", ["n2", "n3"], 3)],
)
def test_more_failures_than_allowed_pause_between_batches(
    max_failed: str, faulty: list[str], ran: int, tmp_path: Path
) -> None:
    """A count is absolute, a percentage goes by the nodes that are through."""
    text = ROLLING.replace("canary: 1, max_failed: 50%", f"canary: 1, max_failed: {max_failed}")
    run_dir, code = start(cluster(tmp_path, faulty=faulty), text)
    assert sum(bool(result) for result in lane_results(run_dir).values()) == ran
    assert code is (ExitCode.WAITING if ran == 3 else ExitCode.WARNING)


def test_one_approval_holds_for_all_nodes_and_never_runs_out_between_them(tmp_path: Path) -> None:
    """The gate is passed once; hours later the next node does not find it shut."""
    context = cluster(tmp_path)
    run_dir, code = start(context, request=RunRequest("cron"))
    assert code is ExitCode.WAITING
    assert context.world.read()["effects"] == []
    answer(context, run_dir, "ann", yes=True, typed="y")
    with context.world.change() as data:
        data["sick"] = ["n1"]
    assert carry(context, run_dir) is ExitCode.WAITING
    with context.world.change() as data:
        data |= {"sick": [], "seconds": data["seconds"] + 10_000}
    answer(context, run_dir, "ann", yes=True, typed="go on after 1")
    assert carry(context, run_dir) is ExitCode.WARNING
    assert len(of_type(run_dir, EventType.APPROVAL_ASKED)) == 2


def test_a_step_that_ends_the_run_lets_the_other_nodes_finish_their_step(tmp_path: Path) -> None:
    """`rollback` in one node run undoes every node run, after all are quiet."""
    text = ROLLING.replace("next_node", "rollback").replace("canary: 1", "canary: 0")
    context = cluster(tmp_path, faulty=["n2"])
    run_dir, code = start(context, text, batch=3)
    assert code is ExitCode.ROLLED_BACK
    record = read_run(run_dir).record
    assert record.in_state(StepState.RUNNING, StepState.UNCERTAIN) == ()
    assert context.world.read()["cordons"] == {}
    assert record.steps["cordon@n4"].state is StepState.PENDING
    assert record.steps["note@n2"].state is StepState.DONE


def test_guards_count_all_nodes_of_the_run_and_refuse_before_it_exists(tmp_path: Path) -> None:
    """A batch of two is no way around a limit of four nodes in six hours."""
    context = cluster(tmp_path)
    context = replace(
        context, guards=SiteGuards((GuardSpec("blast_radius", {"max_nodes": 4}, "g.yaml:1"),))
    )
    with pytest.raises(GuardError, match=r"0 nodes taken in 6h00 \+ 5 now = 5 > 4"):
        start(context)
    assert start(context, nodes="n[1-4]")[1] is ExitCode.OK


def test_a_guard_about_a_lane_asks_about_its_node_only(tmp_path: Path) -> None:
    """A node that is back in service gets a job, and the nodes after it still have their turn."""
    guards = "guards: [{idle: {nodes: $(inputs.nodes)}}]\n"
    text = ROLLING.replace("approval:\n", f"{guards}approval:\n", 1)
    context = cluster(tmp_path)
    with context.world.change() as data:
        data["nodes"] = ["s1", "s2", "s1", "s2"]
    jobs = context.jobs.all

    async def jobs_follow_nodes() -> object:
        freed = [e for e in context.world.read()["effects"] if e.startswith("uncordon")]
        with context.world.change() as data:
            data["nodes"] = [freed[-1].split()[1] if freed else "s1", "s2", "s2", "s2"]
        return await jobs()

    context.jobs.all = jobs_follow_nodes  # type: ignore[assignment,method-assign]  # a busy scheduler
    run_dir, code = start(context, text, nodes="n[1-4]")
    assert code is ExitCode.OK, read_journal(run_dir).events[-1]


def test_a_node_that_belongs_to_somebody_else_is_passed_over(tmp_path: Path) -> None:
    """Its cordon stays, the plan says so beforehand, and the other nodes have their turn."""
    guards = "guards: [{owner: {nodes: $(inputs.nodes), action: skip_node}}]\n"
    text = ROLLING.replace("approval:\n", f"{guards}approval:\n", 1)
    context = cluster(tmp_path)
    asyncio.run(context.backend.cordon(["n3"], "dcops", "fan", NOON))
    playbook = read_playbook(text.encode(), "rolling.yaml")
    plan = asyncio.run(prepare(context, playbook, None, {"nodes": ALL})).plan
    assert all("n3 by dcops" in step.skipped for step in plan.steps if step.node == "n3")
    run_dir, code = start(context, text)
    assert code is ExitCode.OK
    assert [n for n, r in lane_results(run_dir).items() if r == "skipped"] == ["n3"]
    assert set(context.world.read()["cordons"]) == {"n3"}


def test_the_plan_tells_nodes_waves_limits_and_the_longest_path(tmp_path: Path) -> None:
    """What a person approves: who alone first, who together, when it pauses, how long at most."""
    context = cluster(tmp_path)
    playbook = read_playbook(ROLLING.encode(), "rolling.yaml")
    plan = asyncio.run(prepare(context, playbook, None, {"nodes": ALL})).plan
    assert plan.waves == (("n1",), ("n2", "n3"), ("n4", "s1"))
    assert plan.longest_path_s == 3 * longest_path_s(playbook) == 3 * 4 * 60
    assert [step.node for step in plan.steps if step.id == "cordon"] == [
        "n1",
        "n2",
        "n3",
        "n4",
        "s1",
    ]
    text = plan_page(plan, {}).text
    assert "n[1-4],s1" in text
    assert "n1 alone, then n[2-3], then n[4],s1" in text.replace("n4,s1", "n[4],s1")
    assert "pauses when a canary fails or more than 50%" in text


def test_expressions_know_the_node_its_verdict_and_its_facts(tmp_path: Path) -> None:
    """`verdicts[node]` is the newest verdict about it, `facts[node]` what the inventory says."""
    text = ROLLING.replace(
        '    with: {nodes: $(node), reason: "for $(run.id)"}\n',
        '    when: verdicts[node].action == "swap" and facts[node].gpus == 8\n'
        '    with: {nodes: $(node), reason: "serial $(facts[node].serial)"}\n',
    )
    context = cluster(tmp_path)
    save_new(context.state_dir, example_verdict())
    run_dir, code = start(context, text, nodes="n2,n3")
    assert code is ExitCode.OK
    steps = read_run(run_dir).record.steps
    assert steps["cordon@n2"].state is StepState.SKIPPED
    assert steps["cordon@n3"].arguments["reason"] == "serial n3"


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("verdicts[node].actin", "did you mean 'action'"),
        ("facts[node].serials", "did you mean 'serial'"),
        ("facts['n1'].serial", "write facts[node].NAME"),
        ("steps.checks.out.passed", "no earlier step 'checks'"),
    ],
)
def test_a_wrong_name_about_a_node_is_found_before_anything_runs(
    expression: str, expected: str
) -> None:
    """With the place and what was probably meant."""
    with pytest.raises(ConfigError) as caught:
        read_playbook(ROLLING.replace("for $(run.id)", f"$({expression})").encode(), "r.yaml")
    assert expected in str(caught.value)


def test_strangers_and_odd_batches_are_refused(tmp_path: Path) -> None:
    """Before any plan."""
    with pytest.raises(UsageError, match="'n9' is not in the inventory"):
        start(cluster(tmp_path), nodes="n9")
    with pytest.raises(UsageError, match="batch is 0"):
        start(cluster(tmp_path), batch="0")


def test_rolling_back_a_finished_run_takes_every_node_back(tmp_path: Path) -> None:
    """What was released is out of service again."""
    context = cluster(tmp_path)
    run_dir, _ = start(context, nodes="n1,n2")
    save_request(run_dir, RunRequest("ann", undo=True))
    assert carry(context, run_dir) is ExitCode.ROLLED_BACK
    assert read_run(run_dir).record.in_state(StepState.UNDONE) == (
        "cordon@n1", "release@n1", "cordon@n2", "release@n2",
    )  # fmt: skip


def test_the_page_of_a_run_says_what_became_of_each_node(tmp_path: Path) -> None:
    """One line per node at the end, and documents per node and step."""
    run_dir, _ = start(cluster(tmp_path, faulty=["n3"]))
    run, events = read_run(run_dir), read_journal(run_dir).events
    page = run_page(run.name, run.playbook, run.record, run.state, events, ())
    assert "failed  n3           checks: 0 of 1 nodes pass" in page.text
    assert "ok      n[1-2,4],s1" in page.text
    rows = page.body["run"]["nodes"]  # type: ignore[index]  # a document
    assert [row["result"] for row in rows] == ["ok", "ok", "failed", "ok", "ok"]
    assert rows[2]["failed_step"] == "checks"


def test_the_screen_of_a_run_shows_each_node_and_the_steps_of_those_that_failed(
    tmp_path: Path,
) -> None:
    """64 nodes that went well are 64 lines, not 256."""
    context = cluster(tmp_path, faulty=["n1"])
    run_dir, _ = start(context)
    rows = run_rows(read_run(run_dir), 120, Times())
    lines = [row.text for row in rows]
    assert any(line.startswith("failed      n1 ") and "at checks" in line for line in lines)
    assert sum(line.startswith(".           ") for line in lines) == 4
    assert [line[:9] for line in lines if " cordon " in line] == ["undone   "]
    assert any("WAITING FOR YOU canary n1 failed" in line for line in lines)


def test_the_arithmetic_of_max_failed() -> None:
    """Nothing failed is never too many; a count and a percentage each have their edge."""
    playbook = read_playbook(ROLLING.encode(), "rolling.yaml")
    each = playbook.for_each
    assert each is not None
    order = ["n1", "n2", "n3", "n4"]
    assert too_many_failed(each, order, {}) == ""
    assert too_many_failed(each, order, {"n1": "ok", "n2": "failed"}) == ""
    assert "2 of 3" in too_many_failed(
        each, order, {"n1": "ok", "n2": "failed", "n3": "needs_human"}
    )
    assert waves_of(playbook, {"inputs": {"nodes": [], "batch": 1}}) == ()


def test_nodes_are_planned_side_by_side_and_the_plan_keeps_their_order(tmp_path: Path) -> None:
    """A scheduler that takes its time is not asked node by node."""
    context, now, most = cluster(tmp_path), [0], [0]
    cordons, all_ask = context.backend.cordons, asyncio.Event()

    async def slow() -> Mapping[str, Cordon]:
        now[0] += 1
        most[0] = max(most[0], now[0])
        if now[0] == 5:
            all_ask.set()
        async with asyncio.timeout(TIMEOUT_S):
            await all_ask.wait()
        now[0] -= 1
        return await cordons()

    context.backend.cordons = slow  # type: ignore[method-assign]  # a slower scheduler
    playbook = read_playbook(ROLLING.encode(), "rolling.yaml")
    plan = asyncio.run(prepare(context, playbook, None, {"nodes": ALL})).plan
    assert most[0] == 5
    order = [step.node for step in plan.steps]
    assert order == [n for n in ("n1", "n2", "n3", "n4", "s1") for _ in range(4)]


HALF = GuardSpec("min_healthy", {"scope": "fleet", "percent": 60}, "g.yaml:2")


def test_min_healthy_counts_the_batch_that_is_out_and_not_the_whole_run(tmp_path: Path) -> None:
    """Five of six nodes take their turn, never more than two at a time: four stay."""
    context = cluster(tmp_path)
    context = replace(context, guards=SiteGuards((*context.guards.guards, HALF)))
    run_dir, code = start(context)
    assert code is ExitCode.OK
    actual = {r["says"] for e in of_type(run_dir, EventType.GUARDS_CHECKED) for r in rows_of(e)
            if r["guard"] == "min_healthy"}  # fmt: skip
    assert "4 of 6 fleet nodes stay healthy with n[2-3] out, 66.7 %; at least 60 %" in actual
    with pytest.raises(GuardError, match=r"3 of 6 fleet nodes stay healthy with n\[2-4\] out"):
        start(context, batch=3)


def rows_of(event: Event) -> list[dict[str, Json]]:
    rows = event.fields["guards"]
    assert isinstance(rows, list)
    return [row for row in rows if isinstance(row, dict)]


def test_a_node_that_stays_out_counts_in_every_later_batch(tmp_path: Path) -> None:
    """The canary stays cordoned, so that the next two would leave three of six: the run pauses."""
    text = ROLLING.replace("with: {nodes: $(node)}", "with: {nodes: $(node), may_fail: true}")
    context = cluster(tmp_path, faulty=["n1"])
    context = replace(context, guards=SiteGuards((*context.guards.guards, HALF)))
    run_dir, code = start(context, text)
    assert code is ExitCode.WAITING
    assert set(context.world.read()["cordons"]) == {"n1"}
    why = str(read_journal(run_dir).events[-1].fields["why"])
    assert "3 of 6 fleet nodes stay healthy with n[2-3] out" in why


def test_where_no_node_is_given_back_all_of_them_count(tmp_path: Path) -> None:
    """A playbook that only cordons takes every node for good, batch or not."""
    text = ROLLING[: ROLLING.index("  - id: release")]
    context = cluster(tmp_path)
    context = replace(context, guards=SiteGuards((*context.guards.guards, HALF)))
    with pytest.raises(GuardError, match="1 of 6 fleet nodes stay healthy, 16"):
        start(context, text)
