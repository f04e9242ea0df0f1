"""job.yaml becomes a Job, or one error that names file and line."""

import re
from dataclasses import replace
from pathlib import Path, PurePosixPath

import pytest

from brctl.library.file_tables import LAYOUTS
from brctl.library.jobs import load_job, load_jobs, read_job
from brctl.library.strict_yaml import parse_document
from brctl.model.errors import ConfigError
from brctl.model.jobs.checkpoint_path import is_named_for
from brctl.model.jobs.job import Job, example_job

GOOD = """\
apiVersion: brctl.dev/v1
kind: Job
name: demo
nodes: n[1-4]
ranks_per_node: 2
parallel: {order: [tp, pp, dp], tp: 2, pp: 2, dp: 2}
launch: [python, -u, train.py]
environment: {OMP_NUM_THREADS: 1}
checkpoint: {directory: /ckpt, layout: torch-dcp}
logs: /logs
progress: /progress
stall_after: 20s
master_port: 29511
slurm: {partition: train, gres: "gpu:8", cpus-per-task: 12, exclusive: true}
"""


def read(text: str) -> Job:
    return read_job(parse_document(text.encode(), "job.yaml"))


def test_every_key_arrives_in_the_job(tmp_path: Path) -> None:
    """A complete file gives the job it describes."""
    (tmp_path / "job.yaml").write_text(GOOD)
    job = load_job(tmp_path / "job.yaml")
    assert job.nodes == ("n1", "n2", "n3", "n4")
    assert (job.world_size, job.axes) == (8, (("tp", 2), ("pp", 2), ("dp", 2)))
    assert job.checkpoint_dir == PurePosixPath("/ckpt")
    assert (job.stall_after_s, job.master_port) == (20.0, 29511)
    assert job.environment == {"OMP_NUM_THREADS": "1"}
    assert job.sbatch == {
        "partition": "train",
        "gres": "gpu:8",
        "cpus-per-task": "12",
        "exclusive": "",
    }
    assert job.origin == f"{tmp_path}/job.yaml:3"


def test_nodes_in_a_list_keep_their_order() -> None:
    """Rank order is what the file says, because a swap puts a spare into the middle of it."""
    assert read(GOOD.replace("n[1-4]", "[n3, n9, 'n[1-2]']")).nodes == ("n3", "n9", "n1", "n2")


def test_without_parallel_sizes_every_rank_is_a_replica() -> None:
    """A job without `parallel` is plain data parallelism."""
    text = GOOD.replace("parallel: {order: [tp, pp, dp], tp: 2, pp: 2, dp: 2}\n", "")
    assert read(text).axes == (("dp", 8),)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("name: demo", "name: ../demo", "job.yaml:3: '../demo': a job name has"),
        ("n[1-4]", "n[4-1]", "job.yaml:4: 'nodes'"),
        ("partition: train", "nodelist: n1", "job.yaml:14: unknown key 'nodelist' in slurm"),
        ("partition: train", "partition: ''", "job.yaml:14: 'partition' must be text"),
        ("n[1-4]", "[n1, n1, n2, n3]", "node 'n1' is listed twice"),
        ("ranks_per_node: 2", "ranks_per_node: 0", "job.yaml:5: 'ranks_per_node' must be at least"),
        ("ranks_per_node", "rank_per_node", "did you mean 'ranks_per_node'?"),
        ("dp: 2", "dp: 3", "job.yaml:6: tp 2 x pp 2 x dp 3 is not the world size of 8 ranks"),
        ("[tp, pp, dp]", "[tp, pp]", "'dp' is not in 'order'"),
        ("[tp, pp, dp]", "[tp, tp, dp]", "'order': 'tp'"),
        ("[python, -u, train.py]", "[]", "job.yaml:7: 'launch' needs a program"),
        ("[python, -u, train.py]", "python train.py", "'launch' must be a list"),
        ("OMP_NUM_THREADS: 1", "RANK: 1", "'RANK' is set by brctl"),
        ("OMP_NUM_THREADS: 1", "A-B: 1", "'A-B' is not the name"),
        ("OMP_NUM_THREADS: 1", "A: true", "'A' must be text"),
        ("directory: /ckpt", "directory: ckpt", "must be an absolute path"),
        ("layout: torch-dcp", "layout: torch-dpc", "did you mean 'torch-dcp'?"),
        ("layout: torch-dcp", "layout: torch-save", "'pattern' is needed with layout torch-save"),
        ("torch-dcp", "megatron, pattern: latest", "'latest' needs {step}: only its name"),
        ("torch-dcp", "torch-save, pattern: '../x-{step}'", "'../x-{step}' is a name with letters"),
        ("torch-dcp", "torch-save, pattern: '{step}{step}'", "'{step}{step}' has more than one"),
        ("stall_after: 20s", "stall_after: 20 sec", "job.yaml:12: 'stall_after'"),
        ("29511", "80", "'master_port' must be between"),
        ("kind: Job", "kind: Jobs", "kind must be 'Job'"),
    ],
)
def test_a_mistake_is_named_with_its_place(old: str, new: str, expected: str) -> None:
    """Every mistake is one ConfigError that quotes what is wrong."""
    with pytest.raises(ConfigError) as caught:
        read(GOOD.replace(old, new))
    assert expected in str(caught.value)


def test_two_files_cannot_declare_one_job(tmp_path: Path) -> None:
    """A name means one job; the second file is refused and names the first."""
    for name in ("a.yaml", "b.yaml"):
        (tmp_path / name).write_text(GOOD)
    with pytest.raises(ConfigError, match=r"b\.yaml: job 'demo' is already in .*a\.yaml:3"):
        load_jobs([tmp_path / "a.yaml", tmp_path / "b.yaml"])


def test_all_mistakes_of_a_file_are_named_at_once() -> None:
    """A line each, with the file and the line; whoever mends them needs one round."""
    text = (
        GOOD.replace("name: demo", "name: a b")
        .replace("launch:", "lunch:")
        .replace("directory: /ckpt, layout: torch-dcp", "directry: /ckpt, layout: dcp")
        .replace("OMP_NUM_THREADS: 1", "RANK: 1, 'a-b': 2")
        .replace("stall_after: 20s", "stall_after: soon")
        .replace("29511", "22")
        .replace("partition: train", "partitions: train")
        .replace("progress: /progress", "progress: here")
    )
    with pytest.raises(ConfigError) as caught:
        read(text)
    lines = str(caught.value).splitlines()
    words = (
        "'lunch'", "a job name", "'launch'", "'directry'", "'directory'", "'dcp'", "'RANK'",
        "'a-b'", "'stall_after'", "'master_port'", "'partitions'", "'progress' must be",
    )  # fmt: skip
    assert [word for word in words if not any(word in line for line in lines)] == []
    assert len(lines) == len(words)
    assert all(line.startswith("job.yaml:") for line in lines)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_is_accepted_and_names_its_checkpoints(layout: str) -> None:
    """What a probe is told of a layout is what the controller believes of its answers."""
    own = ", pattern: 'ckpt_{step}.pt'" if layout == "torch-save" else ""
    job = read(GOOD.replace("layout: torch-dcp", f"layout: {layout}{own}"))
    assert re.compile(job.checkpoint_names).groupindex == {"step": 1}
    assert (job.checkpoint_layout, job.model_parallel) == (layout, 4)


@pytest.mark.parametrize(
    ("layout", "pattern", "name", "step"),
    [
        ("torch-save", "ckpt.pt", "ckpt.pt", 7),
        ("torch-save", "{step}.pt", "7.pt", 7),
        ("torch-save", "model-*_{step}.pth", "model-a.b_007.pth", 7),
        ("lightning", "", "epoch=1-step=7.ckpt", 7),
        ("lightning", "", "epoch=01-val_loss=0.32-step=7-v1.ckpt", 7),
        ("lightning", "", "gpt--reduced_train_loss=3.1-step=7-consumed_samples=64.0-last", 7),
        ("lightning", "", "last.ckpt", 7),
        ("megatron", "", "iter_0000007", 7),
        ("torch-dcp", "checkpoint_{step}", "checkpoint_7", 7),
    ],
)
def test_a_name_tells_its_step(layout: str, pattern: str, name: str, step: int) -> None:
    """Or its content does; no other name is a checkpoint."""
    job = replace(example_job(), checkpoint_layout=layout, checkpoint_pattern=pattern)
    assert is_named_for(job, name, step)
    assert not is_named_for(job, f"{name}/..", step)
    assert not is_named_for(job, f"../{name}", step)
