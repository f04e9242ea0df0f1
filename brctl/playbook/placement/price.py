"""What a further domain under the widest group costs, measured: a job's own steps at two widths.

Compared is one job with one release of its code: its steps with groups whole beside those with
groups split, fifty of each at least, as they were seen at different looks.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median

from brctl.playbook.placement.spread import SLOWER_A_DOMAIN

LEAST_STEPS = 50
MOST = 1.0
"""A step of twice the time for one more domain: whatever is more has another cause."""


@dataclass(frozen=True, slots=True)
class PaceSeen:
    """A job's steps at one look.

    Attributes:
        code: The release its ranks ran; "" where nobody says.
        widest: Domains under its widest group of the first axis.
        steps: How many steps that is the time of.
    """

    job: str
    code: str
    widest: int
    step_s: float
    steps: int


@dataclass(frozen=True, slots=True)
class PlacePrice:
    """The share of a step for each further domain, and where it comes from."""

    slower_a_domain: float
    source: str

    @property
    def assumed(self) -> bool:
        return self == ASSUMED


ASSUMED = PlacePrice(SLOWER_A_DOMAIN, "assumed")


def place_price(seen: Iterable[PaceSeen]) -> PlacePrice:
    """The price by what was seen; the assumed one where no job was seen at two widths."""
    jobs: dict[tuple[str, str], list[PaceSeen]] = defaultdict(list)
    for pace in seen:
        jobs[pace.job, pace.code].append(pace)
    prices = [price for paces in jobs.values() for price in _prices(_by_width(paces))]
    if not prices:
        return ASSUMED
    found = min(MOST, max(0.0, median(prices)))
    return PlacePrice(found, f"measured here, {len(prices)} comparisons")


def _by_width(paces: Sequence[PaceSeen]) -> Mapping[int, float]:
    """The usual step at each width that was seen for long enough."""
    widths: dict[int, list[PaceSeen]] = defaultdict(list)
    for pace in paces:
        widths[pace.widest].append(pace)
    return {
        width: median(pace.step_s for pace in some)
        for width, some in widths.items()
        if sum(pace.steps for pace in some) >= LEAST_STEPS
    }


def _prices(step_s: Mapping[int, float]) -> list[float]:
    return [
        (step_s[wide] / step_s[narrow] - 1) / (wide - narrow)
        for narrow, wide in combinations(sorted(step_s), 2)
        if step_s[narrow] > 0
    ]
