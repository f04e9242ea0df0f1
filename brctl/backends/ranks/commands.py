"""Talk to `checks/_ranks` on the nodes of a job: what to send, and what its answer means."""

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from brctl.fanout.contract import Transport
from brctl.fanout.gather import gather
from brctl.library.shipped import node_program
from brctl.model.command import Command, CommandResult, Outcome
from brctl.model.foreign_json import ForeignJsonError, read_foreign_json
from brctl.model.inventory import Inventory, Node
from brctl.model.jobs.job import SLOT_DIR_VARIABLE, Job
from brctl.model.runs.playbook import Json

# In the order of their imports.
_RANKS = ("processes", "environment", "code_release", "parked_ranks", "program")
_PARKED = ("processes", "code_release", "parked_process")
START_DEADLINE_S = 60.0
LOOK_DEADLINE_S = 15.0
EXAMINE_DEADLINE_S = 45.0
PARK_DEADLINE_S = 180.0
ANSWER_S = 10.0
"""A parked process that is silent for so long is ended, and its rank starts cold."""
STOP_MARGIN_S = 20.0
"""On top of the grace: the wait after SIGKILL and a slow login."""

_RANK_LISTS = ("started", "warm", "stopped", "killed", "stuck")

RANK_ADDRESS_LABEL = "rank_address"
"""Label for the address ranks meet at, where that is not the one SSH uses."""


# Gives each part the name it is imported by, and leaves no trace of that for the job's own imports.
_LOADER = """\
import json, sys, types
def load(parts):
    for name, text in parts:
        module = sys.modules[name] = types.ModuleType(name)
        exec(compile(text, name, "exec"), module.__dict__)
    for name, _ in parts:
        del sys.modules[name]
    return module.main
"""


@cache
def program() -> str:
    """`_ranks/program.py` and what it imports as one text; `run(JSON)` at its end makes it work."""
    return _bundle(_RANKS) + "def run(text):\n    raise SystemExit(main(text))\n"


@cache
def parked_program() -> str:
    """`parked_process` in the same way."""
    return _bundle(_PARKED) + "def run(text):\n    main(json.loads(text))\n"


def _bundle(names: Sequence[str]) -> str:
    parts = [(f"checks._ranks.{name}", node_program(f"_ranks/{name}.py")) for name in names]
    return f"{_LOADER}main = load({parts!r})\n"


def command(node: Node, request: Mapping[str, Json], deadline_s: float) -> Command:
    """The program and its one argument, as bytes for the node's Python."""
    source = f"{program()}run({json.dumps(request)!r})\n".encode()
    return Command((node.python, "-I", "-"), stdin=source, deadline_s=deadline_s)


def start_request(
    job: Job, node: Node, master: Node, checkpoint: str, incarnation: str
) -> dict[str, Json]:
    """What the program needs to start the ranks of one node."""
    return {
        **_prepared(job, node, "start"),
        "world_size": job.world_size,
        "master_addr": master.labels.get(RANK_ADDRESS_LABEL, master.address),
        "master_port": job.master_port,
        "resume_from": checkpoint,
        "incarnation": incarnation,
    }


def stop_request(job: Job, node: Node, grace_s: float) -> dict[str, Json]:
    """What the program needs to end the ranks of one node."""
    return {**_request(job, node, "stop"), "grace_s": grace_s}


def status_request(job: Job, node: Node) -> dict[str, Json]:
    """What the program needs to look for the ranks of one node."""
    return _request(job, node, "status")


def park_request(job: Job, node: Node, lease_s: float, *, gpu: bool) -> dict[str, Json]:
    """What the program needs to park one process for every local rank.

    A parked process that nobody asks for as long as its lease ends by itself. With `gpu` it creates
    the CUDA context too; not beside ranks, whose memory it would take.
    """
    return {
        **_prepared(job, node, "park"),
        "program": parked_program(),
        "prepare_s": PARK_DEADLINE_S - STOP_MARGIN_S,
        "lease_s": lease_s,
        "gpu": gpu,
    }


def parked_request(job: Job, node: Node, do: str) -> dict[str, Json]:
    """What the program needs to look for parked processes (`parked`) or to end them (`unpark`)."""
    return _request(job, node, do)


def examine_request(job: Job, node: Node) -> dict[str, Json]:
    """What the program needs to say whether a node has what the job's ranks need."""
    return _prepared(job, node, "examine")


def _prepared(job: Job, node: Node, do: str) -> dict[str, Json]:
    return {
        **_request(job, node, do),
        "launch": list(job.launch),
        "environment": {**job.rank_environment, **_slots(job)},
        "workdir": str(job.rank_workdir),
        "checkpoint_dir": str(job.checkpoint_dir),
        "imports": list(job.warm),
        "answer_s": ANSWER_S,
    }


def _slots(job: Job) -> dict[str, str]:
    """Where ranks keep each step; a replay of the job must not find it, and does not."""
    return {SLOT_DIR_VARIABLE: str(job.slot_directory)} if job.slot_directory else {}


def _request(job: Job, node: Node, do: str) -> dict[str, Json]:
    return {
        "do": do,
        "job": job.name,
        "node": node.name,
        "ranks": list(job.ranks_on(node.name)),
        "local_ranks": job.ranks_per_node,
        "log_dir": str(job.log_dir),
        "progress_dir": str(job.progress_dir),
    }


@dataclass(frozen=True, slots=True)
class RankNodes:
    """The nodes a job's ranks are on, and how many of them are asked at once."""

    transport: Transport
    inventory: Inventory
    fanout: int

    async def ask(
        self,
        nodes: Sequence[str],
        request: Callable[[Node], Mapping[str, Json]],
        deadline_s: float,
    ) -> tuple[dict[str, Mapping[str, Json]], dict[str, str]]:
        """Ask all nodes at once; the answer of each, and why the others gave none."""
        known = [self.inventory.nodes[name] for name in nodes if name in self.inventory.nodes]
        failed = {n: "not in the inventory" for n in nodes if n not in self.inventory.nodes}
        requests = {node.name: request(node) for node in known}
        answered: dict[str, Mapping[str, Json]] = {}
        answers = gather(
            self.transport,
            known,
            lambda node: command(node, requests[node.name], deadline_s),
            limit=self.fanout,
        )
        async for answer in answers:
            value = read_rank_answer(answer, _asked_ranks(requests[answer.node]))
            if isinstance(value, str):
                failed[answer.node] = value
            else:
                answered[answer.node] = value
        return answered, failed


def _asked_ranks(request: Mapping[str, Json]) -> tuple[int, ...]:
    ranks = request.get("ranks")
    return tuple(r for r in ranks if isinstance(r, int)) if isinstance(ranks, list) else ()


def read_rank_answer(answer: CommandResult, ranks: Collection[int]) -> Mapping[str, Json] | str:
    """The program's answer, or one sentence about why there is none.

    A node speaks for its own ranks. One that speaks for others is believed in nothing: it could
    have a neighbour's ranks counted as dead, or as stopped.
    """
    if answer.outcome is not Outcome.ANSWERED:
        return answer.detail or str(answer.outcome)
    try:
        value = read_foreign_json(answer.stdout)
    except ForeignJsonError:
        last = answer.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
        return f"no answer from the rank program (exit {answer.exit_status}): {last[:200]}"
    if not isinstance(value, dict):
        return "no answer from the rank program"
    strange = [rank for rank in _ranks_in(value) if type(rank) is not int or rank not in ranks]
    if strange:
        return f"not believed: it answers for rank {strange[0]!s:.20}, which is not on this node"
    return value


def _ranks_in(value: Mapping[str, Json]) -> Iterator[Json]:
    """Every rank an answer speaks for: of a row of `ranks`, or listed as started or ended."""
    rows = value.get("ranks")
    for row in rows if isinstance(rows, list) else ():
        if isinstance(row, dict):
            yield row.get("rank")
    for key in _RANK_LISTS:
        listed = value.get(key)
        yield from listed if isinstance(listed, list) else ()
