"""What ctrl+p finds: nodes, jobs, verdicts, runs, screens and themes."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from rich.text import Text
from textual.command import DiscoveryHit, Hit, Hits, Provider

from brctl.model.errors import BrctlError
from brctl.tui.address import ROOTS, Address
from brctl.tui.rows.row import safe
from brctl.tui.rows.run_rows import playbook_of
from brctl.tui.widgets.palette import THEMES

if TYPE_CHECKING:
    from brctl.tui.app import BrctlApp

SHOWN = 30
"""Hits at most; a fleet has more nodes than anybody reads."""

Entry = tuple[str, str, Callable[[], None]]


class ViewCommands(Provider):
    """Everything with an address."""

    async def discover(self) -> Hits:
        for title, about, run in self._fixed():
            yield DiscoveryHit(Text(title), run, title, about)

    async def search(self, query: str) -> Hits:
        wanted, count = query.lower(), 0
        for title, about, run in [*self._fixed(), *self._saved(), *self._found()]:
            if wanted in title.lower() and count < SHOWN:
                count += 1
                score = 1.0 if title.lower() == wanted else 0.5 + len(wanted) / (2 * len(title))
                yield Hit(score, Text(title), run, title, about)

    @property
    def _brctl(self) -> "BrctlApp":
        return self.app  # type: ignore[return-value]  # the only app there is

    def _fixed(self) -> Iterable[Entry]:
        for name in ROOTS:
            yield f"screen {name}", "open it", self._opener(Address(name))
        for theme in THEMES:
            yield f"theme {theme.name}", "colours", self._themer(theme.name)

    def _found(self) -> Iterable[Entry]:
        facts = self._brctl.facts
        if facts is None:
            return
        for stored in facts.verdicts:
            item = stored.verdict.id
            about = f"{stored.verdict.fault.value} {stored.state.value}"
            yield f"verdict {safe(item, 40)}", about, self._opener(Address("verdicts", item))
        for run in facts.runs:
            yield (
                f"run {run.name}",
                f"{playbook_of(run)} {run.state}",
                self._opener(Address("runs", run.name)),
            )
        for job in facts.jobs:
            where = Address("jobs", job.name)
            yield f"job {safe(job.name, 60)}", f"{len(job.nodes)} nodes", self._opener(where)
        for fact in facts.nodes:
            yield (
                f"node {safe(fact.name, 80)}",
                fact.state.value,
                self._opener(Address("node", fact.name)),
            )

    def _saved(self) -> Iterable[Entry]:
        try:
            views = self._brctl.saved.all() if self._brctl.saved else {}
        except (BrctlError, OSError):
            return
        for name, address in views.items():
            yield f"view {name}", address.command(), self._opener(address)

    def _opener(self, address: Address) -> Callable[[], None]:
        return lambda: self._brctl.go(address)

    def _themer(self, name: str) -> Callable[[], None]:
        def wear() -> None:
            self._brctl.theme = name
            self._brctl.redraw()

        return wear
