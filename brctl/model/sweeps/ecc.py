"""One GPU's memory error counters as they were read at one moment."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EccRow:
    """Counters of one GPU; None is not read, never zero.

    Attributes:
        corrected: Corrected errors since the driver was loaded.
        uncorrected: Uncorrected errors since the driver was loaded.
        uncorrected_ever: Uncorrected errors over the board's life.
        remapped: Rows remapped for uncorrected errors.
        pending: A remap waits for a reset.
        failed: A remap failed.
        job: The declared job whose ranks the node carries, "" without one.
    """

    node: str
    device: str
    index: int | None = None
    serial: str = ""
    corrected: int | None = None
    uncorrected: int | None = None
    uncorrected_ever: int | None = None
    remapped: int | None = None
    pending: bool | None = None
    failed: bool | None = None
    job: str = ""

    @property
    def action(self) -> str:
        """What NVIDIA's memory error management guide asks for; "?" where it cannot be told."""
        if self.failed:
            return "replace"
        if self.uncorrected:
            return "reset"
        if self.pending:
            return "reset at next drain"
        unread = None in (self.uncorrected, self.pending, self.failed)
        return "?" if unread else ""
