"""The verdict a command is about: the one its line means, or what a look finds now.

An id that was replaced leads to its successor, and says so.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from brctl.cli.asking import can_ask
from brctl.cli.invocation import Invocation
from brctl.cli.progress import progress
from brctl.engine.incidents.verdict_store import StoredVerdict, the_one
from brctl.library.config import Settings

if TYPE_CHECKING:
    from brctl.engine.application.diagnose import DiagnosisScope
    from brctl.engine.controller.wiring import Controller
    from brctl.engine.job.diagnose import Diagnosis
    from brctl.evidence.job.unsettled import LookAgain
    from brctl.model.jobs.job_status import JobStatus

Finder = Callable[[Path, str | None], StoredVerdict]


_AND_A_BIT_S = 1.0
"""The look that follows is to find a job that stands still, not one about to."""

_CLOSER = "all nodes answered; comparing, and stacks and dumps where a job stands"


def one_verdict(
    invocation: Invocation, settings: Settings, name: str | None, find: Finder = the_one
) -> StoredVerdict:
    """The named verdict or what took its place; without a name the only open one.

    Raises:
        UsageError: There is none, or nothing says which of several.
    """
    found = find(settings.state_dir, name)
    if name is not None and found.verdict.id != name:
        invocation.note(f"{name} was replaced by {found.verdict.id}, which is what follows")
    return found


async def look(
    invocation: Invocation,
    controller: "Controller",
    scope: "DiagnosisScope",
    *,
    level: int = 1,
    heavy: tuple[str, ...] = (),
    beside_job: bool = False,
) -> "Diagnosis":
    """A diagnosis that is followed at the terminal; where nobody sits it looks once."""
    from brctl.engine.application.diagnose import diagnose
    from brctl.view.verdict import look_again_line

    with progress(quiet=invocation.quiet) as line:

        async def wait(status: "JobStatus", again: "LookAgain") -> None:
            line.say(look_again_line(status, again))
            line.tell("waiting for a step")
            await asyncio.sleep(again.in_s + _AND_A_BIT_S)
            line.tell("looking again")

        return await diagnose(
            controller,
            scope,
            line.say,
            line.counted(len(scope.nodes), _CLOSER),
            level=level,
            heavy=heavy,
            beside_job=beside_job,
            wait=wait if can_ask(invocation) else None,
        )
