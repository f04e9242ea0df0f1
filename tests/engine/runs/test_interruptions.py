"""A run that is interrupted anywhere, again and again, ends in a world that is allowed.

The cluster is simulated in memory behind the Backend contract, and a killed process is an exception
that nobody catches; test_crash.py beside it kills real processes. What is interrupted is real: the
engine, its journal on disk, its leases.
"""

import asyncio
import copy
import json
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from errno import ENOSPC
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from brctl.actions.context import RunContext
from brctl.actions.contract import ActionResult, VerbImplementation
from brctl.actions.registry import ACTIONS
from brctl.engine.runs import run_files
from brctl.engine.runs.carry_out import carry_out
from brctl.engine.runs.plan import prepare
from brctl.engine.runs.read_run import read_run
from brctl.engine.runs.remediate import answer, create_run, resume_direction
from brctl.engine.runs.run_files import RunRequest, save_request
from brctl.journal.locks import Lease, Leases
from brctl.journal.store import Journal, read_journal
from brctl.library.guards import SiteGuards
from brctl.library.playbooks import load_playbook, read_playbook
from brctl.library.shipped import shipped_dir
from brctl.model.errors import BrctlError, UsageError
from brctl.model.runs.event import Event, EventType
from brctl.model.runs.playbook import Arguments, GuardSpec, Json, Playbook, Safety
from brctl.playbook.steps import StepState
from brctl.playbook.verbs import VERBS
from tests.engine.runs.test_for_each import ROLLING
from tests.fakes.run_context import ACTIVE, STANDBYS, example_verdict, fake_context
from tests.fakes.world_file import EMPTY, WorldFile

SWAP = load_playbook(shipped_dir("playbooks") / "swap-and-resume.yaml")
LOCKED = ROLLING.replace("approval:\n", "guards: [{lock: {keys: [nodes]}}]\napproval:\n", 1)
NODES = read_playbook(LOCKED.encode(), "rolling.yaml")
OTHERS = {"n4": {"owner": "dcops", "reason": "fan", "at": "2026-07-05T11:00:00.000Z"}}
E = EventType
FIRST_LINES = (E.VERSION, E.RUN_STARTED, E.RUN_RESUMED)
"""Written before the leases are taken."""

LINES = st.integers(0, 14)
"""Fewer than a run has, so that several lives are needed to get through."""


class Killed(BaseException):
    """The process is gone at this very point; no handler of the engine sees it."""


@dataclass
class Trap:
    """One interruption, at the n-th journal line or change of the world of one life of the run.

    Attributes:
        back: Lines after which a lost network is there again.
        value: Seconds a clock jumps, or bytes of a line that still fit on the disk.
    """

    kind: str
    at: int
    back: int = 0
    value: int = 0


class MemoryWorld(WorldFile):
    """The cluster of `FakeBackend` in memory, with a trap set for the run."""

    def __init__(self) -> None:
        self._data: dict[str, Any] = copy.deepcopy(EMPTY | {"cordons": OTHERS})
        self.trap = Trap("none", -1)
        self.lines = self.changes = 0
        self.gone = self.fenced = False
        self.journal: Path | None = None
        self.orphans: list[str] = []

    def begin_life(self, trap: Trap) -> None:
        self.trap, self.lines, self.changes, self.gone = trap, 0, 0, False
        self._data["lost"] = self.fenced = False

    def read(self) -> dict[str, Any]:
        data: dict[str, Any] = json.loads(json.dumps(self._data))  # quicker than deepcopy
        if data.get("lost"):
            data["dead"] = [*ACTIVE, *STANDBYS]
        return data

    @contextmanager
    def change(self) -> Iterator[dict[str, Any]]:
        self.stop_if_gone()
        data = self.read()
        before = len(data["effects"])
        yield data
        data["dead"] = self._data["dead"]
        self._data = data
        if len(data["effects"]) > before:
            self._check_intent(data["effects"][-1])
            self.changes += 1
            if self.trap.kind == "kill after change" and self.changes > self.trap.at:
                self.die()

    def _check_intent(self, effect: str) -> None:
        """Nothing acts without its intent on disk."""
        assert self.journal is not None
        events = read_journal(self.journal).events
        opened = {E.STEP_INTENT: 1, E.UNDO_INTENT: 1, E.STEP_RESULT: -1, E.UNDO_RESULT: -1}
        lost = {E.RUN_RESUMED}
        open_intents = 0
        for event in events:
            open_intents = 0 if event.type in lost else open_intents + opened.get(event.type, 0)
        if open_intents < 1:
            self.orphans.append(effect)

    def heal(self) -> None:
        """The network is back and n3 is repaired."""
        self._data |= {"lost": False}

    def jump(self, seconds: int) -> None:
        self._data["seconds"] += seconds

    def lose(self, lost: bool) -> None:
        self._data["lost"] = lost

    def die(self) -> None:
        self.gone = True
        raise Killed

    def stop_if_gone(self) -> None:
        if self.gone:
            raise Killed


class TrappedJournal(Journal):
    """The real journal; the trap springs at its lines."""

    world: MemoryWorld

    def append(self, kind: EventType, at: datetime, fields: Mapping[str, Json]) -> Event:
        world, trap, number = self.world, self.world.trap, self.world.lines
        world.stop_if_gone()
        world.lines += 1
        here = number == trap.at
        if world.fenced and kind is not E.END:
            world.orphans.append(f"{kind} without a lease")
        if here and trap.kind == "kill before line":
            world.die()
        if here and trap.kind == "clock":
            world.jump(trap.value)
        if trap.kind == "network":
            world.lose(trap.at <= number < trap.at + trap.back)
        if here and trap.kind == "lease" and kind not in FIRST_LINES:
            self._steal_lease()
        with self._disk(full=trap.kind == "disk" and trap.at <= number, left=trap.value):
            event = super().append(kind, at, fields)
        if here and trap.kind == "kill after line":
            world.die()
        return event

    def _steal_lease(self) -> None:
        """Another controller was granted our nodes while we slept."""
        path = self._path.parents[2] / "locks" / "leases.json"
        self.world.fenced = True
        path.write_text(path.read_text().replace('"token": ', '"token": 9'))

    @contextmanager
    def _disk(self, *, full: bool, left: int) -> Iterator[None]:
        real = os.write

        def write(descriptor: int, raw: Any) -> int:
            if descriptor != self._descriptor:
                return real(descriptor, raw)
            if left == 0:
                raise OSError(ENOSPC, "No space left on device")
            return real(descriptor, raw[:left])

        if not full:
            yield
            return
        os.write = write
        try:
            yield
        finally:
            os.write = real


class WatchedAction:
    """A verb that reports when it is told to do what the world shows as done."""

    def __init__(self, name: str, inner: VerbImplementation, repeated: list[str]) -> None:
        self._name, self._inner, self._repeated = name, inner, repeated

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def apply(self, context: RunContext, args: Arguments) -> ActionResult:
        if (await self._inner.observe(context, args)).done:
            self._repeated.append(self._name)
        return await self._inner.apply(context, args)


class Interrupted(RuleBasedStateMachine):
    """One run, many lives. Every rule is one life of its process."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="brctl-interrupted-"))
        self.world = MemoryWorld()
        limit = GuardSpec("blast_radius", {"max_nodes": 6}, "g:1")
        self.context = fake_context(self.folder, world=self.world, guards=SiteGuards((limit,)))
        self.repeated: list[str] = []
        self.patches = pytest.MonkeyPatch()
        self._patch()

    def _patch(self) -> None:
        world, release = self.world, Leases.release

        def release_unless_dead(leases: Leases, lease: Lease) -> None:
            if not world.gone:
                release(leases, lease)

        # A process that is killed gives nothing back; and what write() took is not lost with it.
        self.patches.setattr(Leases, "release", release_unless_dead)
        self.patches.setattr(os, "fsync", lambda _descriptor: None)
        self.patches.setattr(run_files, "read_playbook", lru_cache(read_playbook))
        for name, action in list(ACTIONS.items()):
            if VERBS[name].safety is not Safety.READ:
                watched = WatchedAction(name, action, self.repeated)
                self.patches.setitem(ACTIONS, name, watched)

    @initialize(
        kind=st.sampled_from(["swap", "swap by hand", "nodes"]), faulty=st.sampled_from(["", "n2"])
    )
    def start(self, kind: str, faulty: str) -> None:
        """A swap for a verdict, one a person approves, or a check of nodes one by one."""
        self.kind = kind
        playbook: Playbook = NODES if kind == "nodes" else SWAP
        verdict, values = None, dict[str, Json]({"nodes": "n[1-2],s[1-2]"})
        if kind == "swap":
            verdict, values = example_verdict(), {}
        elif kind == "swap by hand":
            values = {"suspects": "n3", "job": "demo"}
        if kind == "nodes":
            with self.world.change() as data:
                data["sick"] = [faulty] if faulty else []
        prepared = asyncio.run(prepare(self.context, playbook, verdict, values))
        self.run_dir = create_run(self.context, prepared, RunRequest("cron", yes=True))
        self.world.journal = self.run_dir

    def live(self, trap: Trap) -> None:
        """One life of the run's process, to its end or into the trap."""
        self.world.begin_life(trap)

        @asynccontextmanager
        async def open_fake(_request: RunRequest) -> AsyncIterator[RunContext]:
            yield self.context

        def open_journal(run_dir: Path) -> Journal:
            journal = TrappedJournal(run_dir)
            journal.world = self.world
            return journal

        with suppress(Killed, BrctlError):
            asyncio.run(carry_out(self.run_dir, open_fake, open_journal))

    @rule(when=st.sampled_from(["before", "after"]), line=LINES)
    def killed_at_a_line(self, when: str, line: int) -> None:
        self.live(Trap(f"kill {when} line", line))

    @rule(changes=st.integers(0, 5))
    def killed_right_after_a_change(self, changes: int) -> None:
        self.live(Trap("kill after change", changes))

    @rule(line=LINES, lines=st.integers(1, 12))
    def network_lost_for_a_while(self, line: int, lines: int) -> None:
        self.live(Trap("network", line, back=lines))

    @rule(line=LINES, left=st.sampled_from([0, 1, 40]))
    def disk_full_from_a_line_on(self, line: int, left: int) -> None:
        self.live(Trap("disk", line, value=left))

    @rule(line=LINES, seconds=st.sampled_from([-86400, -61, 61, 600, 86400]))
    def clock_jumps(self, line: int, seconds: int) -> None:
        self.live(Trap("clock", line, value=seconds))

    @rule(line=LINES)
    def another_controller_takes_the_lease(self, line: int) -> None:
        self.live(Trap("lease", line))
        shutil.rmtree(self.context.state_dir / "locks", ignore_errors=True)

    @rule()
    def a_person_says_yes(self) -> None:
        self._answer()
        self.live(Trap("none", -1))

    @rule(when=st.sampled_from(["before", "after"]), line=LINES)
    def a_person_resumes_and_it_is_killed_again(self, when: str, line: int) -> None:
        """Forward or back, as `play resume` chooses; the turn itself is no bad moment to die."""
        self._resume(Trap(f"kill {when} line", line))

    def _resume(self, trap: Trap) -> None:
        direction = resume_direction(read_run(self.run_dir))
        save_request(self.run_dir, RunRequest("cron", yes=True, forward=direction.forward))
        self.live(trap)
        save_request(self.run_dir, RunRequest("cron", yes=True))

    def _answer(self) -> None:
        record = read_run(self.run_dir).record
        if record.result == "waiting" and record.question:
            answer(self.context, self.run_dir, "ann", yes=True)

    @invariant()
    def the_journal_is_sound_and_tells_every_change(self) -> None:
        """No gap, no half line, nothing done without its intent, nothing done when it was done."""
        if not hasattr(self, "run_dir"):
            return
        assert read_journal(self.run_dir).damage == ()
        assert self.world.orphans == []
        assert self.repeated == []
        self._nothing_is_done_again_after_it_is_done()

    def _nothing_is_done_again_after_it_is_done(self) -> None:
        done: set[str] = set()
        for event in read_journal(self.run_dir).events:
            step = str(event.fields.get("step", ""))
            if event.type is E.STEP_INTENT:
                assert step not in done, f"{step} was started again"
            elif event.type is E.STEP_SETTLED or (
                event.type is E.STEP_RESULT and event.fields.get("ok") is True
            ):
                done.add(step)
            elif event.type is E.UNDO_INTENT:
                done.discard(step)

    def teardown(self) -> None:
        try:
            if hasattr(self, "run_dir"):
                self._let_it_end()
                self._the_world_is_allowed()
        finally:
            self.patches.undo()
            shutil.rmtree(self.folder)

    def _let_it_end(self) -> None:
        self.world.heal()
        for _ in range(6):
            self.live(Trap("none", -1))
            if read_run(self.run_dir).record.result not in ("waiting", ""):
                break
            self._answer()
        if (
            read_run(self.run_dir).state == "needs_human"
            and resume_direction(read_run(self.run_dir)).forward
        ):
            self._resume(Trap("none", -1))
            assert read_run(self.run_dir).state == "ok", "the network is back, and it goes forward"
        if read_run(self.run_dir).record.paused:
            self._roll_back_what_a_guard_paused()

    def _roll_back_what_a_guard_paused(self) -> None:
        """Nobody's yes helps: a person takes it back, unless the job was stopped already."""
        with pytest.raises(UsageError, match="asks nobody: paused by"):
            answer(self.context, self.run_dir, "ann", yes=True)
        save_request(self.run_dir, RunRequest("ann", undo=True))
        self.live(Trap("none", -1))

    def _the_world_is_allowed(self) -> None:
        run, world = read_run(self.run_dir), self.world.read()
        self.ended_as = run.state
        self.the_journal_is_sound_and_tells_every_change()
        assert world["cordons"].pop("n4")["owner"] == "dcops"
        owners = {
            row["owner"] for table in ("cordons", "reservations") for row in world[table].values()
        }
        assert owners <= {"brctl:R-0001"}
        assert len(set(world["ranks"].values())) <= 1
        allowed = NODES_MAY_END if self.kind == "nodes" else SWAP_MAY_END
        assert run.state in allowed, run.state
        allowed[run.state](world)
        assert run.record.in_state(StepState.RUNNING, StepState.UNCERTAIN, StepState.UNDOING) == ()


def _swapped(world: dict[str, Any]) -> None:
    assert [node for node in world["nodes"] if node in STANDBYS]
    assert (set(world["cordons"]) - set(STANDBYS), world["reservations"]) == ({"n3"}, {})
    assert set(world["ranks"].values()) == {"R-0001"}
    assert len(world["ranks"]) == 4


def _as_before(world: dict[str, Any]) -> None:
    assert set(world["cordons"]) <= set(STANDBYS)
    assert world["reservations"] == {}
    assert world["nodes"] == list(ACTIVE)
    assert set(world["ranks"].values()) == {"first"}


def _cordoned_only(world: dict[str, Any]) -> None:
    assert "n3" in world["cordons"]
    assert world["reservations"] == {}
    assert world["nodes"] == list(ACTIVE)


def _told(world: dict[str, Any]) -> None:
    """A person must look; what is left is this run's own, and the rest is checked above."""


SWAP_MAY_END: Mapping[str, Callable[[dict[str, Any]], None]] = {
    "ok": _swapped,
    "rolled_back": _as_before,
    "refused": _as_before,
    "expired": _cordoned_only,
    "needs_human": _told,
}


def _in_service(world: dict[str, Any]) -> None:
    assert world["cordons"] == {}


NODES_MAY_END: Mapping[str, Callable[[dict[str, Any]], None]] = {
    "ok": _in_service,
    "partial": _in_service,
    "rolled_back": _in_service,
    "expired": _in_service,
    "needs_human": _told,
}

TestInterrupted = Interrupted.TestCase
TestInterrupted.settings = settings(max_examples=10, stateful_step_count=5)


def test_a_swap_whose_verdict_grew_old_while_it_was_cut_off_can_be_taken_back() -> None:
    """Its guard pauses it for good, so the way on is back."""
    life = Interrupted()
    try:
        life.start(kind="swap", faulty="")
        life.killed_right_after_a_change(changes=0)
        life.clock_jumps(line=0, seconds=86400)
        assert read_run(life.run_dir).record.paused
    finally:
        life.teardown()
    assert life.ended_as == "rolled_back"


def test_a_swap_that_lost_its_network_anywhere_goes_forward_or_back_to_an_allowed_end() -> None:
    """From every line on nobody answers any more; then the network is back and a person resumes.

    Where the job was stopped already, it ends with the job on the standby, however far back the
    rollback had gone.
    """
    ways: dict[bool, int] = {}
    for line in range(4, 40):
        life = Interrupted()
        try:
            life.start(kind="swap", faulty="")
            life.live(Trap("network", line, back=99))
            forward = resume_direction(read_run(life.run_dir)).forward
            ways[forward] = ways.get(forward, 0) + 1
            if forward and line % 2:
                life._resume(Trap("kill after line", line % 9))
        finally:
            life.teardown()
    assert ways[True] > 3, ways
