"""A watcher: looks, judges as `dx` does, writes why, and at most starts `fix` as its own process.

Nothing that matters is kept in memory: killed at any moment it loses one look. What it decided to
start is on disk before it is started (decision 0395).
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from brctl.engine.application.watching.contract import Attempt, Hands, Nodes
from brctl.engine.watch.folder import WatchFolder
from brctl.engine.watch.leader import RENEW_S, Leader, refuse_stopped
from brctl.model.errors import BrctlError
from brctl.model.jobs.job import Job
from brctl.model.nodeset import fold
from brctl.model.sweeps.check import Check
from brctl.model.units import rfc3339
from brctl.model.verdict import Verdict
from brctl.model.watch.policy import WatchMode, WatchPolicy, strictest
from brctl.model.watch.state import (
    MassEvent,
    Sighting,
    Suspicion,
    WatchAct,
    WatchDecision,
    WatchRecord,
    WatchState,
)
from brctl.view.watch.record import gate_rows, what_became
from brctl.watch.answers import FleetAnswers
from brctl.watch.crowds import crowd_text, crowds
from brctl.watch.deep_looks import DeepLook, deep_look, has_room
from brctl.watch.gates import (
    UNNAMED,
    WatchedVerdict,
    closed_breaker,
    decide,
    shifted,
)
from brctl.watch.node_rules import BEFORE_WE_CAME, network_trouble, silence_sightings
from brctl.watch.retries import Retries
from brctl.watch.rules import RULES, title_of
from brctl.watch.suspicions import (
    after_look,
    only_of,
    reopened,
    undiagnosed,
    verdicts_that_cover,
)

SILENT_AFTER_S = 30.0
"""Three heartbeats."""

JOBS_EVERY_S = 2.0
"""Ranks are heard of every 10 s; looking oftener would read the same again."""

CLOCK_JUMP_S = 30.0
KEPT = timedelta(days=2)
DECISIONS_KEPT = 1000


class Watcher:
    """One watcher of one context, a tick at a time."""

    def __init__(
        self,
        folder: WatchFolder,
        leader: Leader,
        nodes: Nodes,
        hands: Hands,
        checks: Mapping[str, Check],
        policy: WatchPolicy,
        cap: WatchMode,
        say: Callable[[str], None],
    ) -> None:
        self._folder, self._leader, self._nodes, self._hands = folder, leader, nodes, hands
        self._policy, self._cap, self._say = policy, cap, say
        self._answers = FleetAnswers(checks)
        self._deep: dict[str, tuple[DeepLook, asyncio.Task[None]]] = {}
        self._crowd_verdicts: dict[str, tuple[str, ...]] = {}
        self._crowd_since: dict[str, datetime] = {}
        self._telling: dict[str, asyncio.Task[None]] = {}
        self._scheduler = ""
        self._renewed_s = self._last_s = self._jobs_s = -RENEW_S
        self._last_at: datetime | None = None
        self._retries, self._untold = Retries(), Retries()
        self.state = self._saved = WatchState(_NEVER)

    def begin(self, now: datetime, under: str, known: int) -> None:
        """Take up what the watcher before left; a new version or policy begins by observing."""
        before = self._folder.load_state() or WatchState(now, under)
        unsure = [act for act in before.acts if act.verdict not in before.decided]
        decided = {**before.decided, **{act.verdict: WatchMode.ACT.value for act in unsure}}
        before = replace(before, decided=decided)
        standing = {
            key: s if _is_settled(s, before) else undiagnosed(s)
            for key, s in before.suspicions.items()
            if s.rule in RULES  # another version may have had others
        }
        self.state = replace(before, began_at=now, under=under, suspicions=standing)
        policy = self._policy
        self._record(
            now, "start", holder=self._leader.holder, token=self._leader.token, nodes=known,
            mode=str(self._cap), policy=policy.origin, problem=policy.problem, under=under,
        )  # fmt: skip
        if policy.problem:
            self._say(f"warning: only observing: {policy.problem}")
        for act in unsure:
            text = f"the watcher before ended while it started fix {act.verdict}: see brctl runs"
            self._record(now, "error", verdict=act.verdict, text=text)
            self._say(f"error  {text}")

    def tick(
        self,
        now: datetime,
        seconds: float,
        jobs: Sequence[Job],
        known: frozenset[str],
        scheduler: str = "",
    ) -> None:
        """One look at all that was said since the last one.

        Args:
            now: The wall clock.
            seconds: A monotonic clock.
            jobs: On the nodes they run on now.
            known: Every node that is looked at.
            scheduler: Why nobody knows where jobs run now; "" where it was told lately.

        Raises:
            LockedError: Another watcher leads now.
        """
        if seconds - self._renewed_s >= RENEW_S:
            self._leader.renew(now)
            self._renewed_s = seconds
        for about in [about for about, (_, task) in self._deep.items() if task.done()]:
            self._deep.pop(about)[1].result()
        self._tell_of_the_scheduler(now, scheduler)
        self._mind_the_clock(now, seconds)
        self._close_breaker(now)
        self._suspect(now, seconds, jobs, known)
        self._tell_again(seconds)
        self._diagnose(jobs)
        if self.state != self._saved:
            self._save(self.state)

    async def settle(self) -> None:
        """Wait for what was begun."""
        await asyncio.gather(*self._begun())

    async def close(self) -> None:
        """Give up the diagnoses that go on; what nobody decided about is judged anew later."""
        for task in self._begun():
            task.cancel()
        await asyncio.gather(*self._begun(), return_exceptions=True)

    def _begun(self) -> list[asyncio.Task[None]]:
        return [*(task for _, task in self._deep.values()), *self._telling.values()]

    def _mind_the_clock(self, now: datetime, seconds: float) -> None:
        """A wall clock that was set moves what was recorded with it: spans stay as long."""
        if self._last_at is not None:
            jump = (now - self._last_at) - timedelta(seconds=seconds - self._last_s)
            if abs(jump) > timedelta(seconds=CLOCK_JUMP_S):
                self.state = shifted(self.state, jump)
                self._answers.shift(jump)
                self._record(now, "clock", jump_s=round(jump.total_seconds(), 1))
        self._last_at, self._last_s = now, seconds

    def _close_breaker(self, now: datetime) -> None:
        why = self._folder.breaker_closed()
        if why:
            self.state = closed_breaker(self.state, now)
            self._record(now, "breaker-closed", why=why)
            self._say(f"breaker  closed: {why}")

    def _leave_people_alone(self, now: datetime) -> None:
        quiet_s = timedelta(seconds=self._policy.limits.quiet_s)
        fresh = {
            node: at + quiet_s
            for node, at in self._hands.touched(now - quiet_s).items()
            if at + quiet_s > now and self.state.quiet.get(node) != at + quiet_s
        }
        if fresh:
            self._record(now, "quiet", nodes=sorted(fresh))
        kept = {node: until for node, until in self.state.quiet.items() if until > now}
        acts = tuple(act for act in self.state.acts if now - act.at < KEPT)
        decided = dict(list(self.state.decided.items())[-DECISIONS_KEPT:])
        self.state = replace(self.state, quiet={**kept, **fresh}, acts=acts, decided=decided)

    def _suspect(
        self, now: datetime, seconds: float, jobs: Sequence[Job], known: frozenset[str]
    ) -> None:
        for node, said in self._nodes.said().items():
            self._answers.take(node, said.fresh, said.looks, now, said.told)
        self._answers.keep_only(known)
        silent = {n: s for n, s in self._nodes.silent_s(SILENT_AFTER_S).items() if n in known}
        waiting = self._nodes.waiting() & known
        unknown = silent.keys() | self._nodes.stale()
        trouble = network_trouble(silent, len(known - waiting))
        self._tell_of_the_network(now, trouble, tuple(sorted(silent)))
        since, heard = self.state.began_at - BEFORE_WE_CAME, self.state.kernel_since
        seen = [
            *self._answers.node_sightings(since, heard),
            *silence_sightings(silent, known, waiting),
        ]
        seen_jobs, looked = self._look_at_jobs(seconds, jobs, unknown)
        looked |= {
            (held.rule, held.subject)
            for held in self.state.suspicions.values()
            if held.subject not in unknown and self._answers.could_look(held.rule, held.subject)
        }
        seen += seen_jobs
        before = only_of(self.state.suspicions, known | {job.name for job in jobs})
        news = after_look(before, seen, looked, now)
        self.state = replace(self.state, suspicions=news.suspicions)
        self._retries.keep_only(news.suspicions)
        # What a kernel said is settled by one diagnosis; only later lines are news.
        fresh = {s.subject: now for s in news.confirmed if s.rule == "kernel-fatal"}
        if fresh:
            self.state = replace(self.state, kernel_since={**heard, **fresh})
        for kind, suspicions in (
            ("suspicion", news.opened), ("confirmed", news.confirmed), ("ended", news.ended),
        ):  # fmt: skip
            for suspicion in suspicions:
                self._tell(now, kind, suspicion)
        self._tell_of_crowds(now, len(known))

    def _look_at_jobs(
        self, seconds: float, jobs: Sequence[Job], unknown: Iterable[str]
    ) -> tuple[list[Sighting], set[tuple[str, str]]]:
        """What speaks against the course of jobs, but for those that brctl itself is at."""
        seen: list[Sighting] = []
        looked: set[tuple[str, str]] = set()
        if seconds - self._jobs_s < JOBS_EVERY_S:
            return seen, looked
        self._jobs_s = seconds
        for job in jobs:
            found, could = self._answers.job_sightings(
                self._answers.job_status(job, unknown), seconds
            )
            if found and self._hands.busy_with(job.name):
                continue
            seen += found
            looked |= could
        return seen, looked

    def _tell(self, now: datetime, kind: str, suspicion: Suspicion) -> None:
        self._record(
            now, kind, rule=suspicion.rule, subject=suspicion.subject, text=suspicion.text,
            looks=suspicion.looks,
        )  # fmt: skip
        self._say(f"{kind}  {suspicion.rule} {suspicion.subject}: {suspicion.text}")

    def _tell_of_the_scheduler(self, now: datetime, trouble: str) -> None:
        if trouble != self._scheduler:
            text = f"where jobs run cannot be asked: {trouble}" if trouble else "it answers again"
            self._record(now, "scheduler", text=text)
            self._say(f"scheduler  {text}")
            self._scheduler = trouble

    def _tell_of_the_network(self, now: datetime, trouble: str, nodes: tuple[str, ...]) -> None:
        """Once for each time that many nodes fall silent, and once when they are back."""
        if bool(trouble) != bool(self.state.network):
            text = trouble or "the nodes answer again"
            self._record(now, "network", text=text)
            self._say(f"network  {text}")
            self.state = replace(self.state, network=trouble)
            self._tell_people(MassEvent("many-silent", text, nodes, over=not trouble))

    def _tell_of_crowds(self, now: datetime, known: int) -> None:
        """Once for each time that a rule suspects many nodes, and once when it does no more."""
        before = self.state.crowds
        found = crowds(self.state.suspicions.values(), known, now, before)
        self.state = replace(self.state, crowds=found)
        for rule in found.keys() - before.keys():
            self._crowd_since[rule] = now
            text = crowd_text(rule, found[rule], known)
            self._record(now, "crowd", rule=rule, nodes=list(found[rule]), text=text)
            self._say(f"crowd  {text}")
            self._tell_people(MassEvent(f"many-{rule}", text, found[rule]))
        for rule in before.keys() - found.keys():
            text = f"{title_of(rule)}: no longer on many nodes at once"
            self._record(now, "crowd-over", rule=rule, text=text)
            self._say(f"crowd  {text}")
            self._tell_people(MassEvent(f"many-{rule}", text, (), over=True))
            self._crowd_verdicts.pop(rule, None)
            left = {
                key: reopened(held, self.state.acts) if held.rule == rule else held
                for key, held in self.state.suspicions.items()
            }
            self.state = replace(self.state, suspicions=left)

    def _tell_people(self, event: MassEvent) -> None:
        """Beside the loop, until somebody is told; the end of what nobody heard of is no news."""
        before, untold = self._telling.get(event.about), dict(self.state.untold)
        begun = untold.pop(event.about, None)
        unheard = begun is not None and not begun.over and (before is None or before.done())
        if not (event.over and unheard) and self._may_tell():
            untold[event.about] = event
            self._telling[event.about] = asyncio.ensure_future(self._tell_event(event, before))
        self.state = replace(self.state, untold=untold)

    def _may_tell(self) -> bool:
        return strictest(self._cap, self._policy.most) is not WatchMode.OBSERVE

    def _tell_again(self, seconds: float) -> None:
        """What nobody was told of when it was tried last, or when a watcher ended."""
        for about, event in self.state.untold.items() if self._may_tell() else ():
            task = self._telling.get(about)
            if (task is None or task.done()) and not self._untold.must_wait(about, seconds):
                self._telling[about] = asyncio.ensure_future(self._tell_event(event, None))

    async def _tell_event(self, event: MassEvent, before: asyncio.Task[None] | None) -> None:
        if before is not None:
            # Its end must not be told before its beginning.
            await before
        told = await self._hands.tell(event)
        if not told.done:
            wait_s = self._untold.failed(event.about, self._last_s)
            text = f"{told.text}; again after {wait_s:.0f} s"
            self._say(f"warning: nobody was told of {event.about}: {text}")
            return
        self._untold.forget(event.about)
        left = {a: other for a, other in self.state.untold.items() if other != event}
        self.state = replace(self.state, untold=left)

    async def _told_of_all(self) -> bool:
        """Whether people know of all that befalls many nodes now."""
        await asyncio.gather(*self._telling.values(), return_exceptions=True)
        return all(event.over for event in self.state.untold.values())

    def _diagnose(self, jobs: Sequence[Job]) -> None:
        """Start the diagnoses that confirmed suspicions ask for, as far as the budget goes."""
        on = {node: job for job in jobs for node in job.nodes} | {job.name: job for job in jobs}
        for key, held in self.state.suspicions.items():
            if not self._wants_diagnosis(key, held):
                continue
            look = deep_look(held, on, self.state.crowds)
            going_on = [other for other, task in self._deep.values() if not task.done()]
            if any(other.about == look.about for other in going_on):
                continue
            if look.job is not None and self._hands.busy_with(look.job.name):
                continue
            covered = self._crowd_verdicts.get(look.crowd) or verdicts_that_cover(
                held, self.state.suspicions.values(), look.explains, look.beside
            )
            if covered:
                self._mark(key, diagnosed=True, verdicts=covered)
            elif has_room(look, going_on):
                self._mark(key, diagnosed=True, verdicts=())
                task = asyncio.ensure_future(self._conclude(key, look))
                self._deep[look.about] = look, task

    def _wants_diagnosis(self, key: str, held: Suspicion) -> bool:
        ready = held.confirmed_at is not None and RULES[held.rule].diagnosed
        if not ready or held.diagnosed or self._retries.must_wait(key, self._last_s):
            return False
        return not (held.rule == "node-silent" and self.state.network)

    def _mark(self, key: str, **changes: object) -> None:
        held = self.state.suspicions.get(key)
        if held is not None:
            after = {**self.state.suspicions, key: replace(held, **changes)}  # type: ignore[arg-type]
            self.state = replace(self.state, suspicions=after)

    async def _conclude(self, key: str, look: DeepLook) -> None:
        """From a suspicion to what is done about it; a diagnosis that fails is tried again."""
        try:
            await self._judge(key, look)
            self._save(self.state)
        except (BrctlError, OSError) as error:
            self._try_again_later(key, error)
            self._leader.verify()
        else:
            self._retries.forget(key)

    def _try_again_later(self, key: str, error: Exception) -> None:
        wait_s = self._retries.failed(key, self._last_s)
        held = self.state.suspicions.get(key)
        if held is not None:
            after = {**self.state.suspicions, key: reopened(held, self.state.acts)}
            self.state = replace(self.state, suspicions=after)
        self._say(f"error  {key}: {error}; again after {wait_s:.0f} s")
        # It may be the disk itself that failed; the next tick tells of that.
        with suppress(OSError):
            rule = key.partition("/")[0]
            self._record(self._last_at or _NEVER, "error", rule=rule, text=str(error))

    async def _judge(self, key: str, look: DeepLook) -> None:
        (rule, _, subject), began_at = key.partition("/"), self._last_at or _NEVER
        crowd_since = self._crowd_since.get(look.crowd)
        found = await self._hands.examine(look.job, look.nodes)
        now = found.at
        named = [verdict for verdict in found.verdicts if verdict.fault not in UNNAMED]
        verdicts = tuple(verdict.id for verdict in found.verdicts)
        self._mark(
            key,
            verdicts=verdicts,
            named_at=began_at if named else None,
            named=tuple(node for verdict in named for node in verdict.nodes),
        )
        for verdict, watched in zip(found.verdicts, found.watched, strict=True):
            self._record(
                now, "verdict", verdict=verdict.id, rule=rule, subject=subject,
                fault=verdict.fault.value, confidence=verdict.confidence.value,
                nodes=list(verdict.nodes), job=verdict.job,
                title=verdict.title, playbook=watched.playbook, takes_nodes=watched.takes_nodes,
                step=watched.step, finds_nodes=watched.finds_nodes,
            )  # fmt: skip
            where = fold(verdict.nodes) or "no node"
            self._say(
                f"verdict  {verdict.id} {verdict.confidence.upper()} {verdict.title}: {where}"
            )
        failed: list[BrctlError] = []
        for verdict, watched in zip(found.verdicts, found.watched, strict=True):
            try:
                await self._decide(rule, verdict, watched)
            except BrctlError as error:
                self._record(now, "error", verdict=verdict.id, text=str(error))
                self._leader.verify()
                failed.append(error)
        if failed:
            raise failed[0]
        # Another crowd may have come meanwhile, of which this diagnosis knows nothing.
        if look.crowd in self.state.crowds and self._crowd_since.get(look.crowd) == crowd_since:
            self._crowd_verdicts[look.crowd] = verdicts

    async def _decide(self, rule: str, verdict: Verdict, watched: WatchedVerdict) -> None:
        facts = await self._hands.facts(watched, self._policy)
        self._leave_people_alone(facts.now)
        made = decide(watched, rule, self._policy, self._cap, self.state, facts)
        if made.opens_breaker:
            opened = f"{rfc3339(facts.now)}: {made.opens_breaker}"
            self.state = replace(self.state, breaker_open=opened)
            self._record(facts.now, "breaker-open", why=made.opens_breaker)
            self._say(f"breaker  open: {made.opens_breaker}")
        attempt = await self._carry_out(made, verdict, watched, facts.now)
        self.state = replace(self.state, decided={**self.state.decided, verdict.id: made.mode})
        self._record(
            facts.now, "decision", verdict=verdict.id, rule=rule, mode=made.mode,
            wanted=made.wanted, held=made.held, gates=gate_rows(made.gates),
            done=attempt.done, said=attempt.text, known=facts.known, spares=facts.spares,
        )  # fmt: skip
        held = f"  held: {made.held}" if made.held else ""
        became = what_became(made.mode, done=attempt.done)
        self._say(f"{became}  {verdict.id} {watched.playbook or '-'}{held}")

    async def _carry_out(
        self, made: WatchDecision, verdict: Verdict, watched: WatchedVerdict, now: datetime
    ) -> Attempt:
        if made.mode != WatchMode.OBSERVE:
            refuse_stopped(self._folder)
        if made.mode == WatchMode.PROPOSE and made.in_crowd and await self._told_of_all():
            return Attempt(done=True, text="told once for all of them")
        if made.mode == WatchMode.PROPOSE:
            return await self._hands.page(verdict, made)
        if made.mode != WatchMode.ACT:
            return Attempt(done=True, text="")
        self._leader.verify()
        nodes = watched.nodes if watched.takes_nodes else ()
        act = WatchAct(
            now, verdict.id, verdict.fault, nodes, verdict.job, watched.step, self._leader.token
        )
        self._save(replace(self.state, acts=(*self.state.acts, act)))
        started = await self._hands.start_fix(verdict, self._leader.token)
        if started.done:
            return started
        paged = await self._hands.page(verdict, made)
        return Attempt(done=False, text=f"{started.text}; {paged.text}")

    def _save(self, state: WatchState) -> None:
        """What is not on disk has not happened: a failed write leaves the state as it was."""
        self._folder.save_state(state)
        self.state = self._saved = state

    def _record(self, at: datetime, kind: str, **fields: object) -> None:
        self.state = replace(self.state, seq=self.state.seq + 1)
        self._folder.append(WatchRecord(self.state.seq, at, kind, fields))


_NEVER = datetime.min.replace(tzinfo=UTC)


def _is_settled(suspicion: Suspicion, state: WatchState) -> bool:
    """Somebody decided about all that came of it; else it is judged anew, never replayed."""
    return bool(suspicion.verdicts) and all(v in state.decided for v in suspicion.verdicts)
