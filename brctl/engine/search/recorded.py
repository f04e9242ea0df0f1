"""A search that leaves its record, whoever started it: a command, a playbook, the terminal."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from brctl.engine.controller.clock import now
from brctl.engine.search.bisect_store import conclude_verdicts, save
from brctl.engine.search.event_stream import open_event_stream
from brctl.model.localisation import Bisection, RoundReport
from brctl.view.job.bisect import bisection_document, exit_code

OnRound = Callable[[RoundReport], None]
Drive = Callable[[OnRound], Awaitable[Bisection]]
"""Carries a search out and tells of each round as it ends."""


@dataclass(frozen=True, slots=True)
class SearchRecord:
    """Where a search is written down.

    Attributes:
        state_dir: For the events and the document; None without a context.
        also: Streams that get the events too.
        verdicts_for: Context and job under which verdicts are stored. None stores none: a
            playbook's run acts on what its search finds, and nobody else shall be sent after it.
    """

    state_dir: Path | None
    also: Sequence[TextIO] = ()
    verdicts_for: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Recorded:
    """What came of a search, and the verdicts that were stored."""

    result: Bisection
    verdict_ids: tuple[str, ...] = ()


async def record_search(
    nodes: Sequence[str],
    runner: str,
    drive: Drive,
    record: SearchRecord,
    on_round: OnRound | None = None,
) -> Recorded:
    """Drive a search, write its rounds as they end, keep the whole of it."""
    with open_event_stream(record.state_dir, record.also) as stream:

        def tell(report: RoundReport) -> None:
            stream.add(report)
            if on_round:
                on_round(report)

        stream.begin(nodes, runner)
        result = await drive(tell)
        document = bisection_document(result)
        ids = _keep(record, result, document)
        named: Mapping[str, object] = {"stored_verdicts": list(ids)} if ids else {}
        stream.end({**document, **named}, int(exit_code(result)))
    return Recorded(result, ids)


def _keep(
    record: SearchRecord, result: Bisection, document: Mapping[str, object]
) -> tuple[str, ...]:
    if record.state_dir is None:
        return ()
    save(record.state_dir, result.id, document)
    if record.verdicts_for is None:
        return ()
    context, job = record.verdicts_for
    stored = conclude_verdicts(record.state_dir, context, result, job, now())
    return tuple(verdict.id for verdict in stored)
