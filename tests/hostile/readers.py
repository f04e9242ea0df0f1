"""Everything that reads what a node, a gateway or a program sent, each with a sound sample."""

import io
import json
import pickle
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import PurePosixPath

import msgspec
from zstandard import ZstdCompressor, ZstdDecompressor, ZstdError

from brctl.actions.job.ckpt_select import checkpoints_in
from brctl.backends.kubernetes.jobs import INCARNATION, Workload
from brctl.backends.kubernetes.marks import (
    CORDONED,
    RESERVED,
    cordon,
    cordon_of,
    is_ready,
    label_of,
    reservation_of,
    reserve,
    uncordon,
)
from brctl.backends.kubernetes.pods import placed, read_pods, state_of
from brctl.backends.ranks.commands import read_rank_answer
from brctl.backends.slurm import commands
from brctl.engine.job.conclude import collect
from brctl.engine.job.rank_files import split_files
from brctl.engine.logs.classify import Blocks, Classifier
from brctl.engine.recording.archive import pack, unpack
from brctl.engine.recording.look import Look, encode, read_answers, read_look
from brctl.engine.search.group_runner_torch import read_reply
from brctl.engine.sweeps.run_checks import assess_node, compare
from brctl.engine.sweeps.sweep_file import pack_nodes, sweep_bytes
from brctl.evidence.alert_webhook import BadAlertError, parse_alerts
from brctl.evidence.flight.analyse import analyse
from brctl.evidence.flight.dump import parse_dump
from brctl.evidence.flight.plain_pickle import UnsafePickleError
from brctl.evidence.job.assess import assess_job
from brctl.evidence.job.status import read_job
from brctl.evidence.kernel_line import parse_kernel_line
from brctl.evidence.stacks.analyse import analyse_stacks
from brctl.evidence.stacks.snapshot import RankStack, read_text, read_threads
from brctl.fanout.gateway.frames import Frames, GatewayError
from brctl.fanout.kubernetes.kubectl import parse_object
from brctl.fanout.srun.nodes import parse_jobs, routes
from brctl.inventory.facts import InventorySource, NodeFacts, build_inventory
from brctl.inventory.kubernetes import parse_nodes
from brctl.inventory.slurm import parse_sinfo, with_jobs
from brctl.library.checks import load_checks
from brctl.library.shipped import shipped_dir
from brctl.model.command import CommandResult, Outcome
from brctl.model.errors import BrctlError
from brctl.model.foreign_json import ForeignJsonError, read_foreign_json
from brctl.model.inventory import Inventory, Node
from brctl.model.jobs.job import Job
from brctl.model.sweeps.check import Check
from brctl.model.sweeps.report import NodeReport
from brctl.model.sweeps.sweep import Sweep
from brctl.model.verdict import Verdict
from brctl.sweep.parse import parse_report
from brctl.verdict.decide import DecisionContext, decide
from brctl.view.redact import redact
from brctl.view.text import printable
from tests.hostile.inputs import hostile, mangled

NOW = datetime(2026, 1, 1, tzinfo=UTC)
JOB = Job(
    "pretrain", ("n1", "n2", "n3", "n4"), 1, (("dp", 4),), ("train",),
    PurePosixPath("/ckpt"), PurePosixPath("/logs"), PurePosixPath("/progress"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Reader:
    """One parser.

    Attributes:
        make: A hostile input.
        read: Must return or refuse with an exception of `refusals`.
    """

    make: Callable[[random.Random], bytes]
    read: Callable[[bytes], object]
    refusals: tuple[type[Exception], ...] = ()


_SUBJECTS = ("", "rank:0", "gpu:0", "ckpt:step-5")


@cache
def _checks() -> Mapping[str, Check]:
    return load_checks((shipped_dir("checks"),))


def _envelope(check: Check, random_: random.Random, value: object) -> dict[str, object]:
    rows = [
        {"name": name, "subject": random_.choice(_SUBJECTS), "value": value}
        for name in check.measurements
    ]
    return {"measurements": rows, "notes": ["a note"]}


def _sweep_answer(random_: random.Random) -> bytes:
    """What the runner on a node prints, with poison in the runner's lines or in the probes'."""
    names = random_.sample(sorted(_checks()), 3)
    lines = [{"type": "hello", "python": "3.9.2", "node": "n1", "login_s": 0.3}]
    parts = [hostile(line, random_) for line in lines]
    for name in [*names, "job.ranks"]:
        value = random_.choice((1, 0.5, "text", True, "2026-01-01T00:00:00+00:00 kernel: x"))
        stdout = hostile(_envelope(_checks()[name], random_, value), random_)
        row = {
            "type": "result", "check": name, "exit": 0, "seconds": 0.1,
            "stdout": stdout.decode("utf-8", "replace"), "stderr": "",
        }  # fmt: skip
        spoilt = random_.random() < 0.3
        parts.append(hostile(row, random_) if spoilt else json.dumps(row).encode())
    parts.append(b'{"type": "end", "count": 4}')
    return b"\n".join(parts) + b"\n"


@cache
def _sound_report(node: str) -> NodeReport:
    return parse_report(CommandResult(node, Outcome.ANSWERED, 0, b"", b"", 1.0), _checks(), NOW)


def _read_sweep(raw: bytes) -> object:
    """From the answer to verdicts on disk: the whole way of a node's words."""
    report = parse_report(CommandResult("n1", Outcome.ANSWERED, 0, raw, b"", 1.0), _checks(), NOW)
    asked = {r.check: _checks()[r.check] for r in report.results if r.status != "missing"}
    reports = [report, *(_sound_report(node) for node in JOB.nodes[1:])]
    inventory = Inventory({name: Node(name, name) for name in JOB.nodes})
    nodes = compare([assess_node(r, asked, report) for r in reports], inventory, None)
    sweep = Sweep("S-1", 1, tuple(asked), NOW, 1.0, nodes)
    status = read_job(JOB, reports)
    evidence, gaps = collect(sweep)
    evidence += tuple(assess_job(status, reports))
    verdicts = decide(evidence, gaps, DecisionContext(NOW, JOB.name, status.step, status.stalled))
    checkpoints_in(JOB, report)
    sweep_bytes(sweep, pack_nodes(sweep))
    return msgspec.json.decode(msgspec.json.encode(verdicts), type=list[Verdict])


_RANKS = {
    "ranks": [{"rank": 0, "alive": True, "exit_status": None, "incarnation": "a"}],
    "error": "",
}
_THREADS = [
    {"thread_name": "MainThread", "frames": [{"name": "f<g<h>>", "filename": "/a/b.py"}] * 5}
]
_DUMP = {
    "entries": [
        {
            "record_id": n, "pg_id": 0, "process_group": ["0", "default_pg"], "state": "scheduled",
            "collective_seq_id": n, "profiling_name": "nccl:all_reduce", "time_created_ns": 10**18,
            "is_p2p": False, "p2p_seq_id": 0, "input_sizes": [[2]], "input_dtypes": ["Float"],
        }
        for n in range(4)
    ],
    "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1, 2, 3]"}},
    "pg_status": {"0": {"last_enqueued_collective": 3, "last_completed_collective": 2}},
}  # fmt: skip
_ALERT = {
    "version": "4",
    "alerts": [
        {
            "status": "firing", "fingerprint": "abcdef0123456789",
            "labels": {"alertname": "GpuLost", "instance": "n1:9100"}, "annotations": {},
            "startsAt": "2026-01-01T00:00:00Z", "endsAt": "0001-01-01T00:00:00Z",
        }
    ],
}  # fmt: skip
_K8S = {
    "items": [
        {
            "metadata": {"name": "n1", "labels": {"a": "b"}},
            "spec": {},
            "status": {"addresses": [{"type": "InternalIP", "address": "10.0.0.1"}]},
        }
    ]
}
_LOG = (
    b"2026-01-01 00:00:00,123 [rank3]: Traceback (most recent call last):\n"
    b'  File "/a/train.py", line 3, in <module>\nRuntimeError: CUDA error: uncorrectable ECC\n'
    b"[rank3]:[E1 ProcessGroupNCCL.cpp:552] Watchdog caught collective operation timeout\n"
    b"iteration 10 | lm loss: 1.23E+00 | grad norm: 3.2\nNCCL WARN Call to ibv_poll_cq failed\n"
)
_KERNEL = (
    b"6,1,98765,-;NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus\n",
    b"2026-01-01T00:00:00,1+00:00 n1 kernel: [   12.5] mce: hardware error\n",
)
_SECRETS = b"Authorization: Bearer abc\nhttps://u:p@h/x?token=1 WANDB_API_KEY=abc password: x\n"


def _json_of(sample: object) -> Callable[[random.Random], bytes]:
    return lambda random_: hostile(sample, random_)


def _bytes_of(*samples: bytes) -> Callable[[random.Random], bytes]:
    return lambda random_: mangled(mangled(random_.choice(samples), random_), random_)


def _pickled(random_: random.Random) -> bytes:
    protocol = random_.choice((0, 2, 4))
    return mangled(pickle.dumps(_DUMP, protocol=protocol), random_)


def _read_ranks(raw: bytes) -> object:
    answer = CommandResult("n1", Outcome.ANSWERED, 0, raw, b"", 1.0)
    return json.dumps(read_rank_answer(answer, JOB.ranks_on("n1")))


def _read_dumps(raw: bytes) -> object:
    return msgspec.json.encode(analyse([parse_dump(rank, raw) for rank in (0, 1)]))


def _read_stacks(raw: bytes) -> object:
    try:
        frames = read_threads(read_foreign_json(raw))
    except ForeignJsonError:
        frames = read_text(raw.decode("utf-8", "replace"))
    stacks = [RankStack(rank, frames if rank else ()) for rank in range(JOB.world_size)]
    return msgspec.json.encode(analyse_stacks(stacks, JOB))


def _read_log(raw: bytes) -> object:
    return _classifier().classify_inputs([("log", Blocks(iter([raw]), []))])


@cache
def _classifier() -> Classifier:
    return Classifier()


def _read_frames(raw: bytes) -> object:
    return list(Frames(1 << 20).feed(b'{"hello": "brctl-gateway 1"}\n' + raw))


def _read_marked(raw: bytes) -> object:
    return split_files("n1", raw, JOB.ranks_on("n1"))


def _files(random_: random.Random) -> bytes:
    out = io.BytesIO()
    for _ in range(random_.randint(1, 40)):
        rank, size = random_.choice((0, 1, 2, 10**30)), random_.choice((3, 0, 10**30))
        out.write(b"\0==> rank %d ok %d\nabc\n" % (rank, size))
    return mangled(out.getvalue(), random_)


def _reply(raw: bytes) -> object:
    return read_reply(CommandResult("n1", Outcome.ANSWERED, 0, raw, b"", 1.0))


def _kubernetes(raw: bytes) -> object:
    return build_inventory([parse_nodes(raw, "kubernetes")])


_NODE_WORDS: Sequence[str] = (
    "[" * 50_000, '{"value": ' * 500, "9" * 5_000, "0001-01-01T00:00:00+14:00",
    "9999-12-31T23:59:59-14:00", "\x1b[31m\u202e", "../../etc", "A" * 100_000, "", "n2", "true",
)  # fmt: skip
"""What a kubelet may write where the API server asks for text only."""
_MARKED = {
    "metadata": {
        "name": "n1",
        "labels": {CORDONED: "true", RESERVED: "true", "brctl.dev/state": "burnin"},
        "annotations": {
            "brctl.dev/cordoned-by": "x", "brctl.dev/cordoned-at": "2026-01-01T00:00:00Z",
            "brctl.dev/reserved-by": "x", "brctl.dev/reserved-at": "2026-01-01T00:00:00Z",
            "brctl.dev/label.state": '{"value": "burnin", "owner": "x", "former": null}',
        },
        "managedFields": [
            {"manager": "kubectl", "time": "2026-01-01T00:00:00Z",
             "fieldsV1": {"f:spec": {"f:unschedulable": {}}}}
        ],
    },
    "spec": {"unschedulable": True},
    "status": {"conditions": [{"type": "Ready", "status": "True", "message": "kubelet is ready"}]},
}  # fmt: skip
_POD = {
    "metadata": {
        "name": "demo-0",
        "uid": "u",
        "labels": {},
        "annotations": {"batch.kubernetes.io/job-completion-index": "0", INCARNATION: "R-0001"},
    },
    "spec": {"nodeName": "n1", "containers": [{"name": "main"}]},
    "status": {
        "phase": "Pending",
        "containerStatuses": [{"state": {"waiting": {"reason": "ErrImagePull", "message": "x"}}}],
    },
}
_QUEUED = b"41 |alice |RUNNING |R-0001 |None |n[1-4] \n" * 3
_SINFO = b"n1|drained|root(0)|2026-01-01T00:00:00|[brctl:R-0001] fan [label a=b by x was c]\n" * 3


def _worded(sample: object) -> Callable[[random.Random], bytes]:
    """Some texts are others; the types are right, as the API server sees to."""

    def turn(value: object, random_: random.Random) -> object:
        if isinstance(value, dict):
            return {key: turn(inner, random_) for key, inner in value.items()}
        if isinstance(value, list):
            return [turn(inner, random_) for inner in value]
        spoilt = isinstance(value, str) and random_.random() < 0.3
        return random_.choice(_NODE_WORDS) if spoilt else value

    return lambda random_: json.dumps(turn(sample, random_)).encode()


def _kubernetes_node(raw: bytes) -> object:
    node = parse_object(raw, "/api/v1/nodes/n1")
    label_of(node, "state")
    for changed in (cordon(node, "x", "y", NOW), uncordon(node), reserve(node, "x", NOW)):
        json.dumps(changed)
    return cordon_of(node), reservation_of(node), is_ready(node)


def _kubernetes_pod(raw: bytes) -> object:
    pod = parse_object(raw, "/api/v1/pods")
    workload = Workload({"kind": "Job", "metadata": {}, "spec": {}}, "/jobs/demo", (("", 1, 4),))
    pods = read_pods(workload, [pod])
    return state_of(workload, JOB, pods, {}), placed(workload, pods, JOB)


def _slurm_nodes(raw: bytes) -> object:
    text = raw.decode("utf-8", "replace")
    for comment in commands.parse_comments(text).values():
        commands.label_in(comment, "a")
    commands.parse_standbys(text), commands.parse_idle(text), commands.parse_partitions(text)
    return commands.parse_cordons(text)


def _slurm_queue(raw: bytes) -> object:
    text = raw.decode("utf-8", "replace")
    return commands.parse_queue(text), commands.parse_jobs_on(text)


def _slurm_routes(raw: bytes) -> object:
    text = raw.decode("utf-8", "replace")
    return routes(text, parse_jobs(text), 0)


def _slurm_jobs(raw: bytes) -> object:
    nodes = tuple(NodeFacts(name, {}, "slurm") for name in JOB.nodes)
    return build_inventory([with_jobs(InventorySource("slurm", nodes), raw, mark="M")])


def _slurm(raw: bytes) -> object:
    return build_inventory([parse_sinfo(raw, ())])


@cache
def _recorded_look() -> object:
    """A look without answers, as its JSON holds it."""
    look = Look(
        "S-1", "0.1.0", "here", 1, 64, "jump", JOB.nodes, JOB,
        Inventory({name: Node(name, name) for name in JOB.nodes}), "static", (NOW,), {}, {}, None,
        (None,), (), {"rules.d/a.yaml": "rules: []"}, (),
    )  # fmt: skip
    return json.loads(encode(look))


_RECORDED_ANSWER = {
    "node": "n1", "asks": ["gpu.ecc"], "outcome": "answered", "exit_status": 0, "seconds": 0.5,
    "came_at": "2026-01-01T00:00:00Z", "detail": "", "stdout": "{}", "stderr": "", "packed": [],
}  # fmt: skip


def _incident_file(random_: random.Random) -> bytes:
    """An archive that is broken inside, where zstd sees nothing, or outside."""
    members = {"a/b.json": b"[1, 2, 3]" * 20, "c.json": b"{}"}
    packed = pack(members, made_by="0.1.0", looks=("S-1",), redaction={"named": 1}, cuts=())
    if random_.random() < 0.3:
        return mangled(packed, random_)
    inside = mangled(ZstdDecompressor().decompressobj().decompress(packed), random_)
    return ZstdCompressor().compress(inside)


READERS: Mapping[str, Reader] = {
    "sweep": Reader(_sweep_answer, _read_sweep),
    "ranks": Reader(_json_of(_RANKS), _read_ranks),
    "flight-json": Reader(_json_of(_DUMP), _read_dumps, (UnsafePickleError,)),
    "flight-pickle": Reader(_pickled, _read_dumps, (UnsafePickleError,)),
    "stacks": Reader(_json_of(_THREADS), _read_stacks),
    "rank-files": Reader(_files, _read_marked),
    "group-worker": Reader(_json_of({"ranks": [{"rank": 0, "error": ""}]}), _reply),
    "kernel-line": Reader(
        _bytes_of(*_KERNEL), lambda raw: parse_kernel_line(raw.decode("utf-8", "replace"), NOW)
    ),
    "log": Reader(_bytes_of(_LOG, _LOG * 20), _read_log),
    "gateway": Reader(
        _json_of({"number": 1, "status": 0, "stdout": 2}), _read_frames, (GatewayError,)
    ),
    "alerts": Reader(_json_of(_ALERT), parse_alerts, (BadAlertError,)),
    "kubectl": Reader(_json_of(_K8S), _kubernetes, (BrctlError,)),
    "kube-object": Reader(_json_of(_MARKED), lambda raw: parse_object(raw, "/x"), (BrctlError,)),
    "kube-node": Reader(_worded(_MARKED), _kubernetes_node, (BrctlError,)),
    "kube-pod": Reader(_worded(_POD), _kubernetes_pod, (BrctlError,)),
    "slurm-nodes": Reader(_bytes_of(_SINFO), _slurm_nodes),
    "slurm-queue": Reader(_bytes_of(_QUEUED), _slurm_queue),
    "slurm-routes": Reader(_bytes_of(_QUEUED, _SINFO), _slurm_routes),
    "slurm-jobs": Reader(_bytes_of(b"M41|1000|n[1-4]|demo\n" * 3), _slurm_jobs),
    "sinfo": Reader(_bytes_of(b"n1|idle|gpu:h100:8|a,b|batch\n" * 3), _slurm, (BrctlError,)),
    "incident-file": Reader(
        _incident_file, lambda raw: unpack(io.BytesIO(raw), len(raw)), (ValueError, ZstdError)
    ),
    "incident-look": Reader(
        lambda random_: hostile(_recorded_look(), random_), read_look, (ValueError,)
    ),
    "incident-answers": Reader(
        _json_of(_RECORDED_ANSWER), lambda raw: list(read_answers(raw)), (ValueError,)
    ),
    "redact": Reader(_bytes_of(_SECRETS * 9), lambda raw: redact(raw.decode("utf-8", "replace"))),
    "printable": Reader(
        _bytes_of(_SECRETS), lambda raw: printable(raw.decode("utf-8", "surrogateescape"), 100)
    ),
}
