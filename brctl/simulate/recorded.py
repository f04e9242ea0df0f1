"""Recorded faults in place of drawn ones: a table `at_hours,symptom,cause,nodes`, a fault a line.

What the record leaves open, a cause or a node, is drawn anew for each seed as the fleet's own are.
Hours of faults that the job's code or its people make are hours trained; the others' pass.
"""

import csv
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path

from brctl.library.trusted_files import read_whole
from brctl.model.errors import ConfigError, UsageError, did_you_mean
from brctl.simulate.chance import unit
from brctl.simulate.fleet import US, Fleet
from brctl.simulate.symptoms import SYMPTOMS, Cause
from brctl.simulate.trace import DAY_US, OF_THE_JOB, DrawnFault, Trace

COLUMNS = ("at_hours", "symptom", "cause", "nodes")
HOUR_US = 3_600 * US
SIZE_LIMIT_BYTES = 32 << 20
FAULTS_LIMIT = 200_000
MOST_HOURS = 87_600.0


@dataclass(frozen=True, slots=True)
class RecordedFault:
    """One line.

    Attributes:
        cause: None where the record does not say it.
        slots: The job's slots that stand for the recorded nodes; none where it names none.
    """

    at_us: int
    symptom: str
    cause: Cause | None
    slots: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RecordedFaults:
    """A whole record.

    Attributes:
        nodes: How many different nodes it names.
        sha256: Of the file.
    """

    origin: str
    faults: tuple[RecordedFault, ...]
    nodes: int
    sha256: str

    def after(self, days: float) -> int:
        """How many of its faults a run of so many days never meets."""
        return sum(fault.at_us >= days * DAY_US for fault in self.faults)

    def refuse_smaller(self, fleet: Fleet) -> None:
        """Each recorded node needs a slot of its own.

        Raises:
            UsageError: The fleet has fewer nodes.
        """
        if self.nodes > fleet.nodes:
            raise UsageError(
                f"{self.origin} names {self.nodes} nodes, {fleet.name} has {fleet.nodes}",
                hint="simulate a fleet with job.nodes as many as were recorded",
            )

    def trace(self, fleet: Fleet, seed: int, days: float) -> Trace:
        """The faults as one run meets them."""
        found = [
            _completed(fault, number, fleet, seed)
            for number, fault in enumerate(self.faults, start=1)
            if fault.at_us < days * DAY_US
        ]
        own = [fault for fault in found if fault.cause in OF_THE_JOB]
        others = [fault for fault in found if fault.cause not in OF_THE_JOB]
        return Trace(seed, days, tuple(others), tuple(own))


def _completed(fault: RecordedFault, number: int, fleet: Fleet, seed: int) -> DrawnFault:
    """The fault with what the record leaves open drawn for this seed."""
    cause = fault.cause or SYMPTOMS[fault.symptom].cause(unit(seed, "recorded cause", number))
    slots = fault.slots or (int(unit(seed, "recorded node", number) * fleet.nodes),)
    nodes = () if cause in OF_THE_JOB else slots
    return DrawnFault(number, fault.at_us, fault.symptom, cause, nodes)


def load_recorded(path: Path) -> RecordedFaults:
    """The record of one file.

    Raises:
        ConfigError: A line is wrong; it says which and why.
    """
    raw = read_whole(path, SIZE_LIMIT_BYTES)
    try:
        lines = raw.decode("utf-8").splitlines()
    except UnicodeDecodeError as exc:
        raise ConfigError(f"{path}: no text in UTF-8 at byte {exc.start}") from exc
    slot_of: dict[str, int] = {}
    faults = sorted(_faults(path, lines, slot_of), key=lambda fault: fault.at_us)
    if not faults:
        raise ConfigError(f"{path}: not one fault", hint=f"a line each: {','.join(COLUMNS)}")
    return RecordedFaults(str(path), tuple(faults), len(slot_of), hashlib.sha256(raw).hexdigest())


def _faults(path: Path, lines: Sequence[str], slot_of: dict[str, int]) -> Iterable[RecordedFault]:
    """Each line below the head; those that begin with `#` are remarks."""
    rows = [(number, line) for number, line in enumerate(lines, start=1)
            if line.strip() and not line.startswith("#")]  # fmt: skip
    if rows and tuple(rows[0][1].replace(" ", "").split(",")) != COLUMNS:
        raise ConfigError(f"{path}:{rows[0][0]}: the first line must be {','.join(COLUMNS)}")
    if len(rows) > FAULTS_LIMIT:
        raise ConfigError(f"{path}: {len(rows):,} faults; at most {FAULTS_LIMIT:,} are simulated")
    for number, line in rows[1:]:
        try:
            yield _fault(next(csv.reader([line], strict=True)), slot_of)
        except (ValueError, csv.Error) as exc:
            raise ConfigError(f"{path}:{number}: {exc}") from exc


def _fault(cells: Sequence[str], slot_of: dict[str, int]) -> RecordedFault:
    """One line's cells; a ValueError says what is wrong with them."""
    if len(cells) != len(COLUMNS):
        raise ValueError(f"{len(cells)} columns; {len(COLUMNS)} are wanted: {','.join(COLUMNS)}")
    at, symptom, cause, nodes = (cell.strip() for cell in cells)
    if symptom not in SYMPTOMS:
        raise ValueError(f"symptom {symptom[:60]!r}: {did_you_mean(symptom, SYMPTOMS)}")
    if cause and cause not in list(Cause):
        raise ValueError(f"cause {cause[:60]!r}: {did_you_mean(cause, list(Cause))}")
    slots = tuple(slot_of.setdefault(name, len(slot_of)) for name in dict.fromkeys(nodes.split()))
    return RecordedFault(_microseconds(at), symptom, Cause(cause) if cause else None, slots)


def _microseconds(text: str) -> int:
    try:
        hours = float(text)
    except ValueError:
        raise ValueError(f"at_hours {text[:60]!r}: hours since the start, without a unit: 12.5") \
            from None  # fmt: skip
    if not (isfinite(hours) and 0 <= hours <= MOST_HOURS):
        raise ValueError(f"at_hours {text[:60]}: 0 to {MOST_HOURS:,.0f} can be")
    return round(hours * HOUR_US)
