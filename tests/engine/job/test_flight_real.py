"""A real hang of a real gloo job: its own recorder names the rank that never came."""

import subprocess
import sys
from pathlib import Path

import pytest

from brctl.engine.job.flight import analyse_folder
from brctl.model.jobs.hang import SuspectReason
from tests.timeouts import TIMEOUT_S

RANKS = 3
CULPRIT = 1

PROGRAM = """
import json, os, sys, threading, time
import torch, torch.distributed as dist
from torch._C import _distributed_c10d as recorder
rank, folder, world, culprit = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
store = dist.FileStore(os.path.join(folder, "store"), world)
dist.init_process_group("gloo", store=store, rank=rank, world_size=world)
tensor = torch.ones(4)
for _ in range(3):
    dist.all_reduce(tensor)
def dump_and_leave():
    wanted, entries = 3 if rank == culprit else 4, []
    while len(entries) < wanted:
        time.sleep(0.05)
        data = recorder._dump_fr_trace_json(True, False)
        entries = json.loads(data)["entries"]
    data = data if isinstance(data, bytes) else data.encode()
    with open(os.path.join(folder, "fr_%d.json" % rank), "wb") as stream:
        stream.write(data)
    store.add("dumped", 1)
    while store.add("dumped", 0) < world:
        time.sleep(0.05)
    os._exit(0)
threading.Thread(target=dump_and_leave, daemon=True).start()
if rank != culprit:
    try:
        dist.all_reduce(tensor)
    except RuntimeError:
        pass  # the first to leave closes the connections of the others, which have dumped too
threading.Event().wait()
"""


@pytest.mark.torch
def test_the_rank_that_never_joined_is_named_from_real_dumps(tmp_path: Path) -> None:
    """Two ranks wait in the fourth all-reduce, one sleeps: only the sleeper is suspected."""
    pytest.importorskip("torch")
    arguments = [str(tmp_path), str(RANKS), str(CULPRIT)]
    ranks = [
        subprocess.Popen([sys.executable, "-c", PROGRAM, str(rank), *arguments])
        for rank in range(RANKS)
    ]
    try:
        assert [process.wait(timeout=TIMEOUT_S) for process in ranks] == [0] * RANKS
    finally:
        for process in ranks:
            process.kill()
            process.wait()
    found = analyse_folder(tmp_path)
    assert [(s.rank, s.reason) for s in found.suspects] == [(CULPRIT, SuspectReason.NEVER_JOINED)]
    assert found.waiting == (0, 2)
