"""RUNS ON THE NODE. Hugging Face Trainer's `checkpoint-100/`; `trainer_state.json` is written last.

Weights are one file or shards with an index, of safetensors or torch.save; the optimizer is one
file, or the folders of FSDP or DeepSpeed.
"""

import os

from checks._checkpoints import deepspeed, torch_dcp
from checks._checkpoints.contents import Contents, DamagedError, names_in, read_json, tensors_of

STATE = "trainer_state.json"
SINGLE = (
    "model.safetensors",
    "pytorch_model.bin",
    "adapter_model.safetensors",
    "adapter_model.bin",
)
OPTIMIZERS = ("optimizer.pt", "optimizer.bin")
INDEX = ("model.safetensors.index.json", "pytorch_model.bin.index.json")
SHARDED = ("pytorch_model_fsdp_", "optimizer_")


def inspect(save, verify, saves=None):
    found, names = Contents(save.path, verify), names_in(save.path)
    if STATE not in names:
        found.unfinished = "no %s: it was not finished" % STATE
        return found
    state = found.look(STATE, read_json)
    if state is not None and state.get("global_step") != save.step:
        found.wrong.append("%s is of step %s" % (STATE, str(state.get("global_step"))[:20]))
    shards = [name for name in names if name.startswith("global_step") or sharded(save, name)]
    weights(found, names, shards)
    if "scheduler.pt" in names and not shards and not set(OPTIMIZERS) & set(names):
        found.missing.append("optimizer.pt (missing)")
    for name in names:
        if name.endswith((".pt", ".pth", ".bin")):
            found.archive(name)
    for name in shards:
        take(found, name, folder_of(os.path.join(save.path, name), verify))
    return found


def sharded(save, name):
    return name.startswith(SHARDED) and os.path.isdir(os.path.join(save.path, name))


def folder_of(path, verify):
    if os.path.basename(path).startswith("global_step"):
        return deepspeed.inspect_folder(path, verify)
    return torch_dcp.inspect_folder(path, verify)


def take(found, name, part):
    """What is wrong with a folder of the checkpoint is wrong with the checkpoint."""
    for kind in ("missing", "short", "bad", "wrong"):
        getattr(found, kind).extend("%s/%s" % (name, item) for item in getattr(part, kind))
    if part.unfinished:
        found.missing.append("%s (%s)" % (name, part.unfinished))
    found.unknown = found.unknown or part.unknown
    found.bytes += part.bytes
    found.checksums = found.checksums or part.checksums


def weights(found, names, shards):
    """One file of weights, or an index and every shard that it names."""
    index = next((name for name in INDEX if name in names), None)
    single = next((name for name in SINGLE if name in names), None)
    if index is not None:
        indexed(found, names, index)
    elif single is not None and single.endswith(".safetensors"):
        found.look(single, tensors_of)
    elif single is None and not shards:
        found.missing.append("%s (missing)" % SINGLE[0])


def indexed(found, names, index):
    places = found.look(index, lambda path: weight_map(read_json(path)))
    by_file = {}
    for tensor, name in (places or {}).items():
        by_file.setdefault(name, set()).add(tensor)
    for name in sorted(by_file):
        if name.endswith(".safetensors"):
            tensors = found.look(name, tensors_of)
            lacking = sorted(by_file[name] - tensors) if tensors is not None else []
            if lacking:
                words = "%s names %s in %s, which lacks it"
                found.wrong.append(words % (index, lacking[0][:100], name))
        elif name not in names:
            found.missing.append("%s (missing)" % name)


def weight_map(index):
    places = index.get("weight_map")
    if not isinstance(places, dict) or not places:
        raise DamagedError("it has no weight_map")
    for name in places.values():
        if not isinstance(name, str) or os.path.basename(name) != name or name in ("", ".", ".."):
            raise DamagedError("a shard lies outside the checkpoint")
    return places


def end(save):
    return os.path.join(save.path, STATE)
