"""What would delete the steps a job keeps in memory is said before a node is lost."""

from pathlib import Path

import pytest

from brctl.engine.controller.doctor_slots import slots
from brctl.library.config import load_settings
from brctl.model.sweeps.sweep import Health


def findings(folder: Path, own: str, scheduler: str) -> list[tuple[Health, str]]:
    job = folder / "job.yaml"
    job.write_text(
        "apiVersion: brctl.dev/v1\nkind: Job\nname: toy\nnodes: n1\nlaunch: [python, train.py]\n"
        f"checkpoint: {{directory: /ckpt{own}}}\nlogs: /logs\nprogress: /progress\n"
    )
    config = folder / "config.yaml"
    config.write_text(
        "apiVersion: brctl.dev/v1\nkind: Config\ncontext: prod\ncontexts:\n"
        f"  prod: {{inventory: [], jobs: [{job}], scheduler: {scheduler}}}\n"
    )
    found = slots(load_settings({"HOME": str(folder)}, None, config))
    return [(finding.health, finding.text) for finding in found]


@pytest.mark.parametrize(
    ("own", "scheduler", "says"),
    [
        (", slots: /dev/shm/toy", "static", "last logout where RemoveIPC is on"),
        (", slots: /dev/shm/toy", "slurm", "job_container/tmpfs"),
        (", slots: /mnt/memory/toy", "kubernetes", "goes with the pod"),
    ],
)
def test_what_may_delete_them_is_named(tmp_path: Path, own: str, scheduler: str, says: str) -> None:
    """With the check that looks on the nodes; doctor reaches none."""
    ((health, text),) = findings(tmp_path, own, scheduler)
    assert health is Health.WARNING
    assert text.startswith("toy keeps its steps in /")
    assert says in text


def test_a_mount_of_its_own_is_fine_and_a_job_without_slots_is_silent(tmp_path: Path) -> None:
    ((health, _),) = findings(tmp_path, ", slots: /mnt/memory/toy", "static")
    assert health is Health.OK
    assert findings(tmp_path, "", "static") == []
