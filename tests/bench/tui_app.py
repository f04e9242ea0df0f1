"""The app with an engine that is never asked, and a bell for its first real frame."""

import asyncio
from collections.abc import Callable, Sequence

from brctl.model.errors import UnavailableError
from brctl.model.sweeps.sweep import NodeHealth
from brctl.tui.address import Address
from brctl.tui.app import BrctlApp
from brctl.tui.session.engine_client import JobSeen, Proposal, SchedulerState
from brctl.tui.session.state_reader import StateReader
from brctl.tui.widgets.palette import DARK


class NoEngine:
    """An engine nobody reaches; the bench looks at what is on disk."""

    async def placement(self) -> SchedulerState:
        return SchedulerState({}, (), "0 nodes taken")

    async def look_at_jobs(self) -> tuple[JobSeen, ...]:
        raise UnavailableError("no engine here")

    async def sweep(self, names: Sequence[str], on_node: Callable[[NodeHealth], None]) -> str:
        raise UnavailableError("no engine here")

    async def diagnose(self, names: Sequence[str], job: str) -> tuple[str, ...]:
        raise UnavailableError("no engine here")

    async def propose(self, verdict_id: str) -> Proposal:
        raise UnavailableError("no engine here")

    async def start(self, proposal: Proposal) -> str:
        raise UnavailableError("no engine here")

    def why_not_approve(self, run: str) -> str:
        raise UnavailableError("no engine here")

    async def approve(self, run: str, typed: str) -> None:
        raise UnavailableError("no engine here")

    async def deny(self, run: str) -> None:
        raise UnavailableError("no engine here")

    async def rollback(self, run: str) -> None:
        raise UnavailableError("no engine here")

    async def in_terminal(self, words: Sequence[str]) -> int:
        raise UnavailableError("no engine here")

    async def close(self) -> None:
        """Nothing is open."""


class BenchApp(BrctlApp):
    """Rings `painted` once the fleet is on the screen."""

    def __init__(self, reader: StateReader, start: Address) -> None:
        super().__init__(reader, NoEngine(), start, theme=DARK, tick_s=3600)
        self.painted = asyncio.Event()

    def redraw(self) -> None:
        super().redraw()
        if self.facts is not None:
            self.call_after_refresh(self.painted.set)
