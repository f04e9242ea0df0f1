"""The state of a training script as tensors and a JSON tree, without pickle.

The tree is what `state_dict()` gives: dicts, lists, tuples, numbers, strings; a tensor in it is its
number in the table of tensors. Of a DTensor the local shard is saved.
"""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor
from torch.distributed.tensor import DTensor

ALIGNMENT_BYTES = 64
_NAMES = (
    "float64 float32 float16 bfloat16 float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz"
    " float8_e8m0fnu int64 int32 int16 int8 uint64 uint32 uint16 uint8 bool complex64 complex128"
)
# torch 2.6 has no float8_e8m0fnu.
_DTYPES = {f"torch.{n}": getattr(torch, n) for n in _NAMES.split() if hasattr(torch, n)}


class ForeignStateError(Exception):
    """A saved state is not one that this script can load; says what differs."""


@dataclass(frozen=True, slots=True)
class TensorRow:
    """One tensor of the table: where its bytes lie in the payload, and on what it was."""

    dtype: torch.dtype
    shape: tuple[int, ...]
    start: int
    device: str

    @property
    def size_bytes(self) -> int:
        return math.prod(self.shape) * int(self.dtype.itemsize)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """References to the live tensors, where each goes, and the encoded rest."""

    tensors: Sequence[Tensor]
    rows: Sequence[TensorRow]
    table: bytes

    @property
    def table_at(self) -> int:
        return _aligned(self.rows[-1].start + self.rows[-1].size_bytes) if self.rows else 0

    @property
    def payload_bytes(self) -> int:
        return self.table_at + len(self.table)


def describe(tree: object) -> Snapshot:
    """Plan the bytes of a tree as it is now; nothing is copied yet.

    Raises:
        TypeError: Something in it is neither a tensor with bytes of its own nor of JSON's kind;
            names its place.
    """
    tensors: list[Tensor] = []
    encoded = _encode(tree, tensors, "state")
    rows = _rows(tensors)
    listed = [[str(row.dtype), list(row.shape), row.start, row.device] for row in rows]
    table = json.dumps({"tensors": listed, "tree": encoded}, separators=(",", ":")).encode()
    return Snapshot(tensors, rows, table)


def read_state(payload: memoryview, table_at: int) -> object:
    """The tree of a payload, its tensors cloned from it onto the CPU.

    Raises:
        ForeignStateError: The table does not describe this payload.
    """
    try:
        document = json.loads(bytes(payload[table_at:]))
        rows = [_row(listed) for listed in document["tensors"]]
        tree = document["tree"]
    except (ValueError, KeyError, TypeError, RecursionError) as exc:
        raise ForeignStateError("the table of tensors cannot be read") from exc
    if any(row.start < 0 or row.start + row.size_bytes > table_at for row in rows):
        raise ForeignStateError("a tensor lies outside of its payload")
    whole = torch.frombuffer(payload, dtype=torch.uint8)
    return _decode(tree, lambda index: view_of(whole, rows[index]).clone())


def view_of(whole: Tensor, row: TensorRow) -> Tensor:
    """The part of a payload (uint8, one axis) that is this tensor."""
    part = whole[row.start : row.start + row.size_bytes]
    if not row.size_bytes:
        return part.new_empty(row.shape, dtype=row.dtype)
    return part.view(row.dtype).view(row.shape)


def local(tensor: Tensor) -> Tensor:
    """What this rank holds of a tensor, off the graph."""
    return tensor.to_local().detach() if isinstance(tensor, DTensor) else tensor.detach()


def _encode(value: object, tensors: list[Tensor], key_path: str) -> object:
    if isinstance(value, Tensor):
        _check_bytes(local(value), key_path)
        tensors.append(value)
        return {"tensor": len(tensors) - 1}
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, dict):
        pairs = [
            [_encode(key, tensors, key_path), _encode(item, tensors, f"{key_path}.{key}")]
            for key, item in value.items()
        ]
        return {"dict": pairs}
    if isinstance(value, list | tuple):
        items = [_encode(item, tensors, f"{key_path}[{i}]") for i, item in enumerate(value)]
        return {"tuple" if isinstance(value, tuple) else "list": items}
    raise TypeError(f"{key_path} is a {type(value).__name__}: only tensors, numbers, text and "
                    "lists and dicts of them are kept in a checkpoint")  # fmt: skip


def _check_bytes(tensor: Tensor, key_path: str) -> None:
    """What could not be put back must not be saved."""
    dense = tensor.layout is torch.strided and not tensor.is_meta
    if not dense or str(tensor.dtype) not in _DTYPES:
        kind = "without data" if tensor.is_meta else f"of {tensor.dtype}, {tensor.layout}"
        raise TypeError(f"{key_path} is a tensor {kind}: it cannot be kept in a checkpoint")


def _decode(value: object, tensor: Callable[[int], Tensor]) -> object:
    """The reverse of `_encode`, from a file that may be anybody's."""
    if not isinstance(value, dict):
        return value
    try:
        ((kind, content),) = value.items()
        if kind == "tensor":
            return tensor(content)
        if kind == "dict":
            return {_decode(k, tensor): _decode(v, tensor) for k, v in content}
        items = [_decode(item, tensor) for item in content]
    except (ValueError, TypeError, IndexError) as exc:
        raise ForeignStateError("the tree of the state cannot be read") from exc
    return tuple(items) if kind == "tuple" else items


def _rows(tensors: Sequence[Tensor]) -> list[TensorRow]:
    rows: list[TensorRow] = []
    start = 0
    for tensor in map(local, tensors):
        row = TensorRow(tensor.dtype, tuple(tensor.shape), start, tensor.device.type)
        rows.append(row)
        start = _aligned(start + row.size_bytes)
    return rows


def _row(listed: object) -> TensorRow:
    dtype, shape, start, device = cast("tuple[str, list[int], int, str]", listed)
    sizes = [*shape, start]
    if not all(type(size) is int and size >= 0 for size in sizes):
        raise ValueError("a size is no whole number")
    return TensorRow(_DTYPES[dtype], tuple(shape), start, str(device))


def _aligned(position: int) -> int:
    return -(-position // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
