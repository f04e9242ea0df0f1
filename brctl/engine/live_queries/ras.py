"""Ask NCCL's RAS service of a job that stands still: one node, once or twice, never in haste.

Of ranks that lag another node is asked once more: what one node says of others convicts nobody.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from brctl.engine.controller.wiring import Controller
from brctl.engine.job.stacks import Captured
from brctl.engine.live_queries.program import command_of
from brctl.evidence.ras.analyse import Places, analyse_ras, confirmed
from brctl.evidence.ras.answer import NotRasError, RasAnswer, is_cut, lagging_rows
from brctl.evidence.ras.facts import RankFacts, read_facts, strangers
from brctl.evidence.ras.permission import why_not
from brctl.evidence.ras.structured import read_structured_answer
from brctl.evidence.ras.text import read_text_answer
from brctl.library.durable_files import private_dir
from brctl.model.command import CommandResult, Outcome
from brctl.model.foreign_json import ForeignJsonError, read_foreign_json
from brctl.model.inventory import Node
from brctl.model.jobs.job_status import JobStatus
from brctl.model.jobs.ras import RasAnalysis, RasReason

ASKS = "nccl-ras"
TRIES, TRY_S = 4, 1.0
"""A stopped process takes the connection and says nothing; of eight, four in a row are rare."""
TIMEOUT_S, ANSWER_S = 5, 12.0
"""NCCL gathers for at most ten seconds with the first."""
LIMIT_BYTES = 4 << 20
PAUSE_S = 15.0
"""Between two answers that are compared."""
NODES_ASKED = 3
"""Where a whole node is silent; its silence is known by then."""
CONFIRMED_BY = 2
"""Other nodes that may be asked, until one answers, what it says of those that lag."""
ASKED_AGAIN = 2
"""Where another job answered."""


@dataclass(frozen=True, slots=True)
class RasFound:
    """What asking brought.

    Attributes:
        analysis: None where nothing was answered.
        why: Why not, or what stays unknown; "" for nothing.
        raw: Answers as they came, in order.
    """

    analysis: RasAnalysis | None = None
    why: str = ""
    raw: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class _Reply:
    """One node's answer to one question; `answer` is None where `why` says why."""

    why: str
    raw: bytes = b""
    answer: RasAnswer | None = None
    next_node: bool = False


def facts_of(captured: Sequence[Captured]) -> tuple[RankFacts, ...]:
    """What the nodes read of each rank's process when its stack was captured."""
    found = (read_facts(one.rank, one.node, one.state, one.process) for one in captured)
    return tuple(facts for facts in found if facts is not None)


async def ask_ras(
    controller: Controller,
    status: JobStatus,
    facts: Sequence[RankFacts],
    *,
    old_too: bool,
    pause_s: float = PAUSE_S,
) -> RasFound:
    """Ask, if the job may be asked; compare with a second answer where the first calls for it."""
    why = why_not(status, facts, old_too=old_too)
    if why:
        return RasFound(why=why)
    nodes = controller.inventory.pick(status.job.nodes)
    places = Places(facts, {node.address: node.name for node in nodes})
    refusals: list[str] = []
    askable = _askable(facts)
    for number, own in enumerate(askable, 1):
        node = controller.inventory.nodes[own[0].node]
        asking = _Asking(controller, node, own, places)
        answers = await asking.compare(pause_s)
        if answers:
            found = analyse_ras(answers, places, status.job, node.name)
            raw = tuple(asking.raw)
            if any(suspect.reason is RasReason.LAGS for suspect in found.suspects):
                others = [
                    _Asking(controller, controller.inventory.nodes[o[0].node], o, places)
                    for o in askable[number:][:CONFIRMED_BY]
                ]
                found, more = await _with_another(found, others, asking.form, places)
                raw = (*raw, *more)
            return RasFound(found, raw=raw)
        refusals.append(f"{node.name}: {asking.why}")
        if not asking.next_node or len(refusals) == NODES_ASKED:
            break
    return RasFound(why="; ".join(refusals) or _nobody(facts))


async def _with_another(
    found: RasAnalysis, others: Sequence["_Asking"], form: str, places: Places
) -> tuple[RasAnalysis, tuple[bytes, ...]]:
    """Ask one more node whether it says the same of those that lag; the first answer decides."""
    for asking in others:
        answer = await asking.once(form)
        if answer is not None:
            return confirmed(found, answer, places), tuple(asking.raw)
    return found, ()


def keep_raw(folder: Path, found: RasFound) -> None:
    """The answers as they came, beside the stacks of the same moment."""
    if found.raw:
        private_dir(folder / "nccl-ras")
    for number, raw in enumerate(found.raw, 1):
        (folder / "nccl-ras" / f"answer-{number}").write_bytes(raw)


def _askable(facts: Sequence[RankFacts]) -> list[list[RankFacts]]:
    """Nodes where only the job's own ranks listen, those with the fewest stopped ones first."""
    by_node: dict[str, list[RankFacts]] = {}
    for one in facts:
        by_node.setdefault(one.node, []).append(one)
    able = [own for own in by_node.values() if own[0].listening and not strangers(own)]
    return sorted(able, key=lambda own: sum(one.state in ("T", "t", "Z") for one in own))


def _nobody(facts: Sequence[RankFacts]) -> str:
    ports = sorted({one.port for one in facts})
    if any(one.listening for one in facts):
        return f"other processes listen on port {ports[0]} too, and would be asked instead"
    return f"no rank listens on port {ports[0]}, where NCCL's RAS service would"


class _Asking:
    """Questions to one node; `raw` keeps what came, `why` the last reason for no answer."""

    def __init__(
        self, controller: Controller, node: Node, own: Sequence[RankFacts], places: Places
    ) -> None:
        self._controller = controller
        self._node = node
        self._own = own
        self._places = places
        self.raw: list[bytes] = []
        self.why = ""
        self.next_node = False
        self.form = "text"

    async def compare(self, pause_s: float) -> list[RasAnswer]:
        """One answer, or two where the first is whole and its counts are unequal; else none.

        Text first: it is a few kilobytes for any job. JSON where the text counts ranks that it
        does not name.
        """
        first = await self._ask("text")
        if first is not None and is_cut(first) and (full := await self._ask("json")) is not None:
            self.form, first = "json", full
        if first is None:
            return []
        if not first.is_whole or not any(lagging_rows(c) for c in first.communicators):
            return [first]
        second = await self._ask(self.form, pause_s)
        return [first, second] if second is not None else [first]

    async def once(self, form: str) -> RasAnswer | None:
        """One answer."""
        return await self._ask(form)

    async def _ask(self, form: str, wait_s: float = 0.0) -> RasAnswer | None:
        for _ in range(ASKED_AGAIN):
            reply = await self._question(form, wait_s)
            self.why, self.next_node = reply.why, reply.next_node
            if reply.raw:
                self.raw.append(reply.raw)
            if reply.answer is None or self._places.knows_any(reply.answer) is not False:
                return reply.answer
        self.why = "another job's NCCL answered, which shares the port"
        return None

    async def _question(self, form: str, wait_s: float) -> _Reply:
        own = self._own[0]
        request = {
            "pid": own.pid, "addresses": own.listening, "port": own.port,
            "format": form, "tries": TRIES, "try_s": TRY_S, "timeout_s": TIMEOUT_S,
            "answer_s": ANSWER_S, "limit_bytes": LIMIT_BYTES, "wait_s": wait_s,
        }  # fmt: skip
        command = command_of(
            self._node,
            "_nccl_ras.py",
            request,
            asks=f"{ASKS}:{form}",
            seconds=wait_s + TRIES * TRY_S * len(own.listening) + ANSWER_S,
            output_bytes=LIMIT_BYTES + 8192,
        )
        return read_reply(await self._controller.transport.run(self._node, command), form)


def read_reply(result: CommandResult, form: str) -> _Reply:
    """What one node's answer holds; hostile as anything from a node."""
    if result.outcome is not Outcome.ANSWERED:
        return _Reply(f"{result.outcome.value}: {result.detail}", next_node=True)
    head, _, raw = result.stdout.partition(b"\n")
    try:
        told = read_foreign_json(head)
    except ForeignJsonError:
        told = None
    if not isinstance(told, dict):
        last = result.stderr.decode("utf-8", "replace").strip()[-200:]
        return _Reply(f"the question could not be asked: {last or 'no answer'}")
    outcome, said = str(told.get("outcome"))[:40], str(told.get("said") or "")[:200]
    if outcome not in ("answered", "over-limit", "late") or not raw:
        why = f"{_WHY.get(outcome, outcome)} {said}".strip()
        return _Reply(why, raw, next_node=outcome in ("silent", "refused", "closed", "no-way"))
    try:
        answer = read_text_answer(raw) if form == "text" else read_structured_answer(raw)
    except NotRasError as exc:
        return _Reply(f"the answer cannot be read: {exc}", raw)
    return _Reply("", raw, replace(answer, is_whole=answer.is_whole and outcome == "answered"))


_WHY: Mapping[str, str] = {
    "silent": "whoever took the connection said nothing: its processes are stopped or hang",
    "refused": "nobody takes connections",
    "closed": "the connection was closed without an answer",
    "not-ras": "something else answered:",
    "no-format": "this NCCL has no JSON:",
    "no-way": "it cannot be reached:",
    "late": "the answer took too long",
}
