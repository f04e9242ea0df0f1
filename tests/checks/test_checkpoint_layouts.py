"""Checkpoints of every framework: which are whole, what is wrong with the others and why."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from brctl.model.jobs.checkpoint_layouts import CHECKPOINT_NAMES, checkpoint_names
from tests.checks import saves
from tests.checks.probes import Read, read

pytest.importorskip("torch")

pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore:torch.distributed is disabled:UserWarning"),
]
PATTERN = "ckpt_{step}.pt"
Damage = Callable[[Path], object]


def look(root: Path, layout: str, pattern: str = "", **told: object) -> Read:
    pattern = pattern or (PATTERN if layout == "torch-save" else "")
    names = checkpoint_names(layout, pattern)
    where = {"checkpoint_dir": str(root), "layout": layout, "names": names}
    return read("job.checkpoint", {**where, **told})


def value(found: Read, name: str, path: Path) -> object:
    return found.values.get((f"job.checkpoint.{name}", f"ckpt:{path.name}"))


def whole(found: Read) -> list[int]:
    """Steps of the whole ones, newest first."""
    complete = {s for (name, s), v in found.values.items() if name.endswith(".complete") and v}
    steps = {s: v for (name, s), v in found.values.items() if name.endswith(".step")}
    return [int(steps[s]) for s in steps if s in complete]


def damaged(root: Path, kind: str, damage: Damage, *, newest: bool = True) -> tuple[Read, Path]:
    """Two checkpoints of one kind, of which one was damaged."""
    layout, make = saves.MAKERS[kind]
    both = [make(root, 100), make(root, 200)]
    damage(both[newest])
    return look(root, layout), both[newest]


def test_every_layout_has_a_row_here() -> None:
    assert {layout for layout, _ in saves.MAKERS.values()} | {"torch-dcp"} == set(CHECKPOINT_NAMES)


@pytest.mark.parametrize("kind", saves.MAKERS)
def test_what_a_framework_saved_is_whole_and_has_its_step(kind: str, tmp_path: Path) -> None:
    """The step is that of the name, every part is counted, every checksum holds."""
    layout, make = saves.MAKERS[kind]
    make(tmp_path, 100)
    newest = make(tmp_path, 200)
    found = look(tmp_path, layout, verify=True)
    assert set(whole(found)) == {100, 200}
    assert whole(found)[0] == 200
    assert value(found, "problem", newest) is None
    assert value(found, "bad_items", newest) == 0
    size = sum(f.stat().st_size for f in ([newest] if newest.is_file() else newest.rglob("*")))
    assert 0 < int(str(value(found, "bytes", newest))) <= size


def first(folder: Path, shape: str) -> Path:
    return sorted(folder.glob(shape))[0]


def cut(shape: str) -> Damage:
    """The last byte of the first file of this shape is gone."""

    def damage(save: Path) -> None:
        path = first(save, shape) if save.is_dir() else save
        os.truncate(path, path.stat().st_size - 1)

    return damage


def emptied(shape: str) -> Damage:
    return lambda save: os.truncate(first(save, shape) if save.is_dir() else save, 0)


def removed(shape: str) -> Damage:
    return lambda save: first(save, shape).unlink()


def reindexed(save: Path) -> None:
    """The index places a tensor in a shard that lacks it."""
    path = save / "model.safetensors.index.json"
    index = json.loads(path.read_text())
    index["weight_map"]["a"] = "model-00002-of-00002.safetensors"
    path.write_text(json.dumps(index))


def of_another_step(save: Path) -> None:
    (save / "trainer_state.json").write_text('{"global_step": 100}')


def without_optimizer_shards_of_the_last_rank(save: Path) -> None:
    sorted(save.glob("*optim_states.pt"))[-1].unlink()


DAMAGES = [
    ("megatron", cut("*/model_optim_rng.pt"), "mp_rank_00_000/model_optim_rng.pt (cut off"),
    ("megatron", emptied("*/model_optim_rng.pt"), "mp_rank_00_000/model_optim_rng.pt (empty"),
    ("megatron", removed("*/model_optim_rng.pt"), "mp_rank_00_000/model_optim_rng.pt (missing"),
    ("megatron", removed("*/distrib_optim.pt"), "mp_rank_00_000/distrib_optim.pt (missing"),
    ("megatron", lambda s: shutil.rmtree(s / "mp_rank_01_001"), "mp_rank_01_001/"),
    ("megatron torch_dist", cut("*.distcp"), "__0_0.distcp"),
    ("megatron torch_dist", removed("common.pt"), "common.pt (missing"),
    ("megatron torch_dist", removed(".metadata"), "no .metadata: it was not finished"),
    ("deepspeed", cut("mp_rank*"), "mp_rank_00_model_states.pt (cut off"),
    ("deepspeed", removed("mp_rank*"), "mp_rank_00_model_states.pt (missing"),
    ("deepspeed", removed("*rank_0_*"), "bf16_zero_pp_rank_0_mp_rank_00_optim_states.pt (missing"),
    ("deepspeed", without_optimizer_shards_of_the_last_rank, "rank_3_mp_rank_00_optim_states.pt"),
    ("deepspeed", emptied("*rank_2_*"), "bf16_zero_pp_rank_2_mp_rank_00_optim_states.pt (empty"),
    ("deepspeed ZeRO-3", removed("*_3_*model*"), "zero_pp_rank_3_mp_rank_00_model_states.pt (miss"),
    ("lightning", cut(""), "epoch=0-step=200.ckpt (cut off"),
    ("lightning", emptied(""), "epoch=0-step=200.ckpt (empty"),
    ("lightning FSDP", removed("meta.pt"), "meta.pt (missing"),
    ("hf-trainer", cut("model-00001*"), "model-00001-of-00002.safetensors (cut off"),
    ("hf-trainer", removed("model-00002*"), "model-00002-of-00002.safetensors (missing"),
    ("hf-trainer", emptied("*index.json"), "model.safetensors.index.json (empty"),
    ("hf-trainer", reindexed, "names a in model-00002-of-00002.safetensors, which lacks it"),
    ("hf-trainer", removed("trainer_state.json"), "no trainer_state.json: it was not finished"),
    ("hf-trainer", of_another_step, "trainer_state.json is of step 100"),
    ("hf-trainer", removed("optimizer.pt"), "optimizer.pt (missing"),
    ("hf-trainer", cut("optimizer.pt"), "optimizer.pt (cut off"),
    ("torch-save", cut(""), "ckpt_200.pt (cut off"),
    ("torch-save", emptied(""), "ckpt_200.pt (empty"),
]


@pytest.mark.parametrize(
    ("kind", "damage", "why"), DAMAGES, ids=[f"{kind}: {why[:40]}" for kind, _, why in DAMAGES]
)
def test_a_damaged_newest_is_passed_over_with_its_reason(
    kind: str, damage: Damage, why: str, tmp_path: Path
) -> None:
    """The one before is the newest whole one, and what is wrong with the newest is said."""
    found, save = damaged(tmp_path, kind, damage)
    assert value(found, "complete", save) is False
    assert why in str(value(found, "problem", save))
    assert whole(found)[0] == 100 if kind != "lightning" else whole(found)[0] == 200


@pytest.mark.parametrize("kind", ["megatron", "deepspeed", "lightning", "hf-trainer", "torch-save"])
def test_a_flipped_bit_is_found_when_asked(kind: str, tmp_path: Path) -> None:
    """torch.save keeps a checksum of every member."""
    layout, make = saves.MAKERS[kind]
    save = make(tmp_path, 100)
    path = save if save.is_file() else first(save, "**/*.pt")
    raw = bytearray(path.read_bytes())
    raw[raw.index(b"\0\0\x80\x3f\0\0\0\x40")] ^= 1
    path.write_bytes(raw)
    assert value(look(tmp_path, layout), "complete", save) is True
    found = look(tmp_path, layout, verify=True)
    assert (value(found, "complete", save), value(found, "bad_items", save)) == (False, 1)
    assert "(checksum)" in str(value(found, "problem", save))


@pytest.mark.parametrize("kind", ["megatron", "megatron torch_dist", "deepspeed"])
def test_what_is_newer_than_the_pointer_was_not_finished(kind: str, tmp_path: Path) -> None:
    """All shards may be there: the framework itself would load the one before; it is no damage."""
    layout, make = saves.MAKERS[kind]
    make(tmp_path, 100)
    pointer = next(path for path in tmp_path.iterdir() if path.is_file())
    before = pointer.read_text()
    newest = make(tmp_path, 200)
    pointer.write_text(before)
    found = look(tmp_path, layout)
    assert whole(found) == [100]
    assert f"{pointer.name} still names" in str(value(found, "problem", newest))
    assert value(found, "missing_files", newest) is None


@pytest.mark.parametrize("text", ["", "999", "global_step999", "\0\xff"])
@pytest.mark.parametrize("kind", ["megatron", "deepspeed"])
def test_a_stale_pointer_is_said_and_hides_no_checkpoint(
    kind: str, text: str, tmp_path: Path
) -> None:
    """A pointer to what is gone, an empty and a garbled one."""
    layout, make = saves.MAKERS[kind]
    make(tmp_path, 100)
    pointer = next(path for path in tmp_path.iterdir() if path.is_file())
    pointer.write_text(text)
    found = look(tmp_path, layout)
    assert whole(found) == [100]
    assert "which is not here" in str(found.values["job.checkpoint.pointer_problem", ""])


def test_a_save_in_progress_without_a_pointer_is_no_damage(tmp_path: Path) -> None:
    """The newest lacks its end, and nothing counts against the storage; an older one is damaged."""
    found, newest = damaged(tmp_path, "torch-save", cut(""))
    assert value(found, "short_files", newest) is None
    found, older = damaged(tmp_path / "b", "torch-save", cut(""), newest=False)
    assert value(found, "short_files", older) == 1


def test_a_job_that_was_resized_keeps_its_checkpoints(tmp_path: Path) -> None:
    """Fewer shards than before are whole when the job says so many ranks, or another has them."""
    before = saves.deepspeed(tmp_path, 100)
    after = saves.deepspeed(tmp_path, 200)
    for rank in (2, 3):
        (after / f"bf16_zero_pp_rank_{rank}_mp_rank_00_optim_states.pt").unlink()
    assert whole(look(tmp_path, "deepspeed", world_size=2)) == [200, 100]
    assert whole(look(tmp_path, "deepspeed", world_size=4)) == [100]
    shutil.copytree(after, tmp_path / "global_step150")
    assert whole(look(tmp_path, "deepspeed", world_size=4)) == [200, 150, 100]
    shutil.rmtree(before)


def test_the_only_checkpoint_lacks_what_the_job_has_ranks_for(tmp_path: Path) -> None:
    """Nothing else to compare with: the job's own size tells."""
    save = saves.deepspeed(tmp_path, 100)
    (save / "bf16_zero_pp_rank_3_mp_rank_00_optim_states.pt").unlink()
    found = look(tmp_path, "deepspeed", world_size=4)
    assert "missing: 3 of 4 are there" in str(value(found, "problem", save))


def test_one_file_that_is_overwritten_tells_its_step_itself(tmp_path: Path) -> None:
    """NanoGPT's ckpt.pt; the pickle is read, none of it is followed."""
    saves.write_torch(tmp_path / "ckpt.pt", iter_num=4250)
    assert whole(look(tmp_path, "torch-save", "ckpt.pt")) == [4250]


def test_a_file_whose_step_nobody_can_read_is_counted_and_named(tmp_path: Path) -> None:
    (tmp_path / "ckpt.pt").write_bytes(b"PK\3\4 and then the power went")
    found = look(tmp_path, "torch-save", "ckpt.pt")
    assert found.values["job.checkpoint.count", ""] == 1
    assert found.notes[0].startswith("no step is known of ckpt.pt: cut off")


def test_torch_saves_old_format_is_unknown_and_not_whole(tmp_path: Path) -> None:
    """It has neither an end nor checksums, so nobody can tell."""
    import torch

    path = tmp_path / "ckpt_100.pt"
    torch.save({"w": torch.ones(3)}, path, _use_new_zipfile_serialization=False)
    found = look(tmp_path, "torch-save")
    assert value(found, "complete", path) is None
    assert str(value(found, "problem", path)).startswith("not known: ")


def test_last_as_a_link_is_a_pointer(tmp_path: Path) -> None:
    """A link is no second checkpoint, and one that leads nowhere is said."""
    path = saves.write_torch(tmp_path / "epoch=1-step=300.ckpt", global_step=300)
    (tmp_path / "last.ckpt").symlink_to(path.name)
    found = look(tmp_path, "lightning")
    assert whole(found) == [300]
    assert found.values["job.checkpoint.pointer", ""] == path.name
    path.unlink()
    found = look(tmp_path, "lightning")
    assert "last.ckpt names epoch=1-step=300.ckpt, which is not here" in str(
        found.values["job.checkpoint.pointer_problem", ""]
    )


def test_a_checkpoint_on_another_file_system_counts(tmp_path: Path) -> None:
    """Its folder is a link with a step in its name."""
    saves.hf_trainer(tmp_path / "far", 100)
    (tmp_path / "near").mkdir()
    (tmp_path / "near" / "checkpoint-100").symlink_to(tmp_path / "far" / "checkpoint-100")
    assert whole(look(tmp_path / "near", "hf-trainer")) == [100]


def test_an_index_or_indices_from_outside_lead_nowhere(tmp_path: Path) -> None:
    """Paths in an index, and a shard whose number would fill memory."""
    save = saves.hf_trainer(tmp_path, 100)
    evil = {"weight_map": {"a": "../../etc/passwd"}}
    (save / "model.safetensors.index.json").write_text(json.dumps(evil))
    assert "lies outside" in str(value(look(tmp_path, "hf-trainer"), "problem", save))
    huge = saves.deepspeed(tmp_path, 100)
    saves.write_torch(huge / "bf16_zero_pp_rank_99999999_mp_rank_00_optim_states.pt")
    assert value(look(tmp_path, "deepspeed"), "complete", huge) is False
