"""Checkpoints as frameworks lay them out: real files of torch, names and order of their savers."""

import json
import struct
from collections.abc import Callable, Mapping
from pathlib import Path


def write_torch(path: Path, **state: object) -> Path:
    """What torch.save writes."""
    import torch

    path.parent.mkdir(parents=True, exist_ok=True)
    torch.save({"w": torch.arange(64.0), **state}, path)
    return path


def write_dcp(folder: Path) -> Path:
    """What torch.distributed.checkpoint writes."""
    import torch
    import torch.distributed.checkpoint as dcp

    dcp.save({"w": torch.arange(64.0)}, checkpoint_id=folder, no_dist=True)
    return folder


def write_safetensors(path: Path, *names: str) -> Path:
    """The documented format: length of the header, header, tensors of 16 bytes."""
    places = {
        name: {"dtype": "F32", "shape": [4], "data_offsets": [16 * i, 16 * i + 16]}
        for i, name in enumerate(names)
    }
    header = json.dumps({"__metadata__": {"format": "pt"}, **places}).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + b"\1" * 16 * len(names))
    return path


def megatron(root: Path, step: int) -> Path:
    """Four model-parallel ranks with a distributed optimizer; then the tracker."""
    folder = root / f"iter_{step:07d}"
    for tensor in range(2):
        for pipeline in range(2):
            rank = folder / f"mp_rank_{tensor:02d}_{pipeline:03d}"
            write_torch(rank / "model_optim_rng.pt", iteration=step)
            write_torch(rank / "distrib_optim.pt")
    (root / "latest_checkpointed_iteration.txt").write_text(str(step))
    return folder


def megatron_dist(root: Path, step: int) -> Path:
    """The torch_dist format."""
    folder = write_dcp(root / f"iter_{step:07d}")
    about = {"sharded_backend": "torch_dist", "sharded_backend_version": 1}
    (folder / "metadata.json").write_text(json.dumps(about))
    write_torch(folder / "common.pt", iteration=step)
    (root / "latest_checkpointed_iteration.txt").write_text(f"{step}\n")
    return folder


def deepspeed(root: Path, step: int) -> Path:
    """ZeRO-2 in bf16 on four ranks; then `latest`."""
    folder = root / f"global_step{step}"
    write_torch(folder / "mp_rank_00_model_states.pt", global_steps=step)
    for rank in range(4):
        write_torch(folder / f"bf16_zero_pp_rank_{rank}_mp_rank_00_optim_states.pt")
    (root / "latest").write_text(folder.name)
    return folder


def deepspeed_zero3(root: Path, step: int) -> Path:
    """ZeRO-3: every rank has a part of the model too."""
    folder = root / f"global_step{step}"
    for rank in range(4):
        write_torch(folder / f"zero_pp_rank_{rank}_mp_rank_00_model_states.pt")
        write_torch(folder / f"zero_pp_rank_{rank}_mp_rank_00_optim_states.pt")
    (root / "latest").write_text(folder.name)
    return folder


def lightning(root: Path, step: int) -> Path:
    """One file, and `last.ckpt` with the same content."""
    path = write_torch(root / f"epoch=0-step={step}.ckpt", epoch=0, global_step=step)
    (root / "last.ckpt").write_bytes(path.read_bytes())
    return path


def lightning_fsdp(root: Path, step: int) -> Path:
    """FSDP with sharded state."""
    folder = write_dcp(root / f"epoch=0-step={step}.ckpt")
    write_torch(folder / "meta.pt", global_step=step)
    return folder


def hf_trainer(root: Path, step: int) -> Path:
    """Two shards of safetensors with their index, optimizer, state last."""
    folder = root / f"checkpoint-{step}"
    folder.mkdir(parents=True)
    shards = {
        "model-00001-of-00002.safetensors": ("a", "b"),
        "model-00002-of-00002.safetensors": "c",
    }
    for name, tensors in shards.items():
        write_safetensors(folder / name, *tensors)
    places = {tensor: name for name, tensors in shards.items() for tensor in tensors}
    index = {"metadata": {"total_size": 48}, "weight_map": places}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    for name in ("optimizer.pt", "scheduler.pt", "rng_state.pth", "training_args.bin"):
        write_torch(folder / name)
    (folder / "trainer_state.json").write_text(json.dumps({"global_step": step, "epoch": 0.1}))
    return folder


def torch_save(root: Path, step: int) -> Path:
    """One file a step, as many scripts do."""
    return write_torch(root / f"ckpt_{step}.pt", iter_num=step)


MAKERS: Mapping[str, tuple[str, Callable[[Path, int], Path]]] = {
    "megatron": ("megatron", megatron),
    "megatron torch_dist": ("megatron", megatron_dist),
    "deepspeed": ("deepspeed", deepspeed),
    "deepspeed ZeRO-3": ("deepspeed", deepspeed_zero3),
    "lightning": ("lightning", lightning),
    "lightning FSDP": ("lightning", lightning_fsdp),
    "hf-trainer": ("hf-trainer", hf_trainer),
    "torch-save": ("torch-save", torch_save),
}
"""By a name for people: the layout, and what writes a checkpoint of a step."""
