"""A GPU that computes or sends wrong numbers: what it does, and the kernels that do it in torch.

RUNS ON THE NODE: python_entry.c runs this file in every process that imports torch, so it imports
nothing of brctl. Torch's dispatcher has a key in front of every backend that no operator here uses;
kernels registered there see each matrix product and each tensor sent, whoever asked for it. As long
as the node is healthy none is registered and torch is as it was.

Which call is wrong depends on the seed and on how many calls the node's processes have made.
"""

import mmap
import os
import struct
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

ENTERED_AS = "brctl_lab_torch_entry"
"""The name that python_entry.c runs this file under."""

PRODUCTS, SENT = 1, 2

_STATE = struct.Struct("<qdqdqq")
_CALLS = struct.Struct("<q")
_MASK64 = (1 << 64) - 1

_PRODUCTS = (
    "mm", "bmm", "addmm", "baddbmm", "addbmm", "mv", "addmv", "_int_mm", "_addmm_activation",
)  # fmt: skip

_OVERLOADS = frozenset({"default", "out"})
"""A result that is written into a tensor of the caller's is a product as well."""

_SENDERS = {
    "allreduce_": 0, "allreduce_coalesced_": 0, "reduce_": 0, "broadcast_": 0, "send": 0,
    "allgather_": 1, "_allgather_base_": 1, "reduce_scatter_": 1, "_reduce_scatter_base_": 1,
    "alltoall_": 1, "alltoall_base_": 1,
}  # fmt: skip
"""Operators of torch.distributed, and which argument leaves the machine."""

_IN_PLACE = ("allreduce_", "allreduce_coalesced_", "reduce_")
"""Their argument is the result as well."""


@dataclass(frozen=True, slots=True)
class WrongResults:
    """What is wrong on one node.

    Attributes:
        kinds: PRODUCTS, SENT, both or neither.
        probability: That one call has a wrong element.
        from_elements: Smaller results are right.
        from_temperature_c: A GPU cooler than that is right; 0 for any.
        gpu: The slot whose temperature counts.
    """

    kinds: int = 0
    probability: float = 1.0
    from_elements: int = 1
    from_temperature_c: float = 0.0
    gpu: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.probability <= 1:
            raise ValueError(f"a probability is more than 0 and at most 1, not {self.probability}")
        if self.from_elements < 1:
            raise ValueError(f"a result has at least 1 element, not {self.from_elements}")

    def packed(self) -> bytes:
        """As the state file begins; its last word counts the calls."""
        fields = (self.kinds, self.probability, self.from_elements, self.from_temperature_c)
        return _STATE.pack(*fields, self.gpu, self.seed)


def read_wrong_results(path: Path) -> WrongResults:
    """What is wrong on the node with this state file."""
    return WrongResults(*_STATE.unpack(path.read_bytes()[: _STATE.size]))


def write_wrong_results(path: Path, wrong: WrongResults) -> None:
    """Replace the state in place: programs have the file mapped, so it never shrinks."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        os.pwrite(handle, wrong.packed() + _CALLS.pack(0), 0)
    finally:
        os.close(handle)


def random_bits(seed: int, number: int) -> int:
    """64 bits that depend on both alone (SplitMix64)."""
    x = (seed + (number + 1) * 0x9E3779B97F4A7C15) & _MASK64
    x = ((x ^ x >> 30) * 0xBF58476D1CE4E5B9) & _MASK64
    x = ((x ^ x >> 27) * 0x94D049BB133111EB) & _MASK64
    return x ^ x >> 31


class WrongNode:
    """The state of the node this process runs on."""

    def __init__(self, state: Path, nvml: Path) -> None:
        with state.open("r+b") as file:
            self._mapped = mmap.mmap(file.fileno(), _STATE.size + _CALLS.size)
        self._nvml = nvml

    @property
    def wrong(self) -> WrongResults:
        """As it is now."""
        return WrongResults(*_STATE.unpack_from(self._mapped))

    def strikes(self, kind: int, elements: int) -> int | None:
        """Which element of a result is wrong; None for none."""
        wrong = self.wrong
        if not wrong.kinds & kind or not 0 < elements >= wrong.from_elements:
            return None
        if wrong.from_temperature_c > self._temperature_c(wrong):
            return None
        number = _CALLS.unpack_from(self._mapped, _STATE.size)[0]
        _CALLS.pack_into(self._mapped, _STATE.size, number + 1)
        if random_bits(wrong.seed, 2 * number) >= wrong.probability * 2**64:
            return None
        return random_bits(wrong.seed, 2 * number + 1) % elements

    def _temperature_c(self, wrong: WrongResults) -> float:
        if not wrong.from_temperature_c:
            return 0.0
        key = f"gpu{wrong.gpu}.temp="
        lines = self._nvml.read_text().splitlines()
        return max((float(at[len(key) :]) for at in lines if at.startswith(key)), default=0.0)


def spoil(tensor: "Tensor", element: int) -> None:
    """Make one element wrong: by half of itself, or by a half where it is smaller than one."""
    place = []
    for size in reversed(tensor.shape):
        element, index = divmod(element, size)
        place.append(index)
    at = tuple(reversed(place))
    value = tensor[at].item()
    tensor[at] = value + 1 if isinstance(value, int) else value + max(abs(value), 1.0) / 2


class Kernels:
    """The kernels of one process, registered when its node first goes wrong."""

    def __init__(self, node: WrongNode) -> None:
        self._node = node
        self._libraries: list[object] = []

    def register(self, torch: ModuleType) -> None:
        """Stand in front of torch's own; once."""
        if self._libraries:
            return
        for name in _PRODUCTS:
            self._put(torch, "aten", name, self._spoil_product)
        for name in _SENDERS:
            self._put(torch, "c10d", name, self._spoil_sent)

    def _put(self, torch: ModuleType, space: str, name: str, work: Callable[..., object]) -> None:
        operators = getattr(torch.ops, space)
        if not hasattr(operators, name):
            return
        packet = getattr(operators, name)
        for overload in set(packet.overloads()) & _OVERLOADS:
            self._stand_before(torch, space, name, getattr(packet, overload), work)

    def _stand_before(
        self, torch: ModuleType, space: str, name: str, operator: Any, work: Callable[..., object]
    ) -> None:
        key = torch._C.DispatchKey.BackendSelect

        def kernel(keys: Any, *arguments: object, **options: object) -> object:
            def right(*those: object) -> object:
                return operator.redispatch(keys.remove(key), *those, **options)

            with torch.no_grad():
                return work(name, right, arguments)

        library = torch.library.Library(space, "IMPL")
        library.impl(operator, kernel, "BackendSelect", with_keyset=True)
        self._libraries.append(library)

    def _spoil_product(
        self, _: str, right: Callable[..., "Tensor"], arguments: Sequence[object]
    ) -> "Tensor":
        result = right(*arguments)
        element = self._node.strikes(PRODUCTS, result.numel())
        if element is not None:
            spoil(result, element)
        return result

    def _spoil_sent(
        self, name: str, right: Callable[..., object], arguments: Sequence[object]
    ) -> object:
        if name == "broadcast_" and _rank_in(arguments[1]) != arguments[2]:
            return right(*arguments)
        at = _SENDERS[name]
        sent = self._sent(arguments[at], copy=name not in _IN_PLACE)
        return right(*arguments[:at], sent, *arguments[at + 1 :])

    def _sent(self, value: object, *, copy: bool) -> object:
        """What leaves the machine instead: pickled objects would not even be read if spoilt."""
        if isinstance(value, list | tuple):
            return [self._sent(each, copy=copy) for each in value]
        tensor: Tensor = value
        element = self._node.strikes(SENT, tensor.numel()) if tensor.is_floating_point() else None
        if element is None:
            return tensor
        tensor = tensor.clone() if copy else tensor
        spoil(tensor, element)
        return tensor


def _rank_in(group: Any) -> int:
    """This process's rank in a group as the dispatcher hands it over: boxed."""
    boxed = sys.modules["torch"].distributed.ProcessGroup.unbox(group)
    return int(boxed.rank())


class AfterTorch:
    """A finder that has torch's import followed by a call."""

    def __init__(self, call: Callable[[], None]) -> None:
        self._call = call

    def find_spec(self, name: str, path: object, target: object = None) -> ModuleSpec | None:
        """Torch as the other finders find it, with an end of ours."""
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        spec = find_spec(name)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def load_and_call(module: ModuleType) -> None:
                load(module)
                self._call()

            spec.loader.exec_module = load_and_call  # type: ignore[method-assign]
        return spec


def enter_process() -> Callable[[], None]:
    """Wait for torch; what is returned is to be called whenever the state has changed."""
    node = WrongNode(
        Path(os.environ["BRCTL_LAB_WRONG_RESULTS"]), Path(os.environ["BRCTL_FAKE_NVML_STATE"])
    )
    kernels = Kernels(node)
    loaded: list[ModuleType] = []

    def changed() -> None:
        if loaded and node.wrong.kinds:
            kernels.register(loaded[0])

    def after_torch() -> None:
        loaded.append(sys.modules["torch"])
        changed()

    sys.meta_path.insert(0, AfterTorch(after_torch))
    return changed


if __name__ == ENTERED_AS:
    refresh = enter_process()
