"""Read flight-recorder dumps from a folder and compare them."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from brctl.evidence.flight.analyse import analyse
from brctl.evidence.flight.dump import Dump, parse_dump, rank_of_name
from brctl.evidence.flight.plain_pickle import SIZE_LIMIT_BYTES, UnsafePickleError
from brctl.model.errors import UsageError
from brctl.model.jobs.hang import FlightRecorderAnalysis, SuspectRank
from brctl.model.jobs.job import Job


def analyse_folder(folder: Path, job: Job | None = None) -> FlightRecorderAnalysis:
    """Compare every rank's dump in a folder; a dump that cannot be read is a note, not a crash.

    Raises:
        UsageError: The folder does not exist or holds no dump.
    """
    return analyse_dumps(*load_dumps(folder), job)


def load_dumps(folder: Path) -> tuple[tuple[Dump, ...], tuple[str, ...]]:
    """Every rank's dump in a folder, and why others are not among them.

    Raises:
        UsageError: The folder does not exist or holds no dump.
    """
    if not folder.is_dir():
        raise UsageError(f"{folder}: no such directory")
    dumps: dict[int, Dump] = {}
    notes: list[str] = []
    for path in sorted(folder.iterdir()):
        rank = rank_of_name(path.name)
        if rank is None or not path.is_file():
            continue
        dump = _load(path, rank, notes)
        if dump and len(dump.operations) >= len(dumps[rank].operations if rank in dumps else ()):
            dumps[rank] = dump
    if not dumps and not notes:
        raise UsageError(
            f"{folder}: no flight-recorder dump",
            hint="file names end in the rank: nccl_trace_rank_0, fr_0.json",
        )
    return tuple(dumps.values()), tuple(notes)


def analyse_dumps(
    dumps: Sequence[Dump], notes: Sequence[str] = (), job: Job | None = None
) -> FlightRecorderAnalysis:
    """Compare the dumps of a job's ranks, and say on which nodes the suspects are."""
    expected = tuple(range(job.world_size)) if job else ()
    result = analyse(dumps, expected, notes)
    return replace(result, suspects=tuple(_with_node(s, job) for s in result.suspects))


def _load(path: Path, rank: int, notes: list[str]) -> Dump | None:
    try:
        with path.open("rb") as stream:
            data = stream.read(SIZE_LIMIT_BYTES + 1)
        return parse_dump(rank, data)
    except (UnsafePickleError, OSError) as exc:
        notes.append(f"{path.name}: not read: {exc}")
        return None


def _with_node(suspect: SuspectRank, job: Job | None) -> SuspectRank:
    if job is None or suspect.rank >= job.world_size:
        return suspect
    return replace(suspect, node=job.node_of(suspect.rank))
