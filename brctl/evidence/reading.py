"""What a reader makes of values that rules alone cannot judge."""

from dataclasses import dataclass

from brctl.model.evidence import Evidence, Gap
from brctl.model.sweeps.report import Measurement

RAW_LIMIT = 1024
"""Raw text kept beside a judgement, in characters; a node may send anything."""


@dataclass(frozen=True, slots=True)
class Reading:
    """Judgements, further measurements for the rules, and what could not be read."""

    evidence: tuple[Evidence, ...] = ()
    measurements: tuple[Measurement, ...] = ()
    gaps: tuple[Gap, ...] = ()
