"""Every view has an address: the command line that opens it again."""

import shlex
from dataclasses import dataclass, replace

from brctl.model.errors import UsageError, did_you_mean

ROOTS = ("fleet", "verdicts", "runs", "bisect", "incidents", "standby", "jobs", "watch")
DETAILS = ("node", "stacks")
VIEW_NAMES = (*ROOTS, *DETAILS)


@dataclass(frozen=True, slots=True)
class Address:
    """A view.

    Attributes:
        view_name: One of VIEW_NAMES.
        item: The node, verdict, run, incident or job it shows; "" for the list.
        filter: What `/` holds.
        sort: Title of the column a list is ordered by, `-` before it for the last first; "" for
            the list's own order.
    """

    view_name: str = "fleet"
    item: str = ""
    filter: str = ""
    sort: str = ""

    def __post_init__(self) -> None:
        if self.view_name not in VIEW_NAMES:
            raise UsageError(
                f"no view `{self.view_name}`; {did_you_mean(self.view_name, VIEW_NAMES)}"
            )

    def words(self) -> list[str]:
        """The arguments of `brctl tui` that open it."""
        words = [self.view_name]
        if self.item:
            words.append(self.item)
        if self.filter:
            words += ["--filter", self.filter]
        if self.sort:
            words.append(f"--sort={self.sort}")
        return words

    def command(self, context: str = "") -> str:
        """The command line that opens it."""
        words = ["brctl", "tui", *self.words()]
        return shlex.join(words + (["--context", context] if context else []))

    def sorted_by(self, sort: str) -> "Address":
        """The same view in another order."""
        return replace(self, sort=sort)

    def filtered(self, text: str) -> "Address":
        """The same view with another filter."""
        return replace(self, filter=text)
