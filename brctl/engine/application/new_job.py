"""The text of a job.yaml, from what the processes of a running job say."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from pathlib import PurePosixPath

import yaml

from brctl.library.file_tables import AXES
from brctl.library.jobs import RESERVED_ENVIRONMENT
from brctl.model.nodeset import expand, fold
from brctl.view.redact import HIDDEN, redact

_DEGREE = r"(?:[_-]model)?[_-]parallel(?:[_-]size|[_-]degree)?"
_PARALLEL_FLAGS: Mapping[str, str] = {
    axis: rf"--(?:[\w.]{{1,40}}\.)?(?:{word}{_DEGREE}|{axis}(?:[_-]size)?)"
    for axis, word in (("tp", "tensor"), ("pp", "pipeline"), ("cp", "context"))
}
"""As Megatron-LM, torchtitan and others call them."""
_ORDER = ("tp", "cp", "dp", "pp")
"""Megatron-LM's own order; other frameworks agree where only one of them is above 1."""

_NOT_A_NAME = re.compile(r"[^A-Za-z0-9._-]+")
_RUNNER = re.compile(r"(?:.*/)?(?:python[\d.]*|bash|sh|env)$")
_UNSURE = "could not be known"


@dataclass(frozen=True, slots=True)
class RankProcess:
    """A process of the job on one node; `not_sent` values of its environment stayed there."""

    node: str
    pid: int
    rank: int | None
    argv: tuple[str, ...]
    cwd: str
    environment: Mapping[str, str]
    not_sent: int
    output: str


@dataclass(frozen=True, slots=True)
class SavesFound:
    """A directory that the job may save to, and how many names of each layout lie there."""

    path: str
    named: bool
    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class JobFacts:
    """All that was found out.

    Attributes:
        name: The scheduler's name of the job; "" without one.
        output: The file the scheduler writes the job's output to; "" without one.
        nodes: In rank order, as far as known.
    """

    processes: tuple[RankProcess, ...]
    saves: tuple[SavesFound, ...]
    nodes: tuple[str, ...]
    name: str = ""
    output: str = ""


@dataclass(slots=True)
class NewJob:
    """A job.yaml in the making.

    Attributes:
        guessed: What was concluded, a sentence each, with from where.
        unknown: What a person has to say.
    """

    body: dict[str, object] = field(default_factory=dict)
    guessed: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)

    def text(self) -> str:
        """The file, what is guessed and unknown first."""
        head = [
            "# Written by brctl job init from the running job. Look through it before you use it."
        ]
        head += [f"# guessed: {line}" for line in self.guessed]
        head += [f"# NOT KNOWN: {line}" for line in self.unknown]
        body = {"apiVersion": "brctl.dev/v1", "kind": "Job", **self.body}
        dumped = yaml.safe_dump(body, sort_keys=False, default_flow_style=None, width=100)
        return "\n".join([*head, dumped])


def new_job(facts: JobFacts, name: str = "") -> NewJob:
    """What job.yaml can say of a job whose processes were found."""
    job, first = NewJob(), facts.processes[0]
    world = _whole(first.environment, "WORLD_SIZE") or _whole(first.environment, "SLURM_NTASKS")
    _name(job, facts, name)
    per_node = _nodes(job, facts, world)
    _parallel(job, first, len(facts.nodes) * per_node)
    _launch(job, first)
    job.body["workdir"] = first.cwd or "/"
    _environment(job, first)
    _checkpoint(job, facts, first)
    _logs(job, facts, first)
    port = _whole(first.environment, "MASTER_PORT")
    if port and 1024 <= port <= 65535:
        job.body["master_port"] = port
    return job


def _name(job: NewJob, facts: JobFacts, said: str) -> None:
    words = [w for w in facts.processes[0].argv if not w.startswith("-") and not _RUNNER.match(w)]
    script = PurePosixPath(words[0]).stem if words else "job"
    name = said or facts.name or script
    job.body["name"] = (_NOT_A_NAME.sub("-", name).strip("-._") or "job")[:63]
    if not said:
        of = "the scheduler's" if facts.name else "that of the script"
        job.guessed.append(f"name: {of}")


def _nodes(job: NewJob, facts: JobFacts, world: int) -> int:
    """Ranks a node; says which ranks nobody has seen."""
    job.body["nodes"] = fold(facts.nodes) if _in_order(facts.nodes) else list(facts.nodes)
    by_node = {node: 0 for node in facts.nodes}
    for process in facts.processes:
        by_node[process.node] = by_node.get(process.node, 0) + 1
    counts = sorted(set(by_node.values()))
    local = _whole(facts.processes[0].environment, "LOCAL_WORLD_SIZE")
    per_node = local or max(counts)
    job.body["ranks_per_node"] = per_node
    if len(counts) > 1:
        few = [node for node, count in by_node.items() if count < per_node]
        job.unknown.append(f"not all ranks were found on {fold(few)}")
    if world and world != per_node * len(facts.nodes):
        missing = f"the job has {world} ranks, {len(facts.nodes)} nodes have {per_node} each"
        job.unknown.append(f"nodes: {missing}; name all its nodes with -w")
    if not world:
        job.unknown.append(
            "no process says which rank it is (RANK, SLURM_PROCID): ranks are counted"
        )
    return per_node


def _in_order(nodes: Sequence[str]) -> bool:
    return list(expand(fold(nodes))) == list(nodes)


def _parallel(job: NewJob, first: RankProcess, world: int) -> None:
    line = " ".join(first.argv)
    sizes = {
        axis: int(found[1])
        for axis, flag in _PARALLEL_FLAGS.items()
        if (found := re.search(rf"(?:^| ){flag}[ =](\d{{1,6}})(?= |$)", line))
    }
    sizes = {axis: size for axis, size in sizes.items() if size > 1}
    if not sizes:
        job.guessed.append("parallel: none, every rank is a replica; no flag says otherwise")
        return
    rest, left = divmod(world, prod(sizes.values()))
    if left or not rest:
        job.unknown.append(f"parallel: {sizes} does not divide {world} ranks")
        return
    sizes = {axis: size for axis in _ORDER if (size := {**sizes, "dp": rest}.get(axis, 1)) > 1}
    order = [axis for axis in _ORDER if axis in sizes and axis in AXES]
    job.body["parallel"] = {"order": order, **sizes}
    job.guessed.append("parallel: sizes from the command line, Megatron-LM's order")


def _launch(job: NewJob, first: RankProcess) -> None:
    before = ("", *first.argv)
    words = [_open_word(flag, word) for flag, word in zip(before, first.argv, strict=False)]
    job.body["launch"] = words
    if words != list(first.argv):
        job.unknown.append(f"launch: a word that looks like a secret was not copied: {HIDDEN}")
    job.guessed.append(f"launch: the command of process {first.pid} on {first.node}")


def _open_word(flag: str, word: str) -> str:
    """A word of a command line, or what stands for it when it, or its flag, is a secret's."""
    if flag.startswith("-") and not word.startswith("-"):
        named = f"{flag.lstrip('-')}={word}"
        if redact(named) != named:
            return HIDDEN
    return redact(word)


def _environment(job: NewJob, first: RankProcess) -> None:
    own = {k: v for k, v in first.environment.items() if k not in RESERVED_ENVIRONMENT}
    own = {k: v for k, v in own.items() if not k.startswith(("SLURM_", "LOCAL_WORLD"))}
    safe = {k: v for k, v in sorted(own.items()) if redact(f"{k}={v}") == f"{k}={v}"}
    if safe:
        job.body["environment"] = safe
    left = first.not_sent + len(own) - len(safe)
    job.guessed.append(f"environment: {left} variables were not copied, any may be a secret")


def _checkpoint(job: NewJob, facts: JobFacts, first: RankProcess) -> None:
    """What its flags name, else where most checkpoints lie; the layout by their names."""
    best = max(facts.saves, key=lambda saves: saves.named, default=None)
    with_saves = [s for s in facts.saves if any(s.counts.values())]
    if with_saves:
        best = max(with_saves, key=lambda s: (s.named, max(s.counts.values())))
        layout = max(best.counts, key=best.counts.__getitem__)
        job.body["checkpoint"] = {"directory": best.path, "layout": layout}
        count = best.counts[layout]
        job.guessed.append(f"checkpoint: {count} names of {layout} lie in {best.path}")
        return
    path = best.path if best and best.named else f"{first.cwd or ''}/checkpoints"
    job.body["checkpoint"] = {"directory": path}
    where = "nothing is saved there yet" if best and best.named else "no flag names a directory"
    job.unknown.append(f"checkpoint: directory and layout {_UNSURE}, {where}")


def _logs(job: NewJob, facts: JobFacts, first: RankProcess) -> None:
    log = facts.output or first.output
    if log:
        job.body["logs"] = str(PurePosixPath(log).parent)
        job.body["progress"] = {"log": log}
        job.guessed.append(f"logs, progress: steps are read from its output, {log}")
        return
    job.body["logs"] = f"{first.cwd or ''}/logs"
    job.body["progress"] = {}
    job.unknown.append(
        f"logs: {_UNSURE}, its output goes into a pipe; brctl logs of ranks it starts"
    )


def _whole(environment: Mapping[str, str], name: str) -> int:
    text = environment.get(name, "")
    return int(text) if re.fullmatch(r"[0-9]{1,7}", text) else 0
