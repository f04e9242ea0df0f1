"""A signature: one family of log lines, what it speaks for, and how far it does so alone.

The constitution of the tables beside this file:

1. A match is an observation, not a verdict. `strength` is the chance that the class is right when
   this family is the only thing seen; attribution weighs families against each other.
2. A victim's line never carries a class: the reporter of a broken connection did not break it.
3. Every row says where it comes from.
4. `anchors` are lower-case texts of which one must stand on the line. The streaming engine searches
   for anchors only; the pattern then decides. Short or common anchors cost speed, never accuracy.
"""

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import cache

from brctl.model.evidence import Weight
from brctl.model.fault import FaultClass, Origin
from brctl.model.fault_catalogue import CATALOGUE

CONVICTING = 0.85
"""A root line at least this strong convicts; a weaker one hints."""


class Part(StrEnum):
    """What a line's family is in the chain of events."""

    ROOT = "root"
    """May be the first cause."""
    GENERIC = "generic"
    """May be the first cause when nothing more specific stands on the same line."""
    HINT = "hint"
    """Makes a class a little likelier beside what the line itself says."""
    VICTIM = "victim"
    """Reports that somebody else stopped."""
    TEARDOWN = "teardown"
    """Belongs to being shut down; what comes later proves nothing."""
    STOPPED = "stopped"
    """A scheduler or person ended the job: the cause when nothing failed before."""
    CONTEXT = "context"
    """Says where we are (host, GPU, rank, section); accuses nobody."""
    BENIGN = "benign"
    """Looks alarming and is not; silences other families on its line."""
    HEALTHY = "healthy"
    """Proves that what it speaks of went well; only a proof newer than every warning counts."""
    UNEXPLAINED = "unexplained"
    """Looks like an error and no row knows it: nobody may then say that nothing is wrong."""


SPEAKING = (Part.ROOT, Part.GENERIC, Part.HINT, Part.STOPPED)
"""Parts that name a class. The tables of the model of words weigh them by their places here."""


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Signature:
    """One family of lines.

    Attributes:
        name: Dotted and unique, `nccl.ib.retry-exceeded`.
        anchors: Lower-case texts; a line without any of them cannot match.
        part: Its place in the chain of events.
        fault: The class it speaks for; None for victims, teardown, context and benign lines.
        strength: Chance in 0 to 1 that the class is right when this is all there is.
        source: Where the meaning comes from.
        pattern: Regular expression on the cleaned line, case ignored; None means the anchors
            suffice. Named groups `rank`, `host`, `gpu`, `peer`, `pid`, `device`, `disk` name
            culprits; `amount` is how many errors the line reports; `sensor` splits the family, one
            for each sensor; any other group is kept as a field. Alternatives of one name are
            numbered (`host`, `host2`); several that match are joined by commas.
        origin: Overrides the class's usual side.
        sets: Context key that a match sets to its `value` group, or to the whole match.
        when: Context keys and values that must hold, as left by earlier `sets` in the same input.
        physical: Speaks of hardware or the kernel: stays evidence after the job is torn down.
        say: What it means, for people; "" where the line says it itself.
        per_minute: Lines a minute below which the family accuses nobody: corrected errors are a
            rate. 0 accuses at the first line.
        own: Its class stands beside another cause: an oops is no symptom of a slow disk.
        settles: Names of families that this line shows to be over: `nfs: server x OK`.
        follows: Names of families that it is the consequence of when one came shortly before on the
            same GPU, though its own class would explain theirs: a time-out after an exception.
        beyond_words: No model of words hears what it goes by: a site wrote or taught it, or it goes
            by numbers.
    """

    name: str
    anchors: tuple[str, ...]
    part: Part
    fault: FaultClass | None
    strength: float
    source: str
    pattern: str | None = None
    origin: Origin | None = None
    sets: str = ""
    when: tuple[tuple[str, str], ...] = ()
    physical: bool = False
    say: str = ""
    per_minute: float = 0.0
    own: bool = False
    settles: tuple[str, ...] = ()
    follows: tuple[str, ...] = ()
    beyond_words: bool = False

    @property
    def weight(self) -> Weight:
        """What a line of it alone says, as checks weigh what they observe."""
        if self.fault in (None, FaultClass.UNKNOWN):
            return Weight.CONTEXT
        return Weight.CONVICTS if self.strength >= CONVICTING else Weight.HINTS

    @property
    def compiled(self) -> re.Pattern[str]:
        """The pattern, compiled when it is first needed: few rows ever are."""
        return _compiled(self.pattern or "|".join(re.escape(anchor) for anchor in self.anchors))

    @property
    def side(self) -> Origin:
        """Whose side the fault is on when this signature decides."""
        if self.origin is not None:
            return self.origin
        return CATALOGUE[self.fault].origin if self.fault else Origin.UNKNOWN


def named_groups(match: re.Match[str]) -> dict[str, str]:
    """What a match names; the number of an alternative (`host2`) is no part of its name."""
    named: dict[str, str] = {}
    for key, value in match.groupdict().items():
        if value:
            name = key.rstrip("0123456789")
            named[name] = f"{named[name]},{value}" if name in named else value
    return named


def root(
    fault: FaultClass,
    name: str,
    anchors: str | tuple[str, ...],
    strength: float,
    source: str,
    pattern: str | None = None,
    *,
    part: Part = Part.ROOT,
    origin: Origin | None = None,
    sets: str = "",
    when: tuple[tuple[str, str], ...] = (),
    physical: bool = False,
    per_minute: float = 0.0,
    own: bool = False,
    follows: tuple[str, ...] = (),
) -> Signature:
    """A row that speaks for a class."""
    return Signature(
        name, _texts(anchors), part, fault, strength, source, pattern,
        origin, sets, when, physical, per_minute=per_minute, own=own, follows=follows,
    )  # fmt: skip


def aside(
    part: Part,
    name: str,
    anchors: str | tuple[str, ...],
    source: str,
    pattern: str | None = None,
    *,
    sets: str = "",
    when: tuple[tuple[str, str], ...] = (),
) -> Signature:
    """A row that speaks for no class: a victim, teardown, context or harmless line."""
    return Signature(
        name, _texts(anchors), part, None, 0.0, source, pattern, sets=sets, when=when
    )  # fmt: skip


def healthy(
    name: str,
    anchors: str | tuple[str, ...],
    strength: float,
    source: str,
    pattern: str | None = None,
    *,
    settles: tuple[str, ...] = (),
) -> Signature:
    """A row that proves health: `strength` is how far it does so for the whole log."""
    return Signature(
        name, _texts(anchors), Part.HEALTHY, None, strength, source, pattern, settles=settles
    )  # fmt: skip


def _texts(anchors: str | tuple[str, ...]) -> tuple[str, ...]:
    return (anchors,) if isinstance(anchors, str) else anchors
