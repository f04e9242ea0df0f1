"""Three ranks of a small job, forked, one of which goes wrong: `numeric_ranks.py FOLDER`.

Prints one JSON object: by rank, what its checks had found after each step.
"""

import json
import os
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from torch.nn.parallel import DistributedDataParallel

from brctl.training.numeric_checks import NumericChecks
from brctl.training.progress import Progress
from brctl.training.replica_digests import ReplicaDigests, Replicas, replicas_of

SIZE, WRONG, UNLIKE = 3, 1, 2


def train(rank: int, folder: Path) -> dict[str, object]:
    """Bits differ from step 2 on; in step 3 this rank sends another gradient than it had."""
    model = DistributedDataParallel(nn.Sequential(nn.Linear(5, 3), nn.Linear(3, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    checks = NumericChecks(model, Progress(folder, rank, f"n{rank}"), every=1)
    found: list[object] = []
    for step in (1, 2, 3):
        checks.before_step(step)
        optimizer.zero_grad()
        model(torch.full((2, 5), float(rank))).sum().backward()
        gradient = torch.full((1000,), 0.01 * rank)
        checks.before_reduction(step, gradient)
        gradient[7] += 0.5 if (rank, step) == (WRONG, 3) else 0.0
        dist.all_reduce(gradient)
        checks.after_reduction(gradient / SIZE)
        optimizer.step()
        if (rank, step) == (WRONG, 2):
            with torch.no_grad():
                model.module[1].weight[0, 2] += 2**-20
        checks.after_update(step)
        checks.mark(folder / f"step-{step}", rank)
        found.append(checks.found)
    mine = checks._progress._state  # what the next write holds
    return {"found": found, "told": mine["wrong_numbers"], "compared": mine["compared_tensors"]}


class WrongLinear(nn.Linear):  # type: ignore[misc]  # torch is not type-checked here
    """A layer with one wrong element in every product."""

    def forward(self, x: Tensor) -> Tensor:
        made: Tensor = super().forward(x).clone()
        made[0, 3] += 0.5
        return made


def look_every_fourth_step(rank: int, folder: Path) -> dict[str, object]:
    """Bits differ in step 2 alone, products in every step of one rank."""
    model = WrongLinear(8, 8) if rank == WRONG else nn.Linear(8, 8)
    shared = {"a": torch.zeros(3), "b": torch.zeros(5)}
    progress = Progress(folder, rank, f"n{rank}")
    checks = NumericChecks(model, progress, [Replicas("dp", None, shared)], every=4)
    found = []
    for step in range(1, 10):
        checks.before_step(step)
        model(torch.ones(2, 8))
        shared["b"][2] = 2**-20 if (rank, step) == (WRONG, 2) else 0.0
        checks.after_update(step)
        found.append(json.loads(json.dumps(progress._state["wrong_numbers"])))
    return {"looked": found}


def mark_between_looks(rank: int, folder: Path) -> dict[str, object]:
    """A checkpoint is saved after step 3; bits differ since step 2, the first look is far."""
    shared = {"a": torch.zeros(3)}
    checks = NumericChecks(
        nn.Module(), Progress(folder, rank, f"n{rank}"), [Replicas("dp", None, shared)], every=100
    )
    for step in (1, 2, 3):
        shared["a"][0] = float(rank == WRONG and step >= 2)
        checks.after_update(step)
    left = folder / "between" / "numbers" / f"rank-{SIZE + rank:05d}.json"
    left.parent.mkdir(parents=True, exist_ok=True)
    left.write_text("{}")
    dist.barrier()
    checks.mark(folder / "between", rank)
    return {"between": checks.found}


def compare_within_a_kind(rank: int, folder: Path) -> dict[str, object]:
    """Rank 2, of another kind, has other bits in both steps; rank 1 in the second."""
    replicas = Replicas("dp", None, {"a": torch.full((3,), float(rank == UNLIKE))})
    progress = Progress(folder, rank, f"n{rank}")
    checks = NumericChecks(nn.Module(), progress, [replicas], every=1)
    if rank == UNLIKE:
        checks._digests = [ReplicaDigests(replicas, "another kind")]
    checks.after_update(1)
    first = checks.settle()
    replicas.tensors["a"][0] += float(rank == WRONG)
    checks.after_update(2)
    checks.settle()
    compared = [progress._state[key] for key in ("compared_tensors", "compared_kind")]
    return {"kinds": {"first": first, "found": checks.found, "compared": compared}}


def placements() -> list[list[object]]:
    """What is replicated of DTensors on a mesh whose first dimension is one."""
    mesh = init_device_mesh("cpu", (SIZE, 1), mesh_dim_names=("replicate", "shard"))
    holder = nn.Module()
    holder.cut = nn.Parameter(distribute_tensor(torch.ones(6), mesh, [Shard(0), Replicate()]))
    whole: DTensor = distribute_tensor(torch.ones(6), mesh, [Replicate(), Shard(0)])
    holder.whole = nn.Parameter(whole)
    return [[each.axis, list(each.tensors)] for each in replicas_of(holder)]


def not_replicated(rank: int) -> dict[str, list[list[str]]]:
    """Of plain modules alike, a part of one on each rank, and DDP that was told to ignore some."""
    ignoring = nn.Sequential(nn.Linear(5, 3), nn.Linear(3, 1))
    names = ["0.weight", "1.bias"]
    DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(ignoring, names)
    models = {
        "alike": nn.Linear(3, 2), "parts": nn.Linear(3, 2 + rank),
        "ignoring": DistributedDataParallel(ignoring),
    }  # fmt: skip
    return {
        name: [list(each.tensors) for each in replicas_of(model)] for name, model in models.items()
    }


def run(rank: int, folder: Path) -> None:
    store = dist.FileStore(str(folder / "store"), SIZE)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=SIZE)
    answer = {
        **train(rank, folder),
        **look_every_fourth_step(rank, folder),
        **mark_between_looks(rank, folder),
        **compare_within_a_kind(rank, folder),
        "placements": placements(),
        "not_replicated": not_replicated(rank),
    }
    (folder / f"answer-{rank}.json").write_text(json.dumps(answer))
    dist.destroy_process_group()


def main(folder: Path) -> None:
    torch.set_num_threads(1)
    torch.manual_seed(1)
    pids = []
    for rank in range(SIZE):
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                run(rank, folder)
                status = 0
            except BaseException:  # noqa: BLE001  # a child must not go on as its parent
                sys.excepthook(*sys.exc_info())
            os._exit(status)
        pids.append(pid)
    if any([os.waitpid(pid, 0)[1] for pid in pids]):
        sys.exit("a rank failed")
    answers = [json.loads((folder / f"answer-{rank}.json").read_text()) for rank in range(SIZE)]
    sys.stdout.write(json.dumps(answers))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
