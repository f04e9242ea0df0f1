"""Feed batches from a worker process, as real jobs do, through PyTorch's own DataLoader.

A batch depends on seed, step and rank alone, so that workers change no loss.
"""

import ctypes
import signal
from collections.abc import Iterator
from hashlib import sha256

from torch import Tensor, tensor
from torch.utils.data import DataLoader, Dataset

from brctl.training.faults import Faults
from brctl.training.model import batch_of

_PR_SET_PDEATHSIG = 1


class _Steps(Dataset):  # type: ignore[misc]  # torch is not type-checked here
    """The batch of every step of one rank, as plain numbers.

    A tensor would be handed over by a connection of its own, and a worker that dies in the middle
    of that ends its rank with a bare EOFError instead of PyTorch's words.
    """

    def __init__(self, seed: int, rank: int) -> None:
        self._seed = seed
        self._rank = rank
        self._faults = Faults.from_environment()

    def __getitem__(self, step: int) -> list[list[int]]:
        self._faults.strike_load()
        rows: list[list[int]] = batch_of(self._seed, step, self._rank).tolist()
        return rows


def batches(seed: int, rank: int, steps: range) -> Iterator[Tensor]:
    """The batches of these steps in order, made ahead by one worker process."""
    loader = DataLoader(
        _Steps(seed, rank), batch_size=None, sampler=steps, num_workers=1,
        multiprocessing_context="fork", worker_init_fn=_end_with_the_rank,
    )  # fmt: skip
    return map(tensor, loader)


def digest_of(tokens: Tensor) -> str:
    """A batch in twelve characters, the same wherever and whenever it is made."""
    return sha256(tokens.numpy().tobytes()).hexdigest()[:12]


def _end_with_the_rank(_: int) -> None:
    """PyTorch's worker looks for its parent every 5 s only; a restart would meet the old one."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
