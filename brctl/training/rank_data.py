"""The data of one rank of the lab's job: by PyTorch's own DataLoader, or by one that is supervised.

Made first, then told where to go on, then started: checkpoints hand over the place before there is
a process to hand it to.
"""

from collections import deque
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Protocol

from torch import Tensor, tensor

from brctl.training.loader import batches, digest_of
from brctl.training.mixed_source import TokenSource
from brctl.training.model import BATCH, LENGTH, VOCABULARY
from brctl.training.supervised_loader import PositionError, SupervisedLoader

Place = Mapping[str, object]
_MOST_BEHIND = 8
"""Older states of its loader a rank can save, where a lab's fault wants that."""


class RankData(Protocol):
    """Batches in order, and the place in them that a checkpoint keeps."""

    def go_on(self, place: Place | None, step: int) -> None:
        """Where to begin: the place that the checkpoint of a step kept, if it did."""

    def start(self, steps: int) -> None: ...

    def __next__(self) -> Tensor: ...

    def ledger_entry(self) -> dict[str, object]: ...

    def place(self, behind: int = 0) -> dict[str, object]:
        """For a checkpoint; some batches behind where a fault makes it so."""

    def state_dict(self) -> dict[str, object]:
        """The place, for a checkpoint in memory."""

    def load_state_dict(self, state: Place) -> None: ...

    def close(self) -> None: ...


def open_data(policy: str, silent_after_s: float, seed: int, reader: int) -> RankData:
    """The data of one of the ranks that read their own; a policy asks for a supervised loader."""
    if policy:
        return SupervisedData(policy, silent_after_s, seed, reader)
    return CountedData(seed, reader)


class CountedData:
    """A batch is a function of its number, which is all that there is to keep."""

    def __init__(self, seed: int, reader: int) -> None:
        self._seed, self._reader = seed, reader
        self._position = self._since_step = self._since_position = 0
        self._batches: Iterator[Tensor] = iter(())
        self._last: Tensor | None = None

    def go_on(self, place: Place | None, step: int) -> None:
        self._position = self._since_step = self._since_position = step
        if place is not None:
            self.load_state_dict(place)

    def start(self, steps: int) -> None:
        numbers = range(self._position + 1, self._position + steps + 1)
        self._batches = batches(self._seed, self._reader, numbers)

    def __next__(self) -> Tensor:
        self._last = next(self._batches)
        self._position += 1
        return self._last

    def ledger_entry(self) -> dict[str, object]:
        digest = None if self._last is None else digest_of(self._last)
        return {"position": self._position, "samples": BATCH, "digest": digest}

    def place(self, behind: int = 0) -> dict[str, object]:
        position = max(0, self._position - behind)
        samples = BATCH * (position - self._since_position)
        return {"position": position, "samples": samples, "since_step": self._since_step}

    def state_dict(self) -> dict[str, object]:
        return self.place()

    def load_state_dict(self, state: Place) -> None:
        position, samples = (int(str(state[name])) for name in ("position", "samples"))
        self._position, self._since_step = position, int(str(state.get("since_step", 0)))
        self._since_position = position - samples // BATCH

    def close(self) -> None:
        """PyTorch ends its worker with its iterator."""
        self._batches = iter(())


class SupervisedData:
    """A source that only its whole state repeats, in a process that may die."""

    def __init__(self, policy: str, silent_after_s: float, seed: int, reader: int) -> None:
        self._source = partial(TokenSource, seed, reader, BATCH, LENGTH + 1, VOCABULARY)
        self._policy, self._silent_after_s = policy, silent_after_s
        self._loader: SupervisedLoader | None = None
        self._states: deque[Place] = deque(maxlen=_MOST_BEHIND + 1)

    def go_on(self, place: Place | None, step: int) -> None:
        """Begin at a place.

        Raises:
            PositionError: Nobody knows which samples the steps before had.
        """
        if place is not None and isinstance(place.get("state"), Mapping):
            self.load_state_dict(place)
        elif step:
            raise PositionError(
                f"the checkpoint of step {step} has no state of this rank's loader: start from one"
                " that has, or without --on-loader, where batches are counted"
            )

    def start(self, steps: int) -> None:
        self._loader = SupervisedLoader(
            self._source, on_loader=self._policy, silent_after_s=self._silent_after_s,
            state=self._states[-1] if self._states else None,
        )  # fmt: skip
        self._states.append(self._loader.state_dict())

    def __next__(self) -> Tensor:
        loader = self._running()
        tokens = tensor(next(loader))
        self._states.append(loader.state_dict())
        return tokens

    def _running(self) -> SupervisedLoader:
        if self._loader is None:
            raise RuntimeError("start comes before the first batch")
        return self._loader

    def ledger_entry(self) -> dict[str, object]:
        return {**self._running().ledger_entry(), "samples": BATCH}

    def place(self, behind: int = 0) -> dict[str, object]:
        state = self._states[max(-1 - behind, -len(self._states))]
        at = int(str(state["at"]))
        digests = state["digests"]
        digest = digests.get(str(at)) if isinstance(digests, Mapping) else None
        return {
            "position": at, "samples": BATCH * at, "digest": digest, "loader": state["loader"],
            "state": state,
        }  # fmt: skip

    def state_dict(self) -> dict[str, object]:
        return self.place() if self._states else {}

    def load_state_dict(self, state: Place) -> None:
        kept = state.get("state")
        if isinstance(kept, Mapping):
            self._states.append(kept)

    def close(self) -> None:
        if self._loader is not None:
            self._loader.close()
