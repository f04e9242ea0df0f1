"""What checkpoints use of torch.cuda, on a CPU: streams in name only, events that a test ends."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

DEVICE = torch.device("cuda", 3)
"""Not the current one: a script may say where its model is and nothing else."""


class FakeGpuTensor(Tensor):  # type: ignore[misc]  # torch is not type-checked here
    """A tensor in the CPU's memory that says it is on a GPU."""

    @property
    def device(self) -> torch.device:
        return DEVICE

    @property
    def is_cuda(self) -> bool:
        return True

    def record_stream(self, stream: "FakeStream") -> None:
        """Its memory is not given away before the stream is through."""


class FakeEvent:
    """Ends when the test says so: until then the copy before it is under way."""

    def __init__(self, cuda: "FakeCuda") -> None:
        self._cuda = cuda

    def record(self, stream: "FakeStream") -> None:
        self._cuda.calls.append("event recorded")

    def synchronize(self) -> None:
        self._cuda.copied.wait()


class FakeStream:
    """A stream that remembers whom it waited for."""

    def __init__(self, cuda: "FakeCuda", device: torch.device) -> None:
        self._cuda = cuda
        self.device = device

    def wait_stream(self, other: "FakeStream") -> None:
        self._cuda.calls.append(f"{self.device} waits for the update on {other.device}")


class FakeCuda:
    """Stands in for the module.

    Attributes:
        refuses: The error that cudaHostRegister gives; 0 for none.
        copied: Set when copies are to have ended.
        calls: What was asked, in order.
    """

    def __init__(self, refuses: int = 0) -> None:
        self.refuses = refuses
        self.copied = threading.Event()
        self.calls: list[str] = []

    def is_initialized(self) -> bool:
        return True

    def Stream(self, device: torch.device) -> FakeStream:  # noqa: N802  # the module's own name
        return FakeStream(self, device)

    def Event(self) -> FakeEvent:  # noqa: N802  # as above
        return FakeEvent(self)

    def current_stream(self, device: torch.device) -> FakeStream:
        return FakeStream(self, device)

    @contextmanager
    def stream(self, stream: FakeStream) -> Iterator[None]:
        self.calls.append(f"copy begins on {stream.device}")
        yield

    def cudart(self) -> "FakeCuda":
        return self

    def cudaHostRegister(self, address: int, size: int, flags: int) -> int:  # noqa: N802  # as above
        self.calls.append(f"register {size}")
        return self.refuses

    def cudaHostUnregister(self, address: int) -> int:  # noqa: N802  # as above
        self.calls.append("unregister")
        return 0

    def ones(self, count: int, device: str) -> Tensor:
        """The kernel after a refusal, which reports it once more."""
        self.calls.append(f"kernel on {device}")
        raise RuntimeError("CUDA error: out of memory")
