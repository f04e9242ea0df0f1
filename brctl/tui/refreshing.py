"""What the app knows, and when it looks again: workers read, handlers own."""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

from textual import on, work

from brctl.model.errors import BrctlError
from brctl.tui.address import Address
from brctl.tui.navigating import NavigatingApp
from brctl.tui.rows.times import Times
from brctl.tui.session.engine_client import EngineClient
from brctl.tui.session.facts import Facts
from brctl.tui.session.messages import FactsRead, WorkFailed
from brctl.tui.session.state_reader import StateReader

TICK_S = 2.0
PLACEMENT_EVERY = 5
"""Ticks between two questions to the scheduler."""
LOOK_EVERY_S = 15.0
"""Between two looks at the jobs; a hang is seen a look after its job's `stall_after`."""
LOOK_SHARE = 5.0
"""A look that took a second is followed by five without one, whatever was asked for."""


class RefreshingApp(NavigatingApp):
    """An app that reads the state again and again, and draws it.

    Attributes:
        facts: What the disk said last; None before the first reading.
        frozen: The screen holds still.
        busy: What runs in the background, in a few words.
        measured: Values of the colourings that were read.
        times: How moments are written.
    """

    busy = ""

    def __init__(
        self,
        reader: StateReader,
        engine: EngineClient,
        start: Address | None,
        *,
        now: Callable[[], datetime],
        tick_s: float,
        look_every_s: float,
    ) -> None:
        super().__init__(now, start)
        self.reader = reader
        self.engine = engine
        self.facts: Facts | None = None
        self.frozen = False
        self.times = Times()
        self.measured: dict[str, Mapping[str, float]] = {}
        self._tick_s = tick_s
        self._ticks = 0
        self._reading = False
        self._look_every_s = look_every_s
        self._look_after: datetime | None = None
        self._looking = False

    def start_reading(self) -> None:
        """Read now, and at every tick."""
        self._read_state()
        self.set_interval(self._tick_s, self._tick)

    def _tick(self) -> None:
        """The world moves on; a frozen screen does not."""
        self._ticks += 1
        if self.frozen:
            return
        if self._ticks % PLACEMENT_EVERY == 1:
            self._ask_placement()
        self._read_state()
        self._look_when_due()

    def _look_when_due(self) -> None:
        """Look at the jobs now and then; never two looks at once, nor beside a diagnosis."""
        due = self._look_after is None or self.clock() >= self._look_after
        if self._look_every_s > 0 and due and not self.busy:
            self.look_at_jobs()

    def look_at_jobs(self) -> None:
        """Ask the ranks of every job where they stand."""
        if self.facts is not None and self.facts.jobs and not self._looking:
            self._looking = True
            self._look()

    @work(group="jobs", exit_on_error=False)
    async def _look(self) -> None:
        began_at = self.clock()
        try:
            self.reader.add_job_looks(await self.engine.look_at_jobs())
        except (BrctlError, OSError) as error:
            self.reader.add_job_looks((), str(error))
        finally:
            took_s = (self.clock() - began_at).total_seconds()
            pause_s = max(self._look_every_s, LOOK_SHARE * took_s)
            self._look_after, self._looking = self.clock() + timedelta(seconds=pause_s), False
        self._read_state()

    def _read_state(self) -> None:
        if not self._reading:
            self._reading = True
            self._read_in_thread()

    @work(thread=True, group="read", exit_on_error=False)
    def _read_in_thread(self) -> None:
        try:
            self.post_message(FactsRead(self.reader.read()))
        finally:
            self._reading = False

    @work(exclusive=True, group="placement", exit_on_error=False)
    async def _ask_placement(self) -> None:
        try:
            state = await self.engine.placement()
        except (BrctlError, OSError) as error:
            self.post_message(WorkFailed(f"scheduler: {error}"))
            return
        self.reader.set_scheduler_state(state.cordons, state.jobs, state.guard)
        self._read_state()

    @on(FactsRead)
    def handle_facts_read(self, message: FactsRead) -> None:
        first, self.facts = self.facts is None, message.facts
        if first:
            self._ask_placement()
            self._look_when_due()
            open_ones = message.facts.open_verdicts
            if self._start is None and len(open_ones) == 1:
                self.go(Address("verdicts", open_ones[0].verdict.id))
                return
        if not self.frozen or first:
            self.redraw()

    def toggle_freeze(self) -> None:
        """Hold the screen still, or let it go on."""
        self.frozen = not self.frozen
        self.redraw()

    def reread(self) -> None:
        """Read the disk and ask the scheduler again."""
        self.reader.forget()
        self._ask_placement()
        self._read_state()
        self.look_at_jobs()

    def measure(self, colour: str) -> None:
        """Read the values of a colouring in the background."""
        self._measure(colour)

    @work(thread=True, group="measure", exit_on_error=False)
    def _measure(self, colour: str) -> None:
        self.measured[colour] = self.reader.measure(colour)
        self.call_from_thread(self.redraw)
