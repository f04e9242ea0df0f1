"""Tensors that must be equal on several ranks, compared bit by bit in every step.

A digest is the sum of a tensor's bits read as whole numbers: exact, the same in whatever order it
is summed, one pass over memory. The ranks of a group exchange one number a tensor, or one for some
neighbours where ranks are many, and the number of their kind: bits are compared among ranks of one
kind of processor and library.
"""

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import compress

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.tensor import DTensor, Replicate
from torch.nn.parallel import DistributedDataParallel

from brctl.training.numeric_kind import kind_of, number_of

RANKS_NAMED = 16
EXCHANGED_BYTES = 8 << 20
"""Most that a rank receives in one look, however many ranks there are (decision 0418)."""
_NUMBER_BYTES = 8
_NAME_SHOWN = 90
"""Of each of two names: a place of more than 200 characters is not read."""
_WORDS = ((8, torch.int64), (4, torch.int32), (2, torch.int16), (1, torch.uint8))


@dataclass(frozen=True, slots=True)
class Replicas:
    """Tensors that every rank of a group has alike.

    Attributes:
        axis: As a person calls the group: `dp`, `tp`.
        group: None for all ranks.
    """

    axis: str
    group: dist.ProcessGroup | None
    tensors: Mapping[str, Tensor]


@dataclass(frozen=True, slots=True)
class Mismatch:
    """What differs after one step.

    Attributes:
        tensor: The first that does, in the model's order; where ranks are many `first to last` of
            neighbours, one of which does.
        tensors: How many do, or how many such parts.
        ranks: Who has other bits than most; where no bits are in the majority, everybody. The
            first sixteen.
        of: Ranks of this kind in the group.
        has_majority: Whether more than half of them agree.
    """

    step: int
    axis: str
    tensor: str
    tensors: int
    ranks: tuple[int, ...]
    of: int
    has_majority: bool


def replicas_of(model: nn.Module) -> list[Replicas]:
    """What a model says of itself: DTensors by their placements, DDP and plain ones by the world.

    On every rank alike: of a plain model it is asked first whether all have the same.

    Of FSDP's shards nothing is on two ranks, unless its mesh replicates them as well.
    """
    named = {name.removeprefix("module."): p for name, p in model.named_parameters()}
    sharded = {name: p for name, p in named.items() if isinstance(p, DTensor)}
    if sharded:
        return _of_meshes(sharded)
    if isinstance(model, DistributedDataParallel):
        # What it was told to ignore it never made equal.
        kept = {n: p for n, p in named.items() if n not in model.parameters_to_ignore}
        group = model.process_group
        return [Replicas("dp", group, kept)] if dist.get_world_size(group) > 1 else []
    if dist.get_world_size() == 1 or not _is_one_model(named):
        return []
    return [Replicas("dp", None, named)]


def _is_one_model(named: Mapping[str, Tensor]) -> bool:
    """Whether all ranks have tensors of the same names, types and shapes.

    Where each has a part of a model, their digests are of other lengths and not to be exchanged.
    """
    layout = repr([(name, p.dtype, tuple(p.shape)) for name, p in named.items()])
    digest = memoryview(sha256(layout.encode()).digest()).cast("q").tolist()
    device = next((p.device for p in named.values()), None)
    own = torch.tensor(digest, device=device)
    everybody = [torch.empty_like(own) for _ in range(dist.get_world_size())]
    dist.all_gather(everybody, own)
    is_one = all(torch.equal(own, other) for other in everybody)
    if not is_one:
        sys.stderr.write(
            "brctl: the ranks have tensors of other names, types or shapes; none is compared,"
            " unless NumericChecks is told which must be equal (replicas)\n"
        )
    return is_one


def _of_meshes(named: Mapping[str, DTensor]) -> list[Replicas]:
    found: dict[tuple[str, dist.ProcessGroup], dict[str, Tensor]] = {}
    for name, tensor in named.items():
        mesh = tensor.device_mesh
        for dim, placement in enumerate(tensor.placements):
            if isinstance(placement, Replicate) and mesh.size(dim) > 1:
                axis = mesh.mesh_dim_names[dim] if mesh.mesh_dim_names else f"dimension {dim}"
                found.setdefault((axis, mesh.get_group(dim)), {})[name] = tensor
    return [Replicas(axis, group, tensors) for (axis, group), tensors in found.items()]


def words_of(tensor: Tensor) -> Tensor:
    """Its bits as the widest whole numbers that fit, without a copy where it lies in one piece."""
    local = tensor.to_local() if isinstance(tensor, DTensor) else tensor
    flat = local.detach().reshape(-1)
    size = flat.element_size()
    for width, dtype in _WORDS:
        if flat.numel() * size % width == 0 and flat.storage_offset() * size % width == 0:
            return flat.view(dtype)
    raise AssertionError("every tensor is a whole number of bytes")


def most_columns(ranks: int, steps: int) -> int:
    """Digests that each rank may send of a step; one place more is its kind's.

    Examples:
        >>> most_columns(8, 16), most_columns(1024, 16), most_columns(100_000, 16)
        (8191, 63, 1)
    """
    return max(1, EXCHANGED_BYTES // (_NUMBER_BYTES * ranks * steps) - 1)


def width_of(tensors: int, columns: int) -> int:
    """Tensors whose digests are sent as one."""
    return -(-tensors // columns)


def folded(digests: Tensor, width: int) -> Tensor:
    """The sums of so many neighbours each, as exact as they are: whole numbers that wrap around."""
    if width == 1:
        return digests
    missing = -len(digests) % width
    return torch.nn.functional.pad(digests, (0, missing)).view(-1, width).sum(1)


def folded_names(names: Sequence[str], width: int) -> tuple[str, ...]:
    """What a place of them is called.

    Examples:
        >>> folded_names(["a", "b", "c"], 2)
        ('a to b', 'c')
    """
    parts = [names[at : at + width] for at in range(0, len(names), width)]
    return tuple(
        part[0] if len(part) == 1 else f"{part[0][-_NAME_SHOWN:]} to {part[-1][-_NAME_SHOWN:]}"
        for part in parts
    )


class ReplicaDigests:
    """The digests of one group's tensors."""

    def __init__(self, replicas: Replicas, kind: str = "", *, steps: int = 1) -> None:
        """Find the places of the tensors.

        Args:
            replicas: What is compared.
            kind: Of this rank's processor and library; "" to read it where the tensors are.
            steps: How many are exchanged together.
        """
        first = next(iter(replicas.tensors.values()))
        self.kind = kind or kind_of(first.device)
        self._kind = torch.tensor(number_of(self.kind))
        self._is_alone = False
        self._axis = replicas.axis
        self.group = replicas.group
        self._tensors = tuple(replicas.tensors.values())
        self._ranks = tuple(dist.get_process_group_ranks(replicas.group or dist.group.WORLD))
        self._width = width_of(len(self._tensors), most_columns(len(self._ranks), steps))
        self._names = folded_names(tuple(replicas.tensors), self._width)
        self._views: list[tuple[int, Tensor]] = [(0, torch.empty(0))] * len(self._tensors)

    @property
    def compared(self) -> int:
        """Tensors that have an equal; none where no other rank of the group is of this kind."""
        return 0 if self._is_alone else len(self._tensors)

    def own(self) -> Tensor:
        """This rank's kind, and one whole number a tensor, or for several where ranks are many."""
        sums = [words.sum() for words in self._words()]
        self._kind = self._kind.to(sums[0].device)
        if self._width == 1:
            return torch.stack([self._kind, *sums])
        return torch.cat([self._kind.reshape(1), folded(torch.stack(sums), self._width)])

    def judge(self, step: int, everybody: Tensor) -> Mismatch | None:
        """Compare those of one kind, with one row a rank; None where all is equal."""
        if bool((everybody == everybody[0]).all()):
            return None
        alike = everybody[:, 0] == self._kind
        rows = everybody[alike, 1:]
        self._is_alone = len(rows) == 1
        if bool((rows == rows[0]).all()):
            return None
        ranks = tuple(compress(self._ranks, alike.tolist()))
        return self._mismatch(step, ranks, rows.tolist())

    def _words(self) -> Iterator[Tensor]:
        """Views are kept: to make one takes longer than to sum a small tensor."""
        for index, tensor in enumerate(self._tensors):
            at = tensor.data_ptr()
            known, words = self._views[index]
            if at != known or not at or not tensor.is_contiguous():
                words = words_of(tensor)
                self._views[index] = at, words
            yield words

    def _mismatch(self, step: int, alike: Sequence[int], rows: Sequence[Sequence[int]]) -> Mismatch:
        columns = list(zip(*rows, strict=True))
        odd = [index for index, column in enumerate(columns) if len(set(column)) > 1]
        column = columns[odd[0]]
        usual, votes = Counter(column).most_common(1)[0]
        has_majority = 2 * votes > len(column)
        ranks = tuple(
            rank
            for rank, digest in zip(alike, column, strict=True)
            if digest != usual or not has_majority
        )[:RANKS_NAMED]
        return Mismatch(
            step, self._axis, self._names[odd[0]], len(odd), ranks, len(alike), has_majority
        )
