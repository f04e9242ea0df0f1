"""Measurements the heatmap can be coloured by: name, direction and scale."""

from collections.abc import Mapping
from dataclasses import dataclass

from brctl.model.sweeps.report import NodeReport


@dataclass(frozen=True, slots=True)
class Measure:
    """One colouring.

    Attributes:
        low, high: Values drawn as 0 and 9; high is bad.
        lowest: The node's least value counts, not its greatest.
    """

    name: str
    low: float
    high: float
    lowest: bool = False


# 30 to 90 degrees spans idle to the slowdown threshold of data centre GPUs; busbw is drawn upside
# down so that 9, the loud digit, is the slow one.
MEASURES: Mapping[str, Measure] = {
    "temp": Measure("gpu.clocks.temperature_c", 30.0, 90.0),
    "ecc": Measure("gpu.ecc.aggregate_corrected", 0.0, 100.0),
    "busbw": Measure("fabric.allreduce.bus_gb_per_s", 400.0, 0.0, lowest=True),
}


def value_of(report: NodeReport, measure: Measure) -> float | None:
    """The node's worst reading; None when there is none."""
    read = report.named(measure.name)
    found = [float(m.value) for m in read if isinstance(m.value, int | float)]
    if not found:
        return None
    return min(found) if measure.lowest else max(found)
