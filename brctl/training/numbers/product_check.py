"""One matrix product, checked by a second and much smaller one (Freivalds, 1977).

Where y = x W' is right, y r = x (W' r) for any r, and both sides are products with one vector. A
wrong element of y shows in the step in which it is computed, on the rank that computes it, where
the replicas' digests see nothing because the reduction spread it to all of them.
"""

from contextlib import suppress
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

_SLACK = 1.0
"""Of the bound in `_check`; rounding that was seen on CPUs is below 0.03 of it."""


@dataclass(frozen=True, slots=True)
class WrongProduct:
    """A product that is further from the truth than rounding explains."""

    step: int
    module: str
    error: float
    bound: float


class ProductCheck:
    """Looks at the linear layers of a model in turn."""

    def __init__(self, model: nn.Module) -> None:
        self._layers = [
            (name.removeprefix("module."), module)
            for name, module in model.named_modules()
            if isinstance(module, nn.Linear)
        ]
        self._signs: dict[tuple[int, torch.dtype, torch.device], Tensor] = {}
        self._next = 0
        self._armed: RemovableHandle | None = None
        self._checked: tuple[int, str, Tensor] | None = None

    def __len__(self) -> int:
        return len(self._layers)

    def arm(self, step: int) -> None:
        """Look at the next layer when it is used next."""
        if not self._layers:
            return
        self.disarm()
        name, layer = self._layers[self._next % len(self._layers)]
        self._next += 1

        def look(
            module: nn.Linear, given: tuple[object, ...], named: dict[str, object], made: object
        ) -> None:
            self.disarm()
            x = given[0] if given else named.get("input")
            # A check that cannot be made must not end the training it looks at.
            with suppress(RuntimeError), torch.no_grad():
                if _is_plain_product(module, x, made):
                    self._checked = step, name, self._check(module, x, made)

        self._armed = layer.register_forward_hook(look, with_kwargs=True)

    def disarm(self) -> None:
        if self._armed is not None:
            self._armed.remove()
            self._armed = None

    def finish(self) -> WrongProduct | None:
        """What the look found; None for nothing, and where it was not to be had."""
        checked, self._checked = self._checked, None
        if checked is None:
            return None
        step, name, numbers = checked
        error, bound = numbers.tolist()
        return WrongProduct(step, name, error, bound) if error > bound else None

    def _check(self, layer: nn.Linear, x: Tensor, y: Tensor) -> Tensor:
        """The largest error of a row and what rounding may make of it, left on the device."""
        rows, made = x.reshape(-1, x.shape[-1]), y.reshape(-1, y.shape[-1])
        weight = layer.weight
        signs = self._signs_for(made.shape[1], weight)
        short = torch.mv(weight.t(), signs)
        right = torch.mv(rows.to(weight.dtype), short)
        if layer.bias is not None:
            right = right + torch.dot(layer.bias, signs)
        error = (torch.mv(made.to(weight.dtype), signs) - right).abs().max()
        # Errors of products with random signs add up like their root; the norms bound each sum.
        size = sum(weight.shape) ** 0.5
        biased = torch.stack(torch.aminmax(rows)).abs().max() * weight.shape[1] ** 0.5 + 1.0
        bound = _SLACK * _precision(made) * size * biased * (weight.norm() + 1.0)
        return torch.stack((error, bound)).float()

    def _signs_for(self, length: int, like: Tensor) -> Tensor:
        key = (length, like.dtype, like.device)
        if key not in self._signs:
            generator = torch.Generator().manual_seed(length)
            bits = torch.randint(0, 2, (length,), generator=generator) * 2 - 1
            self._signs[key] = bits.to(dtype=like.dtype, device=like.device)
        return self._signs[key]


def _is_plain_product(layer: nn.Linear, x: object, made: object) -> bool:
    """Whether a call multiplied with the weight as it stands: no packed one, no shard, not empty.

    An expert that was given no token has made nothing.
    """
    weight = layer.weight.data
    return (
        type(weight) is Tensor
        and weight.is_floating_point()
        and weight.shape == (layer.out_features, layer.in_features)
        and isinstance(x, Tensor)
        and isinstance(made, Tensor)
        and type(made.data) is Tensor
        and made.numel() > 0
    )


def _precision(tensor: Tensor) -> float:
    if tensor.is_cuda and tensor.dtype == torch.float32 and _multiplies_in_tf32():
        return 2.0**-10
    return float(torch.finfo(tensor.dtype).eps)


def _multiplies_in_tf32() -> bool:
    """Newer releases refuse `allow_tf32` where `fp32_precision` was set; older have no other."""
    matmul = torch.backends.cuda.matmul
    if hasattr(matmul, "fp32_precision"):
        return bool(matmul.fp32_precision == "tf32")
    return bool(matmul.allow_tf32)
