"""A site on the stand-in: one job of three nodes."""

from pathlib import Path

CONFIG = """\
apiVersion: brctl.dev/v1
kind: Config
context: here
state_dir: state
ssh: {transport: local}
contexts:
  here: {inventory: [{k8s: {}}], scheduler: kubernetes, jobs: [job.yaml]}
"""
JOB = """\
apiVersion: brctl.dev/v1
kind: Job
name: demo
nodes: n[1-3]
launch: [train]
checkpoint: {directory: FOLDER/ckpt}
logs: FOLDER/logs
progress: FOLDER/progress
"""


def write_site(folder: Path) -> None:
    """Its configuration and job; checkpoints, logs and progress lie in the same folder."""
    (folder / "config.yaml").write_text(CONFIG)
    (folder / "job.yaml").write_text(JOB.replace("FOLDER", str(folder)))
