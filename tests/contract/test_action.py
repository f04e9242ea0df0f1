"""What every verb of the table must do: look, plan, act, be safe to repeat, undo its own."""

from pathlib import Path

import pytest

from brctl.actions.context import RunContext
from brctl.actions.registry import ACTIONS
from brctl.engine.runs.context import JournalledRun, for_run
from brctl.engine.runs.run_files import PLAYBOOK, RunInputs, RunRequest, save_inputs, save_request
from brctl.library.durable_files import write_atomic
from brctl.library.notify_settings import NotifySettings, TicketProgram
from brctl.library.playbooks import load_playbook
from brctl.library.shipped import shipped_dir
from brctl.model.jobs.wanted_order import WantedOrder
from brctl.model.runs.playbook import Json, Safety
from brctl.playbook.verbs import VERBS
from tests.fakes.ansible import use_ansible
from tests.fakes.run_context import NOON, FakeContext, example_code, fake_context

LOOK = Path(__file__).resolve().parent.parent / "fakes" / "ansible_look.yml"

ARGUMENTS: dict[str, dict[str, Json]] = {
    "ansible.playbook": {"nodes": ["n1", "n2"], "playbook": str(LOOK), "check": "always"},
    "burnin.run": {"nodes": ["n1", "n2"], "duration": "1m"},
    "check.run": {"nodes": ["n1"], "level": 2},
    "ckpt.verify": {"job": "demo"},
    "gpu.reset": {"nodes": ["s1"]},
    "nccl.test": {"nodes": ["n1", "n2", "n4"], "min_busbw_ratio": 0.9},
    "node.reboot": {"nodes": ["s1"]},
    "stacks.dump": {"job": "demo"},
    "nccl.bisect": {"nodes": ["n1", "n2", "n3"]},
    "ckpt.select": {"job": "demo"},
    "corruption.locate": {"job": "demo"},
    "evidence.capture": {"nodes": ["n3"]},
    "incident.note": {"text": "hello"},
    "incident.timeline": {},
    "job.hot_update": {"job": "demo", "change": "C-0002"},
    "job.replay": {"job": "demo"},
    "job.check_order": {"job": "demo", "before": "n[1-4]", "after": ["n2", "n1", "n3", "n4"]},
    "job.order_ranks": {"job": "demo", "before": "n[1-4]", "after": ["n2", "n1", "n3", "n4"]},
    "job.take_order": {"job": "demo", "order": "O-1"},
    "job.replace_nodes": {"job": "demo", "out": ["n3"], "in": ["s1"]},
    "job.restart": {"job": "demo", "checkpoint": "/ckpt/step-00000038"},
    "job.rollback_code": {"job": "demo", "change": "C-0001"},
    "job.stop": {"job": "demo", "grace": "1s"},
    "job.verify_code": {"job": "demo", "change": "C-0002", "only": "urgent"},
    "job.wait_progress": {"job": "demo", "steps": 2, "within": "30s"},
    "node.cordon": {"nodes": ["n1", "n2"], "reason": "test"},
    "node.drain": {"nodes": ["n1", "n2"], "reason": "test", "within": "1m"},
    "node.label": {"nodes": ["n1", "n2"], "set": {"brctl.dev/burnin": "due"}},
    "node.uncordon": {"nodes": ["n1"]},
    "notify.chat": {"template": "run_summary"},
    "notify.page": {"summary": "n3 needs a human", "severity": "critical"},
    "report.table": {"columns": ["node", "result", "seconds"]},
    "standby.acquire": {"count": 1},
    "standby.add": {"nodes": ["n1"], "size": 2},
    "standby.release": {"nodes": ["s1"]},
    "ticket.create": {
        "queue": "hw-rma", "node": "n3", "attach": ["verdict", "serials", "evidence"],
        "idempotency_key": "rma/SN-7/burnin",
    },
}  # fmt: skip
# What each verb needs to find before it can act.
PREPARED: dict[str, dict[str, Json]] = {
    "job.hot_update": {"dead": [], "ranks": {}},
    "job.order_ranks": {"dead": [], "ranks": {}},
    "job.take_order": {"dead": [], "ranks": {}},
    "job.restart": {"dead": [], "ranks": {}},
    "job.rollback_code": {"dead": [], "ranks": {}},
    "job.verify_code": {"dead": []},
    "job.wait_progress": {"dead": []},
    "node.drain": {"guests": {"n1": "runs train/x"}},
    "node.uncordon": {
        "cordons": {
            "n1": {"owner": "brctl:R-0001", "reason": "x", "at": "2026-07-05T12:00:00.000Z"}
        }
    },
    "standby.add": {"nodes": ["s1", "n2", "n3", "n4"]},
    "standby.release": {
        "reservations": {"s1": {"owner": "brctl:R-0001", "at": "2026-07-05T12:00:00.000Z"}}
    },
}


@pytest.fixture(autouse=True)
def with_ansible(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The real one; no other verb waits for it."""
    if "[ansible.playbook]" in request.node.name:
        use_ansible(monkeypatch)


def bound_for(folder: Path, verb: str) -> tuple[RunContext, FakeContext]:
    context = fake_context(folder, code=example_code(), notify=ticket_desk(folder))
    with context.world.change() as data:
        data |= PREPARED.get(verb, {})
    record_changes(context)
    frozen_run(folder)
    return for_run(context, JournalledRun(context, folder, "R-0001")), context


def ticket_desk(folder: Path) -> NotifySettings:
    """A real program that keeps one line a ticket, and no sink."""
    program = folder / "desk"
    lines = f"{folder}/tickets"
    name = f'"HW-$(wc -l < {lines})"'.replace('"', '\\"')
    script = f'echo "$1" >> {lines}; cat > /dev/null; echo "{{\\"ticket\\": {name}}}"'
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o700)
    return NotifySettings(ticket=TicketProgram(command=(str(program),)))


def frozen_run(folder: Path) -> None:
    """The files a run's folder has before its first step."""
    playbook = load_playbook(shipped_dir("playbooks") / "cordon.yaml")
    write_atomic(folder / PLAYBOOK, playbook.text)
    save_inputs(folder, RunInputs({"nodes": ["n3"]}, {}, "V-1", {"name": "demo"}))
    save_request(folder, RunRequest(by="oncall"))


def record_changes(context: FakeContext) -> None:
    """r2 is applied by an earlier run, r3 waits, and a rank order does."""
    before = ("n1", "n2", "n3", "n4")
    wish = WantedOrder("O-1", before, ("n2", "n1", "n3", "n4"), "ann", NOON)
    context.jobs.wanted_order("demo").write(wish)
    ledger = context.jobs.code_ledger("demo")
    for version in ("r2", "r3"):
        change = ledger.record(
            version, f"digest-of-{version}", urgent=True, why="a test", by="ann", at=NOON
        )
        if version == "r2":
            ledger.apply(change.id, "R-0000", NOON)


def world_of(context: FakeContext) -> dict[str, object]:
    data = context.world.read()
    world = {k: data[k] for k in ("cordons", "reservations", "nodes", "ranks", "labels", "guests")}
    states = [(c.id, c.state, c.state_by) for c in context.jobs.code_ledger("demo").read().changes]
    opened = context.notifier.tickets.find("rma/SN-7/burnin")
    return {**world, "code": states, "ticket": opened}


def test_the_table_of_verbs_and_the_table_of_programs_agree() -> None:
    """Whatever validates can run, and whatever can run validates."""
    assert set(ACTIONS) == set(VERBS) == set(ARGUMENTS)


@pytest.mark.parametrize("verb", sorted(ACTIONS))
async def test_planning_and_looking_change_nothing(verb: str, tmp_path: Path) -> None:
    """A dry run is dry, and a verb that changes says what."""
    bound, context = bound_for(tmp_path, verb)
    before = context.world.read()
    changes = await ACTIONS[verb].plan(bound, ARGUMENTS[verb])
    await ACTIONS[verb].observe(bound, ARGUMENTS[verb])
    assert context.world.read() == before
    assert bool(changes) is (VERBS[verb].safety is not Safety.READ)


@pytest.mark.parametrize("verb", sorted(ACTIONS))
async def test_a_verb_gives_what_its_row_promises_and_shows_as_done(
    verb: str, tmp_path: Path
) -> None:
    """Expressions that validated find their names, and a second look agrees."""
    bound, _ = bound_for(tmp_path, verb)
    done = await ACTIONS[verb].apply(bound, ARGUMENTS[verb])
    assert set(done.out) <= VERBS[verb].gives
    assert done.say
    assert (await ACTIONS[verb].confirm(bound, ARGUMENTS[verb])).done is not False


@pytest.mark.parametrize("verb", sorted(v for v in VERBS if VERBS[v].safety is not Safety.READ))
async def test_acting_twice_is_acting_once(verb: str, tmp_path: Path) -> None:
    """A controller that died after acting may simply act again."""
    bound, context = bound_for(tmp_path, verb)
    await ACTIONS[verb].apply(bound, ARGUMENTS[verb])
    once = world_of(context)
    if not (await ACTIONS[verb].observe(bound, ARGUMENTS[verb])).done:
        await ACTIONS[verb].apply(bound, ARGUMENTS[verb])
    assert world_of(context) == once


@pytest.mark.parametrize("verb", sorted(v for v in VERBS if VERBS[v].undoable))
async def test_undo_takes_back_and_may_be_repeated(verb: str, tmp_path: Path) -> None:
    """The world is as before, as far as others can tell, even when undone twice."""
    bound, context = bound_for(tmp_path, verb)
    before = world_of(context)
    await ACTIONS[verb].apply(bound, ARGUMENTS[verb])
    for _ in range(2):
        await ACTIONS[verb].undo(bound, ARGUMENTS[verb])
    after = world_of(context)
    for key in ("cordons", "reservations"):
        assert set(after[key]) == set(before[key])  # type: ignore[call-overload]  # mappings
    assert after["nodes"] == before["nodes"]
    assert not any(after["labels"].values())  # type: ignore[attr-defined]  # a mapping
    assert after["code"] == before["code"]
    assert after["ticket"] == before["ticket"]


async def test_only_the_shortfall_comes_from_idle_nodes(tmp_path: Path) -> None:
    """Two standbys are ready and three places free: both are taken, and one idle node."""
    bound, context = bound_for(tmp_path, "standby.acquire")
    with context.world.change() as data:
        data |= {"spare": ["n1", "w1", "w2"], "dead": []}
    action = ACTIONS["standby.acquire"]
    arguments: dict[str, Json] = {"count": 3, "job": "demo"}
    planned = [(change.subject, change.what) for change in await action.plan(bound, arguments)]
    assert planned == [
        ("s1", "standby -> reserved"),
        ("s2", "standby -> reserved"),
        ("w1", "idle, no standby -> reserved for the shortfall"),
    ]
    done = await action.apply(bound, arguments)
    assert (done.out["nodes"], done.out["spares"]) == (["s1", "s2", "w1"], ["w1"])
    assert "w1 no standby but idle, for the shortfall" in done.say
    assert set(context.world.read()["reservations"]) == {"s1", "s2", "w1"}


async def test_a_sick_idle_node_is_passed_over_as_a_sick_standby_is(tmp_path: Path) -> None:
    """It is taken out of service, and the next idle node is looked at."""
    bound, context = bound_for(tmp_path, "standby.acquire")
    with context.world.change() as data:
        data |= {"spare": ["w1", "w2"], "sick": ["s1", "w1"]}
    done = await ACTIONS["standby.acquire"].apply(bound, {"count": 2})
    assert (done.out["nodes"], done.out["spares"]) == (["s2", "w2"], ["w2"])
    assert set(context.world.read()["cordons"]) == {"s1", "w1"}


@pytest.mark.parametrize(
    "verb", ["node.cordon", "standby.acquire", "job.hot_update", "ticket.create"]
)
async def test_undo_leaves_alone_what_another_run_did(verb: str, tmp_path: Path) -> None:
    """Marks in the world decide what is ours."""
    bound, context = bound_for(tmp_path, verb)
    other = for_run(context, JournalledRun(context, tmp_path, "R-0777"))
    await ACTIONS[verb].apply(other, ARGUMENTS[verb])
    before = world_of(context)
    await ACTIONS[verb].undo(bound, ARGUMENTS[verb])
    assert world_of(context) == before
