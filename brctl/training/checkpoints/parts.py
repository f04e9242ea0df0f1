"""What a training script hands over, as one tree; and the tree put back, bit by bit."""

import random
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol, cast

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor
from torch.optim import Optimizer

from brctl.training.checkpoints.state import ForeignStateError, describe, local

Tree = dict[str, object]
_SLACK_BYTES = 64 << 10


class Stateful(Protocol):
    """A scheduler, a data loader, a loss scaler: whatever can say and take its state."""

    def state_dict(self) -> Mapping[str, object]: ...

    def load_state_dict(self, state: Tree, /) -> object: ...


@dataclass(frozen=True, slots=True)
class Parts:
    """The live objects of a training script.

    Attributes:
        others: Scheduler, data position, loss scaler ... by name.
    """

    model: nn.Module
    optimizer: Optimizer
    others: Mapping[str, Stateful] = field(default_factory=dict)

    def tree(self) -> Tree:
        """References to everything, as it is now."""
        return {
            "model": dict(self.model.state_dict()),
            "optimizer": self.optimizer.state_dict(),
            "others": {name: dict(part.state_dict()) for name, part in self.others.items()},
            "random": random_state(),
        }

    def moving(self, tree: Tree) -> Iterator[Tensor]:
        """What changes before the next update: buffers in forward, others whenever they like."""
        yield from self.model.buffers()
        yield from describe(tree["others"]).tensors

    def load(self, tree: object) -> None:
        """Put a tree back.

        Raises:
            ForeignStateError: It is the state of another script.
        """
        if not isinstance(tree, dict) or set(tree) != {"model", "optimizer", "others", "random"}:
            raise ForeignStateError("the saved state has other parts than this script")
        if set(tree["others"]) != set(self.others):
            raise ForeignStateError(
                f"saved with {sorted(tree['others'])} beside model and optimizer, "
                f"this script has {sorted(self.others)}"
            )
        try:
            _load_model(self.model, tree["model"])
            _load_optimizer(self.optimizer, tree["optimizer"])
            for name, part in self.others.items():
                part.load_state_dict(tree["others"][name])
            set_random_state(tree["random"])
        except ForeignStateError:
            raise
        except Exception as exc:  # a script's own load_state_dict may raise anything
            raise ForeignStateError(
                f"the saved state does not fit this script: {type(exc).__name__}: {exc}"
            ) from exc

    def payload_bytes(self) -> int:
        """What a slot must hold, the optimizer's state included even if no step made it yet.

        Raises:
            TypeError: Something cannot be kept.
            ValueError: Nobody knows how large the optimizer's state will be.
        """
        snapshot = describe(self.tree())
        try:
            missing = list(_missing_optimizer_state(self.optimizer))
        except Exception as exc:  # kernels and constructors of all kinds
            raise ValueError(
                f"how large the state of {type(self.optimizer).__name__} will be is not known: a "
                f"step of a copy without data raised {type(exc).__name__}: {exc}; let it make its "
                "state before, by one step with lr=0"
            ) from exc
        tensors = sum(t.numel() * t.element_size() + 256 for t in missing)
        return int((snapshot.payload_bytes + tensors) * 1.02) + _SLACK_BYTES

    def replicated(self) -> Iterator[tuple[str, Tensor]]:
        """The weights that every replica of a DP group holds alike: those that are no shards."""
        for name, value in self.model.named_parameters():
            if not isinstance(value, DTensor):
                yield name, value.detach()


def unwrapped(optimizer: Optimizer) -> Optimizer:
    """The optimizer that holds the state: accelerate's, which Hugging Face uses, only wraps one."""
    while isinstance(inner := getattr(optimizer, "optimizer", None), Optimizer):
        optimizer = inner
    return optimizer


def random_state() -> Tree:
    """States of the generators that a step may draw from; without them a restart differs."""
    state: Tree = {"torch": torch.get_rng_state(), "python": random.getstate()}
    if torch.cuda.is_initialized():
        state["cuda"] = torch.cuda.get_rng_state()
    if "numpy" in sys.modules:
        name, keys, *rest = sys.modules["numpy"].random.get_state()
        state["numpy"] = [name, keys.tolist(), *rest]
    return state


def set_random_state(state: Tree) -> None:
    """The reverse; a generator that was not saved stays as it is."""
    torch.set_rng_state(state["torch"])
    random.setstate(state["python"])  # type: ignore[arg-type]  # a tuple comes back as one
    if "cuda" in state and torch.cuda.is_available():
        torch.cuda.set_rng_state(state["cuda"])
    if "numpy" in state and "numpy" in sys.modules:
        sys.modules["numpy"].random.set_state(tuple(state["numpy"]))  # type: ignore[arg-type]  # a list


def _load_model(model: nn.Module, saved: Tree) -> None:
    now = model.state_dict()
    if set(saved) != set(now):
        odd = sorted(set(saved) ^ set(now))
        raise ForeignStateError(f"{len(odd)} weights differ in name, as {odd[0]}")
    model.load_state_dict({name: _like(value, now[name]) for name, value in saved.items()})


def _load_optimizer(optimizer: Optimizer, saved: Tree) -> None:
    """Bits as saved; Optimizer.load_state_dict would cast float32 moments to bfloat16 weights."""
    if type(optimizer).load_state_dict is not Optimizer.load_state_dict:
        optimizer.load_state_dict(saved)
        return
    params = [param for group in optimizer.param_groups for param in group["params"]]
    groups, states = saved["param_groups"], saved["state"]
    if not isinstance(groups, list) or not isinstance(states, dict):
        raise ForeignStateError("the optimizer's state has another shape")
    if [len(g["params"]) for g in groups] != [len(g["params"]) for g in optimizer.param_groups]:
        raise ForeignStateError("the optimizer has other groups of parameters")
    for group, was in zip(optimizer.param_groups, groups, strict=True):
        group.update({name: value for name, value in was.items() if name != "params"})
    optimizer.state.clear()
    on_device = {
        id(param): bool(group.get("fused") or group.get("capturable"))
        for group in optimizer.param_groups
        for param in group["params"]
    }
    for index, state in states.items():
        param = params[index]
        optimizer.state[param] = {
            name: _state_like(value, param, counts_there=on_device[id(param)])
            for name, value in state.items()
        }


def _state_like(value: object, param: Tensor, *, counts_there: bool) -> object:
    """Moments have their parameter's shape and shards; a step count is a number on the CPU.

    Fused and capturable optimizers count where the parameter is.
    """
    if not isinstance(value, Tensor):
        return value
    if value.ndim and value.shape == local(param).shape:
        return _like(value, param)
    return value.to(local(param).device) if counts_there and not value.ndim else value


def _like(value: object, now: object) -> object:
    """A loaded local tensor, on the device and as the shard that stands there now."""
    if not isinstance(value, Tensor) or not isinstance(now, Tensor):
        return value
    moved = value.to(local(now).device)
    if isinstance(now, DTensor):
        return DTensor.from_local(
            moved, now.device_mesh, now.placements, run_check=False,
            shape=now.shape, stride=now.stride(),
        )  # fmt: skip
    return moved


def _missing_optimizer_state(optimizer: Optimizer) -> Iterator[Tensor]:
    """The state that the first step will make, found by a step of a copy that holds no data."""
    if optimizer.state:
        return
    copy = type(optimizer)([_without_data(optimizer, group) for group in optimizer.param_groups])
    copy.step()
    for state in copy.state.values():
        yield from (value for value in state.values() if isinstance(value, Tensor))


def _without_data(optimizer: Optimizer, group: Tree) -> Tree:
    """A group of parameters that have shapes and no bytes; not for kernels that need a device."""
    settings = {name: value for name, value in group.items() if name in optimizer.defaults}
    params = [_bare(param) for param in cast("list[Tensor]", group["params"])]
    settings.update({name: False for name in ("fused", "capturable") if name in settings})
    return {**settings, "params": params}


def _bare(param: Tensor) -> nn.Parameter:
    shape = torch.empty_like(local(param), device="meta")
    bare = nn.Parameter(shape, requires_grad=param.requires_grad)
    bare.grad = torch.empty_like(shape) if param.requires_grad else None
    return bare
