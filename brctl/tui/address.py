"""Every view has an address: the command line that opens it again."""

import shlex
from dataclasses import dataclass, replace

from brctl.model.errors import UsageError, did_you_mean

ROOTS = ("fleet", "verdicts", "runs", "bisect", "incidents", "standby")
DETAILS = ("node", "stacks")
PLACES = (*ROOTS, *DETAILS)


@dataclass(frozen=True, slots=True)
class Address:
    """A view.

    Attributes:
        place: One of PLACES.
        item: The node, verdict, run, incident or job it shows; "" for the list.
        filter: What `/` holds.
    """

    place: str = "fleet"
    item: str = ""
    filter: str = ""

    def __post_init__(self) -> None:
        if self.place not in PLACES:
            raise UsageError(f"no view `{self.place}`; {did_you_mean(self.place, PLACES)}")

    def words(self) -> list[str]:
        """The arguments of `brctl tui` that open it."""
        words = [self.place]
        if self.item:
            words.append(self.item)
        if self.filter:
            words += ["--filter", self.filter]
        return words

    def command(self, context: str = "") -> str:
        """The command line that opens it."""
        words = ["brctl", "tui", *self.words()]
        return shlex.join(words + (["--context", context] if context else []))

    def filtered(self, text: str) -> "Address":
        """The same view with another filter."""
        return replace(self, filter=text)
