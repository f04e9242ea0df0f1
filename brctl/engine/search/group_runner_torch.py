"""Group tests with torch.distributed over SSH: a worker per node stays, groups form anew."""

import asyncio
import json
import secrets
import statistics
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from brctl.engine.search.group_runner import RoundMeasurement, RoundOrder
from brctl.fanout.contract import Transport
from brctl.library.shipped import node_program
from brctl.model.command import Command, CommandResult, Outcome
from brctl.model.foreign_json import ForeignJsonError, read_foreign_json
from brctl.model.inventory import Node
from brctl.model.localisation import GroupResult, Path

RANK_ADDRESS_LABEL = "rank_address"
_BOOT = (
    "import sys,zlib,json;"
    "b=json.loads(zlib.decompress(sys.stdin.buffer.read()));"
    "exec(compile(b['worker'],'worker','exec'),{'__name__':'__main__','ORDER':b['order']})"
)
_START_S = 60.0
"""Room for login and for importing torch on a busy node, beside the test's own deadline."""

_SLOWEST_FACTOR = 4.0
_MIN_TIMEOUT_S = 5.0
_PORTS = (20000, 12000)
# Bus bandwidth as nccl-tests defines it (doc/PERFORMANCE.md): share of the data a link carries.
_BUS_TRIPS = {"all_reduce": 2.0, "all_gather": 1.0, "all_to_all": 1.0}
_PATH_KEYS = ("delay_us", "there_gb_per_s", "back_gb_per_s")


@dataclass(frozen=True, slots=True)
class NodeReply:
    """What one node's worker said; `problem` means that its ranks tell nothing.

    Attributes:
        reached: Its ranks ran or should have: silence then counts against the group.
    """

    node: str
    ranks: tuple[Mapping[str, object], ...] = ()
    problem: str = ""
    reached: bool = True
    facts: Mapping[str, object] = field(default_factory=dict)


@dataclass(slots=True)
class TorchRunner:
    """Runs each group as one torch.distributed job.

    Attributes:
        limit: Nodes in flight at once, as for every fan-out.
        local_ranks: Ranks on each node; 0 for one per GPU, or one without GPUs.
    """

    transport: Transport
    nodes: Mapping[str, Node]
    limit: int = 64
    local_ranks: int = 0
    session: str = field(default_factory=lambda: secrets.token_hex(8))
    used: set[str] = field(default_factory=set)
    worker: str = field(init=False)

    def __post_init__(self) -> None:
        self.worker = node_program("fabric/group/worker.py")

    @property
    def name(self) -> str:
        return "torch"

    async def run(self, order: RoundOrder) -> RoundMeasurement:
        """Run a round; groups that take much longer than the passing ones are cut."""
        wide = max(len(group) for group in order.groups)
        gate = asyncio.Semaphore(max(1, self.limit // wide))
        tasks = [
            asyncio.create_task(self._group(order, number, group, gate))
            for number, group in enumerate(order.groups)
        ]
        try:
            await self._await_most(tasks, order)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        results: list[GroupResult] = []
        notes: list[str] = []
        for task in tasks:
            if task.cancelled():
                results.append(GroupResult(order.reps, order.reps, None, silent=True))
                continue
            result, note = task.result()
            results.append(result)
            notes += [note] if note else []
        return RoundMeasurement(tuple(results), notes=tuple(notes))

    async def _await_most(
        self, tasks: Sequence["asyncio.Task[tuple[GroupResult, str]]"], order: RoundOrder
    ) -> None:
        """Wait for all groups, but for the last ones only a few times the usual time."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        until = began + order.deadline_s
        took: list[float] = []
        waiting = set(tasks)
        while waiting and loop.time() < until:
            done, waiting = await asyncio.wait(
                waiting, timeout=until - loop.time(), return_when=asyncio.FIRST_COMPLETED
            )
            took += [loop.time() - began for task in done if task.result()[0].failed == 0]
            if 2 * len(took) >= len(tasks):
                timeout_s = max(_MIN_TIMEOUT_S, _SLOWEST_FACTOR * statistics.median(took))
                until = min(until, began + timeout_s)

    async def _group(
        self, order: RoundOrder, number: int, group: Sequence[str], gate: asyncio.Semaphore
    ) -> tuple[GroupResult, str]:
        master = _address(self.nodes[group[0]])
        first, width = _PORTS
        port = first + (order.number * 131 + number * 7) % width
        async with gate:
            replies = await asyncio.gather(
                *(
                    self._ask(
                        name,
                        {
                            "do": "round",
                            "op": order.op,
                            "size_bytes": order.size_bytes,
                            "reps": order.reps,
                            "deadline_s": order.deadline_s,
                            "node_rank": rank,
                            "node_count": len(group),
                            "local_ranks": self.local_ranks,
                            "master": master,
                            "port": port,
                        },
                    )
                    for rank, name in enumerate(group)
                )
            )
        return group_result(replies, order)

    async def hello(self, name: str, deadline_s: float) -> NodeReply:
        """Start the node's worker and ask what it has."""
        return await self._ask(name, {"do": "hello", "deadline_s": deadline_s})

    async def alone(self, name: str, order: RoundOrder) -> tuple[GroupResult, str]:
        """A collective among ranks of one node: a fault inside it needs no other node."""
        reply = await self._ask(
            name,
            {
                "do": "round", "op": order.op, "size_bytes": order.size_bytes,
                "reps": order.reps, "deadline_s": order.deadline_s, "node_rank": 0,
                "node_count": 1, "local_ranks": self.local_ranks, "master": "127.0.0.1",
                "port": _PORTS[0] + _PORTS[1] + zlib.crc32(name.encode()) % 1000,
                "address": "127.0.0.1",
            },
        )  # fmt: skip
        return group_result([reply], order)

    async def _ask(self, name: str, order: Mapping[str, object]) -> NodeReply:
        node = self.nodes[name]
        self.used.add(node.name)
        # Nodes may share a temporary directory; their workers must not share a socket.
        own = f"{self.session}-{zlib.crc32(node.name.encode()):08x}"
        full = {"session": own, "address": _address(node), **order}
        bundle = json.dumps({"worker": self.worker, "order": full}).encode()
        deadline = order.get("deadline_s", 5.0)
        command = Command(
            argv=(node.torch_python or node.python, "-B", "-c", _BOOT),
            stdin=zlib.compress(bundle),
            deadline_s=(float(deadline) if isinstance(deadline, int | float) else 5.0) + _START_S,
        )
        return read_reply(await self.transport.run(node, command))

    async def close(self) -> None:
        """Tell every worker to leave; one that does not hear it leaves when idle."""
        names, self.used = sorted(self.used), set()
        stops = [self._ask(name, {"do": "stop"}) for name in names]
        gathered = asyncio.gather(*stops, return_exceptions=True)
        try:
            await asyncio.wait_for(gathered, _START_S)
        except TimeoutError:
            return
        finally:
            self.used.clear()


def _address(node: Node) -> str:
    return node.labels.get(RANK_ADDRESS_LABEL) or node.address


def read_reply(answer: CommandResult) -> NodeReply:
    """What a node's answer means; nothing in it is believed beyond its shape."""
    if answer.outcome is Outcome.COMMAND_TIMED_OUT:
        return NodeReply(answer.node, problem="no answer in time")
    if answer.outcome is not Outcome.ANSWERED:
        why = answer.detail or answer.outcome.value
        return NodeReply(answer.node, problem=f"not reached: {why}", reached=False)
    try:
        document = read_foreign_json(answer.stdout)
    except ForeignJsonError:
        message = (answer.stderr or answer.stdout).decode(errors="replace").strip()[-200:]
        return NodeReply(answer.node, problem=f"its worker did not start: {message}", reached=False)
    if not isinstance(document, dict):
        return NodeReply(answer.node, problem="its answer is no object", reached=False)
    problem = document.get("problem")
    if isinstance(problem, str):
        return NodeReply(answer.node, problem=problem[:300], reached="torch" not in problem)
    ranks = document.get("ranks")
    listed = tuple(r for r in ranks if isinstance(r, dict)) if isinstance(ranks, list) else ()
    return NodeReply(answer.node, listed, facts=document)


def group_result(replies: Sequence[NodeReply], order: RoundOrder) -> tuple[GroupResult, str]:
    """One group's result from its nodes' replies, and a sentence when it is not plain."""
    for reply in replies:
        if not reply.reached:
            return GroupResult(order.reps, None), f"{reply.node}: {reply.problem}; not measured"
    ranks = [rank for reply in replies for rank in reply.ranks]
    taken = [r for r in ranks if "EADDRINUSE" in str(r.get("error")) and not r.get("set_up")]
    if taken:
        return GroupResult(order.reps, None), "a port was taken; not measured"
    finished = [rank for rank in ranks if rank.get("done") == order.reps]
    if len(finished) < len(ranks) or any(not reply.ranks for reply in replies):
        return GroupResult(order.reps, order.reps, None, silent=True), _first_error(replies)
    wrong = {rep for rank in ranks for rep in _numbers(rank.get("wrong"))}
    path = _slowest_path(ranks)
    rate = min(path.there_gb_per_s, path.back_gb_per_s) if path else _bus_bandwidth(ranks, order)
    return GroupResult(order.reps, len(wrong), rate, path=path), ""


def _first_error(replies: Sequence[NodeReply]) -> str:
    for reply in replies:
        errors = [str(rank.get("error")) for rank in reply.ranks if rank.get("error")]
        if reply.problem or errors:
            return f"{reply.node}: {(reply.problem or errors[0])[:200]}"
    return ""


def _numbers(value: object) -> list[float]:
    if not isinstance(value, list):
        return []
    return [float(v) for v in value if isinstance(v, int | float) and not isinstance(v, bool)]


def _slowest_path(ranks: Sequence[Mapping[str, object]]) -> Path | None:
    """Of the paths that the ranks of the first node measured, the worst in each respect."""
    paths = [path for rank in ranks if isinstance(path := rank.get("path"), Mapping)]
    rows = [_numbers([path.get(key) for key in _PATH_KEYS]) for path in paths]
    if not rows or any(len(row) != len(_PATH_KEYS) or min(row) <= 0 for row in rows):
        return None
    delays, there, back = zip(*rows, strict=True)
    return Path(max(delays), min(there), min(back))


def _bus_bandwidth(ranks: Sequence[Mapping[str, object]], order: RoundOrder) -> float | None:
    """GB/s on the bus: median over repetitions of the slowest rank's time."""
    times = [_numbers(rank.get("seconds")) for rank in ranks]
    if order.op not in _BUS_TRIPS or not times or any(len(t) != order.reps for t in times):
        return None
    slowest = float(statistics.median(max(column) for column in zip(*times, strict=True)))
    if slowest <= 0:
        return None
    share = _BUS_TRIPS[order.op] * (len(ranks) - 1) / len(ranks)
    return share * order.size_bytes / slowest / 1e9
