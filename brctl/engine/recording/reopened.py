"""A recorded incident opened as a site that can be looked at: its state, and nobody to ask."""

import asyncio
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from brctl.engine.incidents.verdict_store import save_new
from brctl.engine.job.diagnose import Diagnosis
from brctl.engine.job.looks import keep_fresh_look
from brctl.engine.recording.contents import looks_in
from brctl.engine.recording.replay import STATE, look_again
from brctl.engine.recording.ring import RecordedLook
from brctl.engine.recording.surroundings import RUN_FILES
from brctl.library.config import Settings
from brctl.library.durable_files import private_dir
from brctl.model.errors import ConfigError
from brctl.model.inventory import Inventory
from brctl.model.jobs.job import Job

_RUN_FILE = re.compile("runs/R-[0-9]{4,9}/(?:" + "|".join(map(re.escape, RUN_FILES)) + ")")


@dataclass(frozen=True, slots=True)
class ReopenedIncident:
    """What the newest look of a file left behind, and the looks before it.

    Attributes:
        settings: Of a state directory of its own; read-only.
        recorded_at: When the newest look ended.
        nodes: Whom the newest look asked.
    """

    settings: Settings
    inventory: Inventory
    job: Job | None
    recorded_at: datetime
    nodes: tuple[str, ...]
    newest: Diagnosis


@contextmanager
def reopened(path: Path, identity: Path | None = None) -> Iterator[ReopenedIncident]:
    """Judge every look of a file again, oldest first, in a state directory that goes with it.

    Raises:
        ConfigError: The file cannot be read, or holds no look.
    """
    file, looks = looks_in(path, identity)
    if not looks:
        raise ConfigError(f"{path}: it holds no look", hint=f"brctl incident replay {path}")
    with TemporaryDirectory(prefix="brctl-recorded-") as folder:
        by_age = sorted(looks, key=lambda one: one.look.clock[0])
        _write_runs(file.members, Path(folder) / STATE)
        *_, newest = [_reopened(one, Path(folder)) for one in by_age]
        yield newest


def _reopened(one: RecordedLook, folder: Path) -> ReopenedIncident:
    controller, found = asyncio.run(look_again(one.look, one.answers, folder))
    # Without `keep`: names for TAB completion are of the person's own site, never of a file.
    for verdict in found.verdicts:
        save_new(controller.state_dir, verdict)
    if found.status is not None:
        keep_fresh_look(controller, found.status)
    look = one.look
    settings = replace(controller.settings, readonly=True)
    recorded_at = look.clock[-1]
    return ReopenedIncident(settings, look.inventory, look.job, recorded_at, look.nodes, found)


def _write_runs(members: Mapping[str, bytes], state_dir: Path) -> None:
    """The journals of runs, where screens look for them; other names are none of theirs."""
    for name, raw in members.items():
        if _RUN_FILE.fullmatch(name):
            private_dir((state_dir / name).parent)
            (state_dir / name).write_bytes(raw)
