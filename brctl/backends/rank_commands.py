"""Talk to `rank_program` on the nodes of a job: what to send, and what its answer means."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from brctl.fanout.contract import Transport
from brctl.fanout.gather import gather
from brctl.model.answer import Answer, Command, Outcome
from brctl.model.inventory import Inventory, Node
from brctl.model.job import Job
from brctl.model.playbook import Json

PROGRAM = Path(__file__).with_name("rank_program.py")
START_DEADLINE_S = 60.0
LOOK_DEADLINE_S = 15.0
STOP_MARGIN_S = 20.0
"""On top of the grace: the wait after SIGKILL and a slow login."""

RANK_ADDRESS_LABEL = "rank_address"
"""Label for the address ranks meet at, where that is not the one SSH uses."""


def command(node: Node, asked: Mapping[str, Json], deadline_s: float) -> Command:
    """The program and its one argument, as bytes for the node's Python."""
    call = f"\nraise SystemExit(main({json.dumps(asked)!r}))\n"
    source = PROGRAM.read_bytes() + call.encode("ascii")
    return Command((node.python, "-I", "-"), stdin=source, deadline_s=deadline_s)


def start_request(
    job: Job, node: Node, master: Node, checkpoint: str, incarnation: str
) -> dict[str, Json]:
    """What the program needs to start the ranks of one node."""
    return {
        **_request(job, node, "start"),
        "launch": list(job.launch),
        "environment": dict(job.environment),
        "workdir": str(job.workdir),
        "progress_dir": str(job.progress_dir),
        "checkpoint_dir": str(job.checkpoint_dir),
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


def _request(job: Job, node: Node, do: str) -> dict[str, Json]:
    return {
        "do": do,
        "job": job.name,
        "node": node.name,
        "ranks": list(job.ranks_on(node.name)),
        "log_dir": str(job.log_dir),
    }


async def ask(
    transport: Transport,
    inventory: Inventory,
    nodes: Sequence[str],
    requests: Mapping[str, tuple[Mapping[str, Json], float]],
    limit: int,
) -> tuple[dict[str, Mapping[str, Json]], dict[str, str]]:
    """Ask all nodes at once; what each said, and why the others said nothing."""
    said: dict[str, Mapping[str, Json]] = {}
    silent: dict[str, str] = {}
    known = [inventory.nodes[name] for name in nodes if name in inventory.nodes]
    silent |= {name: "not in the inventory" for name in nodes if name not in inventory.nodes}
    answers = gather(transport, known, lambda n: command(n, *requests[n.name]), limit=limit)
    async for answer in answers:
        value = _parse(answer)
        if isinstance(value, str):
            silent[answer.node] = value
        else:
            said[answer.node] = value
    return said, silent


def _parse(answer: Answer) -> Mapping[str, Json] | str:
    """The program's answer, or one sentence about why there is none."""
    if answer.outcome is not Outcome.ANSWERED:
        return answer.detail or str(answer.outcome)
    try:
        value = json.loads(answer.stdout)
    except ValueError:
        last = answer.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
        return f"no answer from the rank program (exit {answer.exit_status}): {last[:200]}"
    return value if isinstance(value, dict) else "no answer from the rank program"
