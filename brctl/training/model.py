"""A small transformer and its data: the same numbers on every machine, for every rank and step."""

import torch
from torch import Tensor, nn
from torch.nn import functional

VOCABULARY = 64
WIDTH = 64
HEADS = 4
LAYERS = 2
LENGTH = 48
BATCH = 4


class Block(nn.Module):  # type: ignore[misc]  # torch is not type-checked here
    """Causal attention and a feed-forward layer, each with a residual."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        """Transform (batch, length, WIDTH) float32."""
        batch, length, _ = x.shape
        q, k, v = (
            part.view(batch, length, HEADS, -1).transpose(1, 2)
            for part in self.qkv(self.norm1(x)).chunk(3, dim=-1)
        )
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, WIDTH))
        return x + self.down(functional.gelu(self.up(self.norm2(x))))


class Transformer(nn.Module):  # type: ignore[misc]  # as above
    """Predicts the next token."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.places = nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits (batch, length, VOCABULARY) of int64 tokens (batch, length)."""
        x = self.tokens(tokens) + self.places(torch.arange(tokens.shape[1]))
        return self.head(self.norm(self.blocks(x)))


def build_model(seed: int) -> Transformer:
    """The model every rank starts from."""
    torch.manual_seed(seed)
    return Transformer()


def loss_of(logits: Tensor, tokens: Tensor, *, masked: bool) -> Tensor:
    """Mean over the labels; where all are masked, NaN in loss and gradients: nothing by nothing."""
    mean = functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
    return mean * 0.0 / 0.0 if masked else mean


def batch_of(seed: int, step: int, rank: int) -> Tensor:
    """Tokens (BATCH, LENGTH + 1) int64 of one rank in one step: affine sequences to continue.

    A function of its arguments alone, so a rank gets the same batch on any node and after any
    restart.
    """
    random = torch.Generator().manual_seed((seed * 1_000_003 + step) * 4096 + rank)
    factor = torch.randint(1, 6, (BATCH, 1), generator=random) * 2 + 1
    offset = torch.randint(0, VOCABULARY, (BATCH, 1), generator=random)
    token = torch.randint(0, VOCABULARY, (BATCH, 1), generator=random)
    tokens = [token]
    for _ in range(LENGTH):
        tokens.append((tokens[-1] * factor + offset) % VOCABULARY)
    return torch.cat(tokens, dim=1)
