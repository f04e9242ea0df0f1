"""Time to analyse the stacks of one large job: in memory, and from one file a rank.

python3 tests/bench/stacks.py [--nodes 1200] [--ranks-per-node 8]

The job is tp 8, pp 8, dp fills the rest; one pipeline hangs as in the paper's figure 7.
"""

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from brctl.engine.job.stacks import analyse_folder  # noqa: E402
from brctl.evidence.stacks.analyse import analyse_stacks  # noqa: E402
from brctl.evidence.stacks.fail_slow import most_flagged  # noqa: E402
from brctl.evidence.stacks.snapshot import RankStack  # noqa: E402
from brctl.model.jobs.job import Job  # noqa: E402

_LOOP = tuple(f"training.py:step_{i}" for i in range(30))
_SYNC = ("distributed_c10d.py:all_reduce", "ddp.py:finish_grad_sync", *_LOOP)
_RECV = ("p2p_communication.py:irecv", "schedules.py:recv_forward", *_LOOP)
_STUCK = ("mappings.py:gather", "layers.py:forward", *_LOOP)


def make_job(nodes: int, per_node: int) -> Job:
    here = PurePosixPath("/x")
    world = nodes * per_node
    return Job(
        "bench", tuple(f"n{i}" for i in range(nodes)), per_node,
        (("tp", 8), ("pp", 8), ("dp", max(1, world // 64))), ("python",), here, here, here,
    )  # fmt: skip


def make_stacks(job: Job) -> list[RankStack]:
    """The first pipeline of tensor group 0 waits elsewhere; its last stage is stuck."""
    pipeline = next(ranks for ranks in job.groups("pp") if 0 in ranks)
    odd = dict.fromkeys(pipeline, _RECV) | {pipeline[-1]: _STUCK}
    return [RankStack(rank, odd.get(rank, _SYNC)) for rank in range(job.world_size)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=1200)
    parser.add_argument("--ranks-per-node", type=int, default=8)
    options = parser.parse_args()
    job = make_job(options.nodes, options.ranks_per_node)
    stacks = make_stacks(job)
    before = time.process_time()
    result = analyse_stacks(stacks, job)
    print(f"{job.world_size} ranks in memory: {time.process_time() - before:.2f} s CPU")
    print(f"  suspect nodes {result.suspect_nodes}, ranks {result.suspect_ranks}: {result.reason}")
    before = time.process_time()
    most_flagged([stacks] * 5, job)
    print(f"five fail-slow rounds: {time.process_time() - before:.2f} s CPU")
    with tempfile.TemporaryDirectory() as folder:
        write_files(Path(folder), stacks)
        before = time.process_time()
        analyse_folder(Path(folder), job)
        print(f"from {job.world_size} files: {time.process_time() - before:.2f} s CPU")
    return 0


def write_files(folder: Path, stacks: list[RankStack]) -> None:
    for one in stacks:
        frames = [
            {"name": frame.split(":")[1], "short_filename": frame.split(":")[0], "line": 1}
            for frame in one.stack
        ]
        threads = [{"thread_name": "MainThread", "frames": frames}]
        (folder / f"rank-{one.rank:05d}.json").write_text(json.dumps({"threads": threads}))


if __name__ == "__main__":
    sys.exit(main())
