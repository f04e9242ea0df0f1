"""A fleet with one job on it, told by what happened to it, and the answers its nodes then give."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import PurePosixPath
from random import Random

from brctl.evidence.stacks.snapshot import RankStack
from brctl.model.command import Outcome
from brctl.model.jobs.job import Job
from brctl.model.sweeps.report import CheckResult, Measurement, NodeReport, ProbeStatus, Value
from tests.bench.verdicts.answers import RANKS, changed_by, healthy, stack, words

NOW = datetime(2026, 3, 14, 9, 26, 53, 589793, tzinfo=UTC)
STALL_AFTER_S = 15.0
ASKED_AGAIN_AFTER_S = 1.0
"""About what passes between two questions to a small fleet on a local network."""

WAITING = "all_reduce"
LOCAL_PHASES = ("load", "forward", "backward", "optimizer")

Rank = dict[str, Value]
"""One rank's readings, by their names in `job.rank.*`."""


@dataclass(slots=True)
class Fleet:
    """The state of every node and rank at the moment of the look.

    Attributes:
        faults: Recorded faults of the lab a node has.
        extra: Readings that replace or follow those of a node, by check.
        lost_checks: How a check of a node failed, when it gave no readings.
        outcomes: How reaching a node failed, when it did.
        stacks: Where each rank stands; a rank without an entry gave no stack.
        leaves: The leaf switch of each node.
        clock_off_s: How far a node's clock is off.
        past: Whether the job has a step file that reaches back.
        now_s: What a step takes now; `step_s` is what it took before.
        longer_in_load: Whether what it takes longer goes into its batches, and not into waits.
        dumps: What the flight recorder of each rank holds; empty where the job keeps none.
        ranks_later: Its ranks when they are asked again, where more than a moment lies between.
        losses_now: The loss of its newest steps, where it is no longer what it was.
        models: The GPUs of a node that has others than the usual ones.
    """

    job: Job
    rng: Random
    ranks: list[Rank]
    step_s: float
    faults: dict[str, list[str]] = field(default_factory=dict)
    extra: dict[str, list[tuple[str, Measurement]]] = field(default_factory=dict)
    lost_checks: dict[tuple[str, str], CheckResult] = field(default_factory=dict)
    outcomes: dict[str, tuple[Outcome, str]] = field(default_factory=dict)
    stacks: dict[int, tuple[str, ...]] = field(default_factory=dict)
    leaves: dict[str, str] = field(default_factory=dict)
    clock_off_s: dict[str, float] = field(default_factory=dict)
    past: bool = True
    now_s: float = 0.0
    longer_in_load: bool = False
    dumps: dict[int, bytes] = field(default_factory=dict)
    ranks_later: list[Rank] = field(default_factory=list)
    losses_now: float | None = None
    models: dict[str, str] = field(default_factory=dict)

    @property
    def nodes(self) -> tuple[str, ...]:
        return self.job.nodes

    def some_nodes(self, count: int, *, but: Iterable[str] = ()) -> list[str]:
        """Different nodes, drawn."""
        return self.rng.sample([node for node in self.nodes if node not in set(but)], count)

    def rank_on(self, node: str) -> int:
        """One rank of a node, drawn."""
        return self.rng.choice(self.job.ranks_on(node))

    def ranks_of(self, nodes: Iterable[str]) -> list[int]:
        return [rank for node in nodes for rank in self.job.ranks_on(node)]

    def reads(self, node: str, check: str, name: str, value: Value, subject: str = "") -> None:
        """A node reads this instead of what a healthy one reads, or besides it."""
        self.extra.setdefault(node, []).append((check, Measurement(name, subject, value)))

    def has(self, node: str, fault: str) -> None:
        """A node has a fault of the lab, as it was recorded."""
        self.faults.setdefault(node, []).append(fault)

    def is_silent(self, node: str, outcome: Outcome, detail: str) -> None:
        self.outcomes[node] = (outcome, detail)

    def reports(self) -> list[NodeReport]:
        """What every node answers."""
        return [self._report(node) for node in self.nodes]

    def reports_later(self) -> list[NodeReport]:
        """What every node answers when its ranks are asked a second time, a moment later."""
        later = self.ranks_later or [_a_moment_later(values, self.now_s) for values in self.ranks]
        return replace(self, ranks=later).reports()

    def rank_stacks(self) -> list[RankStack]:
        silent = set(self.ranks_of(self.outcomes))
        return [
            RankStack(
                rank,
                () if rank in silent else self.stacks.get(rank, ()),
                str(values.get("process_state", "")),
                note="" if rank in self.stacks and rank not in silent else "no stack",
                own_frame="" if rank in silent else _own_frame(self.stacks.get(rank, ())),
            )
            for rank, values in enumerate(self.ranks)
        ]

    def _report(self, node: str) -> NodeReport:
        if node in self.outcomes:
            outcome, detail = self.outcomes[node]
            return NodeReport(node, outcome, detail=detail, seconds=5.0, received_at=NOW)
        answer = dict(healthy())
        for fault in self.faults.get(node, ()):
            answer |= changed_by(fault)
        answer["host.clock"] = self._clock(node, answer["host.clock"])
        answer[RANKS] = self._ranks_on(node)
        answer["fabric.tcp"] = self._tcp(node)
        answer["job.cgroup"] = self._cgroup(node)
        answer["job.cpu"] = self._cpu(node)
        for check, measurement in self.extra.get(node, ()):
            answer[check] = _with(answer[check], measurement)
        answer |= {
            check: lost for (where, check), lost in self.lost_checks.items() if where == node
        }
        return NodeReport(
            node, Outcome.ANSWERED, tuple(answer.values()), seconds=0.6, received_at=NOW,
            python="3.11.7", login_s=0.2,
        )  # fmt: skip

    def _tcp(self, node: str) -> CheckResult:
        """Its connection to the next node of the ring; a check newer than the recordings."""
        here = self.nodes.index(node)
        other = (here + 1) % len(self.nodes)
        peer = f"peer:{_address(other)}"
        gone = self.nodes[other] in self.outcomes
        rows = [
            Measurement("fabric.tcp.peers", "", 1),
            Measurement("fabric.tcp.own_address", f"address:{_address(here)}", value=True),
            *(
                Measurement(f"fabric.tcp.{name}", peer, value)
                for name, value in (
                    ("segments", 9000), ("lost", 0), ("segments_now", 0 if gone else 40),
                    ("lost_now", 0), ("timeouts_in_a_row", 6 if gone else 0),
                    ("path_mtu", 9000), ("delay_ms", 0.05),
                )
            ),
        ]  # fmt: skip
        return CheckResult("fabric.tcp", ProbeStatus.MEASURED, tuple(rows))

    def _cgroup(self, node: str) -> CheckResult:
        """No limit that its ranks feel; a check newer than the recordings."""
        rows = [
            Measurement(f"job.cgroup.{name}", f"rank:{rank}", value)
            for rank in self.job.ranks_on(node)
            for name, value in (
                ("path", "/sys/fs/cgroup/job"), ("memory_pct", 40.0), ("oom_kills", 0)
            )
        ]  # fmt: skip
        return CheckResult("job.cgroup", ProbeStatus.MEASURED, tuple(rows))

    def _cpu(self, node: str) -> CheckResult:
        """Its ranks have the CPUs they want; a check newer than the recordings."""
        rows = [
            Measurement(f"job.cpu.{name}", f"rank:{rank}", value)
            for rank in self.job.ranks_on(node)
            for name, value in (("allowed", 64), ("waits_pct", 1.5))
        ]
        return CheckResult("job.cpu", ProbeStatus.MEASURED, tuple(rows))

    def _clock(self, node: str, result: CheckResult) -> CheckResult:
        moment = NOW - timedelta(seconds=0.3 - self.clock_off_s.get(node, 0.0))
        return _with(result, Measurement("host.clock.unix_s", "", moment.timestamp()))

    def _ranks_on(self, node: str) -> CheckResult:
        rows = [
            Measurement(f"job.rank.{name}", f"rank:{rank}", value)
            for rank in self.job.ranks_on(node)
            for name, value in self.ranks[rank].items()
        ]
        past = self._past() if 0 in self.job.ranks_on(node) and self.past else []
        return CheckResult(RANKS, ProbeStatus.MEASURED, (*rows, *past))

    def _past(self) -> list[Measurement]:
        """The job's own past as rank 0 wrote it, and its newest steps."""
        rng, usual = Random(len(self.nodes)), self.step_s
        waits = float(self.ranks[0].get("wait_s", 0.0))
        longer = self.now_s - usual
        windows = [(f"past:{i}", usual, usual * 0.05, usual * 0.02) for i in range(5)]
        load = usual * 0.02 + (longer if self.longer_in_load else 0.0)
        windows += [("recent", self.now_s, waits, load), ("last", self.now_s, waits, load)]
        rows: list[Measurement] = []
        for number, (window, step_s, wait_s, load_s) in enumerate(windows):
            unrest = rng.uniform(0.98, 1.02)
            loss = 2.3 * unrest
            if self.losses_now is not None and not window.startswith("past"):
                loss = self.losses_now
            for name, value in (
                ("first", number * 25), ("count", 25), ("nonfinite", 0), ("loss", loss),
                ("step_s", step_s * unrest), ("wait_s", wait_s), ("load_s", load_s),
            ):  # fmt: skip
                rows.append(Measurement(f"job.steps.{name}", window, value))
        return rows


def _a_moment_later(values: Rank, step_s: float) -> Rank:
    """A rank that goes on ends its step in that moment, if the step is short enough."""
    age, step = values.get("progress_age_s"), values.get("step")
    if not isinstance(age, float) or type(step) is not int or age > STALL_AFTER_S:
        return values
    return {**values, "step": step + int((age + ASKED_AGAIN_AFTER_S) // step_s)}


def _address(number: int) -> str:
    return f"10.0.{number // 250}.{number % 250 + 1}"


_PACKAGES = (
    "connection.py:", "distributed_c10d.py:", "linear.py:", "module.py:", "serialization.py:",
)  # fmt: skip


def _own_frame(stack: Sequence[str]) -> str:
    """The innermost frame, where it is the job's own code and no package's."""
    return stack[0] if stack and not stack[0].startswith(_PACKAGES) else ""


def _with(result: CheckResult, new: Measurement) -> CheckResult:
    """A result with a reading replaced; a log line is one more, and no replacement."""
    rows = result.measurements
    if not new.name.endswith(".line"):
        rows = tuple(m for m in rows if (m.name, m.subject) != (new.name, new.subject))
    return replace(result, measurements=(*rows, new))


def fleet(rng: Random, *, least: int = 4, most: int = 64) -> Fleet:
    """A sound fleet of some size in the middle of training."""
    sizes = [n for n in (4, 5, 6, 8, 12, 16, 24, 32, 64, 128, 512) if least <= n <= most]
    count, per_node = rng.choice(sizes), rng.choice((1, 1, 1, 2, 4))
    nodes = tuple(f"{rng.choice(('gpu', 'h', 'node'))}{n:03d}" for n in range(1, count + 1))
    sound = Fleet(job_on(nodes, per_node), rng, [], round(rng.uniform(0.2, 20.0), 2))
    per_leaf = max(2, count // 4)
    sound.leaves = {node: f"leaf-{i // per_leaf + 1}" for i, node in enumerate(nodes)}
    sound.past = rng.random() < 0.8
    trains(sound)
    return sound


def job_on(nodes: Sequence[str], per_node: int) -> Job:
    root = PurePosixPath("/srv/site/job")
    return Job(
        name="llm", nodes=tuple(nodes), ranks_per_node=per_node,
        axes=(("tp", per_node), ("pp", 1), ("dp", len(nodes))), launch=("python", "train.py"),
        checkpoint_dir=root / "checkpoints", log_dir=root / "logs",
        progress_dir=root / "progress", stall_after_s=STALL_AFTER_S,
    )  # fmt: skip


def trains(fleet: Fleet) -> None:
    """Every rank is somewhere in the same step, and waits a little for the others."""
    rng, step, step_s = fleet.rng, fleet.rng.randrange(40, 40_000), fleet.step_s
    fleet.ranks, fleet.now_s = [], step_s
    for _ in range(fleet.job.world_size):
        age = rng.uniform(0.0, min(step_s, STALL_AFTER_S / 4))
        fleet.ranks.append(
            {
                "alive": True, "process_state": rng.choice("RRS"), "step": step,
                "phase": rng.choice((*LOCAL_PHASES, WAITING)), "phase_age_s": age,
                "progress_age_s": age, "loss_finite": True, "last_words": "",
                "wait_s": step_s * rng.uniform(0.02, 0.12),
                "step_s": step_s * rng.uniform(0.98, 1.02),
            }
        )  # fmt: skip
    remember(fleet)


def remember(fleet: Fleet) -> None:
    """The medians over its newest steps that a rank writes beside those of the last step."""
    for values in fleet.ranks:
        values |= {"recent_steps": 12, "recent_wait_s": values["wait_s"]}
        values |= {"recent_step_s": values["step_s"], "recent_load_s": fleet.step_s * 0.02}


def stands_still(fleet: Fleet, absent: Sequence[int], *, where: str = "") -> float:
    """All wait in the all-reduce for ranks that stand in some phase of their own."""
    rng = fleet.rng
    age = rng.uniform(STALL_AFTER_S * 1.2, 400.0)
    phase = where or rng.choice(("forward", "backward", "load"))
    for rank, values in enumerate(fleet.ranks):
        mine = age + rng.uniform(0.0, 0.5)
        values |= {"phase": WAITING, "phase_age_s": mine, "progress_age_s": mine}
        values["process_state"] = "S"
        fleet.stacks[rank] = stack("rank-hang", "bystander")
        if rank in absent:
            values["phase"] = phase
            fleet.stacks[rank] = ("train.py:Step.run", "train.py:main", "train.py:<module>")
    return age


def ends(fleet: Fleet, first: Sequence[int], status: int, said: str, *, phase: str = "") -> None:
    """Ranks end by themselves; the others lose a peer, and end of that or wait for ever."""
    rng = fleet.rng
    age = rng.uniform(4.0, 200.0)
    own = phase or rng.choice(("forward", "backward"))
    gloo = rng.random() < 0.5
    for rank, values in enumerate(fleet.ranks):
        mine = age + rng.uniform(0.0, 0.3)
        values |= {"phase": WAITING, "phase_age_s": mine, "progress_age_s": mine}
        if rank in first:
            values["phase"] = own
            _leave(values, status, said.replace("[rank2]", f"[rank{rank}]"))
        elif gloo:
            lost = words("gpu-ecc", "bystander").replace("[rank1]", f"[rank{rank}]")
            _leave(values, 1, lost)
        else:
            values["process_state"] = "S"


def _leave(values: Rank, status: int, said: str) -> None:
    values |= {"alive": False, "exit_status": status, "last_words": said}
    values.pop("process_state", None)


def slow_ranks(fleet: Fleet, slow: Sequence[int], times: float) -> None:
    """Some ranks take longer, so every step does, and all others wait for them."""
    rng, usual = fleet.rng, fleet.step_s
    longer = usual * times
    for rank, values in enumerate(fleet.ranks):
        waits = usual * 0.03 if rank in slow else longer - usual * rng.uniform(0.9, 1.0)
        age = rng.uniform(0.0, min(longer, STALL_AFTER_S / 3))
        values |= {"step_s": longer * rng.uniform(0.99, 1.01), "wait_s": max(0.001, waits)}
        values |= {"phase_age_s": age, "progress_age_s": age}
        values["phase"] = rng.choice(LOCAL_PHASES) if rank in slow else WAITING
    fleet.now_s = longer
    remember(fleet)
