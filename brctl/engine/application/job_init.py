"""A first job.yaml from a running job: asked of its scheduler and its nodes, never overwritten."""

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from brctl.engine.application.new_job import JobFacts, RankProcess, SavesFound, new_job
from brctl.engine.controller.wiring import Controller
from brctl.fanout.gather import gather
from brctl.fanout.kubernetes.kubectl import Kubectl
from brctl.fanout.local import LocalTransport
from brctl.library.jobs import read_job
from brctl.library.shipped import joined_program, node_program
from brctl.library.strict_yaml import parse_document
from brctl.model.command import Command, CommandResult, Outcome
from brctl.model.errors import UnavailableError, UsageError
from brctl.model.foreign_json import ForeignJsonError, read_foreign_json
from brctl.model.inventory import Node
from brctl.model.jobs.checkpoint_layouts import CHECKPOINT_NAMES
from brctl.model.nodeset import expand
from brctl.view.job.new_job import WrittenJob

DEADLINE_S = 30.0
OUTPUT_LIMIT_BYTES = 4 << 20
_SLURM_ID = re.compile(r"[0-9]{1,12}(?:_[0-9]{1,9})?")
_FIELD = re.compile(r"(?:^|\s)(JobName|NodeList|StdOut)=(\S+)")
_POD_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_INDEX = "batch.kubernetes.io/job-completion-index"
_HERE = Node("localhost", "127.0.0.1")


@dataclass(frozen=True, slots=True)
class JobInitRequest:
    """Which running job; one of `slurm`, `k8s`, `pid`, `match`.

    Attributes:
        nodes: Where its processes are looked for; a scheduler knows it.
        match: A part of its command line.
    """

    path: Path
    name: str = ""
    nodes: tuple[str, ...] = ()
    slurm: str = ""
    k8s: str = ""
    pid: int | None = None
    match: str = ""


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a job runs: what to look for on each node, and what its scheduler says of it."""

    wanted: Mapping[str, Mapping[str, object]]
    name: str = ""
    output: str = ""


async def init_job(controller: Controller, request: JobInitRequest) -> WrittenJob:
    """Write a job.yaml that can be read.

    Raises:
        UsageError: Not exactly one job is named, it has no process, or the file is there already.
        UnavailableError: The scheduler or every node is silent.
    """
    if request.path.exists():
        raise UsageError(f"{request.path} is there already", hint="name another file with --file")
    place = await _place(controller, request)
    facts = await _facts(controller, place)
    made = new_job(facts, request.name)
    text = made.text()
    read_job(parse_document(text.encode(), str(request.path)))
    descriptor = os.open(request.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        stream.write(text)
    nodes = tuple(facts.nodes)
    return WrittenJob(str(made.body["name"]), str(request.path), nodes, made.guessed, made.unknown)


async def _place(controller: Controller, request: JobInitRequest) -> _Place:
    said = [s for s in (request.slurm, request.k8s, request.pid, request.match) if s]
    if len(said) != 1:
        raise UsageError(
            f"job init takes one running job: {len(said)} were named",
            hint="--slurm JOBID, --k8s JOB, or -w NODES with --pid PID or --match TEXT",
        )
    if request.slurm:
        return await _slurm(request.slurm)
    if request.k8s:
        return await _kubernetes(controller, request.k8s)
    if not request.nodes:
        raise UsageError("on which nodes does it run? give -w NODES")
    if request.pid and len(request.nodes) > 1:
        raise UsageError("--pid is a process of one node; --match finds it on several")
    wanted = {"pid": request.pid} if request.pid else {"match": request.match}
    return _Place(dict.fromkeys(request.nodes, wanted))


async def _slurm(job_id: str) -> _Place:
    if not _SLURM_ID.fullmatch(job_id):
        raise UsageError(f"--slurm {job_id}: not the number of a Slurm job")
    command = Command(("scontrol", "show", "job", "-o", job_id), deadline_s=DEADLINE_S)
    answer = await LocalTransport().run(_HERE, command)
    text = answer.stdout.decode("utf-8", "replace")
    said = {key: value for key, value in _FIELD.findall(text) if value != "(null)"}
    if answer.exit_status != 0 or "NodeList" not in said:
        why = answer.stderr.decode("utf-8", "replace").strip() or answer.detail or "it runs nowhere"
        raise UnavailableError(f"scontrol show job {job_id}: {why[-300:]}")
    wanted = {"environment": {"SLURM_JOB_ID": job_id}}
    nodes = dict.fromkeys(expand(said["NodeList"]), wanted)
    return _Place(nodes, said.get("JobName", ""), said.get("StdOut", ""))


async def _kubernetes(controller: Controller, name: str) -> _Place:
    if not _POD_NAME.fullmatch(name):
        raise UsageError(f"--k8s {name}: not the name of a Job or a pod")
    settings = controller.settings.kubernetes
    kubectl = Kubectl(settings.context, settings.namespace)
    path = f"/api/v1/namespaces/{await kubectl.namespace()}/pods"
    listed = await kubectl.get(path, labelSelector=f"job-name={name}")
    pods = list((listed or {}).get("items") or ())
    if not pods:
        pod = await kubectl.get(f"{path}/{name}")
        pods = [pod] if pod else []
    wanted: dict[str, Mapping[str, object]] = {}
    for pod in sorted(pods, key=_index):
        node, host = pod.get("spec", {}).get("nodeName"), pod.get("metadata", {}).get("name")
        if isinstance(node, str) and isinstance(host, str):
            wanted[node] = {"environment": {"HOSTNAME": host[:63]}}
    if not wanted:
        raise UnavailableError(
            f"no pod of {name} has a node", hint=f"kubectl get pods -l job-name={name}"
        )
    return _Place(wanted, name)


def _index(pod: Mapping[str, object]) -> int:
    metadata = pod.get("metadata")
    notes = metadata.get("annotations") if isinstance(metadata, dict) else None
    text = str(notes.get(_INDEX, "0")) if isinstance(notes, dict) else "0"
    return int(text) if re.fullmatch(r"[0-9]{1,9}", text) else 0


@cache
def _program() -> str:
    return joined_program(node_program("_job_facts.py"))


async def _facts(controller: Controller, place: _Place) -> JobFacts:
    """What the nodes answer, in the order of ranks."""
    nodes = controller.inventory.pick(list(place.wanted))
    processes: list[RankProcess] = []
    saves: dict[str, SavesFound] = {}
    silent: list[str] = []

    def command_for(node: Node) -> Command:
        request = {**place.wanted[node.name], "names": CHECKPOINT_NAMES}
        return Command(
            (node.python, "-I", "-c", _program()), stdin=json.dumps(request).encode(),
            deadline_s=DEADLINE_S, output_limit_bytes=OUTPUT_LIMIT_BYTES,
        )  # fmt: skip

    limit = controller.settings.ssh.fanout
    async for answer in gather(controller.transport, nodes, command_for, limit=limit):
        try:
            found, folders = _read(answer)
        except (ForeignJsonError, TypeError, ValueError, KeyError) as exc:
            silent.append(f"{answer.node}: {exc}")
            continue
        processes += found
        saves |= {folder.path: folder for folder in folders}
    if not processes:
        raise UsageError(f"no process of this job was found{'; ' + silent[0] if silent else ''}")
    processes.sort(key=lambda p: (p.rank if p.rank is not None else 0, p.node, p.pid))
    order = dict.fromkeys((*(p.node for p in processes), *place.wanted))
    return JobFacts(tuple(processes), tuple(saves.values()), tuple(order), place.name, place.output)


def _read(answer: CommandResult) -> tuple[list[RankProcess], list[SavesFound]]:
    """One node's answer; anything of another shape is refused."""
    if answer.outcome is not Outcome.ANSWERED or answer.exit_status:
        said = answer.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
        raise ValueError(answer.detail or said[:200] or "no answer")
    value = read_foreign_json(answer.stdout)
    if not isinstance(value, dict):
        raise TypeError("no object")
    processes = [_process(answer.node, item) for item in value["processes"][:64]]
    return processes, [s for item in value["folders"][:100] for s in _folders(item)]


def _process(node: str, item: Mapping[str, object]) -> RankProcess:
    argv, environment, rank = item["argv"], item["environment"], item["rank"]
    if not isinstance(argv, list) or not isinstance(environment, dict):
        raise TypeError("a process without a command line")
    texts = [*argv, *environment.values(), item["cwd"], item["output"]]
    if not all(isinstance(text, str) and text.isprintable() for text in texts):
        raise TypeError("a process whose words are no text")
    return RankProcess(
        node, _count(item["pid"]), None if rank is None else _count(rank), tuple(argv),
        _path(item["cwd"]), environment, _count(item["not_sent"]), _path(item["output"]),
    )  # fmt: skip


def _path(value: object) -> str:
    text = str(value)
    return text if text.startswith("/") and ".." not in text.split("/") else ""


def _count(value: object) -> int:
    if type(value) is not int or value < 0:
        raise TypeError("a number that is none")
    return value


def _folders(item: Mapping[str, object]) -> Sequence[SavesFound]:
    named, saves = item["named"] is True, item["saves"]
    if not isinstance(saves, dict):
        raise TypeError("a directory without its checkpoints")
    below = [
        SavesFound(
            _path(path), named, {k: _count(v) for k, v in counts.items() if k in CHECKPOINT_NAMES}
        )
        for path, counts in saves.items()
        if isinstance(counts, dict) and _path(path)
    ]
    path = _path(item["path"])
    return below or ([SavesFound(path, named, {})] if path else [])
