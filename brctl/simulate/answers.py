"""What the nodes of a small job answer under each fault: readings, never the truth behind them.

One job of eight nodes stands for the large one: a decision depends on what the culprits answer and
that all others are well, not on how many the others are. Several causes give the same readings (an
illegal access is a bad GPU or bad code), and sometimes the culprit's checks time out: what then
decides is as much in the dark as on a real fleet.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import PurePosixPath

from brctl.evidence.stacks.snapshot import RankStack
from brctl.model.command import Outcome
from brctl.model.evidence_kinds import RANKS_CHECK
from brctl.model.jobs.job import Job
from brctl.model.sweeps.report import CheckResult, Measurement, NodeReport, ProbeStatus, Value
from brctl.simulate.chance import unit
from brctl.simulate.decisions import Readings
from brctl.simulate.fleet import Signals
from brctl.simulate.symptoms import Cause
from brctl.simulate.trace import DrawnFault

NOW = datetime(2026, 3, 14, 9, 26, 53, tzinfo=UTC)
NODES = tuple(f"n{i}" for i in range(1, 9))
CULPRIT, BYSTANDER = "n3", "n7"
STALL_AFTER_S = 15.0
MOST_AT_ONCE = 2
"""However many a switch takes: more of eight would look like a way that is cut, which 32 of 1,200
do not."""
SEVERAL_SILENT = "several silent"

_ROOT = PurePosixPath("/srv/site/job")
_JOB = Job(
    name="llm", nodes=NODES, ranks_per_node=1, axes=(("tp", 1), ("pp", 2), ("dp", 4)),
    launch=("python", "train.py"), checkpoint_dir=_ROOT / "checkpoints", log_dir=_ROOT / "logs",
    progress_dir=_ROOT / "progress", stall_after_s=STALL_AFTER_S,
)  # fmt: skip
_GPU = "gpu:GPU-00000000-0000-0000-0000-000000000000"
_DISK, _PORT = f"disk:{_ROOT}/checkpoints", "nic:mlx5_0"
_BYSTANDER = ("distributed_c10d.py:all_reduce", "train.py:Step.run", "train.py:main")

_HEALTHY: Mapping[str, Sequence[tuple[str, str, Value]]] = {
    "host.kernel": (("uptime_s", "", 900_000.0), ("lines_read", "", 5)),
    "gpu.xid": (("uptime_s", "", 900_000.0), ("lines_read", "", 5)),
    "gpu.ecc": (
        ("enabled", _GPU, True), ("volatile_corrected", _GPU, 0), ("volatile_uncorrected", _GPU, 0),
        ("aggregate_corrected", _GPU, 0), ("aggregate_uncorrected", _GPU, 0),
    ),
    "gpu.clocks": (
        ("event_reasons", _GPU, 0), ("temperature_c", _GPU, 45), ("temperature_margin_c", _GPU, 45),
    ),
    "host.disk": (
        ("hangs", _DISK, False), ("free_pct", _DISK, 40.0), ("free_inodes_pct", _DISK, 90.0),
        ("read_only", _DISK, False),
    ),
    "fabric.ibport": (("state", _PORT, "ACTIVE"), ("physical", _PORT, "LinkUp")),
}  # fmt: skip
"""What a sound node reads; names below their check's own."""

ASKED = (*_HEALTHY, RANKS_CHECK)
"""The checks that a simulated look asks."""

Rank = dict[str, Value]


@dataclass(slots=True)
class _Scene:
    """The job at the moment of the look."""

    ranks: list[Rank]
    reads: dict[tuple[str, str, str], Value] = field(default_factory=dict)
    lines: list[tuple[str, str]] = field(default_factory=list)
    silent: dict[str, Outcome] = field(default_factory=dict)
    stacks: dict[int, tuple[str, ...]] = field(default_factory=dict)
    unanswered: frozenset[str] = frozenset()
    step_s: float = 2.0


def _training() -> _Scene:
    """Every rank is somewhere in the same step."""
    rank: Rank = {
        "alive": True, "process_state": "R", "step": 4_000, "phase": "forward", "phase_age_s": 0.5,
        "progress_age_s": 0.5, "loss_finite": True, "last_words": "", "wait_s": 0.1, "step_s": 2.0,
        "recent_steps": 12, "recent_wait_s": 0.1, "recent_step_s": 2.0, "recent_load_s": 0.04,
    }  # fmt: skip
    return _Scene([dict(rank) for _ in NODES])


def _standing(scene: _Scene, age_s: float = 60.0) -> None:
    """All wait in a collective."""
    for number, rank in enumerate(scene.ranks):
        rank |= {"phase": "all_reduce", "phase_age_s": age_s, "progress_age_s": age_s,
                 "process_state": "S"}  # fmt: skip
        scene.stacks[number] = _BYSTANDER


def _ended(said: str, *, status: int = 1, everybody: bool = False) -> _Scene:
    """The culprit's rank, or every rank, ends; the others wait for it."""
    scene = _training()
    _standing(scene)
    who = range(len(NODES)) if everybody else (NODES.index(CULPRIT),)
    for number in who:
        rank = scene.ranks[number]
        rank |= {"alive": False, "exit_status": status, "phase": "backward", "last_words": said}
        del rank["process_state"]
    return scene


def _raised(said: str) -> str:
    frame = 'Traceback (most recent call last):\n  File "train.py", line 212, in main\n    step()\n'
    return frame + said + "\n"


def _stuck(where: tuple[str, ...], state: str) -> _Scene:
    """The culprit's rank never comes to the collective in which the others wait."""
    scene = _training()
    _standing(scene, 700.0)
    number = NODES.index(CULPRIT)
    scene.ranks[number] |= {"phase": "forward", "process_state": state}
    scene.stacks[number] = where
    return scene


def _illegal_access() -> _Scene:
    return _ended(_raised("torch.AcceleratorError: CUDA error: an illegal memory access was"
                          " encountered"))  # fmt: skip


def _ecc() -> _Scene:
    scene = _ended(_raised("torch.AcceleratorError: CUDA error: uncorrectable ECC error"
                           " encountered"))  # fmt: skip
    scene.reads["gpu.ecc", "volatile_uncorrected", _GPU] = 4
    scene.lines.append(("gpu.xid", "3,5,899990000000,-;NVRM: Xid (PCI:0000:2a:00): 48, pid="
                        "'<unknown>', name=<unknown>, An uncorrectable double bit error (DBE) has"
                        " been detected on GPU in the framebuffer at partition 4."))  # fmt: skip
    return scene


def _lost() -> _Scene:
    scene = _ended(_raised("torch.AcceleratorError: CUDA error: unspecified launch failure"))
    scene.lines.append(("gpu.xid", "3,6,899990000000,-;NVRM: Xid (PCI:0000:2a:00): 79, pid="
                        "'<unknown>', name=<unknown>, GPU has fallen off the bus."))  # fmt: skip
    return scene


def _no_answer(count: int = 1) -> _Scene:
    scene = _training()
    _standing(scene)
    first = NODES.index(CULPRIT)
    scene.silent = dict.fromkeys(NODES[first : first + count], Outcome.CONNECT_TIMED_OUT)
    return scene


def _overloaded() -> _Scene:
    scene = _no_answer()
    scene.silent = {CULPRIT: Outcome.LOGIN_TIMED_OUT}
    return scene


def _killed_for_memory() -> _Scene:
    scene = _ended("", status=-9)
    scene.lines.append(("host.kernel", "3,900,899990000000,-;Out of memory: Killed process 4242"
                        " (python3) total-vm:91234567kB, anon-rss:88000000kB, file-rss:0kB,"
                        " shmem-rss:0kB, UID:1000"))  # fmt: skip
    return scene


def _full() -> _Scene:
    scene = _ended(_raised("OSError: [Errno 28] No space left on device: '/srv/site/job/part-7'"))
    scene.reads["host.disk", "free_pct", _DISK] = 0.3
    return scene


def _port_down() -> _Scene:
    scene = _flapped()
    scene.reads["fabric.ibport", "state", _PORT] = "DOWN"
    return scene


def _flapped() -> _Scene:
    return _ended(_raised("torch.distributed.DistBackendError: NCCL error: remote process exited or"
                          " there was a network error, NET/IB: Got completion from peer with"
                          " status=12 opcode=0 len=0 vendor err 129"))  # fmt: skip


def _bad_disk() -> _Scene:
    scene = _ended(_raised("OSError: [Errno 5] Input/output error: '/srv/site/job/part-7'"))
    scene.lines.append(("host.kernel", "3,901,899990000000,-;blk_update_request: critical medium"
                        " error, dev nvme0n1, sector 1953 op 0x0:(READ)"))  # fmt: skip
    return scene


def _hot() -> _Scene:
    """One GPU is throttled, its steps take longer, and all others wait for it."""
    scene = _training()
    for rank in scene.ranks:
        rank |= {"step_s": 5.0, "recent_step_s": 5.0, "wait_s": 3.1, "recent_wait_s": 3.1}
    scene.ranks[NODES.index(CULPRIT)] |= {"wait_s": 0.1, "recent_wait_s": 0.1}
    scene.step_s = 5.0
    scene.reads["gpu.clocks", "event_reasons", _GPU] = 0x40
    scene.reads["gpu.clocks", "temperature_c", _GPU] = 94
    return scene


def _not_finite(*, everybody: bool) -> _Scene:
    scene = _training()
    for number, rank in enumerate(scene.ranks):
        if everybody or number == NODES.index(CULPRIT):
            rank |= {"grad_finite": False, "first_nonfinite_grad_step": 3_990}
        rank |= {"loss_finite": False, "first_nonfinite_step": 3_991}
    return scene


_SCENES: Mapping[str, Callable[[], _Scene]] = {
    "cpu-overload": _overloaded,
    "cpu-oom": _killed_for_memory,
    "disk-space": _full,
    "filesystem-mount": lambda: _ended(
        _raised("OSError: [Errno 107] Transport endpoint is not connected: '/data/tokens/7.bin'")
    ),
    "hdfs-error": lambda: _ended(
        _raised("OSError: HDFS: org.apache.hadoop.ipc.RemoteException: NameNode is in safe mode"),
        everybody=True,
    ),
    "container-error": lambda: _ended("", status=-9),
    "kernel-panic": _no_answer,
    "external-service": lambda: _ended(
        _raised("requests.exceptions.ConnectionError: HTTPSConnectionPool(host='registry',"
                " port=443): Max retries exceeded"), everybody=True
    ),
    "gpu-memory": _ecc,
    "gpu-unavailable": _lost,
    "disk-fault": _bad_disk,
    "mfu-decline": _hot,
    "cuda-error": _illegal_access,
    "infiniband-error": _flapped,
    "hang": lambda: _stuck(("cache.py:Cache.get", "model.py:Block.forward", "train.py:main"), "S"),
    "nan": lambda: _not_finite(everybody=True),
    SEVERAL_SILENT: lambda: _no_answer(MOST_AT_ONCE),
    "infiniband-error, machine": _port_down,
    "hang, machine": lambda: _stuck(
        ("functional.py:linear", "model.py:Block.forward", "train.py:main"), "R"
    ),
    "nan, machine": lambda: _not_finite(everybody=False),
}  # fmt: skip
"""What a symptom looks like; several causes look alike, unless a row of a machine stands here."""


def answers_to(fault: DrawnFault, signals: Signals, seed: int, look: int) -> Readings:
    """What a look finds while this fault is there; the same look finds the same again."""
    late = unit(seed, "unanswered", fault.number, look) < signals.unanswered
    noisy = unit(seed, "noise", fault.number, look) < signals.noise
    return _look(_scene_of(fault, signals, seed), late, noisy)


def _scene_of(fault: DrawnFault, signals: Signals, seed: int) -> str:
    """The name of what is seen: of several causes the same."""
    if len(fault.nodes) > 1:
        return SEVERAL_SILENT
    name = fault.symptom
    if fault.cause is not Cause.MACHINE:
        return name
    if name == "cuda-error" and unit(seed, "traced", fault.number) < signals.traced:
        return "gpu-memory"
    return f"{name}, machine" if f"{name}, machine" in _SCENES else name


@lru_cache(maxsize=256)
def _look(name: str, late: bool, noisy: bool) -> Readings:
    scene = _SCENES[name]()
    if late:
        name, scene = f"{name}, unanswered", replace(scene, unanswered=frozenset({CULPRIT}))
    if noisy:
        silent = {BYSTANDER: Outcome.CONNECT_TIMED_OUT, **scene.silent}
        name, scene = f"{name}, {BYSTANDER} silent", replace(scene, silent=silent)
    return _readings(name, scene)


def culprits_in(fault: DrawnFault) -> tuple[str, ...]:
    """Which nodes of the small job stand for those of the fault."""
    first = NODES.index(CULPRIT)
    return NODES[first : first + max(1, min(len(fault.nodes), MOST_AT_ONCE))]


def _readings(name: str, scene: _Scene) -> Readings:
    """The look, its second one a moment later, and where ranks stand."""
    later = [_a_moment_later(rank, scene.step_s) for rank in scene.ranks]
    stacks = tuple(
        RankStack(number, stack, str(scene.ranks[number].get("process_state", "")))
        for number, stack in sorted(scene.stacks.items())
        if NODES[number] not in scene.silent
    )
    return Readings(
        name, _JOB, ASKED, NOW, _reports(scene), _reports(replace(scene, ranks=later)), stacks
    )


def _a_moment_later(rank: Rank, step_s: float) -> Rank:
    age, step = rank["progress_age_s"], rank["step"]
    if not isinstance(age, float) or type(step) is not int or age > STALL_AFTER_S:
        return rank
    return {**rank, "step": step + int((age + 3 * step_s) // step_s)}


def _reports(scene: _Scene) -> tuple[NodeReport, ...]:
    return tuple(_report(scene, number, node) for number, node in enumerate(NODES))


def _report(scene: _Scene, number: int, node: str) -> NodeReport:
    if node in scene.silent:
        outcome = scene.silent[node]
        return NodeReport(node, outcome, detail="no answer within 5 s", received_at=NOW)
    results = tuple(_result(scene, check, node) for check in _HEALTHY)
    ranks = _ranks(scene, number)
    return NodeReport(node, Outcome.ANSWERED, (*results, ranks), seconds=0.6, received_at=NOW)


def _result(scene: _Scene, check: str, node: str) -> CheckResult:
    if node in scene.unanswered and check.startswith("gpu."):
        return CheckResult(check, ProbeStatus.TIMED_OUT, notes=("no answer within 8 s",))
    bad = node == CULPRIT
    rows = [
        Measurement(f"{check}.{name}", subject, scene.reads.get((check, name, subject), value)
                    if bad else value)
        for name, subject, value in _HEALTHY[check]
    ]  # fmt: skip
    lines = [line for at, line in scene.lines if bad and at == check]
    rows += [Measurement(f"{check}.line", "", line) for line in lines]
    return CheckResult(check, ProbeStatus.MEASURED, tuple(rows))


def _ranks(scene: _Scene, number: int) -> CheckResult:
    rows = [
        Measurement(f"job.rank.{name}", f"rank:{number}", value)
        for name, value in scene.ranks[number].items()
    ]
    rows += _past(scene) if number == 0 else []
    return CheckResult(RANKS_CHECK, ProbeStatus.MEASURED, tuple(rows))


def _past(scene: _Scene) -> list[Measurement]:
    """The job's own past as rank 0 wrote it, and its newest steps."""
    windows = [(f"past:{i}", 2.0, 0.1) for i in range(5)]
    waits = float(scene.ranks[0]["wait_s"])
    windows += [("recent", scene.step_s, waits), ("last", scene.step_s, waits)]
    return [
        Measurement(f"job.steps.{name}", window, value)
        for number, (window, step_s, wait_s) in enumerate(windows)
        for name, value in (
            ("first", number * 25), ("count", 25), ("nonfinite", 0), ("loss", 2.3),
            ("step_s", step_s * (1 + 0.01 * (number % 3))), ("wait_s", wait_s), ("load_s", 0.04),
        )
    ]  # fmt: skip
