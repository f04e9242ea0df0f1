"""A small transformer cut over ranks: heads and columns by tensor rank, layers by pipeline stage.

As Megatron-LM cuts one: the first matrix of attention and of the feed-forward layer by columns, the
second by rows, with one sum over the tensor group after each; what lies between is on every rank.
Numbers depend on seed, stage and tensor rank alone, so data replicas begin alike.
"""

from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn import functional

from brctl.training.checkpoints.layout import Layout
from brctl.training.model import HEADS, LENGTH, VOCABULARY, WIDTH

_STAGES, _TENSOR_RANKS = 64, 64


@dataclass(frozen=True, slots=True)
class RankPlace:
    """Where one rank stands in the layout.

    Attributes:
        tensor_group: The ranks that share each layer with it; None where it has all of it.
        data_group: The ranks that hold the same weights; None where there is no other.
        previous: The rank that activations come from; None on the first stage.
        next: The rank that they go to; None on the last.
    """

    tensor_rank: int
    tensor_size: int
    stage: int
    replica: int
    replicas: int
    tensor_group: dist.ProcessGroup | None
    data_group: dist.ProcessGroup | None
    previous: int | None
    next: int | None


def find_place(layout: Layout, rank: int) -> RankPlace:
    """Make the groups of all axes, on all ranks in one order, and say where this rank is."""
    at = layout.coordinates(rank)
    own: dict[str, dist.ProcessGroup | None] = {"tp": None, "dp": None}
    for axis in own:
        for members in _groups(layout, axis):
            group = dist.new_group(members, group_desc=axis)
            own[axis] = group if rank in members else own[axis]
    stage, stages = at.get("pp", 0), layout.size("pp")

    def neighbour(by: int) -> int | None:
        inside = 0 <= stage + by < stages
        return layout.rank_at({**at, "pp": stage + by}) if inside else None

    return RankPlace(
        at.get("tp", 0), layout.size("tp"), stage, at.get("dp", 0), layout.size("dp"),
        own["tp"], own["dp"], neighbour(-1), neighbour(1),
    )  # fmt: skip


def _groups(layout: Layout, axis: str) -> list[list[int]]:
    """The ranks of every group of one axis; none where the axis has one member."""
    members: dict[tuple[int, ...], list[int]] = {}
    for rank in range(layout.world_size if layout.size(axis) > 1 else 0):
        rest = tuple(i for name, i in layout.coordinates(rank).items() if name != axis)
        members.setdefault(rest, []).append(rank)
    return list(members.values())


class _IntoGroup(torch.autograd.Function):  # type: ignore[misc]  # torch is not type-checked here
    """Every rank of the group uses it; so its gradient is the sum of theirs."""

    @staticmethod
    def forward(context: object, x: Tensor, group: dist.ProcessGroup) -> Tensor:
        context.group = group  # type: ignore[attr-defined]
        return x

    @staticmethod
    def backward(context: object, gradient: Tensor) -> tuple[Tensor, None]:
        total = gradient.clone()
        dist.all_reduce(total, group=context.group)  # type: ignore[attr-defined]
        return total, None


class _OutOfGroup(torch.autograd.Function):  # type: ignore[misc]  # as above
    """The sum of what the ranks of the group have each."""

    @staticmethod
    def forward(_: object, x: Tensor, group: dist.ProcessGroup) -> Tensor:
        total = x.clone()
        dist.all_reduce(total, group=group)
        return total

    @staticmethod
    def backward(_: object, gradient: Tensor) -> tuple[Tensor, None]:
        return gradient, None


CUT = ("qkv.weight", "qkv.bias", "out.weight", "up.weight", "up.bias", "down.weight")
"""Of a block's parameters those that each tensor rank has a part of; the others are on all."""


class CutBlock(nn.Module):  # type: ignore[misc]  # as above
    """This rank's part of causal attention and of a feed-forward layer."""

    def __init__(self, place: RankPlace) -> None:
        super().__init__()
        part = WIDTH // place.tensor_size
        self._group = place.tensor_group
        self._heads = HEADS // place.tensor_size
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * part), nn.Linear(part, WIDTH, bias=False)
        self.up, self.down = nn.Linear(WIDTH, 4 * part), nn.Linear(4 * part, WIDTH, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Transform (batch, length, WIDTH) float32."""
        x = x + self._sum(self._attend(self._spread(self.norm1(x))))
        return x + self._sum(self.down(functional.gelu(self.up(self._spread(self.norm2(x))))))

    def _attend(self, x: Tensor) -> Tensor:
        batch, length, _ = x.shape
        q, k, v = (
            part.view(batch, length, self._heads, -1).transpose(1, 2)
            for part in self.qkv(x).chunk(3, dim=-1)
        )
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(mixed.transpose(1, 2).reshape(batch, length, -1))

    def _spread(self, x: Tensor) -> Tensor:
        return x if self._group is None else _IntoGroup.apply(x, self._group)

    def _sum(self, x: Tensor) -> Tensor:
        return x if self._group is None else _OutOfGroup.apply(x, self._group)


class ModelStage(nn.Module):  # type: ignore[misc]  # as above
    """The layers of one pipeline stage, of which this rank has its part."""

    def __init__(self, seed: int, place: RankPlace) -> None:
        super().__init__()
        stage_seed = seed * _STAGES + place.stage
        torch.manual_seed(stage_seed)
        first, last = place.previous is None, place.next is None
        self.tokens = nn.Embedding(VOCABULARY, WIDTH) if first else None
        self.places = nn.Embedding(LENGTH, WIDTH) if first else None
        self.head = nn.Linear(WIDTH, VOCABULARY) if last else None
        self.norm = nn.LayerNorm(WIDTH) if last else None
        torch.manual_seed(stage_seed * _TENSOR_RANKS + place.tensor_rank)
        self.block = CutBlock(place)

    def forward(self, x: Tensor) -> Tensor:
        """Tokens or activations in; activations or, on the last stage, logits out."""
        if self.tokens is not None and self.places is not None:
            x = self.tokens(x) + self.places(torch.arange(x.shape[1]))
        x = self.block(x)
        return x if self.head is None or self.norm is None else self.head(self.norm(x))
