"""`brctl ckpt latest`: what a restart would use, in the layout of the job's framework."""

import json
import os
from pathlib import Path

import pytest

from brctl.cli.commands import ckpt as ckpt_module
from brctl.training.loader_positions import save_position
from tests.checks import saves
from tests.cli.test_run import call
from tests.fakes.site_files import local_config, write_site

pytest.importorskip("torch")
pytestmark = pytest.mark.torch

INVENTORY = """\
apiVersion: brctl.dev/v1
kind: Inventory
nodes: {n1: {address: 127.0.0.1, python: PYTHON}}
"""
JOB = """\
apiVersion: brctl.dev/v1
kind: Job
name: demo
nodes: n1
ranks_per_node: 4
launch: [train]
checkpoint: {directory: FOLDER/ckpt, layout: deepspeed}
logs: FOLDER/logs
progress: {}
"""


def test_the_newest_whole_one_is_named_and_so_is_why_others_are_not(tmp_path: Path) -> None:
    """A shard of the newest is cut, and DeepSpeed itself would load just that one."""
    config = write_site(tmp_path, local_config("job"), INVENTORY, job=JOB)
    older, newest = (saves.deepspeed(tmp_path / "ckpt", step) for step in (100, 200))
    shard = newest / "mp_rank_00_model_states.pt"
    os.truncate(shard, shard.stat().st_size // 2)
    code, text = call(ckpt_module, config, "latest", "-o", "json")
    document = json.loads(text)
    assert code == 0
    assert (document["latest"]["path"], document["layout"]) == (str(older), "deepspeed")
    broken = next(c for c in document["checkpoints"] if c["step"] == 200)
    assert broken["problem"].startswith("mp_rank_00_model_states.pt (cut off")
    assert document["remarks"][0].startswith("the framework itself would load global_step200: mp_")


def test_a_pointer_that_leads_nowhere_is_said(tmp_path: Path) -> None:
    """The directory has a whole checkpoint that the framework would not find."""
    config = write_site(tmp_path, local_config("job"), INVENTORY, job=JOB)
    whole = saves.deepspeed(tmp_path / "ckpt", 100)
    (tmp_path / "ckpt" / "latest").write_text("global_step300")
    code, text = call(ckpt_module, config, "latest")
    assert code == 0
    assert f"restart from {whole}" in text
    assert "latest names global_step300, which is not here" in text


@pytest.mark.parametrize(
    ("newest", "why"),
    [
        ({0: 10, 1: 5}, "the loader of rank 1 is at batch 5, and was at 5 in global_step100"),
        ({0: 10}, "loader/rank-00001.json is missing (1 of 2 loader states)"),
        ({0: 10, 1: 10}, ""),
    ],
)
def test_a_checkpoint_whose_loaders_stood_still_or_are_missing_is_passed_over(
    tmp_path: Path, newest: dict[int, int], why: str
) -> None:
    """Its weights are whole: a restart from it would train on the same samples again."""
    config = write_site(tmp_path, local_config("job"), INVENTORY, job=JOB)
    older, newer = (saves.deepspeed(tmp_path / "ckpt", step) for step in (100, 200))
    for folder, positions in ((older, {0: 5, 1: 5}), (newer, newest)):
        for rank, position in positions.items():
            save_position(folder, rank, 2, {"position": position})
    code, text = call(ckpt_module, config, "latest", "-o", "json")
    document = json.loads(text)
    found = next(c for c in document["checkpoints"] if c["step"] == 200)
    assert code == 0
    assert document["latest"]["path"] == str(older if why else newer)
    assert str(found["problem"] or "").startswith(why)
    assert bool(found["problem"]) is bool(why)


def test_a_wrong_sum_of_samples_is_warned_of_and_the_checkpoint_stays_usable(
    tmp_path: Path,
) -> None:
    """Nothing stops: whether the samples matter is a person's to say."""
    config = write_site(tmp_path, local_config("job"), INVENTORY, job=JOB)
    save = saves.deepspeed(tmp_path / "ckpt", 100)
    for rank, samples in enumerate((400, 388)):
        place = {"position": 100, "samples": samples, "global_batch": 8, "since_step": 0}
        save_position(save, rank, 2, place)
    code, text = call(ckpt_module, config, "latest", "-o", "json")
    document = json.loads(text)
    said = "2 of 2 loader states, 788 samples and not 100 x 8: a restart from it repeats 12"
    assert (code, document["latest"]["path"]) == (0, str(save))
    assert document["latest"]["loader"] == said
    assert document["remarks"] == [f"WARNING {save.name}: {said}"]
