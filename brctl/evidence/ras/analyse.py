"""From two answers of the RAS service to the ranks that the others wait for.

The rules:

1. A process that NCCL gets no answer from, or gave up, is a suspect.
2. Counts that moved between two answers: not stuck there. One answer alone, or unequal counts in
   it, says nothing: operations overtake the question.
3. Counts that stood still and are unequal: the ranks with the lower count never launched the
   operation that the others wait in. A rank that lags in one communicator and leads in another
   waits itself, and is a victim.
4. A rank behind in one kind of operation and ahead in another, or laggards on many nodes, is no
   machine: the ranks disagree on what comes next, or have a common cause.
5. Counts that stood still and are equal: NCCL cannot tell; flight recorder and stacks decide.

Numbers of ranks count inside a communicator: a rank of the job is found by address and process.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from brctl.evidence.ras.answer import (
    Communicator,
    Launched,
    RasAnswer,
    RasMember,
    RasProcess,
    lagging_rows,
)
from brctl.evidence.ras.facts import RankFacts
from brctl.evidence.stacks.analyse import COMMON_CAUSE_RATIO, covering_groups
from brctl.model.jobs.job import Job
from brctl.model.jobs.ras import RasAnalysis, RasReason, RasSuspect


@dataclass(frozen=True, slots=True)
class _Behind:
    """One rank that lags in one communicator."""

    facts: RankFacts
    communicator: Communicator
    row: Launched
    most: int


class Places:
    """The job's ranks by what NCCL calls their processes.

    Args:
        facts: Of the ranks whose processes are there.
        known: Nodes by address, for those that said nothing of themselves.

    Attributes:
        seen: Ranks whose processes it knows, by node.
    """

    def __init__(self, facts: Iterable[RankFacts], known: Mapping[str, str]) -> None:
        self._by_process: dict[tuple[str, int], RankFacts] = {}
        self._nodes = dict(known)
        self.seen: dict[str, set[int]] = {}
        for one in facts:
            self.seen.setdefault(one.node, set()).add(one.rank)
            for address in one.addresses:
                self._by_process[address, one.pid_inside] = one
                self._nodes[address] = one.node

    def of(self, process: RasProcess | None) -> RankFacts | None:
        """The rank whose process this is."""
        if process is None or process.pid is None:
            return None
        return self._by_process.get((process.host, process.pid))

    def node_of(self, process: RasProcess) -> str:
        """The node it is, or was, on; "" where nobody knows its address."""
        return self._nodes.get(process.host, "")

    def knows_all(self, node: str, job: Job) -> bool:
        """Whether all ranks of a node are known, so that a process that is none is not there."""
        ranks = set(job.ranks_on(node))
        return bool(ranks) and ranks <= self.seen.get(node, set())

    def of_member(self, member: RasMember) -> RankFacts | None:
        """The rank whose process a member of a communicator is."""
        return self.of(member.process)

    def knows_any(self, answer: RasAnswer) -> bool | None:
        """Whether an answer is of this job; None where it names no process."""
        named = [process for process in _processes(answer) if process.pid is not None]
        return any(self.of(process) for process in named) if named else None


def _processes(answer: RasAnswer) -> Iterator[RasProcess]:
    yield from (*answer.silent, *answer.dead)
    for comm in answer.communicators:
        listed = [row.listed for row in comm.launched]
        listed += [row.listed for row in comm.states] + [row.listed for row in comm.failed]
        for member in (*comm.missing, *chain.from_iterable(listed)):
            if member.process is not None:
                yield member.process


def analyse_ras(answers: Sequence[RasAnswer], places: Places, job: Job, asked: str) -> RasAnalysis:
    """One answer, or two of the same form with a pause between them."""
    last = answers[-1]
    stuck, moved = _compared(answers)
    agreeing = [comm for comm in stuck if not _disagrees(comm)]
    unnamed = _unnamed(agreeing, places)
    lagging, notes = _lagging(_roots(agreeing, places), unnamed, job)
    return RasAnalysis(
        asked=asked,
        version=last.version,
        communicators=last.total,
        ranks=last.ranks,
        suspects=(*_gone(last, places, job), *lagging),
        waiting=len(stuck),
        moved=moved,
        unlisted=unnamed,
        failed=tuple(_failed(last, places)),
        notes=(*last.notes, *notes, *_notes(answers, stuck, unnamed)),
    )


def confirmed(analysis: RasAnalysis, answer: RasAnswer, places: Places) -> RasAnalysis:
    """The same, with the laggards marked that another node's answer names too.

    A node may say anything of others: alone it convicts nobody.
    """
    said = {
        (facts.rank, comm.name)
        for comm in answer.communicators
        for row in lagging_rows(comm)
        for facts in map(places.of_member, row.listed)
        if facts
    }
    return replace(
        analysis,
        suspects=tuple(
            replace(s, is_seen=s.is_seen or (s.rank, s.communicator) in said)
            for s in analysis.suspects
        ),
    )


def _gone(answer: RasAnswer, places: Places, job: Job) -> Iterator[RasSuspect]:
    for reason, processes in (
        (RasReason.DEAD, answer.dead),
        (RasReason.SILENT, answer.silent),
    ):
        for process in processes:
            facts = places.of(process)
            node = facts.node if facts else places.node_of(process)
            looked = places.knows_all(node, job)
            yield RasSuspect(
                reason=reason,
                node=node,
                rank=facts.rank if facts else None,
                communicator="",
                detail=_GONE[reason].format(_named(process, facts))
                + _seen(facts, node, looked=looked),
                is_seen=facts.state in _AWAY if facts else looked,
            )


_GONE = {
    RasReason.DEAD: "{} is dead for NCCL: a minute without an answer",
    RasReason.SILENT: "{} does not answer NCCL",
}
_AWAY = {"T": "stopped (state T)", "t": "stopped (state t)", "Z": "a zombie"}


def _seen(facts: RankFacts | None, node: str, *, looked: bool) -> str:
    """What its node says of the process."""
    if facts is not None:
        return f"; {node} sees it {_AWAY.get(facts.state, 'run')}"
    if not node:
        return "; no node of the job has its address"
    return f"; {node} has no such process" if looked else f"; {node} gave no word of it"


def _named(process: RasProcess, facts: RankFacts | None) -> str:
    return f"rank {facts.rank} ({process})" if facts else str(process)


def _compared(answers: Sequence[RasAnswer]) -> tuple[list[Communicator], int]:
    """Communicators whose unequal counts stood still, and how many others moved."""
    if len(answers) < 2:
        return [], 0
    before, last = answers[0].by_name, answers[-1]
    # A text tells only of those with unequal counts: whoever caught up is not in it any more.
    stuck, moved = [], len(before.keys() - last.by_name.keys())
    for comm in last.communicators:
        earlier = before.get(comm.name)
        if earlier is None or not comm.launched:
            continue
        if _counts(earlier) != _counts(comm):
            moved += 1
        elif lagging_rows(comm):
            stuck.append(comm)
    return stuck, moved


def _counts(comm: Communicator) -> Mapping[tuple[str, int], int]:
    return {(row.operation, row.count): row.ranks for row in comm.launched}


def _leading_rows(comm: Communicator) -> list[Launched]:
    """The rows of ranks that wait for the lagging ones."""
    lagging = {(row.operation, row.count) for row in lagging_rows(comm)}
    unequal = {operation for operation, _ in lagging}
    return [
        row for row in comm.launched
        if row.operation in unequal and (row.operation, row.count) not in lagging
    ]  # fmt: skip


def _disagrees(comm: Communicator) -> bool:
    """Behind in one kind of operation and ahead in another: nobody is simply late."""
    late = {member.rank for row in lagging_rows(comm) for member in row.listed}
    return any(member.rank in late for row in _leading_rows(comm) for member in row.listed)


def _roots(stuck: Sequence[Communicator], places: Places) -> list[_Behind]:
    """Ranks that lag and wait for nobody themselves."""
    ahead = {
        facts.rank
        for comm in stuck
        for row in _leading_rows(comm)
        for facts in map(places.of_member, row.listed)
        if facts
    }
    return [
        _Behind(facts, comm, row, most[row.operation])
        for comm in stuck
        for most in [_most(comm)]
        for row in lagging_rows(comm)
        for facts in map(places.of_member, row.listed)
        if facts and facts.rank not in ahead
    ]


def _most(comm: Communicator) -> Mapping[str, int]:
    """The highest count of each operation."""
    most: dict[str, int] = {}
    for row in comm.launched:
        most[row.operation] = max(row.count, most.get(row.operation, 0))
    return most


def _unnamed(stuck: Sequence[Communicator], places: Places) -> int:
    """Lagging ranks that no answer names, or whose process nobody knows."""
    rows = [row for comm in stuck for row in lagging_rows(comm)]
    named = sum(places.of_member(member) is not None for row in rows for member in row.listed)
    return sum(row.ranks for row in rows) - named


def _lagging(
    behind: Sequence[_Behind], unnamed: int, job: Job
) -> tuple[tuple[RasSuspect, ...], tuple[str, ...]]:
    """Suspects, unless they are so many that no machine explains them."""
    ranks = sorted({one.facts.rank for one in behind})
    nodes = {job.node_of(rank) for rank in ranks}
    covers = covering_groups(ranks, job)
    few = len(nodes) <= max(1, len(job.nodes) * COMMON_CAUSE_RATIO)
    if ranks and not covers and not few:
        why = f"{len(ranks)} ranks on {len(nodes)} nodes lag and share no parallel group"
        return (), (f"{why}: a common cause, no machine",)
    if unnamed and unnamed >= job.world_size - len(ranks) - unnamed:
        return (), (f"{unnamed} lagging ranks are more than those that wait: no machine",)
    shared = ""
    if len(ranks) > 1 and covers:
        shared = f"; the smallest group of all that lag: {covers[0].axis}"
    return tuple(_suspect(one, shared) for one in behind), ()


def _suspect(one: _Behind, shared: str) -> RasSuspect:
    kind = one.row.operation or "all operations"
    return RasSuspect(
        reason=RasReason.LAGS,
        node=one.facts.node,
        rank=one.facts.rank,
        communicator=one.communicator.name,
        detail=f"rank {one.facts.rank} launched {one.row.count} of {one.most} ({kind}) in"
        f" communicator {one.communicator.name}, and no more between two answers{shared}",
    )


def _failed(answer: RasAnswer, places: Places) -> Iterator[str]:
    """Errors and aborts; the first in time is the cause, and NCCL keeps no times."""
    for comm in answer.communicators:
        rows = [(row.error, row.ranks, row.listed) for row in comm.failed]
        rows += [(s.state, s.ranks, s.listed) for s in comm.states if s.state == "ABORT"]
        for what, count, listed in rows:
            ranks = [str(f.rank) for f in map(places.of_member, listed) if f]
            named = f" (rank {', '.join(ranks[:RANKS_NAMED])})" if ranks else ""
            yield f"communicator {comm.name}: {what} on {count} ranks{named}"


RANKS_NAMED = 8


def _notes(
    answers: Sequence[RasAnswer], stuck: Sequence[Communicator], unnamed: int
) -> Iterator[str]:
    last = answers[-1]
    if not last.is_whole:
        yield "the answer broke off: what it does not say is not known"
    if len(answers) < 2:
        yield "one answer only: counts cannot be seen to stand still"
    if unnamed:
        yield f"{unnamed} lagging ranks are not listed"
    if last.timeouts:
        yield f"{last.timeouts} processes were late while NCCL gathered the answer"
    if last.in_setup:
        yield f"{last.in_setup} communicators are still being set up: bootstrap, or who never came"
    for comm in last.communicators:
        if comm.unknown:
            yield f"communicator {comm.name}: {comm.unknown} of {comm.size} ranks are not known"
    for comm in filter(_disagrees, stuck):
        yield (
            f"communicator {comm.name}: ranks are behind in one kind of operation and ahead in"
            " another, they disagree on what comes next"
        )
