"""Steps and losses of jobs that write no progress file, from what their frameworks print."""

import os
import time
from pathlib import Path

import pytest

from brctl.evidence.job.status import compared, read_job
from brctl.evidence.logs.progress.formats import AUTO, FORMATS, patterns_of
from brctl.library.checks import site_checks
from brctl.library.jobs import load_job
from brctl.library.parameters import fill_parameters
from brctl.model.command import Outcome
from brctl.model.errors import ConfigError
from brctl.model.inventory import Node
from brctl.model.jobs.job import Job
from brctl.model.jobs.job_status import JobStatus
from brctl.model.pattern_cost import why_costly
from brctl.model.sweeps.report import CheckResult, Measurement, NodeReport, ProbeStatus
from tests.checks.probes import Read, read

ROWS: dict[str, tuple[str, int, float | None]] = {
    "megatron": (
        " [2024-05-13 07:12:{s:02d}] iteration {n:8d}/  500000 | consumed samples: 640 | elapsed"
        " time per iteration (ms): 500.2 | learning rate: 1.5E-04 | global batch size: 64 |"
        " lm loss: 2.31E+00 | loss scale: 1.0 | grad norm: 0.6 |",
        2,
        2.31,
    ),
    "deepspeed": (
        "[2024-05-13 07:12:{s:02d},123] [INFO] [logging.py:96:log_dist] [Rank 0] step={n},"
        " skipped=0, lr=[0.0001], mom=[[0.9, 0.95]]",
        2,
        None,
    ),
    "nemo": (
        "Training epoch 0, iteration {n}/99 | lr: 0.0001 | global_batch_size: 32 | global_step: {n}"
        " | reduced_train_loss: 2.31 | train_step_timing in s: 0.5",
        2,
        2.31,
    ),
    "lightning": (
        "Epoch 3:  12%|█▏        | {n}/100 [00:30<03:40, 2.00it/s, v_num=0, train_loss=2.31]",
        302,
        2.31,
    ),
    "torchtitan": (
        "\x1b[32m[titan] 2024-05-13 07:12:{s:02d},001 - root - INFO - \x1b[36mstep: {n:2d}  "
        "\x1b[32mloss:  2.3100  \x1b[33mmemory: 40.1GiB(42%)  tps: 3,012",
        2,
        2.31,
    ),
    "nanogpt": ("iter {n}: loss 2.3100, time 500.12ms, mfu 31.20%", 2, 2.31),
    "hf-trainer": (
        " 10%|█         | {n}/500 [00:30<04:30,  2.00it/s]\n"
        "{{'loss': 2.31, 'grad_norm': 0.5, 'learning_rate': 5e-05, 'epoch': 0.1}}",
        2,
        2.31,
    ),
    "plain": ("step {n} loss 2.31 lr 0.001", 2, 2.31),
}
"""A line of each format with {n} its step, {s} its second; the step it means at n=2; its loss."""


def write_rows(path: Path, form: str, count: int, after: str = "") -> None:
    rows = [ROWS[form][0].format(n=n, s=n % 60) for n in range(1, count + 1)]
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(["starting", *rows, *([after] if after else [])]) + "\n")


def job_yaml(folder: Path, progress: str) -> Job:
    path = folder / "job.yaml"
    path.write_text(
        "apiVersion: brctl.dev/v1\nkind: Job\nname: demo\nnodes: n1\nlaunch: [python, train.py]\n"
        f"checkpoint: {{directory: /ckpt}}\nlogs: {folder}/logs\nprogress: {progress}\n"
    )
    path.chmod(0o600)
    return load_job(path)


def look(job: Job) -> Read:
    told = fill_parameters(site_checks()["job.ranks"], Node("n1", "n1"), job)
    return read("job.ranks", told)


def status_of(job: Job) -> JobStatus:
    found = look(job)
    rows = tuple(Measurement(name, subject, v) for (name, subject), v in found.values.items())
    result = CheckResult("job.ranks", ProbeStatus.MEASURED, rows)
    return read_job(job, [NodeReport("n1", Outcome.ANSWERED, (result,))])


def rank_log(folder: Path) -> Path:
    return folder / "logs" / "rank-00000.log"


def test_every_format_has_a_line_here_and_costs_no_time() -> None:
    """A hostile log line may not hold up a node."""
    assert set(ROWS) == set(FORMATS)
    assert {p: why for ps in FORMATS.values() for p in ps if (why := why_costly(p))} == {}


@pytest.mark.parametrize("form", ROWS)
def test_a_frameworks_rows_are_known_by_themselves(form: str, tmp_path: Path) -> None:
    """The automatic choice says which format it took, and finds step, loss and age."""
    write_rows(rank_log(tmp_path), form, 2)
    found = look(job_yaml(tmp_path, "{format: auto}"))
    assert found.values["job.rank.progress_format", "rank:0"] == form
    assert found.values["job.rank.step", "rank:0"] == ROWS[form][1]
    assert found.values.get(("job.steps.loss", "last")) == ROWS[form][2]


@pytest.mark.parametrize("form", ["megatron", "lightning", "hf-trainer", "nanogpt", "nemo"])
def test_rows_that_tell_their_time_give_the_rate(form: str, tmp_path: Path) -> None:
    """Half a second a step, whatever unit the framework prints."""
    write_rows(rank_log(tmp_path), form, 8)
    history = status_of(job_yaml(tmp_path, "{}")).history
    assert history.step_s == pytest.approx(0.5, rel=0.01)


def test_rows_with_dates_give_the_rate_too(tmp_path: Path) -> None:
    """DeepSpeed prints no step time: two rows tell it."""
    write_rows(rank_log(tmp_path), "deepspeed", 8)
    assert status_of(job_yaml(tmp_path, "{}")).history.step_s == pytest.approx(1.0)


def test_a_fresh_row_is_progress_and_an_old_one_a_stall(tmp_path: Path) -> None:
    """Nothing follows the row, so the file's time is the row's."""
    job, log = job_yaml(tmp_path, "{}"), rank_log(tmp_path)
    write_rows(log, "nanogpt", 5)
    assert (status_of(job).stalled, status_of(job).step) == (False, 5)
    os.utime(log, (time.time() - 300,) * 2)
    assert status_of(job).stalled is True


def test_chatter_after_the_last_step_is_no_progress(tmp_path: Path) -> None:
    """A watchdog that goes on complaining keeps the file new; only a later look can tell."""
    job = job_yaml(tmp_path, "{}")
    write_rows(rank_log(tmp_path), "nanogpt", 5, after="still waiting for rank 3")
    now = status_of(job)
    assert (now.step, now.stalled) == (5, None)
    assert compared(now, 5, 20.0).stalled is None
    assert compared(now, 5, 90.0).stalled is True
    assert compared(now, 4, 20.0).stalled is False
    assert compared(now, 4, 900.0).stalled is None


def test_a_date_in_the_row_beats_chatter(tmp_path: Path) -> None:
    """Megatron's rows carry their time: the stall is certain at the first look."""
    job = job_yaml(tmp_path, "{}")
    write_rows(rank_log(tmp_path), "megatron", 5, after="still waiting for rank 3")
    old = time.strftime("%Y-%m-%d %H:%M:", time.localtime(time.time() - 610))
    log = rank_log(tmp_path)
    log.write_text(log.read_text().replace("2024-05-13 07:12:", old))
    assert status_of(job).stalled is True


def test_nemos_bar_is_exact_where_its_step_is_rounded(tmp_path: Path) -> None:
    """The older release prints `global_step=2e+3` beside a bar that counts."""
    rank_log(tmp_path).parent.mkdir()
    row = (
        "Epoch 1: :  47%|████▋     | {n}/1500 [06:19<07:13, reduced_train_loss=11.50,"
        " global_step=2e+3, consumed_samples=12288.0, train_step_timing in s=0.5]"
    )
    rank_log(tmp_path).write_text("\r".join(["up", *(row.format(n=n) for n in range(500, 506))]))
    status = status_of(job_yaml(tmp_path, "{}"))
    assert (status.step, status.progress_format) == (2005, "nemo")
    assert status.history.step_s == 0.5


def test_a_log_with_rare_rows_is_waited_for(tmp_path: Path) -> None:
    """A row every 100 steps of a second: two minutes without one are no stall, six are."""
    rank_log(tmp_path).parent.mkdir()
    rows = [f"iter {n * 100}: loss 2.31, time 1000.0ms, mfu 31%" for n in range(1, 6)]
    rank_log(tmp_path).write_text("\n".join(["up", *rows]) + "\n")
    job = job_yaml(tmp_path, "{}")
    os.utime(rank_log(tmp_path), (time.time() - 120,) * 2)
    assert status_of(job).stalled is False
    os.utime(rank_log(tmp_path), (time.time() - 360,) * 2)
    assert status_of(job).stalled is True


def test_a_date_of_another_zone_is_not_believed(tmp_path: Path) -> None:
    """A container in UTC on a node that is not: an hour is no stall, and not known either."""
    job, log = job_yaml(tmp_path, "{}"), rank_log(tmp_path)
    write_rows(log, "megatron", 1)
    zone = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(time.time() - 7200))
    log.write_text(log.read_text().replace("2024-05-13 07:12:01", zone))
    assert status_of(job).stalled is None


def test_a_loss_that_is_no_number_names_no_rank(tmp_path: Path) -> None:
    """The printed loss is everybody's."""
    log = rank_log(tmp_path)
    write_rows(log, "plain", 5)
    log.write_text(log.read_text() + "step 6 loss nan lr 0.001\n")
    status = status_of(job_yaml(tmp_path, "{}"))
    assert status.history.last is not None
    assert status.history.last.nonfinite == 1
    assert status.ranks[0].loss_finite is None


def test_steps_in_words_nobody_taught_are_found(tmp_path: Path) -> None:
    """Lines of one shape with a number that climbs, as the classifier of logs finds them."""
    rank_log(tmp_path).parent.mkdir()
    rows = [f"batches done: {n}, tokens/s 3012" for n in range(40, 50)]
    rank_log(tmp_path).write_text("\n".join(["hello", *rows]) + "\n")
    status = status_of(job_yaml(tmp_path, "{}"))
    assert (status.step, status.progress_format) == (49, "any shape")


def test_the_job_s_own_pattern_and_its_one_log(tmp_path: Path) -> None:
    """The newest file that the path with a wildcard names."""
    for name, step in (("slurm-1.out", 3), ("slurm-2.out", 9)):
        (tmp_path / name).write_text(f"## {step} done, cost=1.5\n")
    os.utime(tmp_path / "slurm-1.out", (1.0, 1.0))
    pattern = r"'## (?P<step>\d+) done, cost=(?P<loss>[\d.]+)'"
    job = job_yaml(tmp_path, f'{{log: "{tmp_path}/slurm-*.out", pattern: {pattern}}}')
    status = status_of(job)
    assert (status.step, status.progress_format, status.stalled) == (9, "pattern", False)
    assert status.history.last is not None
    assert status.history.last.loss == 1.5


@pytest.mark.parametrize(
    ("progress", "expected"),
    [
        ("{format: megatorn}", "did you mean 'megatron'?"),
        ("{pattern: 'loss (?P<loss>x)'}", "needs a group (?P<step>...)"),
        ("{pattern: '(?P<step>'}", "not a regular expression"),
        (r"{pattern: '(?P<step>\d+)((a+)+)+b'}", "takes for ever"),
        ("{log: train.out}", "'log' must be an absolute path"),
        ("{pattern: '(?P<step>x)', format: auto}", "exclude each other"),
        ("{file: /x}", "unknown key 'file'"),
    ],
)
def test_a_mistake_under_progress_is_named(progress: str, expected: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        job_yaml(tmp_path, progress)
    assert expected in str(caught.value)


def test_auto_sends_every_format() -> None:
    assert [name for name, _ in patterns_of(AUTO)] == list(FORMATS)
