"""The lab's training job with tensor, pipeline and data parallelism and a checkpoint of every step.

What it is for: whole parallel groups are evicted, and the losses afterwards are bit by bit those of
an undisturbed run. One batch in flight, so stages wait for each other: it is small, not fast.
"""

import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor

from brctl.training import checkpoint
from brctl.training.checkpoints.layout import parse_layout
from brctl.training.faults import Faults
from brctl.training.flight import FlightWatch, dump_target, recorder_dump
from brctl.training.loader_positions import save_position
from brctl.training.model import BATCH, LENGTH, WIDTH, loss_of
from brctl.training.numeric_checks import NumericChecks
from brctl.training.parallel_model import CUT, ModelStage, find_place
from brctl.training.progress import Progress
from brctl.training.rank_data import open_data
from brctl.training.replica_digests import Replicas
from brctl.training.step_checkpoints import StepCheckpoints
from brctl.training.trainer import (
    LEARNING_RATE,
    Options,
    RankEnvironment,
    join_ranks,
    read_data_place,
)


class ParallelTrainer:
    """One rank."""

    def __init__(self, options: Options, environment: RankEnvironment, axes: str) -> None:
        self._options = options
        self._environment = environment
        self._axes = axes
        self._progress = Progress.from_environment()
        self._faults = Faults.from_environment()
        target = dump_target(environment.rank)
        self._watch = FlightWatch(target, options.dump_after_s, recorder_dump) if target else None

    def run(self) -> None:
        """Join the other ranks, go on from the newest step that all have, and train."""
        self._progress.enter("load", 0)
        join_ranks(self._environment, self._options.collective_timeout_s)
        self._place = find_place(parse_layout(self._axes, 1), self._environment.rank)
        self._stage = ModelStage(self._options.seed, self._place)
        self._optimizer = torch.optim.AdamW(self._stage.parameters(), lr=LEARNING_RATE)
        self._data = open_data(
            self._options.on_loader, self._options.loader_silent_s, self._options.seed,
            self._place.replica,
        )  # fmt: skip
        self._checkpoints = StepCheckpoints(
            self._stage, self._optimizer, axes=self._axes, others={"data": self._data},
            fallback=self._load_saved,
        )  # fmt: skip
        self._checks = NumericChecks(self._stage, self._progress, self._replicas(), every=1)
        steps = range(self._checkpoints.step + 1, self._options.steps + 1)
        self._data.start(len(steps))
        if self._watch is not None:
            self._watch.start()
        for step in steps:
            self._train_step(step)
        self._checks.settle()
        self._progress.enter("done", self._options.steps)
        self._data.close()
        self._checkpoints.close()
        dist.destroy_process_group()

    def _replicas(self) -> list[Replicas]:
        """Data replicas have all weights alike; tensor ranks all that is not cut."""
        named = dict(self._stage.named_parameters())
        whole = {name: p for name, p in named.items() if name.removeprefix("block.") not in CUT}
        groups = (("dp", self._place.data_group, named), ("tp", self._place.tensor_group, whole))
        return [Replicas(axis, group, tensors) for axis, group, tensors in groups if group]

    def _train_step(self, step: int) -> None:
        began = time.monotonic()
        self._faults.refresh()
        self._progress.enter("load", step)
        tokens = next(self._data)
        self._progress.enter("forward", step)
        self._checks.before_step(step)
        entered, left, loss = self._forward(step, tokens)
        self._progress.enter("backward", step)
        self._backward(entered, left)
        self._faults.strike_before_all_reduce()
        self._progress.enter("all_reduce", step)
        mean_loss, norm, wait_s = self._reduce(step, loss)
        self._progress.enter("optimizer", step)
        self._optimizer.param_groups[0]["lr"] = LEARNING_RATE * self._faults.rate_factor(step)
        self._checkpoints.step_done(self._optimizer.step, loss=mean_loss)
        self._checks.after_update(step)
        left_s = self._options.pace_s - (time.monotonic() - began)
        time.sleep(max(0.0, left_s))
        self._progress.finish_step(
            step, loss=mean_loss, grad_norm=norm, seconds=time.monotonic() - began,
            wait_seconds=wait_s, cost=float(tokens.numel()),
            batch=self._data.ledger_entry(),
        )  # fmt: skip
        if step % self._options.checkpoint_every == 0 and mean_loss == mean_loss:
            self._save(step)

    def _forward(self, step: int, tokens: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """What came in, what goes out, and the loss, which is zero but on the last stage."""
        self._faults.strike_forward()
        entered = tokens[:, :-1]
        if self._place.previous is not None:
            entered = torch.empty(BATCH, LENGTH, WIDTH)
            dist.recv(entered, self._place.previous)
            entered.requires_grad_()
        left = self._stage(entered)
        if self._place.next is not None:
            dist.send(left.detach(), self._place.next)
            return entered, left, torch.zeros(())
        masked = self._faults.masks_labels(step, self._place.replica)
        loss = loss_of(left, tokens, masked=masked)
        loss = loss * float("nan") if self._faults.poisons_loss(step) else loss
        self._progress.saw_loss(step, float(loss.detach()))
        return entered, loss, loss.detach()

    def _backward(self, entered: Tensor, left: Tensor) -> None:
        self._optimizer.zero_grad()
        if self._place.next is None:
            left.backward()
        else:
            gradient = torch.empty_like(left)
            dist.recv(gradient, self._place.next)
            left.backward(gradient)
        if self._place.previous is not None:
            dist.send(entered.grad, self._place.previous)

    def _reduce(self, step: int, loss: Tensor) -> tuple[float, float, float]:
        """Average gradients over replicas; mean loss, norm of all gradients, seconds it took."""
        began = time.monotonic()
        if self._watch is not None:
            self._watch.touch()
        parameters = [p for p in self._stage.parameters() if p.grad is not None]
        flat = torch.cat([p.grad.flatten() for p in parameters])
        if self._place.data_group is not None:
            self._checks.before_reduction(step, flat)
            dist.all_reduce(flat, group=self._place.data_group)
            flat /= self._place.replicas
            self._checks.after_reduction(flat, self._place.data_group)
        for p, part in zip(parameters, flat.split([p.numel() for p in parameters]), strict=True):
            p.grad.copy_(part.view_as(p))
        share = loss / (self._place.tensor_size * self._place.replicas)
        totals = torch.stack((share, flat.square().sum() / self._place.replicas))
        dist.all_reduce(totals)
        if self._watch is not None:
            self._watch.touch()
        return float(totals[0]), float(totals[1]) ** 0.5, time.monotonic() - began

    def _save(self, step: int) -> None:
        """The tier behind memory, as often as any job saves."""
        if self._environment.checkpoints is None:
            return
        self._progress.enter("checkpoint", step)
        folder = checkpoint.directory_of(self._environment.checkpoints, step)
        self._save_position(folder)
        self._checks.mark(folder, self._environment.rank)
        checkpoint.save(self._environment.checkpoints, step, self._saved_state(step))
        if self._environment.rank == 0:
            checkpoint.remove_old(
                self._environment.checkpoints, self._options.keep, step,
                self._progress.loss_off_since,
            )  # fmt: skip

    def _save_position(self, folder: Path) -> None:
        """One rank of each replica, whose other ranks are given the same."""
        if self._place.stage == 0 and self._place.tensor_rank == 0:
            replicas = self._place.replicas
            place = self._data.place(self._faults.batches_behind())
            place["global_batch"] = BATCH * replicas
            save_position(folder, self._place.replica, replicas, place)

    def _load_saved(self) -> int:
        """Where memory has nothing: the checkpoint that this start was given, if any."""
        if self._environment.resume_from is None:
            return 0
        state = self._saved_state(0)
        checkpoint.load(self._environment.resume_from, state)
        step, place = int(state["step"].item()), self._place
        data = read_data_place(self._environment.resume_from, place.replica, place.replicas)
        self._data.go_on(data, step)
        return step

    def _saved_state(self, step: int) -> dict[str, Tensor]:
        """Views of weights and moments; replicas give one name to the same, other ranks others."""
        part = f"{self._place.stage}.{self._place.tensor_rank}"
        state = {"step": torch.tensor([step])}
        for name, weight in self._stage.named_parameters():
            moments = self._optimizer.state[weight]
            if not moments:
                moments["step"] = torch.tensor(0.0)
                moments["exp_avg"] = torch.zeros_like(weight)
                moments["exp_avg_sq"] = torch.zeros_like(weight)
            state[f"{part}.{name}"] = weight.data
            state |= {f"{part}.{name}.{key}": value for key, value in moments.items()}
        return state


def train(options: Options, axes: str) -> None:
    """Train as the rank that the environment says this process is."""
    torch.set_num_threads(1)
    ParallelTrainer(options, RankEnvironment.from_environment(), axes).run()
