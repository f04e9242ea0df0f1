"""One parameter of a fleet over its values: `standbys=0..12`, `checkpoint=60,600,3600`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from brctl.model.errors import UsageError, did_you_mean
from brctl.simulate.fleet import Fleet
from brctl.simulate.policies import SimulatedPolicy

POINTS_LIMIT = 200

Setting = tuple[Fleet, tuple[SimulatedPolicy, ...]]
Change = Callable[[Fleet, SimulatedPolicy, float], tuple[Fleet, SimulatedPolicy]]


@dataclass(frozen=True, slots=True)
class Parameter:
    """What can be swept, its unit, and the values that make sense."""

    unit: str
    least: float
    most: float
    change: Change


PARAMETERS: Mapping[str, Parameter] = {
    "standbys": Parameter("nodes", 0, 1_000_000,
                          lambda f, p, v: (replace(f, standbys=round(v)), p)),
    "refill": Parameter("hours", 0.01, 10_000,
                        lambda f, p, v: (replace(f, refill_s=v * 3_600), p)),
    "checkpoint": Parameter("seconds", 0.1, 1e6,
                            lambda f, p, v: (f, replace(p, interval_s=v))),
    "rate": Parameter("per 1,000 node-days", 0, 100_000,
                      lambda f, p, v: (replace(f, per_1000_node_days=v), p)),
    "watch": Parameter("seconds between two looks", 0.1, 1e6,
                       lambda f, p, v: (replace(f, watch=replace(f.watch, every_s=v)), p)),
    "stall-after": Parameter("seconds without a step", 0.1, 1e6,
                             lambda f, p, v: (
                                 replace(f, watch=replace(f.watch, stall_after_s=v)), p)),
    "signal-delay": Parameter("seconds until a fault shows", 0, 1e6,
                              lambda f, p, v: (
                                  replace(f, signals=replace(f.signals, delay_s=v)), p)),
    "noise": Parameter("chance that a sound node is silent", 0, 1,
                       lambda f, p, v: (replace(f, signals=replace(f.signals, noise=v)), p)),
    "blast-radius": Parameter("nodes in six hours", 1, 1_000_000,
                              lambda f, p, v: (f, replace(p, most_nodes=round(v)))),
    "breaker": Parameter("percent of the nodes in a day", 0, 100,
                         lambda f, p, v: (f, replace(p, breaker_percent=v))),
    "approval": Parameter("seconds until people approve", 0, 1e6,
                          lambda f, p, v: (
                              replace(f, people=replace(f.people, approval_s=v)), p)),
}  # fmt: skip


def read_sweep(text: str) -> tuple[str, tuple[float, ...]]:
    """Name and values of `NAME=A..B`, `NAME=A..B/STEP` or `NAME=A,B,C`.

    Raises:
        UsageError: No such parameter, no such values, or too many.

    Examples:
        >>> read_sweep("standbys=0..3")
        ('standbys', (0.0, 1.0, 2.0, 3.0))
    """
    name, _, values = text.partition("=")
    if name not in PARAMETERS:
        raise UsageError(f"--sweep {name}: {did_you_mean(name, PARAMETERS)}")
    row = PARAMETERS[name]
    try:
        found = _values(values)
    except (ValueError, OverflowError) as exc:
        raise UsageError(f"--sweep {text}: values are {name}=0..12, {name}=0..60/5 or"
                         f" {name}=1,2,4") from exc  # fmt: skip
    if not 1 <= len(found) <= POINTS_LIMIT:
        raise UsageError(f"--sweep {text}: {len(found)} values; at most {POINTS_LIMIT}")
    wrong = [value for value in found if not row.least <= value <= row.most]
    if wrong:
        raise UsageError(
            f"--sweep {name}: {wrong[0]:g} {row.unit} cannot be; {row.least:g} to {row.most:g} can"
        )
    return name, found


def _values(text: str) -> tuple[float, ...]:
    span, _, by = text.partition("/")
    first, dots, last = span.partition("..")
    if not dots:
        return tuple(float(value) for value in text.split(","))
    low, high, step = float(first), float(last), float(by or 1)
    if step <= 0 or not low <= high < float("inf"):
        raise ValueError(text)
    return tuple(low + step * i for i in range(min(int((high - low) / step + 1e-9), 9_999) + 1))


def changed(
    fleet: Fleet, policies: tuple[SimulatedPolicy, ...], name: str, value: float
) -> Setting:
    """Fleet and policies with one parameter set."""
    change = PARAMETERS[name].change
    return change(fleet, policies[0], value)[0], tuple(
        change(fleet, policy, value)[1] for policy in policies
    )
