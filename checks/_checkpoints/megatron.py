"""RUNS ON THE NODE. Megatron-LM's `iter_0000100/`, in its format of one file a rank or torch_dist.

`latest_checkpointed_iteration.txt` is written when all ranks have saved, and names what is loaded.
"""

import os
import re

from checks._checkpoints import torch_dcp
from checks._checkpoints.contents import Contents, UnknownError, names_in, read_json
from checks._checkpoints.shards import lacking_beside, lacking_in_grid

POINTER = "latest_checkpointed_iteration.txt"
RANK = re.compile(r"mp_rank_(\d+)(?:_(\d+))?(?:_(\d+))?$")
MODEL, OPTIMIZER = "model_optim_rng.pt", "distrib_optim.pt"


def pointed(text, names):
    """The folder of the iteration in the file; `release` is no training step."""
    text = text.strip()
    return next((n for n in names if text.isdigit() and int(n.split("_")[1]) == int(text)), text)


def inspect(save, verify, saves):
    if is_distributed(save.path):
        return inspect_distributed(save.path, verify)
    own = shards_of(save.path)
    found = Contents(save.path, verify)
    if not own:
        found.unfinished = "it holds no mp_rank_*/%s" % MODEL
        return found
    folders = [name.partition("/")[0] for name in own]
    grid = lacking_in_grid(RANK, folders, rank_folder)
    beside = lacking_beside(own, [shards_of(other.path) for other in saves.others(save)])
    if saves.model_parallel == len(set(folders)):
        beside = []
    lacking = ["%s/%s" % (folder, MODEL) for folder in grid] + beside
    lacking += ["%s/%s" % (f, MODEL) for f in folders if "%s/%s" % (f, MODEL) not in own]
    found.missing = ["%s (missing)" % name for name in sorted(set(lacking))]
    for name in own:
        found.archive(name)
    return found


def rank_folder(indices):
    return "mp_rank_%02d" % indices[0] + "".join("_%03d" % index for index in indices[1:])


def shards_of(folder):
    """Files of all ranks, by their paths below the iteration's folder."""
    ranks = [name for name in names_in(folder) if RANK.match(name)]
    return [
        "%s/%s" % (rank, name)
        for rank in ranks
        for name in names_in(os.path.join(folder, rank))
        if name in (MODEL, OPTIMIZER)
    ]


def is_distributed(folder):
    names = names_in(folder)
    return any(n in (".metadata", "metadata.json") or n.endswith(".distcp") for n in names)


def inspect_distributed(folder, verify):
    """torch_dist and fsdp_dtensor: torch's own folder, and what is the same on all ranks."""
    found = Contents(folder, verify)
    about = found.look("metadata.json", read_json) if "metadata.json" in names_in(folder) else {}
    if about is None:
        return found
    backend = about.get("sharded_backend")
    if backend not in (None, "torch_dist", "fsdp_dtensor"):
        raise UnknownError("its format %r is not known" % str(backend)[:40])
    found = torch_dcp.inspect_folder(folder, verify)
    if backend == "torch_dist" and not found.unfinished:
        found.archive("common.pt")
    return found


def end(save):
    """The metadata of a distributed one; else the folder's own time is all there is."""
    metadata = os.path.join(save.path, ".metadata")
    return metadata if os.path.exists(metadata) else save.path
