"""How sure a log's class is stated to be, and when it is claimed at all (decisions 0141, 0188)."""

from collections.abc import Iterable, Sequence

from brctl.evidence.logs.attribution import Weighed
from brctl.evidence.logs.signature import SPEAKING
from brctl.evidence.logs.words.components import COMPONENT
from brctl.model.fault import FaultClass

MIN_STRENGTH = 0.25
"""A root candidate weaker than this is mentioned, never claimed."""

CEILING = 0.97
"""No log makes a class surer than this."""

CLAIMED = 0.45
"""A class is claimed when it is about as likely right as wrong or likelier; else it is a lead."""

CONFIRMED = 0.6
"""The same after the model of words was heard, which confirms what is right: of 273 logs nobody had
read, those claimed below this were right in one of eight (0459)."""

WITHDRAWN = 0.2
"""What unknown is stated at where a weak line speaks for a class: mostly a person sees a cause."""

_ALONE = 1.35
"""Power of the strength of a family that speaks alone, from logs older than the rules (0188)."""

_SHRINK = 0.95

_UNKNOWN_SHARE, _UNKNOWN_POWER = 0.7, 3.0
"""Unknown from its odds: 0.2 where nothing was found, 0.57 where something failed unexplained."""

_BY_COMPONENT = 1.1
"""Power for a component that alone reports failures: right in 21 of 25 such logs (0425)."""


def calibrate(winner: FaultClass, raw: float, weighed: Sequence[Weighed]) -> float:
    """The stated probability for a raw one; the bench prints how well it holds.

    Unknown is stated as seldom right as it was on logs that no rule had been made for (decision
    0141). A class that one family of lines speaks for alone was right less often than the family
    is elsewhere: nothing confirms that the line means here what it says (decision 0188). What
    several families agree on is drawn a little to the middle.
    """
    if winner is FaultClass.UNKNOWN:
        return max(0.05, _UNKNOWN_SHARE * float(raw**_UNKNOWN_POWER))
    alone = _alone(winner, weighed)
    if alone is not None:
        power = _BY_COMPONENT if alone.event.signature.name.startswith(COMPONENT) else _ALONE
        raw = min(raw, alone.weight**power)
    return min(CEILING, max(0.05, 0.5 + _SHRINK * (raw - 0.5)))


def _alone(fault: FaultClass, weighed: Iterable[Weighed]) -> Weighed | None:
    """The only family that speaks for a class; None when several do, or none."""
    mine = {
        w.event.signature.name: w
        for w in weighed
        if w.fault is fault and w.event.signature.part in SPEAKING and w.weight >= MIN_STRENGTH
    }
    return next(iter(mine.values())) if len(mine) == 1 else None


def is_claimed(
    likeliest: FaultClass, stated: float, weighed: Iterable[Weighed], *, heard: bool
) -> bool:
    """Whether a class is stated, or only named as a lead.

    What hardware or the kernel says of itself is claimed however weak: nobody prints it in passing.

    Args:
        likeliest: The class.
        stated: Its probability.
        weighed: The lines of the log.
        heard: Whether the model of words was asked.
    """
    least = CONFIRMED if heard else CLAIMED
    if likeliest in (FaultClass.UNKNOWN, FaultClass.NO_FAULT) or stated >= least:
        return True
    return any(w.fault is likeliest and w.event.signature.physical for w in weighed)
