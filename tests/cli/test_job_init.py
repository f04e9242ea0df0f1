"""`brctl job init`: a job.yaml from processes that run, with no secret and nothing overwritten."""

import io
import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path

import pytest
import yaml

from brctl.cli.commands import job as job_module
from brctl.cli.invocation import read_common
from brctl.engine.application.new_job import JobFacts, RankProcess, SavesFound, new_job
from brctl.library.jobs import load_job
from brctl.model.errors import UnavailableError, UsageError
from tests.fakes.site_files import local_config, write_site

INVENTORY = """\
apiVersion: brctl.dev/v1
kind: Inventory
nodes:
  n1: {address: 127.0.0.1, python: PYTHON}
"""
SCRIPT = "import os, time\nos.write(int(os.environ['READY']), b'.')\ntime.sleep(600)\n"
NAME = f"pretrain-{os.getpid()}.py"
"""No other worker's: the test looks at all processes of this machine."""

MATCH = f"{NAME} --output_dir runs"
SECRET = "hunter2hunter2"  # noqa: S105 - nobody's


@pytest.fixture
def site(tmp_path: Path) -> Path:
    return write_site(tmp_path, local_config(), INVENTORY)


@pytest.fixture
def ranks(tmp_path: Path) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Two ranks of a job that somebody else started, with output, saves and a secret."""
    work = tmp_path / "work"
    for step in (100, 200):
        (work / "runs" / f"checkpoint-{step}").mkdir(parents=True)
    (work / NAME).write_text(SCRIPT)
    arguments = ["--output_dir", "runs", "--tensor-model-parallel-size", "2", "--hf-token", SECRET]
    ours, theirs = os.pipe()
    started = []
    for rank in range(2):
        environment = {
            "PATH": os.environ["PATH"], "RANK": str(rank), "WORLD_SIZE": "2",
            "LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": "2", "MASTER_PORT": "29777",
            "NCCL_DEBUG": "WARN", "WANDB_API_KEY": SECRET, "SLURM_JOB_ID": f"77{os.getpid()}",
            "HOSTNAME": f"pod-{os.getpid()}", "READY": str(theirs),
        }  # fmt: skip
        with (tmp_path / "out.log").open("ab") as log:
            started.append(
                subprocess.Popen(
                    [sys.executable, "-u", NAME, *arguments], cwd=work, stdout=log,
                    stderr=log, env=environment, pass_fds=[theirs],
                )
            )  # fmt: skip
    os.close(theirs)
    # A byte of each rank: its command line and environment are in place by then.
    for _ in started:
        assert os.read(ours, 1) == b"."
    os.close(ours)
    yield started
    for process in started:
        process.kill()
        process.wait()


def init(site: Path, *argv: str) -> tuple[int, str]:
    target = str(site.parent / "job.yaml")
    words = ["--config", str(site), *argv, "--file", target]
    invocation, rest = read_common(words)
    out = io.StringIO()
    with redirect_stdout(out):
        code = job_module.app(args=["init", *rest], standalone_mode=False, obj=invocation)
    return int(code or 0), out.getvalue()


def program(folder: Path, name: str, text: str) -> None:
    """A command on the PATH that says this and exits 0."""
    (folder / "said").write_text(text)
    (folder / name).write_text(f"#!/bin/sh\ncat {folder}/said\n")
    (folder / name).chmod(0o755)


def found_all(site: Path) -> None:
    """What job.yaml must say of the two ranks, however they were found."""
    job, work = load_job(site.parent / "job.yaml"), site.parent / "work"
    assert (job.nodes, job.ranks_per_node, dict(job.axes)) == (("n1",), 2, {"tp": 2})
    assert job.launch[:3] == (sys.executable, "-u", NAME)
    assert (str(job.checkpoint_dir), job.checkpoint_layout) == (f"{work}/runs", "hf-trainer")
    assert job.log_progress is not None
    assert job.log_progress.log == f"{site.parent}/out.log"
    assert (str(job.workdir), job.master_port) == (str(work), 29777)
    assert dict(job.environment) == {"NCCL_DEBUG": "WARN"}


def test_processes_on_a_node_become_a_job(site: Path, ranks: list[subprocess.Popen[bytes]]) -> None:
    """Command, ranks, output, checkpoints and their layout; the file is private."""
    code, text = init(site, "-w", "n1", "--match", MATCH)
    assert "2 names of hf-trainer lie in" in text
    found_all(site)
    written = site.parent / "job.yaml"
    assert stat.S_IMODE(written.stat().st_mode) == 0o600
    assert code == 1  # the secret of the command line has to be filled in


def test_no_secret_is_copied_or_shown(site: Path, ranks: list[subprocess.Popen[bytes]]) -> None:
    """Neither from the environment nor from the command line; what was left out is said."""
    _, text = init(site, "-w", "n1", "--match", MATCH, "-o", "json")
    document = json.loads(text)
    written = (site.parent / "job.yaml").read_text()
    assert SECRET not in written + text
    assert "WANDB" not in written
    assert any("looks like a secret" in line for line in document["unknown"])
    assert any("variables were not copied" in line for line in document["guessed"])


def test_a_process_by_its_number(site: Path, ranks: list[subprocess.Popen[bytes]]) -> None:
    """One rank of two: the file says that the other was not seen on the way."""
    init(site, "-w", "n1", "--pid", str(ranks[1].pid))
    assert load_job(site.parent / "job.yaml").ranks_per_node == 2


def test_a_slurm_job_by_its_number(
    site: Path, ranks: list[subprocess.Popen[bytes]], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Slurm says name, nodes and output; the nodes say the rest."""
    number = f"77{os.getpid()}"
    said = f"JobId={number} JobName=llm NodeList=n1 BatchHost=n1 StdOut={tmp_path}/out.log X=(null)"
    program(tmp_path, "scontrol", said)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    init(site, "--slurm", number)
    found_all(site)
    assert load_job(site.parent / "job.yaml").name == "llm"


def test_a_kubernetes_job_by_its_name(
    site: Path, ranks: list[subprocess.Popen[bytes]], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """The pods say the nodes; the processes of a pod know its name."""
    pod = {"metadata": {"name": f"pod-{os.getpid()}"}, "spec": {"nodeName": "n1"}}
    program(tmp_path, "kubectl", json.dumps({"metadata": {}, "items": [pod]}))
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    init(site, "--k8s", "llm")
    found_all(site)


def test_a_file_that_is_there_stays(site: Path) -> None:
    (site.parent / "job.yaml").write_text("mine")
    with pytest.raises(UsageError, match="is there already"):
        init(site, "-w", "n1", "--match", "anything")
    assert (site.parent / "job.yaml").read_text() == "mine"


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        ((), "0 were named"),
        (("--slurm", "1", "--match", "x"), "2 were named"),
        (("--match", "x"), "give -w NODES"),
        (("-w", "n1", "--match", "no such process at all"), "no process of this job was found"),
        (("--slurm", "1;reboot"), "not the number of a Slurm job"),
        (("--k8s", "../secrets"), "not the name of a Job or a pod"),
    ],
)
def test_a_job_that_is_not_named_well_is_an_error(
    argv: tuple[str, ...], expected: str, site: Path
) -> None:
    with pytest.raises((UsageError, UnavailableError), match=expected):
        init(site, *argv)
    assert not (site.parent / "job.yaml").exists()


def process(node: str, rank: int | None, **environment: str) -> RankProcess:
    argv = ("python", "train.py", "--pipeline-model-parallel-size=2")
    return RankProcess(node, 7, rank, argv, "/work", environment, 3, "")


def test_ranks_nobody_saw_are_named() -> None:
    """Half of the job runs on nodes that were not asked, and its output goes into a pipe."""
    sized = {"WORLD_SIZE": "8", "LOCAL_WORLD_SIZE": "2"}
    facts = JobFacts((process("n2", 0, **sized), process("n1", 2, **sized)), (), ("n2", "n1"))
    made = new_job(facts)
    text = " ".join(made.unknown)
    assert "the job has 8 ranks, 2 nodes have 2 each" in text
    assert "not all ranks were found" not in text or "n1" in text
    assert "its output goes into a pipe" in text
    assert made.body["nodes"] == ["n2", "n1"]
    assert made.body["parallel"] == {"order": ["dp", "pp"], "dp": 2, "pp": 2}
    assert yaml.safe_load(made.text())["name"] == "train"


def test_a_named_directory_beats_a_fuller_one() -> None:
    """Old checkpoints in the working directory are another job's."""
    saves = (
        SavesFound("/work/old", False, {"torch-dcp": 9}),
        SavesFound("/work/new", True, {"megatron": 1, "torch-dcp": 0}),
    )
    made = new_job(JobFacts((process("n1", 0),), saves, ("n1",)))
    assert made.body["checkpoint"] == {"directory": "/work/new", "layout": "megatron"}
