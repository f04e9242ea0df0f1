"""A watcher in a made-up world: what it suspects, asks, decides, and leaves on disk."""

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from brctl.engine.application.watching.contract import Examined
from brctl.engine.watch.folder import WatchFolder
from brctl.engine.watch.leader import LEASE_S, Leader, refuse_old_token
from brctl.engine.watch.policy_file import policy_or_observe
from brctl.model.errors import GuardError, LockedError
from brctl.model.jobs.job import Job
from brctl.model.sweeps.check import Check
from brctl.model.watch.policy import WatchMode, WatchPolicy
from brctl.model.watch.state import WatchRecord, WatchState
from brctl.watch.gates import GateFacts, WatchedVerdict
from brctl.watch.rules import OF_CHECK, ROUNDS
from tests.fakes.watched_world import FLEET, FOUND, JOB, LOST, World, run, steps
from tests.fakes.watching import FakeClock, FakeHands, measured


class Unchallenged(Leader):
    """Leads without writing so; a day of ticks is no test of a disk."""

    def renew(self, now: datetime) -> None:
        """Nobody else is there."""


def test_a_lost_gpu_is_suspected_confirmed_decided_and_fixed_once(
    tmp_path: Path, checks: dict[str, Check]
) -> None:
    async def scenario() -> None:
        world = World(tmp_path, checks)
        world.nodes.say("n1", LOST)
        await world.look()
        assert world.hands.examined == []
        await world.look(5)
        assert world.hands.examined == [("example", ("n1", "n2"))]
        assert world.hands.fixes == [("V-1", world.leader.token)]
        assert world.kinds() == ["start", "suspicion", "confirmed", "verdict", "decision"]

    run(scenario)


def test_a_gpu_on_fewer_pcie_lanes_is_suspected_at_once(
    tmp_path: Path, checks: dict[str, Check]
) -> None:
    """What changes with the load stays on the node; lanes do not."""

    async def scenario() -> None:
        world = World(tmp_path, checks)
        lanes = {"gpu__pcie__width": 4, "gpu__pcie__max_width": 16, "gpu__pcie__max_generation": 5}
        world.nodes.say("n1", measured("gpu.pcie", "gpu:GPU-1", **lanes))
        await world.look()
        suspicion = world.folder.records(1)[0]
        assert suspicion.text("rule") == "gpu"
        assert suspicion.text("text") == "gpu:GPU-1 uses 4 of 16 PCIe lanes"

    run(scenario)


def test_a_fault_that_healed_before_the_diagnosis_changes_nothing(
    tmp_path: Path, checks: dict[str, Check]
) -> None:
    async def scenario() -> None:
        world = World(tmp_path, checks)
        world.hands.heals = True
        world.nodes.say("n1", LOST)
        await world.look(3)
        assert world.hands.fixes == []
        decision = world.folder.records(1)[0]
        assert decision.text("held").startswith("sure: no-fault names no cause")

    run(scenario)


def test_thirty_nodes_that_fall_silent_at_once_are_one_message_and_no_cordon(
    tmp_path: Path, checks: dict[str, Check]
) -> None:
    async def scenario() -> None:
        world = World(tmp_path, checks)
        world.nodes.away = {f"n{number}": 90.0 for number in range(3, 33)}
        await world.look(20)
        assert world.kinds() == ["start", "network"]
        assert world.hands.examined == []
        world.nodes.away = {"n3": 90.0}
        await world.look()
        world.nodes.away = {"n3": 120.0}
        await world.look()
        assert world.hands.examined == [("", ("n3",))]

    run(scenario)


def test_nodes_whose_turn_to_log_in_has_not_come_are_neither_silent_nor_talking(
    tmp_path: Path, checks: dict[str, Check]
) -> None:
    """After a storm a fleet logs in over a minute: who waits is no trouble, and clears nobody."""

    async def scenario() -> None:
        world = World(tmp_path, checks)
        world.nodes.queued = frozenset(f"n{number}" for number in range(5, 33))
        await world.look(2)
        assert world.kinds() == ["start"]
        world.nodes.away = {"n3": 90.0, "n4": 90.0}
        await world.look(3)
        assert world.kinds() == ["start"]
        world.nodes.queued = frozenset()
        await world.look(2)
        assert "suspicion" in world.kinds()

    run(scenario)


def test_a_node_that_nobody_can_ask_any_more_stays_suspected_and_its_ranks_unknown(
    tmp_path: Path, checks: dict[str, Check]
) -> None:
    """A dead node's `kubectl exec` says nothing of it, and its last answers were of a live one."""

    async def scenario() -> None:
        world = World(tmp_path, checks)
        steps(world, 95, 1.0)
        await world.look()
        for seconds in (31.0, 61.0):
            world.nodes.away = {"n1": seconds}
            await world.look()
        world.nodes.away, world.nodes.unasked = {}, frozenset({"n1"})
        await world.look(3)
        assert "node-silent/n1" in world.watcher.state.suspicions
        assert "ended" not in world.kinds()
        steps(world, 95, 200.0)
        await world.look()
        unknown = world.watcher._answers.job_status(JOB, world.nodes.stale())
        assert unknown.silent
        world.nodes.unasked = frozenset()
        await world.look(2)
        assert "ended" in world.kinds()

    run(scenario)


def test_a_nan_is_told_at_the_first_look_and_accuses_no_node(
    tmp_path: Path, checks: dict[str, Check]
) -> None:
    async def scenario() -> None:
        world = World(tmp_path, checks)
        steps(world, 96, 0.2, job__rank__loss_finite=False, job__rank__first_nonfinite_step=95)
        await world.look()
        suspicion = next(r for r in world.folder.records(9) if r.kind == "suspicion")
        assert suspicion.text("rule") == "not-a-number"
        assert suspicion.text("subject") == "example"
        assert suspicion.text("text") == "no number on 2 ranks since step 95"

    run(scenario)


def test_a_job_without_a_step_is_diagnosed(tmp_path: Path, checks: dict[str, Check]) -> None:
    async def scenario() -> None:
        world = World(tmp_path, checks)
        steps(world, 95, 1.0)
        await world.look()
        steps(world, 95, 70.0)
        await world.look(1, every_s=69.0)
        assert world.hands.examined == [("example", ("n1", "n2"))]

    run(scenario)


@pytest.mark.parametrize("hours", [1, -1])
def test_a_clock_that_jumps_an_hour_is_no_stall(
    tmp_path: Path, checks: dict[str, Check], hours: int
) -> None:
    """The nodes' clocks and ours: the age that a node tells is an hour more at once."""

    async def scenario() -> None:
        world = World(tmp_path, checks)
        steps(world, 95, 1.0)
        await world.look()
        world.clock.go(0.0, jump=timedelta(hours=hours))
        steps(world, 95, 3600.0)
        await world.look(4)
        assert world.hands.examined == []
        assert "clock" in world.kinds()

    run(scenario)


def test_while_a_run_is_at_work_on_a_job_nothing_is_suspected_of_it(
    tmp_path: Path, checks: dict[str, Check]
) -> None:
    async def scenario() -> None:
        world = World(tmp_path, checks)
        world.hands.working["example"] = "R-7 (stop-job) stopped it"
        steps(world, 95, 70.0, job__rank__exit_status=9)
        await world.look(40)
        assert world.kinds() == ["start"]

    run(scenario)


def test_a_job_that_ends_as_it_should_is_no_stall(tmp_path: Path, checks: dict[str, Check]) -> None:
    async def scenario() -> None:
        world = World(tmp_path, checks)
        steps(world, 95, 70.0, job__rank__exit_status=0)
        await world.look(60)
        assert world.kinds() == ["start"]

    run(scenario)


def test_a_node_that_a_person_uncordoned_is_left_alone(
    tmp_path: Path, checks: dict[str, Check]
) -> None:
    async def scenario() -> None:
        world = World(tmp_path, checks)
        world.hands.people["n1"] = world.clock.now - timedelta(hours=2)
        world.nodes.say("n1", LOST)
        await world.look(3)
        assert world.hands.fixes == []
        assert world.hands.pages == ["V-1"], "a page keeps nobody from the node"
        assert world.folder.records(1)[0].text("held").startswith("quiet:")

    run(scenario)


def test_a_frozen_leader_finds_out_before_it_acts(tmp_path: Path, checks: dict[str, Check]) -> None:
    """Its lease ran out, another one leads with a higher number; the frozen one ends."""

    async def scenario() -> None:
        world = World(tmp_path, checks)
        frozen = world.watcher
        world.nodes.say("n1", LOST)
        await world.look()
        world.clock.go(LEASE_S + 1)
        world.another()
        with pytest.raises(LockedError, match="holds it now"):
            frozen.tick(world.clock.now, world.clock.seconds, world.jobs, FLEET)
        assert world.hands.fixes == []

    run(scenario)


@pytest.mark.parametrize("cap", [WatchMode.ACT, WatchMode.PROPOSE])
def test_a_diagnosis_that_ends_after_a_person_said_stop_does_nothing(
    tmp_path: Path, checks: dict[str, Check], cap: WatchMode
) -> None:
    async def scenario() -> None:
        world = World(tmp_path, checks)
        world.watcher._cap = cap
        world.nodes.say("n1", LOST)
        await world.look()
        world.folder.stop("alice", "maintenance", world.clock.now)
        await world.look(2)
        assert world.hands.examined
        assert (world.hands.fixes, world.hands.pages) == ([], [])
        assert world.watcher.state.acts == ()
        with pytest.raises(GuardError, match="stopped by alice: maintenance"):
            refuse_old_token(world.path, "here", world.leader.token)
        world.folder.lift()
        refuse_old_token(world.path, "here", world.leader.token)

    run(scenario)


def test_a_second_watcher_is_told_who_leads(tmp_path: Path) -> None:
    clock = FakeClock()
    first, second = Leader(tmp_path, "here"), Leader(tmp_path, "here")
    first.holder, second.holder = "ctl1 pid 7", "ctl2 pid 9"
    first.take(clock.now)
    with pytest.raises(LockedError, match="ctl1 pid 7 watches here already"):
        second.take(clock.now)
    second.take(clock.now + timedelta(seconds=LEASE_S + 1))
    assert second.token > first.token


def test_after_a_restart_the_breaker_and_the_attempts_are_what_they_were(
    tmp_path: Path, checks: dict[str, Check]
) -> None:
    async def scenario() -> None:
        world = World(tmp_path, checks)
        world.nodes.say("n1", LOST)
        await world.look(3)
        assert len(world.hands.fixes) == 1
        world.clock.go(LEASE_S + 1)
        world.another()
        assert [act.verdict for act in world.watcher.state.acts] == ["V-1"]
        world.nodes.say("n1", LOST)
        await world.look(3)
        assert len(world.hands.fixes) == 1, "the same suspicion was decided about already"

    run(scenario)


class Killed(BaseException):
    """What a kill -9 does: nothing of the process runs after it."""


class MortalFolder(WatchFolder):
    """Keeps what is written in memory, and dies before or after the write that a test names."""

    left = 10**6
    state: bytes = b""

    def load_state(self) -> WatchState | None:
        return msgspec.json.decode(self.state, type=WatchState) if self.state else None

    def save_state(self, state: WatchState) -> None:
        self._live()
        self.state = msgspec.json.encode(state)
        self._live()

    def append(self, record: WatchRecord) -> None:
        self._live()
        self._live()

    def _live(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise Killed


def mortal_world(folder: Path, checks: dict[str, Check], point: int) -> tuple[World, MortalFolder]:
    """A watcher of six nodes without a job that dies at a point; three of them are sick."""
    world = World(folder, checks, fleet=frozenset(f"n{number}" for number in range(1, 7)))
    mortal = MortalFolder(world.path, "here")
    world.folder = world.watcher._folder = mortal
    world.jobs = ()
    world.hands.known, world.hands.spares = 128, 99
    mortal.left = point
    return world, mortal


async def until_killed(world: World, ticks: int) -> bool:
    """Two nodes are sick; whether the watcher died of what it wrote."""
    for node in ("n1", "n2"):
        world.nodes.say(node, LOST)
    try:
        await world.look(ticks)
    except Killed:
        await world.end()
        return True
    return False


def test_killed_at_each_of_fifty_points_it_starts_one_fix_a_verdict_and_keeps_its_window(
    tmp_path: Path, checks: dict[str, Check]
) -> None:
    """Before and after every write while it decides; another one takes over each time."""

    async def scenario(point: int) -> bool:
        world, mortal = mortal_world(tmp_path / str(point), checks, point)
        killed = await until_killed(world, 4)
        started = list(world.hands.fixes)
        mortal.left = 10**6
        world.clock.go(LEASE_S + 1)
        world.another()
        kept = {act.verdict for act in world.watcher.state.acts}
        assert {verdict for verdict, _ in started} <= kept, "what was begun was on disk before"
        await until_killed(world, 4)
        verdicts = [verdict for verdict, _ in world.hands.fixes]
        assert len(verdicts) == len(set(verdicts))
        acted = [node for act in world.watcher.state.acts for node in act.nodes]
        assert sorted(acted) == ["n1", "n2"], "each node once, whoever did it"
        return killed

    killed = [asyncio.run(scenario(point)) for point in range(50)]
    assert killed[:20] == [True] * 20, "the points lie where it decides"
    assert not all(killed), "the last ones lie behind the last write"


@pytest.mark.parametrize("when", ["examine", "facts"])
def test_a_leader_that_wakes_in_the_middle_of_a_decision_does_not_act(
    tmp_path: Path, checks: dict[str, Check], when: str
) -> None:
    """It slept through its lease between the diagnosis and the deed; another one leads by then."""

    class Frozen(FakeHands):
        def sleep(self, moment: str) -> None:
            if moment == when and not self.slept:
                self.slept = True
                self._clock.go(LEASE_S + 1)
                other = Leader(tmp_path, "here")
                other.holder = "ctl2 pid 9"
                other.take(self._clock.now)

        slept = False

        async def examine(self, job: Job | None, nodes: Sequence[str]) -> Examined:
            self.sleep("examine")
            return await super().examine(job, nodes)

        async def facts(self, verdict: WatchedVerdict, policy: WatchPolicy) -> GateFacts:
            self.sleep("facts")
            return await super().facts(verdict, policy)

    async def scenario() -> None:
        world = World(tmp_path, checks)
        hands = Frozen(world.clock)
        world.taken_over(hands)
        world.nodes.say("n1", LOST)
        with pytest.raises(LockedError, match="ctl2 pid 9 holds it now"):
            await world.look(4)
        assert hands.slept
        assert hands.fixes == []

    run(scenario)


@pytest.mark.parametrize(
    ("phase", "age_s", "suspected"),
    [("evaluation", 3000.0, False), ("checkpoint", 900.0, False), ("forward", 900.0, True)],
)
def test_a_long_evaluation_or_checkpoint_is_no_stall_and_a_long_step_is(
    tmp_path: Path, checks: dict[str, Check], phase: str, age_s: float, *, suspected: bool
) -> None:
    async def scenario() -> None:
        world = World(tmp_path, checks)
        steps(world, 95, 1.0)
        await world.look()
        steps(world, 95, age_s, phase)
        await world.look(3, every_s=age_s / 2)
        assert ("suspicion" in world.kinds()) is suspected

    run(scenario)


def test_a_controller_that_was_frozen_for_an_hour_takes_no_old_answer_for_a_stall(
    tmp_path: Path, checks: dict[str, Check]
) -> None:
    """Suspended with its machine: both clocks went on, nobody was heard, and the nodes are well."""

    async def scenario() -> None:
        world = World(tmp_path, checks)
        steps(world, 95, 0.3)
        await world.look(2)
        world.clock.go(3600.0)
        world.nodes.away = dict.fromkeys(sorted(FLEET), 3600.0)
        await world.look()
        world.nodes.away = {}
        steps(world, 4000, 0.3)
        await world.look(5)
        assert (world.hands.examined, world.hands.fixes) == ([], [])
        assert set(world.kinds()) == {"start", "network"}

    run(scenario)


def test_a_policy_that_cannot_be_read_is_said_at_the_start_and_nothing_is_done(
    tmp_path: Path, checks: dict[str, Check]
) -> None:
    async def scenario() -> None:
        world = World(tmp_path, checks)
        wrong = tmp_path / "watch.yaml"
        wrong.write_text("apiVersion: brctl.dev/v1\nkind: WatchPolicy\nmoed: act\n")
        wrong.chmod(0o600)
        world.watcher._policy = policy_or_observe(wrong)
        world.watcher.begin(world.clock.now, "0.1.0 wrong", len(FLEET))
        world.nodes.say("n1", LOST)
        await world.look(4)
        assert any("only observing" in line and "moed" in line for line in world.told)
        assert (world.hands.fixes, world.hands.pages) == ([], [])
        decision = world.folder.records(1)[0]
        assert (decision.text("mode"), "moed" in decision.text("held")) == ("observe", True)

    run(scenario)


def test_a_day_of_a_healthy_fleet_suspects_nothing(
    tmp_path: Path, checks: dict[str, Check]
) -> None:
    """24 h in minutes: steps, an evaluation of ten minutes, counters that stand still."""

    async def scenario() -> None:
        world = World(tmp_path, checks, fleet=frozenset(JOB.nodes))
        world.watcher._leader = Unchallenged(tmp_path, "here")
        world.nodes.say("n1", FOUND)
        for minute in range(24 * 60):
            if minute % 120 >= 10:
                steps(world, minute, 0.3)
            elif minute % 120 == 0:
                steps(world, minute, 400.0, "evaluation")
            await world.look(1, every_s=60.0)
        assert world.kinds() == ["start"]

    run(scenario)


def test_every_check_of_a_rule_is_asked_in_some_round() -> None:
    asked = {name for names in ROUNDS.values() for name in names}
    assert set(OF_CHECK) <= asked
