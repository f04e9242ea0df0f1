"""RUNS ON THE NODE. PyTorch Lightning's `epoch=0-step=100.ckpt`: a file, or a folder of shards.

A folder is of FSDP (torch's own with meta.pt), of DeepSpeed (below checkpoint/) or of NeMo (below
weights/, with a marker beside it while it is written). `last.ckpt` is a copy or link of the newest.
"""

import os

from checks._checkpoints import deepspeed, megatron, torch_dcp
from checks._checkpoints.contents import Contents


def inspect(save, verify, saves=None):
    if not os.path.isdir(save.path):
        found = Contents(save.root, verify)
        found.archive(save.name)
        return found
    if os.path.exists(save.path + "-unfinished"):
        found = Contents(save.path, verify)
        found.unfinished = "%s-unfinished is beside it" % save.name
        return found
    if os.path.isdir(os.path.join(save.path, "checkpoint")):
        return deepspeed.inspect_folder(os.path.join(save.path, "checkpoint"), verify)
    if os.path.isdir(os.path.join(save.path, "weights")):
        return megatron.inspect_distributed(os.path.join(save.path, "weights"), verify)
    found = torch_dcp.inspect_folder(save.path, verify)
    if not found.unfinished:
        found.archive("meta.pt")
    return found


def end(save):
    return save.path
