"""How the ranks of a job agree: on small objects at the start, on one number at each step."""

import json
from datetime import timedelta

import torch
import torch.distributed as dist


class Ranks:
    """All ranks of the job, over gloo on the CPU beside the job's own groups."""

    def __init__(self, timeout_s: float) -> None:
        self._together = dist.is_initialized()
        self.rank = dist.get_rank() if self._together else 0
        self.world_size = dist.get_world_size() if self._together else 1
        self._group = None
        if self._together:
            self._group = dist.new_group(backend="gloo", timeout=timedelta(seconds=timeout_s))

    def lowest(self, value: int) -> int:
        """The lowest of all ranks' values."""
        if not self._together:
            return value
        number = torch.tensor([value], dtype=torch.int64)
        dist.all_reduce(number, op=dist.ReduceOp.MIN, group=self._group)
        return int(number.item())

    def gather(self, value: object) -> list[object]:
        """Every rank's value, ranks in order; JSON, so that no rank runs what another sends."""
        if not self._together:
            return [json.loads(json.dumps(value))]
        content = json.dumps(value).encode()
        length = -self.lowest(-len(content))
        own = torch.zeros(length, dtype=torch.uint8)
        own[: len(content)] = torch.frombuffer(bytearray(content), dtype=torch.uint8)
        every = [torch.empty_like(own) for _ in range(self.world_size)]
        dist.all_gather(every, own, group=self._group)
        return [json.loads(bytes(part.tolist()).rstrip(b"\0")) for part in every]

    def problems(self, own: str) -> list[str]:
        """What every rank says is wrong, by rank; empty if nobody says anything."""
        return [
            f"rank {rank}: {problem}" for rank, problem in enumerate(self.gather(own)) if problem
        ]
