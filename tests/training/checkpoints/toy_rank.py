"""One rank of a small job with checkpoints of every step, for tests that kill it.

Ranks of one DP group draw the same batches, so they stay replicas without exchanging gradients.
Prints `{"resumed": step}` and a line for each step: `{"step", "loss", "weights"}`, the weights as a
digest, which is equal only if all bits are.
"""

import gc
import hashlib
import json
import os
import sys
import time
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor, nn

from brctl.training.checkpoints.layout import parse_layout
from brctl.training.checkpoints.parts import Parts
from brctl.training.step_checkpoints import Settings, StepCheckpoints


class Position:
    """The data loader's place, drawn from the generator that checkpoints keep."""

    def __init__(self) -> None:
        self.samples = 0

    def next_batch(self, width: int) -> Tensor:
        self.samples += 1
        return torch.randn(4, width)

    def state_dict(self) -> dict[str, object]:
        return {"samples": self.samples}

    def load_state_dict(self, state: dict[str, object]) -> None:
        self.samples = int(str(state["samples"]))


def run(options: dict[str, object]) -> None:
    rank, world = int(str(options["rank"])), int(str(options["world"]))
    if world > 1:
        store = dist.FileStore(str(options["store"]), world)
        dist.init_process_group(
            "gloo", store=store, rank=rank, world_size=world, timeout=timedelta(seconds=60)
        )
    width = int(str(options.get("width", 16)))
    axes, ranks_per_machine = str(options["axes"]), int(str(options.get("ranks_per_machine", 1)))
    key = parse_layout(axes, ranks_per_machine).replica_key(rank)
    torch.manual_seed(sum(index * 10**place for place, index in enumerate(key)))
    model = nn.Sequential(nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=7)
    data = Position()
    disk = options.get("disk")
    settings = Settings(
        job=str(options.get("job", "toy")), directory=Path(str(options["directory"])),
        ranks_per_machine=ranks_per_machine,
        disk=Path(str(disk)) if disk else None, disk_every=int(str(options.get("disk_every", 5))),
    )  # fmt: skip
    checkpoints = StepCheckpoints(
        model, optimizer, axes=axes, settings=settings,
        others={"scheduler": scheduler, "data": data},
    )  # fmt: skip
    say({"resumed": checkpoints.step})
    while checkpoints.step < int(str(options["steps"])):
        began = time.monotonic()
        optimizer.zero_grad()
        loss = model(data.next_batch(width)).square().mean()
        loss.backward()
        value = loss.detach()
        if world > 1:
            dist.all_reduce(value)

        def update() -> None:
            optimizer.step()
            scheduler.step()

        poisoned = bool(options.get("nan"))
        checkpoints.step_done(update, loss=float("nan") if poisoned else loss)
        counts = checkpoints.counts
        say({"step": checkpoints.step, "loss": float(value).hex(), "weights": digest(model),
             "saved": counts.saved, "lagging": counts.lagging, "not_finite": counts.not_finite,
             "backed_up": checkpoints.backed_up()})  # fmt: skip
        time.sleep(max(0.0, float(str(options.get("pace_s", 0))) - (time.monotonic() - began)))
    checkpoints.close()


def digest(model: nn.Module) -> str:
    content = b"".join(p.detach().numpy().tobytes() for p in model.parameters())
    return hashlib.sha256(content).hexdigest()[:16]


def say(line: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def start(options: dict[str, object], log: str) -> int:
    """Fork a rank that writes to `log`, and return its process id."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            for target in (1, 2):
                os.dup2(file, target)
            run(options)
            status = 0
        except BaseException:  # noqa: BLE001  # a child must never return into the loop below
            sys.excepthook(*sys.exc_info())
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
    return pid


def ended(pid: int) -> int | None:
    """Exit status, negative for a signal; None while the rank runs."""
    done, status = os.waitpid(pid, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if done else None


def main() -> None:
    """Start ranks by forking after the import of torch, which is most of what a rank costs."""
    torch.set_num_threads(1)
    # An optimizer imports as much again; once here instead of once a rank.
    Parts(model := nn.Linear(2, 2), torch.optim.AdamW(model.parameters())).payload_bytes()
    # A rank that looks for garbage among the modules writes to, and so copies, each page of them.
    gc.freeze()
    for line in sys.stdin:
        request = json.loads(line)
        do = request.pop("do")
        answer = start(**request) if do == "start" else ended(**request)
        os.write(1, f"{json.dumps(answer)}\n".encode())


if __name__ == "__main__":
    main()
