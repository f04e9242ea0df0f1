"""RUNS ON THE NODE. DeepSpeed's `global_step100/`, and `latest`, which names the one to load.

Every model-parallel rank writes its model states, with ZeRO every rank its optimizer states
(ZeRO-3: its part of the model as well), and then rank 0 writes `latest`.
"""

import re

from checks._checkpoints.contents import Contents, names_in
from checks._checkpoints.shards import lacking_beside, lacking_in_grid

POINTER = "latest"
MODEL = re.compile(r"(?:layer_\d+-model|mp_rank|zero_pp_rank_\d+_mp_rank)_\d+_?model_states\.pt$")
MODEL_GRID = re.compile(r"mp_rank_(\d+)_model_states\.pt$")
OPTIMIZER = re.compile(r"(?:bf16_|fp16_)?zero_pp_rank_(\d+)_mp_rank_(\d+)_optim_states\.pt$")
PARTS_OF_MODEL = re.compile(r"zero_pp_rank_(\d+)_mp_rank_(\d+)_model_states\.pt$")


def pointed(text, names):
    """The name in `latest`, whether or not it is there."""
    return text.strip()


def inspect(save, verify, saves):
    own = shards_of(save.path)
    found = inspect_folder(save.path, verify, own)
    ranks = len(optimizer_shards(own))
    if found.unfinished or not ranks or ranks == saves.world_size:
        return found
    others = [shards_of(other.path) for other in saves.others(save)]
    said = {words.partition(" ")[0] for words in found.missing}
    beside = [name for name in lacking_beside(own, others) if name not in said]
    found.missing += ["%s (missing)" % name for name in beside]
    if ranks < saves.world_size and not found.missing and own not in others:
        words = "optimizer states of %d ranks (missing: %d of %d are there)"
        found.missing.append(words % (saves.world_size - ranks, ranks, saves.world_size))
    return found


def inspect_folder(folder, verify, own=None):
    found, own = Contents(folder, verify), shards_of(folder) if own is None else own
    if not own:
        found.unfinished = "it holds no *_states.pt"
        return found
    lacking = [] if any(MODEL.match(name) for name in own) else ["mp_rank_00_model_states.pt"]
    lacking += lacking_in_grid(MODEL_GRID, own, lambda i: "mp_rank_%02d_model_states.pt" % i)
    prefix = next((n[: n.index("zero_pp")] for n in optimizer_shards(own)), "")
    shape = "zero_pp_rank_%d_mp_rank_%02d_%s_states.pt"
    lacking += lacking_in_grid(OPTIMIZER, own, lambda i: prefix + shape % (i[0], i[1], "optim"))
    lacking += lacking_models(own, shape)
    found.missing = ["%s (missing)" % name for name in lacking]
    for name in own:
        found.archive(name)
    return found


def lacking_models(own, shape):
    """With ZeRO-3 every rank with optimizer states has a part of the model, and the other way."""
    if not any(PARTS_OF_MODEL.match(name) for name in own):
        return []
    ranks = {tuple(map(int, OPTIMIZER.match(name).groups())) for name in optimizer_shards(own)}
    parts = [PARTS_OF_MODEL.match(name) for name in own]
    have = {tuple(map(int, match.groups())) for match in parts if match}
    return [shape % (i[0], i[1], "model") for i in sorted(ranks - have)]


def shards_of(folder):
    return [name for name in names_in(folder) if name.endswith("_states.pt")]


def optimizer_shards(names):
    return [name for name in names if OPTIMIZER.match(name)]


def end(save):
    """No file is the last: the folder's own time is that of the newest shard."""
    return save.path
