"""A site with a job that lost a node, and the verdict that says so, for what `fix` does."""

from datetime import datetime
from pathlib import Path

from brctl.engine.controller.clock import now
from brctl.engine.incidents import verdict_store
from brctl.engine.incidents.verdict_store import StoredVerdict, VerdictState
from brctl.library.config import Settings
from brctl.model.verdict import Verdict
from tests.fakes.run_context import example_verdict
from tests.fakes.site_files import local_config, write_site

CONFIG = local_config("job")
INVENTORY = """\
apiVersion: brctl.dev/v1
kind: Inventory
nodes:
  n1: {address: 127.0.0.1}
  n2: {address: 127.0.0.1}
  n3: {address: 127.0.0.1}
  s1: {address: 127.0.0.1, role: standby}
"""
JOB = """\
apiVersion: brctl.dev/v1
kind: Job
name: demo
nodes: n[1-3]
launch: [train]
checkpoint: {directory: /nowhere/ckpt}
logs: /nowhere/logs
progress: /nowhere/progress
"""


def write_fix_site(folder: Path) -> Path:
    """Three nodes with a job on them, and a standby; the path of its configuration."""
    return write_site(folder, CONFIG, INVENTORY, job=JOB)


def keep(
    site: Settings, state: VerdictState = VerdictState.OPEN, at: datetime | None = None
) -> Verdict:
    """The verdict that n3 lost a GPU, on disk."""
    verdict = example_verdict(at or now())
    verdict_store.save(site.state_dir, StoredVerdict(verdict, state, "by hand"))
    return verdict
