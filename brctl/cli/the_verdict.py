"""The verdict a command line means; an id that was replaced leads to its successor, and says so."""

from collections.abc import Callable
from pathlib import Path

from brctl.cli.invocation import Invocation
from brctl.engine.incidents.verdict_store import StoredVerdict, the_one
from brctl.library.config import Settings

Finder = Callable[[Path, str | None], StoredVerdict]


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
