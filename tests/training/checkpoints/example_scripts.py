"""Training scripts of real frameworks with checkpoints of every step, as users would write them.

Each trains a few steps on two ranks over gloo and gives back the digest of what the rank holds.
"""

import hashlib
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader

from brctl.training.step_checkpoints import Settings, StepCheckpoints

WIDTH = 8


def network() -> nn.Sequential:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))


def batch(step: int, rank: int) -> Tensor:
    return torch.randn(4, WIDTH, generator=torch.Generator().manual_seed(100 * step + rank))


def ddp(settings: Settings, steps: int) -> str:
    """Plain data parallelism: every rank holds everything."""
    model = DistributedDataParallel(network())
    optimizer = torch.optim.AdamW(model.parameters())
    checkpoints = StepCheckpoints(model, optimizer, axes="dp=2", settings=settings)
    return train(model, optimizer, checkpoints, steps, dist.get_rank())


def fsdp(settings: Settings, steps: int) -> str:
    """FSDP2: weights, gradients and moments are shards, of which each rank saves its own."""
    model = network()
    fully_shard(model, mesh=init_device_mesh("cpu", (2,)))
    optimizer = torch.optim.AdamW(model.parameters())
    checkpoints = StepCheckpoints(model, optimizer, axes="dp=2", settings=settings)
    return train(model, optimizer, checkpoints, steps, dist.get_rank())


def tensor_parallel(settings: Settings, steps: int) -> str:
    """DTensor: the first layer is cut by columns, the second by rows."""
    mesh = init_device_mesh("cpu", (2,), mesh_dim_names=("tp",))
    plan = {"0": ColwiseParallel(), "2": RowwiseParallel()}
    model = parallelize_module(network(), mesh, plan)
    optimizer = torch.optim.AdamW(model.parameters())
    checkpoints = StepCheckpoints(model, optimizer, axes="tp=2", settings=settings)
    return train(model, optimizer, checkpoints, steps, 0)


def remote_tier(settings: Settings, steps: int) -> str:
    """torch.distributed.checkpoint as the store for when both machines' memory is gone."""
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    store = settings.directory.parent.parent / "remote"

    def load_newest() -> int:
        saved = sorted(path for path in store.glob("*") if (path / ".metadata").exists())
        if not saved:
            return 0
        dcp.load(model.state_dict(), checkpoint_id=str(saved[-1]))
        return int(saved[-1].name)

    def save(step: int) -> None:
        dcp.save(model.state_dict(), checkpoint_id=str(store / f"{step:08d}"))

    checkpoints = StepCheckpoints(
        model, optimizer, axes="dp=2", settings=settings, fallback=load_newest
    )
    return train(model, optimizer, checkpoints, steps, 0, every_second=save)


def lightning(settings: Settings, steps: int) -> str:
    """PyTorch Lightning, which calls its optimizer itself: a callback around that."""
    import pytorch_lightning
    from pytorch_lightning.plugins.environments import LightningEnvironment

    warnings.simplefilter("ignore")  # it has advice on workers, loggers and schedulers
    os.environ.update(LOCAL_RANK="0", NODE_RANK=str(dist.get_rank()))  # as its launcher does

    class EveryStep(pytorch_lightning.Callback):  # type: ignore[misc]  # it has no types
        def on_train_start(self, trainer: Any, module: Any) -> None:
            self.checkpoints = StepCheckpoints(
                module, trainer.optimizers[0], axes="dp=2", settings=settings
            )
            self.resumed = module.first_step = self.checkpoints.step

        def on_before_optimizer_step(self, trainer: Any, module: Any, _: Any) -> None:
            self.checkpoints.before_update(loss=module.loss)

        def on_train_batch_end(self, trainer: Any, *_: Any) -> None:
            self.checkpoints.after_update()
            trainer.should_stop = self.checkpoints.step == steps

    class Module(pytorch_lightning.LightningModule):  # type: ignore[misc]  # as above
        def __init__(self) -> None:
            super().__init__()
            self.model, self.first_step = network(), 0

        def training_step(self, _: Tensor, number: int) -> Tensor:
            self.loss = self.model(batch(self.first_step + number, dist.get_rank())).square().mean()
            return self.loss

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.AdamW(self.parameters())

    every_step, module = EveryStep(), Module()
    trainer = pytorch_lightning.Trainer(
        accelerator="cpu", devices=1, num_nodes=2, strategy="ddp", callbacks=[every_step],
        plugins=[LightningEnvironment()], max_epochs=1, use_distributed_sampler=False,
        logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False,
    )  # fmt: skip
    trainer.fit(module, DataLoader(range(steps)))
    every_step.checkpoints.close()
    return f"{every_step.resumed} {digest(module)}"


def train(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    checkpoints: StepCheckpoints,
    steps: int,
    shard: int,
    every_second: Callable[[int], None] = lambda _: None,
) -> str:
    """Train up to a step; what was resumed from and what the rank holds, as text."""
    resumed = checkpoints.step
    while checkpoints.step < steps:
        optimizer.zero_grad()
        loss = model(batch(checkpoints.step, shard)).square().mean()
        loss.backward()
        checkpoints.step_done(optimizer.step, loss=loss)
        if checkpoints.step % 2 == 0:
            every_second(checkpoints.step)
    checkpoints.close()
    return f"{resumed} {digest(model)}"


def digest(model: nn.Module) -> str:
    held = [p.to_local() if isinstance(p, DTensor) else p for p in model.parameters()]
    return hashlib.sha256(b"".join(p.detach().numpy().tobytes() for p in held)).hexdigest()[:16]


EXAMPLES = {
    "ddp": ddp,
    "fsdp": fsdp,
    "tensor_parallel": tensor_parallel,
    "remote_tier": remote_tier,
    "lightning": lightning,
}


def run_rank(rank: int, name: str, folder: str, attempt: int, steps: int) -> None:
    """One process: join, train, write what came out."""
    torch.set_num_threads(1)
    here = Path(folder)
    dist.init_process_group(
        "gloo", store=dist.FileStore(str(here / f"store-{attempt}"), 2), rank=rank, world_size=2
    )
    settings = Settings(job=name.replace("_", "-"), directory=here / f"machine-{rank}" / "slots")
    result = EXAMPLES[name](settings, steps)
    (here / f"result-{attempt}-{rank}").write_text(result)
    dist.destroy_process_group()
