"""A rank that waits for its batch: the loader's own processes say whether a machine is involved."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from brctl.evidence.job.assess import assess_job
from brctl.evidence.job.data.loader_processes import (
    LoaderProcess,
    PathAnswer,
    read_loaders,
    read_path_answers,
)
from brctl.evidence.job.data.loaders import Doing, assess_loaders, doing, files_waited_for
from brctl.evidence.job.data.waits import waits_for_data
from brctl.evidence.job.long_phases import excused
from brctl.model.command import Outcome
from brctl.model.evidence import Evidence, Subject, Weight
from brctl.model.evidence_kinds import LOADER_CHECK
from brctl.model.fault import FaultClass
from brctl.model.jobs.job import example_job
from brctl.model.jobs.job_status import JobStatus, RankView
from brctl.model.sweeps.report import CheckResult, Measurement, NodeReport, ProbeStatus, Value
from brctl.verdict.decide import DecisionContext, decide

NOW = datetime(2026, 1, 1, 3, 2, tzinfo=UTC)
JOB = example_job()
WAITS = (
    "selectors.py:_PollLikeSelector.select", "connection.py:wait", "queues.py:Queue.get",
    "dataloader.py:_MultiProcessingDataLoaderIter._try_get_data",
    "dataloader.py:_MultiProcessingDataLoaderIter._next_data",
    "dataloader.py:_BaseDataLoaderIter.__next__", "train.py:main",
)  # fmt: skip
LOOP = ("worker.py:_worker_loop", "process.py:BaseProcess.run")
IDLE = ("selectors.py:select", "connection.py:wait", "queues.py:Queue.get", *LOOP)
FETCH = ("data.py:read_shard", "data.py:__getitem__", "fetch.py:_MapDatasetFetcher.fetch", *LOOP)
OWN = ("data.py:read_shard", "fetch.py:_MapDatasetFetcher.fetch",
       "dataloader.py:_SingleProcessDataLoaderIter._next_data", "train.py:main")  # fmt: skip
SHARD, MOUNT = "/data/shard-0007.tar", "filer:/data on /data"


def hang(ranks: Iterable[int], **odd: object) -> JobStatus:
    """These ranks wait for their batch for 70 s, all others for them."""
    views = []
    for rank in range(8):
        view = RankView(rank, JOB.node_of(rank), alive=True, step=40, phase="all_reduce")
        view = replace(view, phase_age_s=70.0, progress_age_s=70.0, process_state="S")
        if rank in ranks:
            view = replace(view, phase="load", stack=WAITS)
            view = replace(view, **odd)  # type: ignore[arg-type]  # by name
        views.append(view)
    return JobStatus(JOB, tuple(views), 40, 70.0, stalled=True, silent=())


def worker(rank: int, stack: Sequence[str] = FETCH, **seen: object) -> LoaderProcess:
    process = LoaderProcess(rank, JOB.node_of(rank), 8821, "S", "futex_do_wait", tuple(stack))
    process = replace(process, place="read_shard (data.py:91)", moved=False, apart_s=10.0)
    return replace(process, **seen)  # type: ignore[arg-type]  # by name


def rank_itself(rank: int, stack: Sequence[str] = WAITS) -> LoaderProcess:
    """With two children, and no pin-memory thread."""
    process = worker(rank, stack, pid=None, kernel_wait="poll_schedule_timeout")
    return replace(process, children=2, pins_memory=False)


READS = {"kernel_wait": "rpc_wait_bit_killable", "state": "D", "file": SHARD, "mount": MOUNT}

DECISION = [
    ("runs in one place", {"state": "R", "kernel_wait": ""}, Doing.COMPUTES),
    ("took a lock twice", {}, Doing.LOCKED),
    ("is stopped", {"state": "T", "kernel_wait": "do_signal_stop"}, Doing.STOPPED),
    ("NFS is silent", READS, Doing.READS),
    ("FUSE is silent", {**READS, "kernel_wait": "request_wait_answer"}, Doing.READS),
    ("a pipe is silent", {**READS, "state": "S", "kernel_wait": "wait_for_partner"}, Doing.READS),
    ("the network is silent", {"kernel_wait": "poll_schedule_timeout"}, Doing.READS),
    ("gets on slowly", {**READS, "moved": True}, Doing.MOVES),
    ("could not be looked into", {"stack": (), "moved": None}, Doing.UNREAD),
    ("is idle", {"stack": IDLE, "kernel_wait": "poll_schedule_timeout"}, Doing.IDLE),
]


@pytest.mark.parametrize(("seen", "expected"), [row[1:] for row in DECISION],
                         ids=[row[0] for row in DECISION])  # fmt: skip
def test_two_looks_tell_what_a_worker_does(seen: Mapping[str, object], expected: Doing) -> None:
    assert doing(worker(5, **{"stack": FETCH, **seen})) is expected  # type: ignore[arg-type]


def verdict_of(
    status: JobStatus, processes: Sequence[LoaderProcess], answers: Sequence[PathAnswer] = ()
) -> tuple[FaultClass, tuple[str, ...], float]:
    """What all that is known of the job comes to: its ranks, and their loaders."""
    evidence, gaps = assess_loaders(status, processes, answers)
    ranks = {node: JOB.ranks_on(node) for node in JOB.nodes}
    context = DecisionContext(NOW, JOB.name, 40, stalled=True, ranks=ranks)
    main = decide((*assess_job(status, ()), *evidence), gaps, context)[0]
    return main.fault, main.nodes, main.probability


OTHERS = [PathAnswer(node, SHARD, answers=True, seconds=0.004) for node in ("n1", "n2", "n3", "n7")]


@pytest.mark.parametrize(
    ("seen", "fault", "nodes"),
    [
        ({"state": "R", "kernel_wait": ""}, FaultClass.DATA_LOADER, ()),
        ({}, FaultClass.DATA_LOADER, ()),
        ({"stack": IDLE}, FaultClass.DATA_LOADER, ()),
        ({"state": "T"}, FaultClass.HANG_MISMATCH, ("n6",)),
        (READS, FaultClass.STORAGE_CHECKPOINT, ("n6",)),
    ],
)
def test_only_a_stopped_or_unanswered_worker_leads_to_its_node(
    seen: Mapping[str, object], fault: FaultClass, nodes: tuple[str, ...]
) -> None:
    """What computes, waits for a lock or lost a message would do so on any machine."""
    process = worker(5, **{"stack": FETCH, **seen})  # type: ignore[arg-type]
    answers = OTHERS if files_waited_for([process]) else ()
    found = verdict_of(hang([5]), [rank_itself(5), worker(5, IDLE, pid=7), process], answers)
    assert found[:2] == (fault, nodes)
    assert found[2] > 0.9


def test_what_several_nodes_wait_for_is_storage_and_no_node_of_them() -> None:
    """Three of eight: their clients are healthy, and no swap would help."""
    ranks = (1, 4, 6)
    processes = [p for rank in ranks for p in (rank_itself(rank), worker(rank, **READS))]
    assert verdict_of(hang(ranks), processes, OTHERS)[:2] == (FaultClass.STORAGE_CHECKPOINT, ())
    assert files_waited_for(processes) == (SHARD,)


@pytest.mark.parametrize(
    ("path", "mount"),
    [
        ("/proc/kmsg", "proc on /proc"), ("/proc/kmsg", "x on /"),
        ("/net/evil/x", "evil:/ on /net"),
        ("/dev/watchdog", "devtmpfs on /dev"), ("/sys/power/state", "sysfs on /sys"),
        ("/data/../proc/kmsg", MOUNT), ("//proc/kmsg", "x on /"), ("data/shard", MOUNT),
        ("/data2/shard", MOUNT), ("/data/shard", ""),
    ],
)  # fmt: skip
def test_other_nodes_open_no_file_for_a_node_but_data_on_its_own_mount(
    path: str, mount: str
) -> None:
    assert files_waited_for([worker(5, **{**READS, "file": path, "mount": mount})]) == ()


def test_other_nodes_open_few_files() -> None:
    many = [worker(5, **{**READS, "file": f"/data/{n}"}) for n in range(40)]
    assert files_waited_for(many) == ("/data/0", "/data/1", "/data/2", "/data/3")


def test_a_loader_without_workers_is_looked_at_in_the_rank_itself() -> None:
    own = replace(rank_itself(5, OWN), state="R", kernel_wait="")
    assert verdict_of(hang([5], stack=OWN), [own])[:2] == (FaultClass.DATA_LOADER, ())


def test_a_slow_loader_is_no_hang_and_convicts_nobody() -> None:
    evidence, gaps = assess_loaders(hang([5]), [rank_itself(5), worker(5, moved=True)])
    assert [(e.weight, e.fault, e.kind) for e in evidence] == [
        (Weight.HINTS, FaultClass.DATA_LOADER, "job.loader.slow")
    ]
    assert gaps == ()


@pytest.mark.parametrize(
    "processes", [[], [rank_itself(5), worker(5, (), moved=None, state="D", kernel_wait="")]]
)
def test_a_loader_that_could_not_be_looked_into_is_a_gap(processes: list[LoaderProcess]) -> None:
    """py-spy cannot read a process in state D; silence is said."""
    _, gaps = assess_loaders(hang([5]), processes)
    assert bool(gaps) is not any(doing(p) is Doing.READS for p in processes)


TWO_IDLE = (worker(5, IDLE, pid=7), worker(5, IDLE, pid=8))


@pytest.mark.parametrize(
    ("own", "workers", "why"),
    [
        ({}, (), "no look at its loader"),
        ({"children": 0}, (), "no look at its loader"),
        ({"children": 8}, TWO_IDLE, "2 of its 8 processes were looked at"),
        ({"children": None}, TWO_IDLE, "2 of its unknown number of processes were looked at"),
        ({"pins_memory": True}, TWO_IDLE, "pin-memory thread"),
        ({"pins_memory": None}, TWO_IDLE, "pin-memory thread"),
    ],
)
def test_a_queue_is_accused_only_where_all_that_could_hold_the_batch_were_seen(
    own: Mapping[str, object], workers: Sequence[LoaderProcess], why: str
) -> None:
    """Six of eight workers in a file server's silence look like two idle ones."""
    processes = [replace(rank_itself(5), **own), *workers]  # type: ignore[arg-type]  # by name
    evidence, gaps = assess_loaders(hang([5]), processes)
    assert evidence == ()
    assert [gap.subject for gap in gaps] == [Subject("n6", "rank:5")]
    assert why in gaps[0].why
    assert assess_loaders(hang([5]), [rank_itself(5), *TWO_IDLE])[0][0].kind == "job.loader.queue"


def convicted(evidence: Iterable[Evidence]) -> list[Evidence]:
    return [item for item in evidence if item.weight is Weight.CONVICTS]


@pytest.mark.parametrize("longest_s", [0.01, None])
@pytest.mark.parametrize("stack", [WAITS, ()])
def test_a_rank_that_waits_for_its_batch_convicts_no_machine(
    stack: tuple[str, ...], longest_s: float | None
) -> None:
    """By its stack, or without one by its own word: why it waits is another question."""
    status = hang([5], stack=stack, phase_longest_s=longest_s)
    found = assess_job(status, ())
    assert convicted(found) == []
    assert (FaultClass.DATA_LOADER, Weight.HINTS) in {(e.fault, e.weight) for e in found}
    assert excused(status) == {5}


def test_a_rank_that_loads_but_stands_elsewhere_is_judged_as_before() -> None:
    """`load` is a phase of the job's own; copying to a GPU that hangs may be part of it."""
    status = hang([5], stack=("cuda.py:synchronize", "train.py:main"))
    assert not waits_for_data(status.ranks[5])
    assert [e.fault for e in convicted(assess_job(status, ()))] == [FaultClass.HANG_MISMATCH]


SUPERVISED = (
    "pipe_messages.py:_read", "pipe_messages.py:receive_message",
    "supervised_loader.py:_Maker.take", "supervised_loader.py:SupervisedLoader.__next__",
    "train.py:main",
)  # fmt: skip
MAKES = ("loader_process.py:_make_batches", "loader_process.py:produce", *SUPERVISED[2:])
PARKED = ("loader_process.py:_wait_for_orders", "loader_process.py:produce", *SUPERVISED[3:])


@pytest.mark.parametrize(
    ("seen", "fault", "nodes"),
    [
        ({"state": "R", "kernel_wait": ""}, FaultClass.DATA_LOADER, ()),
        ({"stack": ("loader_process.py:_wait_for_room", *MAKES)}, FaultClass.DATA_LOADER, ()),
        ({"state": "T"}, FaultClass.HANG_MISMATCH, ("n6",)),
        (READS, FaultClass.STORAGE_CHECKPOINT, ("n6",)),
    ],
)
def test_a_supervised_loader_is_looked_at_like_pytorchs(
    seen: Mapping[str, object], fault: FaultClass, nodes: tuple[str, ...]
) -> None:
    """Its shadow stands by and is no culprit; the rank that waits for it hangs on no machine."""
    status = hang([5], stack=SUPERVISED)
    assert convicted(assess_job(status, ())) == []
    process = worker(5, **{"stack": ("data.py:read_shard", *MAKES), **seen})  # type: ignore[arg-type]
    processes = [rank_itself(5, SUPERVISED), worker(5, PARKED, pid=7), process]
    answers = OTHERS if files_waited_for(processes) else ()
    assert verdict_of(status, processes, answers)[:2] == (fault, nodes)


def report(node: str, *rows: tuple[str, str, Value]) -> NodeReport:
    measured = tuple(Measurement(f"job.loader.{name}", subject, v) for name, subject, v in rows)
    result = CheckResult(LOADER_CHECK, ProbeStatus.MEASURED, measured)
    return NodeReport(node, Outcome.ANSWERED, (result,))


def test_what_a_node_answers_is_read_and_junk_costs_itself_alone() -> None:
    """Frames, flags and numbers of other types are as good as none; a foreign subject is none."""
    frames = (
        '[{"name": "read_shard", "short_filename": "a/data.py", "line": 91, "place": "job"}, 3,'
        ' {"name": "_worker_loop", "short_filename": "worker.py", "place": "package"},'
        ' {"name": "main", "short_filename": "train.py", "line": 1, "place": "job"}]'
    )
    found = read_loaders([
        report("n6", ("state", "rank:5/8821", "R"), ("stack", "rank:5/8821", frames),
               ("moved", "rank:5/8821", False), ("apart_s", "rank:5/8821", 10.0),
               ("state", "rank:5", "S"), ("children", "rank:5", 2), ("pins_memory", "rank:5", 1)),
        report("n7", ("state", "rank:6", "S"), ("stack", "rank:6", "[{"), ("moved", "rank:6", 1),
               ("file", "rank:6", 3), ("state", "rank:x", "T"), ("state", "", "T")),
    ])  # fmt: skip
    assert (found[0].children, found[0].pins_memory) == (2, None)
    assert [(p.rank, p.pid, p.place, p.moved, p.file) for p in found[1:]] == [
        (5, 8821, "read_shard (data.py:91)", False, ""), (6, None, "", None, ""),
    ]  # fmt: skip
    answers = read_path_answers([report("n1", ("path_answers", f"path:{SHARD}", True))])
    assert answers == (PathAnswer("n1", SHARD, answers=True),)
