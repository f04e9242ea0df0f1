"""The helper of a machine without its process: takes stock, forgets what it is told to forget."""

from collections.abc import Mapping
from typing import cast

from brctl.training.checkpoints.copies import MachineCopies
from brctl.training.checkpoints.restore import Saved
from brctl.training.checkpoints.spec import HelperSpec


class FakeHelper:
    """Stands in for `HelperProcess`; brings nothing anywhere."""

    pid = 0

    def __init__(self, spec: HelperSpec) -> None:
        self._copies = MachineCopies(spec)
        self.inventory = self._copies.inspect_copies(("127.0.0.1", 1))

    def ask(self, command: Mapping[str, object]) -> str:
        if command["do"] == "begin":
            resume = cast("list[int] | None", command["resume"])
            self._copies.open_files()
            self._copies.keep_only(Saved(*resume) if resume else None)
        return ""

    def join(self, addresses: Mapping[str, list[object]]) -> str:
        return ""

    def keep_alive(self) -> None:
        """It cannot die."""

    def close(self) -> None:
        """There is nothing to end."""
