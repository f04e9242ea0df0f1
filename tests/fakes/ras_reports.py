"""RAS reports in the wording of each release; `origin` of every one is said where it is made.

Lines are in the wording of NCCL's writer (`src/ras/client_support.cc`); numbers marked `docs` are
those of samples in NCCL's user guide. None is a transcript of our own.
"""

import json
from collections.abc import Mapping, Sequence

HEAD = """NCCL version {} compiled with CUDA 12.8
CUDA runtime version 12080, driver version 13000

Job summary
===========

  Nodes  Processes         GPUs  Processes     GPUs
(total)   per node  per process    (total)  (total)
      4          8            1         32       32

Communicators... (0.00s)
=============

Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors
    #  in group  per comm  per node  per comm  in group
"""


def text_report(version: str, groups: Sequence[str], errors: str = "", warnings: str = "") -> bytes:
    """A whole report in text: rows of groups, then what stands in its two sections."""
    rows = "".join(f"{row}\n" for row in groups)
    parts = (
        HEAD.format(version) + rows,
        f"\nErrors\n======\n\n{errors}",
        f"Warnings\n========\n\n{warnings}",
    )
    return "".join(parts).encode()


def group_row(
    number: int, comms: int, ranks: int, state: str = "RUNNING", errors: str = "OK"
) -> str:
    counts = f"{number:5d}  {comms:8d}  {4:8d}  {'8':>8}  {ranks:8d}  {ranks:8d}"
    return f"{counts}  {state:>8}  {errors:>6}"


HEALTHY = (group_row(0, 8, 4),)

# origin: docs (NCCL user guide, RAS, sample of a stopped process)
STOPPED_ERRORS = """INCOMPLETE
  Missing communicator data from 1 job process
  Process 3487984 on node 172.16.64.213 managing GPU 5

#0-0 (cf264af53edbe986) INCOMPLETE
  Missing communicator data from 1 rank
  The missing rank: 21

"""
STOPPED_TIMEOUT = """TIMEOUT
  Encountered 2 communication timeouts while gathering communicator data

"""
STOPPED = text_report(
    "2.24.3", (group_row(0, 1, 32, errors="INCOMPLETE"),), STOPPED_ERRORS, STOPPED_TIMEOUT
)

LAGGING_RANKS = {0: 483072, 2: 483074, 3: 483075, 4: 483076, 5: 483077, 7: 483079}
"""origin: docs: ranks of the mismatch sample by process, all on LAGGING_HOST."""
LAGGING_HOST = "172.16.64.210"


def mismatch(version: str, most: int, operation: str = "collective") -> bytes:
    """26 ranks at one operation, six named ones at the one before (origin: docs)."""
    listed = "".join(
        f"  Rank {rank} -- GPU {rank} managed by process {pid} on node {LAGGING_HOST}\n"
        for rank, pid in LAGGING_RANKS.items()
    )
    warnings = f"""#0-0 (27a079b828ff1a75) MISMATCH
  Communicator ranks have different {operation} operation counts
  26 ranks have launched up to operation {most}
  6 ranks have launched up to operation {most - 1}
{listed}
"""
    return text_report(version, (group_row(0, 1, 32, errors="MISMATCH"),), warnings=warnings)


def rank_row(
    rank: int, pid: int, counts: Mapping[str, int], host: str = "10.0.0.1", **status: object
) -> dict[str, object]:
    """One rank of a communicator as JSON, derived from the writer of 2.30.7."""
    own = {"init_state": 0, "async_error": 0, "finalize_called": False, "destroy_flag": False}
    return {
        "rank": rank, "host": host, "pid": pid, "cuda_dev": rank % 8, "nvml_dev": rank % 8,
        "status": {**own, "abort_flag": False, **status}, "collective_counts": dict(counts),
    }  # fmt: skip


def missing_row(
    rank: int, pid: int, host: str = "10.0.0.1", *, unresponsive: bool = True, dead: bool = False
) -> dict[str, object]:
    return {
        "rank": rank, "host": host, "pid": pid, "cuda_dev": rank % 8, "nvml_dev": rank % 8,
        "status": {"unresponsive": unresponsive, "considered_dead": dead},
    }  # fmt: skip


def communicator(
    name: str, ranks: Sequence[object], missing: Sequence[object] = (), size: int | None = None
) -> dict[str, object]:
    return {
        "hash": name, "secondary_hash": "0x1:0x2",
        "size": len(ranks) + len(missing) if size is None else size,
        "ranks_count": len(ranks), "missing_ranks_count": len(missing),
        "ranks": list(ranks), "missing_ranks": list(missing),
    }  # fmt: skip


def json_report(version: str, comms: Sequence[object], timeouts: int = 0) -> bytes:
    """A whole report as JSON; what 2.28.7 to 2.28.9 break of it is broken."""
    text = json.dumps(
        {
            "nccl_version": version, "cuda_runtime_version": 13000, "cuda_driver_version": 13000,
            "timestamp": "2025-12-19 13:06:53", "communicators_count": len(comms),
            "communicators": list(comms),
            "ras": {"collection_time_sec": 0.0, "timeouts_count": timeouts},
        },
        indent=2,
    )  # fmt: skip
    if version.startswith("2.28."):
        head, mark, rest = text.partition('"missing_ranks": [')
        text = head + mark + rest.replace('"nvml_dev": 1,\n', '"nvml_dev": 1\n')
    return text.encode()


# origin: docs (sample of 2.29.1): two ranks of one node, the second silent.
ONE_OF_TWO = json_report(
    "2.29.1",
    [
        communicator(
            "0xae94423cfbb2ef4a",
            [rank_row(0, 1524344, {"AllReduce": 0, "Broadcast": 0}, "172.16.64.245")],
            [missing_row(1, 1524345, "172.16.64.245")],
        )
    ],
)
