"""Replay the lab's job on a few nodes: the same batches from the same weights, and one digest.

Groups of any size train on the batches of all ranks of the job, so a batch that makes NaN makes it
in every group, and a node that computes wrongly makes the digest of its group differ from those of
the others. Nothing is written: what is found is the last line of what a rank prints.
"""

import hashlib
import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import torch
import torch.distributed as dist

from brctl.training import checkpoint
from brctl.training.model import batch_of
from brctl.training.numeric_kind import kind_of
from brctl.training.progress import Progress
from brctl.training.trainer import Options, RankEnvironment, Trainer, join_ranks


class ReplayTrainer(Trainer):
    """One rank of one group."""

    def __init__(
        self, options: Options, environment: RankEnvironment, data_ranks: int, until: int
    ) -> None:
        super().__init__(options, environment)
        self._until = until
        # The progress files of the job are evidence; a replay must not touch them.
        self._progress = Progress(None, environment.rank, "")
        self._batches_of = range(environment.rank, data_ranks, environment.world_size)
        self._share = environment.world_size / data_ranks

    def run(self) -> None:
        """Train the steps; print the first and the last loss, and the weights as a digest."""
        join_ranks(self._environment, self._options.collective_timeout_s)
        if self._environment.resume_from is not None:
            checkpoint.load(self._environment.resume_from, self._state())
            self._show_weights()
        losses: list[float] = []
        first = int(self._step.item()) + 1
        for step in range(first, max(first + self._options.steps, self._until + 1)):
            losses.append(self._replay_step(step))
            if losses[-1] != losses[-1]:
                break
        digest = hashlib.sha256(self._weights.numpy().tobytes()).hexdigest()[:32]
        told = {
            "loss": losses[-1], "first_loss": losses[0], "digest": digest, "first_step": first,
            "kind": kind_of(self._weights.device),
        }  # fmt: skip
        sys.stdout.write(json.dumps(told) + "\n")
        dist.destroy_process_group()

    def _replay_step(self, step: int) -> float:
        self._faults.refresh()
        gradient = torch.zeros(len(self._weights) + 1)
        for whose in self._batches_of:
            self._whose = whose
            tokens = batch_of(self._options.seed, step, whose)
            gradient += self._backward(self._forward(step, tokens))
        mean, _ = self._all_reduce(gradient * self._share)
        self._update(mean[:-1], step)
        return float(mean[-1])


def newest_checkpoint(directory: Path) -> Path | None:
    """The newest complete one; None where there is none."""
    return max((path.parent for path in directory.glob("step-*/.metadata")), default=None)


def replay(options: Options, data_ranks: int, checkpoints: Path | None) -> None:
    """Replay as the rank of a group that the environment says this process is.

    Args:
        options: `steps` is how many steps to replay.
        data_ranks: Ranks of the job, each with data of its own.
        checkpoints: Where the job saves, for a replay that is not told where to begin; None to
            begin with the first step.
    """
    torch.set_num_threads(1)
    told = RankEnvironment.from_environment()
    newest = newest_checkpoint(checkpoints) if checkpoints is not None else None
    start = told.resume_from if checkpoints is not None and told.resume_from else newest
    environment = replace(told, checkpoints=None, resume_from=start, scratch=None)
    until = int(os.environ.get("BRCTL_REPLAY_UNTIL") or 0)
    ReplayTrainer(options, environment, data_ranks, until).run()
