"""A job of one rank whose node is this machine, and the progress file that its rank writes."""

import json
import time
from pathlib import Path

from brctl.library.config import Settings, load_settings
from tests.fakes.site_files import local_config, write_site

INVENTORY = """\
apiVersion: brctl.dev/v1
kind: Inventory
nodes:
  n1: {gpus: 0, python: PYTHON}
"""
JOB = """\
apiVersion: brctl.dev/v1
kind: Job
name: llm
nodes: n1
launch: [train]
checkpoint: {directory: FOLDER/ckpt}
logs: FOLDER
progress: FOLDER
"""


def site(folder: Path) -> Settings:
    config = write_site(folder, local_config("job"), INVENTORY, job=JOB)
    at_step(folder, 40)
    return load_settings({"HOME": str(folder)}, config=config)


def at_step(folder: Path, step: int) -> None:
    row = {"rank": 0, "step": step, "phase": "forward", "phase_since": time.time()}
    (folder / "next").write_text(json.dumps(row))
    (folder / "next").replace(folder / "rank-00000.json")
