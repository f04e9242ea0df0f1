"""`brctl sweep --cron` looks at the jobs: a stall is told once, and so is its end."""

import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from brctl.cli.commands import dx as dx_module
from brctl.cli.commands import status as status_module
from brctl.cli.commands import sweep as sweep_module
from brctl.engine.controller.clock import now
from brctl.engine.job.look_store import keep_look, last_look
from brctl.engine.job.looks import stopped_by
from brctl.engine.runs.run_files import PLAYBOOK, RunInputs, RunRequest, save_inputs, save_request
from brctl.engine.sweeps.trend_store import TrendStore
from brctl.journal.store import Journal, new_run
from brctl.library.shipped import shipped_dir
from brctl.model.jobs.job_look import JobLook, JobState
from brctl.model.runs.event import EventType
from brctl.view.job.looks import job_news_text, job_totals
from tests.cli.test_run import call
from tests.fakes.http_sink import http_sink
from tests.fakes.nodes import NOW
from tests.fakes.site_files import local_config, write_site

OWN = """\
apiVersion: brctl.dev/v1
kind: Inventory
defaults: {labels: {kernel_log: FOLDER/kmsg}}
nodes: {n1: {}, n2: {}}
"""
JOB = """\
apiVersion: brctl.dev/v1
kind: Job
name: demo
nodes: n[1-2]
launch: [train]
checkpoint: {directory: FOLDER/ckpt}
logs: FOLDER/logs
progress: FOLDER/progress
"""
CRON = ("--checks", "host.kernel", "--cron")


class Ranks:
    """The files by which two ranks are known, written as their launcher and their job do."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        for name in ("logs", "progress", "ckpt"):
            (folder / name).mkdir()
        dead = subprocess.Popen([sys.executable, "-c", ""])
        dead.wait()
        self._dead = dead.pid

    def run(self, step: int) -> None:
        """Both live, and made this step a moment ago."""
        for rank in (0, 1):
            self._write(f"logs/rank-0000{rank}.process.json", {"pid": os.getpid()})
            (self._folder / f"logs/rank-0000{rank}.exit.json").unlink(missing_ok=True)
            progress = {"step": step, "phase": "forward", "at": time.time()}
            self._write(f"progress/rank-0000{rank}.json", progress)

    def lose_one(self) -> None:
        """The second one ended with an error."""
        self._write("logs/rank-00001.process.json", {"pid": self._dead})
        self._write("logs/rank-00001.exit.json", {"exit_status": 1})

    def _write(self, name: str, content: object) -> None:
        (self._folder / name).write_text(json.dumps(content))


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Two nodes that are this machine, and a job on them."""
    (tmp_path / "kmsg").write_text("6,1,1000,-;eth0: link becomes ready\n")
    return write_site(tmp_path, local_config("job"), OWN, job=JOB)


@pytest.fixture
def ranks(tmp_path: Path) -> Ranks:
    return Ranks(tmp_path)


def test_a_job_that_takes_steps_is_no_news_and_its_step_is_known(
    config: Path, ranks: Ranks
) -> None:
    """Cron stays silent; bare `brctl` shows the step without asking a node."""
    ranks.run(step=7)
    assert call(sweep_module, config, *CRON) == (0, "")
    assert "demo on 2 nodes: step 7 (looked" in call(status_module, config)[1]


def test_two_looks_of_cron_are_the_rate_that_job_show_draws(config: Path, ranks: Ranks) -> None:
    for step in (7, 9):
        ranks.run(step=step)
        assert call(sweep_module, config, *CRON) == (0, "")
    found = TrendStore(config.parent / "state", "here").read(["demo"], now())
    rates = {s.metric: [v for v in s.values if v is not None] for s in found.series}
    assert set(rates) == {"steps_per_s"}
    assert all(rate > 0 for rate in rates["steps_per_s"])


def test_a_job_that_stands_is_told_once_with_its_verdict_and_so_is_its_end(
    config: Path, ranks: Ranks
) -> None:
    """The exit code says it at every look, the mail once."""
    ranks.run(step=7)
    ranks.lose_one()
    code, text = call(sweep_module, config, *CRON)
    assert code == 2
    assert "JOB  CRIT     demo  stands still for" in text
    assert "at step 7\n     V-" in text
    assert "brctl why V-" in text
    assert call(sweep_module, config, *CRON) == (2, "")
    ranks.run(step=8)
    assert call(sweep_module, config, *CRON) == (0, "JOB  OK       demo  step 8\n")


def test_a_diagnosis_by_hand_takes_no_news_of_a_job_from_cron(config: Path, ranks: Ranks) -> None:
    """Whoever was mailed that it stands is mailed that it goes on, though `dx` saw it first."""
    ranks.run(step=7)
    ranks.lose_one()
    call(sweep_module, config, *CRON)
    ranks.run(step=8)
    call(dx_module, config, "demo")
    assert call(sweep_module, config, *CRON) == (0, "JOB  OK       demo  step 8\n")
    assert call(sweep_module, config, *CRON) == (0, "")


def test_nagios_names_the_job_that_stands(config: Path, ranks: Ranks) -> None:
    ranks.run(step=7)
    ranks.lose_one()
    code, text = call(sweep_module, config, *CRON, "-o", "nagios")
    assert code == 2
    assert text.startswith("BRCTL CRITICAL - job demo stands still for")


def test_a_stall_without_a_sure_verdict_pages_once(
    config: Path, ranks: Ranks, tmp_path: Path
) -> None:
    """Somebody must look at a job that stands, also when nobody can say why it does."""
    ranks.run(step=7)
    ranks.lose_one()
    with http_sink() as server:
        sinks = f"notify: {{webhook: {{url: {server.url}}}}}\n"
        config.write_text(config.read_text() + sinks)
        call(sweep_module, config, *CRON)
        told = [b["notification"] for b in server.bodies]
        assert [(n["event"], n["state"], n["job"]) for n in told] == [
            ("verdict.high", "firing", "demo")
        ]
        call(sweep_module, config, *CRON)
        assert len(server.bodies) == 1
        ranks.run(step=8)
        call(sweep_module, config, *CRON)
        assert [b["notification"]["state"] for b in server.bodies] == ["firing", "resolved"]


def test_metrics_have_the_jobs_step_and_age(config: Path, ranks: Ranks, tmp_path: Path) -> None:
    ranks.run(step=7)
    call(sweep_module, config, *CRON, "--prom", str(tmp_path / "brctl.prom"))
    text = (tmp_path / "brctl.prom").read_text()
    assert 'brctl_job_step{context="here",job="demo"} 7\n' in text
    assert 'brctl_job_stalled{context="here",job="demo"} 0\n' in text
    assert 'brctl_job_progress_age_seconds{context="here",job="demo"} ' in text
    assert 'brctl_cordoned_nodes{context="here"} 0\n' in text
    assert 'brctl_open_verdicts{context="here",class=""} 0\n' in text


def write_log(folder: Path, step: int) -> None:
    """Rows without a time of their own, and a watchdog that goes on complaining."""
    rows = [f"step {n} loss 2.5" for n in range(step - 5, step + 1)]
    for rank in (0, 1):
        log = folder / "logs" / f"rank-0000{rank}.log"
        log.write_text("\n".join(["up", *rows, "still waiting"]) + "\n")


def test_a_job_that_only_logs_is_followed_from_look_to_look(
    config: Path, ranks: Ranks, tmp_path: Path
) -> None:
    """Nobody can tell at first; then steps went on, and then none came for too long."""
    path = tmp_path / "job.yaml"
    text = [line for line in path.read_text().splitlines() if not line.startswith("progress:")]
    path.write_text("\n".join([*text, "progress: {}"]) + "\n")
    write_log(tmp_path, 7)
    code, said = call(sweep_module, config, *CRON)
    assert (code, "JOB  UNKNOWN  demo" in said) == (3, True)
    write_log(tmp_path, 8)
    assert call(sweep_module, config, *CRON) == (0, "JOB  OK       demo  step 8\n")
    look = last_look(tmp_path / "state", "here", "demo")
    assert look is not None
    earlier = now() - timedelta(seconds=100)
    keep_look(tmp_path / "state", "here", replace(look, at=earlier, step_seen_at=earlier))
    code, said = call(sweep_module, config, *CRON)
    assert (code, "JOB  CRIT     demo  stands still for" in said) == (2, True)


def a_run(state_dir: Path, playbook: str, result: str, at: datetime) -> str:
    """A run about the job, as its folder tells it."""
    run_dir = new_run(state_dir)
    (run_dir / PLAYBOOK).write_text((shipped_dir("playbooks") / f"{playbook}.yaml").read_text())
    save_inputs(run_dir, RunInputs({}, {}, "", {"name": "demo"}))
    save_request(run_dir, RunRequest(by="ann"))
    journal = Journal(run_dir)
    journal.append(EventType.RUN_STARTED, at, {"by": "ann"})
    journal.append(EventType.END, at, {"result": result})
    journal.close()
    return run_dir.name


def test_a_job_that_a_person_stopped_is_in_no_trouble_until_it_was_started_again(
    tmp_path: Path,
) -> None:
    """Whoever stopped it knows; a start that came after makes a stall a stall again."""
    stop = a_run(tmp_path, "stop-job", "ok", now())
    assert stopped_by(tmp_path, "demo") == f"{stop} (stop-job) stopped it"
    assert stopped_by(tmp_path, "other") == ""
    minute = timedelta(minutes=1)
    assert stopped_by(tmp_path, "demo", now() - minute) == f"{stop} (stop-job) stopped it"
    assert stopped_by(tmp_path, "demo", now() + minute) == "", "it was over before the newest step"
    a_run(tmp_path, "start-job", "needs_human", now())
    assert stopped_by(tmp_path, "demo") == f"{stop} (stop-job) stopped it"
    a_run(tmp_path, "start-job", "ok", now())
    assert stopped_by(tmp_path, "demo") == ""


LOOK = JobLook("demo", NOW, JobState.STALLED, 7, 90.0)


def test_what_nobody_knows_of_a_job_is_said_once_and_is_no_zero() -> None:
    """A series that is not known is missing."""
    unknown = replace(LOOK, state=JobState.UNKNOWN, step=None, progress_age_s=None)
    assert job_news_text(unknown, None, ()) == (
        "JOB  UNKNOWN  demo  is unknown: none of its ranks left a trace"
    )
    assert job_news_text(unknown, replace(unknown, told=True), ()) == ""
    assert job_totals([unknown], "here") == {}


def test_a_stall_at_a_later_step_is_another_one() -> None:
    """It went on in between, whether somebody looked or not."""
    before = replace(LOOK, told=True)
    assert job_news_text(LOOK, before, ()) == ""
    assert "step 9" in job_news_text(replace(LOOK, step=9), before, ())
