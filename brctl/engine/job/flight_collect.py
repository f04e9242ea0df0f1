"""Fetch the flight-recorder dumps that a job's ranks wrote on their nodes."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from brctl.engine.job.rank_files import fetch_rank_files
from brctl.fanout.contract import Transport
from brctl.library.durable_files import private_dir
from brctl.model.errors import UsageError
from brctl.model.inventory import Node
from brctl.model.jobs.job import Job

# PyTorch writes <prefix><rank>; the first is the name since 2.6, the second the older one.
PREFIX_VARIABLES = ("TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE")

DUMP_BYTES = 16 << 20
"""Per rank: the default ring buffer of 2,000 entries with frames is under 2 MiB."""


def dump_prefix(job: Job) -> str:
    """Where the job's ranks dump, or "" when job.yaml does not make them."""
    return next((job.environment[v] for v in PREFIX_VARIABLES if job.environment.get(v)), "")


async def collect_dumps(
    transport: Transport, nodes: Sequence[Node], job: Job, folder: Path, *, fanout: int
) -> tuple[str, ...]:
    """Write `dump_<rank>` files into the folder; returns why dumps are missing, rank by rank.

    Raises:
        UsageError: The job is not configured to write dumps.
    """
    prefix = dump_prefix(job)
    if not prefix:
        raise UsageError(
            f"job {job.name} writes no flight-recorder dumps",
            hint=f"set {PREFIX_VARIABLES[0]} and TORCH_NCCL_DUMP_ON_TIMEOUT in job.yaml",
        )
    files, notes = await fetch_rank_files(
        transport,
        nodes,
        job,
        lambda rank: f"{prefix}{rank}",
        limit_bytes=DUMP_BYTES,
        fanout=fanout,
    )
    cut = [f"{f.node}: dump of rank {f.rank} came incomplete" for f in files if not f.is_whole]
    write_dumps({file.rank: file.data for file in files if file.is_whole}, folder)
    return (*notes, *cut)


def write_dumps(dumps: Mapping[int, bytes], folder: Path) -> None:
    """Dumps by rank as files of a folder; a rank's later one takes the place of the first."""
    private_dir(folder)
    for rank, data in dumps.items():
        (folder / f"dump_{rank}").write_bytes(data)
