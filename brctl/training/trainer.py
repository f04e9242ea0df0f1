"""The lab's training job: one rank of a small transformer, data parallel over gloo, on a CPU.

Real torch.distributed training that learns and whose losses are bit-identical after a restart from
a checkpoint, whatever node a rank is on. The tp and pp sizes of job.yaml are labels here, so that
grouping by them can be practised on few ranks: every rank holds the whole model and all average
their gradients. `parallel_trainer.py` is the job in which they move tensors.

Run by `python -m brctl.training` with the environment brctl starts every rank with.
"""

import os
import sys
import time
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from brctl.training import checkpoint
from brctl.training.faults import Faults
from brctl.training.flight import FlightWatch, dump_target, recorder_dump
from brctl.training.loader_positions import PlaceError, read_place, save_position
from brctl.training.model import BATCH, VOCABULARY, build_model, loss_of
from brctl.training.numeric_checks import NumericChecks
from brctl.training.progress import Progress
from brctl.training.rank_data import Place, open_data
from brctl.training.supervised_loader import SILENT_AFTER_S

LEARNING_RATE = 3e-3
BETA1, BETA2, EPSILON = 0.9, 0.95, 1e-8
SHARDS = 16
START_DEADLINE_S = 180.0
LONGER_BATCH_S = 0.1
"""What a batch that is twice as long takes more, where lengths are uneven."""


@dataclass(frozen=True, slots=True)
class Options:
    """How long to train and how.

    Attributes:
        pace_s: A step takes at least this long, so that a lab of many ranks leaves the machine
            some time for brctl.
        collective_timeout_s: A rank that waits longer in one all-reduce ends with gloo's error.
        dump_after_s: After so long without a collective the flight recorder is dumped, if the
            environment says where to.
        on_loader: What a supervised loader does when its worker dies; "" takes PyTorch's own.
        loader_silent_s: After so long without a batch its worker counts as dead.
    """

    steps: int
    checkpoint_every: int
    keep: int
    seed: int
    pace_s: float
    collective_timeout_s: float
    dump_after_s: float = 10.0
    on_loader: str = ""
    loader_silent_s: float = SILENT_AFTER_S


@dataclass(frozen=True, slots=True)
class RankEnvironment:
    """Where this rank is, as its environment says."""

    rank: int
    world_size: int
    address: str
    port: int
    checkpoints: Path | None
    resume_from: Path | None
    scratch: Path | None

    @classmethod
    def from_environment(cls) -> "RankEnvironment":
        def path(name: str) -> Path | None:
            return Path(os.environ[name]) if os.environ.get(name) else None

        return cls(
            int(os.environ.get("RANK", "0")),
            int(os.environ.get("WORLD_SIZE", "1")),
            os.environ.get("MASTER_ADDR", "127.0.0.1"),
            int(os.environ.get("MASTER_PORT", "29500")),
            path("BRCTL_CHECKPOINT_DIR"),
            path("BRCTL_RESUME_FROM"),
            path("BRCTL_LAB_SCRATCH"),
        )


def read_data_place(start: Path | None, reader: int, readers: int) -> Place | None:
    """What a checkpoint says of a rank's loader; what it does not say as it should is told."""
    if start is None:
        return None
    try:
        return read_place(start, reader, readers)
    except PlaceError as exc:
        say(reader, f"{exc}: where its loader was is not known")
        return None


def say(rank: int, text: str) -> None:
    """One line of a rank's log."""
    sys.stdout.write(f"[rank {rank}] {text}\n")
    sys.stdout.flush()


def join_ranks(environment: RankEnvironment, collective_timeout_s: float) -> None:
    """Meet the other ranks.

    The start may take minutes on a busy machine while one all-reduce may not, so the ranks meet in
    the store under a deadline of its own before gloo's begins to count.
    """
    store = dist.TCPStore(
        environment.address, environment.port, environment.world_size,
        is_master=environment.rank == 0, timeout=timedelta(seconds=START_DEADLINE_S),
        wait_for_workers=False,
    )  # fmt: skip
    store.set(f"arrived/{environment.rank}", "")
    store.wait([f"arrived/{rank}" for rank in range(environment.world_size)])
    dist.init_process_group(
        "gloo", store=store, rank=environment.rank, world_size=environment.world_size,
        timeout=timedelta(seconds=collective_timeout_s),
    )  # fmt: skip


class Trainer:
    """One rank."""

    def __init__(self, options: Options, environment: RankEnvironment) -> None:
        self._options = options
        self._environment = environment
        self._progress = Progress.from_environment()
        self._whose = environment.rank
        self._faults = Faults.from_environment()
        self._model = build_model(options.seed)
        self._weights = parameters_to_vector(self._model.parameters()).detach().clone()
        self._mean = torch.zeros_like(self._weights)
        self._variance = torch.zeros_like(self._weights)
        self._step = torch.zeros(1, dtype=torch.int64)
        self._data = open_data(
            options.on_loader, options.loader_silent_s, options.seed, environment.rank
        )
        target = dump_target(environment.rank)
        self._watch = FlightWatch(target, options.dump_after_s, recorder_dump) if target else None

    def run(self) -> None:
        """Join the other ranks, resume if told to, and train."""
        self._progress.enter("load", 0)
        join_ranks(self._environment, self._options.collective_timeout_s)
        if self._environment.resume_from is not None:
            checkpoint.load(self._environment.resume_from, self._state())
            self._show_weights()
            self._say(f"resumed from {self._environment.resume_from.name}")
        self._checks = NumericChecks(self._model, self._progress, every=1)
        steps = range(int(self._step.item()) + 1, self._options.steps + 1)
        here = self._environment
        place = read_data_place(here.resume_from, here.rank, here.world_size)
        self._data.go_on(place, steps.start - 1)
        self._data.start(len(steps))
        if self._watch is not None:
            self._watch.start()
        for step in steps:
            self._train_step(step)
        self._checks.settle()
        self._progress.enter("done", self._options.steps)
        self._data.close()
        dist.destroy_process_group()

    def _train_step(self, step: int) -> None:
        began = time.monotonic()
        self._faults.refresh()
        self._progress.enter("load", step)
        tokens = self._load_batch()
        self._progress.enter("forward", step)
        self._checks.before_step(step)
        length = self._faults.batch_length(step)
        time.sleep(LONGER_BATCH_S * (length - 1.0))
        loss = self._forward(step, tokens)
        self._progress.enter("backward", step)
        gradient = self._backward(loss)
        self._progress.saw_gradient(step, float(gradient[:-1].norm()))
        self._checks.before_reduction(step, gradient)
        self._faults.strike_before_all_reduce()
        self._progress.enter("all_reduce", step)
        total, wait_s = self._all_reduce(gradient)
        self._checks.after_reduction(total)
        self._progress.enter("optimizer", step)
        mean_loss, norm = float(total[-1]), float(total[:-1].norm())
        self._update(total[:-1], step)
        self._checks.after_update(step)
        self._keep_pace(began)
        self._progress.finish_step(
            step, loss=mean_loss, grad_norm=norm, seconds=time.monotonic() - began,
            wait_seconds=wait_s, cost=length * tokens.numel(),
            batch=self._data.ledger_entry(),
            tokens=tokens.numel() * self._environment.world_size,
        )  # fmt: skip
        if step % self._options.checkpoint_every == 0:
            self._save(step, mean_loss)

    def _load_batch(self) -> Tensor:
        tokens = next(self._data)
        if self._faults.breaks_batch():
            tokens[0, 0] = VOCABULARY
        return tokens

    def _forward(self, step: int, tokens: Tensor) -> Tensor:
        self._faults.strike_forward()
        logits = self._model(tokens[:, :-1])
        masked = self._faults.masks_labels(step, self._whose)
        loss = loss_of(logits, tokens, masked=masked)
        if self._faults.poisons_loss(step):
            loss = loss * float("nan")
        self._progress.saw_loss(step, float(loss.detach()))
        return loss

    def _backward(self, loss: Tensor) -> Tensor:
        """Gradient of this rank as one vector, with its loss as last element."""
        self._model.zero_grad(set_to_none=True)
        loss.backward()
        parts = [p.grad.flatten() for p in self._model.parameters() if p.grad is not None]
        return torch.cat([*parts, loss.detach().reshape(1)])

    def _all_reduce(self, gradient: Tensor) -> tuple[Tensor, float]:
        """The mean over all ranks, and the seconds it took: long for those who wait for a peer."""
        began = time.monotonic()
        self._touch_watch()
        if self._faults.takes_another_collective():
            dist.barrier()
        dist.all_reduce(gradient)
        self._touch_watch()
        return gradient / self._environment.world_size, time.monotonic() - began

    def _touch_watch(self) -> None:
        if self._watch is not None:
            self._watch.touch()

    def _update(self, gradient: Tensor, step: int) -> None:
        """One step of Adam on the flat vector, which is what the checkpoint holds."""
        self._mean.mul_(BETA1).add_(gradient, alpha=1 - BETA1)
        self._variance.mul_(BETA2).addcmul_(gradient, gradient, value=1 - BETA2)
        mean = self._mean / (1 - BETA1**step)
        variance = self._variance / (1 - BETA2**step)
        rate = LEARNING_RATE * self._faults.rate_factor(step)
        self._weights.sub_(rate * mean / (variance.sqrt() + EPSILON))
        self._step.fill_(step)
        self._show_weights()

    def _show_weights(self) -> None:
        with torch.no_grad():
            vector_to_parameters(self._weights, self._model.parameters())

    def _keep_pace(self, began: float) -> None:
        left_s = self._options.pace_s - (time.monotonic() - began)
        if left_s > 0:
            time.sleep(left_s)

    def _state(self) -> dict[str, Tensor]:
        """What a checkpoint holds: views, so that loading fills them in place.

        In shards of fixed count, which torch.distributed.checkpoint spreads over the ranks,
        however many there are.
        """
        state = {"step": self._step}
        vectors = {"weights": self._weights, "mean": self._mean, "variance": self._variance}
        for name, vector in vectors.items():
            for index, shard in enumerate(vector.chunk(SHARDS)):
                state[f"{name}.{index:02d}"] = shard
        return state

    def _save(self, step: int, loss: float) -> None:
        if self._environment.checkpoints is None:
            return
        if loss != loss:
            if self._environment.rank == 0:
                self._say(f"step {step}: the mean over all ranks is not a number; no checkpoint")
            return
        self._progress.enter("checkpoint", step)
        self._stage(step)
        folder = checkpoint.directory_of(self._environment.checkpoints, step)
        self._save_position(folder)
        self._checks.mark(folder, self._environment.rank)
        checkpoint.save(self._environment.checkpoints, step, self._state())
        if self._environment.rank == 0:
            checkpoint.remove_old(
                self._environment.checkpoints, self._options.keep, step,
                self._progress.loss_off_since,
            )  # fmt: skip
            self._say(f"step {step}: loss {loss:.4f}, checkpoint saved")

    def _save_position(self, folder: Path) -> None:
        """Before the checkpoint is complete, so that none is complete without it."""
        ranks = self._environment.world_size
        place = self._data.place(self._faults.batches_behind())
        place["global_batch"] = BATCH * ranks
        save_position(folder, self._environment.rank, ranks, place)

    def _stage(self, step: int) -> None:
        """Write this rank's copy to the node's own disk first, as large jobs do."""
        if self._environment.scratch is not None:
            staged = self._environment.scratch / f"stage-{self._environment.rank:05d}.pt"
            torch.save(self._weights, staged)

    def _say(self, text: str) -> None:
        say(self._environment.rank, text)


def train(options: Options) -> None:
    """Train as the rank that the environment says this process is."""
    torch.set_num_threads(1)
    Trainer(options, RankEnvironment.from_environment()).run()
