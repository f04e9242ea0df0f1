"""Cut over two tensor ranks, the model computes what the whole one does."""

from pathlib import Path

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import Tensor

from brctl.training.checkpoints.layout import Layout, parse_layout
from brctl.training.model import batch_of
from brctl.training.parallel_model import ModelStage, RankPlace, find_place

pytestmark = pytest.mark.torch

SEED = 7
WHOLE = RankPlace(0, 1, 0, 0, 1, None, None, None, None)
BY_ROWS = ("out.weight", "down.weight")


def loss_of(stage: ModelStage) -> Tensor:
    tokens = batch_of(SEED, 1, 0)
    logits = stage(tokens[:, :-1])
    loss: Tensor = torch.nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
    return loss


def joined(name: str, parts: list[Tensor]) -> Tensor:
    """The whole tensor of two ranks' parts; queries, keys and values are cut each for itself."""
    if name.endswith(BY_ROWS):
        return torch.cat(parts, dim=1)
    if ".qkv." in name:
        thirds = [part.chunk(3) for part in parts]
        return torch.cat([third for kind in zip(*thirds, strict=True) for third in kind])
    return torch.cat(parts) if ".up." in name else parts[0]


def gathered(tensor: Tensor) -> list[Tensor]:
    parts = [torch.empty_like(tensor) for _ in range(2)]
    dist.all_gather(parts, tensor.contiguous())
    return parts


def compare(rank: int, folder: str) -> None:
    """One rank: its loss and gradients, put together with the other's, are the whole model's."""
    store = dist.FileStore(f"{folder}/store", 2)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=2)
    cut = ModelStage(SEED, find_place(parse_layout("tp=2", 1), rank))
    whole = ModelStage(SEED, WHOLE)
    weights = {name: joined(name, gathered(p.data)) for name, p in cut.named_parameters()}
    whole.load_state_dict(weights)
    loss, expected = loss_of(cut), loss_of(whole)
    loss.backward()
    expected.backward()
    torch.testing.assert_close(loss, expected)
    for name, p in cut.named_parameters():
        gradient = joined(name, gathered(p.grad))
        torch.testing.assert_close(gradient, whole.get_parameter(name).grad, msg=name)
    dist.destroy_process_group()


def test_a_cut_layer_has_the_gradients_of_the_whole_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also those on every rank: of norms, embeddings and the head."""
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")
    mp.start_processes(compare, args=(str(tmp_path),), nprocs=2, start_method="fork")


def test_stages_find_their_neighbours(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rank 5 of tp=2 pp=2 dp=2 is tensor rank 1 of the first stage of the second replica."""
    monkeypatch.setattr(dist, "new_group", lambda members, group_desc: tuple(members))
    place = find_place(Layout((("tp", 2), ("pp", 2), ("dp", 2)), 1), 5)
    assert (place.tensor_rank, place.stage, place.replica) == (1, 0, 1)
    assert (place.previous, place.next) == (None, 7)
    assert (place.tensor_group, place.data_group) == ((4, 5), (1, 5))
