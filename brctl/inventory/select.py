"""Which nodes a text means: folded names and `@selectors`, one table for every word of brctl.

-w, -x, positional nodes, inputs of playbooks and the TUI's filter all come here. Pure: what only
this moment knows (where jobs run, cordons, what the newest sweep saw) is a `LiveState`,
gathered by `brctl/engine/controller/selection.py`. What is not known is an error: a selector that
cannot be answered must not become an empty set.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial

from brctl.model.errors import UnavailableError, UsageError, did_you_mean
from brctl.model.inventory import Inventory, NodeRole
from brctl.model.nodeset import expand, fold, groups_in
from brctl.model.selectors import NOT_SWEPT, STATES
from brctl.model.sweeps.sweep import Health

NESTING_LIMIT = 32


class LiveFact(StrEnum):
    """What a selector must know besides the inventory."""

    PLACEMENT = "where jobs run"
    CORDONS = "which nodes are cordoned"
    STATES = "what sweeps saw"


@dataclass(frozen=True, slots=True)
class LiveState:
    """What is known now besides the inventory.

    Attributes:
        jobs: Nodes of the declared jobs, where their ranks run now.
        owners: For each cordoned node the names its owner goes by: `brctl`, a run, a person.
        states: What the newest sweeps made of each node; a node they did not ask is not in it.
        me: Whom `@by:me` means.
        missing: Why a fact is not known.
    """

    jobs: Mapping[str, Iterable[str]] = field(default_factory=dict)
    owners: Mapping[str, Collection[str]] = field(default_factory=dict)
    states: Mapping[str, Health] = field(default_factory=dict)
    me: str = ""
    missing: Mapping[LiveFact, str] = field(default_factory=dict)


NOTHING_KNOWN = LiveState(missing=dict.fromkeys(LiveFact, "nobody asked"))


@dataclass(frozen=True, slots=True)
class Selector:
    """One form of a selector.

    Attributes:
        form: As `SELECTOR_FORMS` writes it.
        fact: What it needs besides the inventory; None for nothing.
        members: The nodes of a name without `@`, or None when the name is not of this form.
    """

    form: str
    members: Callable[[Inventory, LiveState, str], Iterable[str] | None]
    fact: LiveFact | None = None

    def fits(self, name: str) -> bool:
        """Whether a name, without `@`, is written in this form."""
        prefix, colon, _ = self.form[1:].partition(":")
        return name.startswith(prefix + colon) if colon else name == prefix


def _of_job(_: Inventory, live: LiveState, name: str) -> Iterable[str] | None:
    return live.jobs.get(name.partition(":")[2])


def _cordoned(inventory: Inventory, live: LiveState, _: str) -> Iterable[str]:
    """The scheduler may have more nodes than the inventory, and out of service too."""
    return [node for node in live.owners if node in inventory.nodes]


def _cordoned_by(inventory: Inventory, live: LiveState, name: str) -> Iterable[str]:
    owner_name = name.partition(":")[2]
    owner = live.me if owner_name == "me" else owner_name
    return [n for n in _cordoned(inventory, live, name) if owner in live.owners[n]]


def _in_state(inventory: Inventory, live: LiveState, name: str) -> Iterable[str]:
    state = name.partition(":")[2]
    if state not in STATES:
        raise UsageError(f"@{name}: no such state; {did_you_mean(state, STATES)}")
    states = {state, NOT_SWEPT} if state == Health.UNKNOWN.value else {state}
    return [node for node in inventory.nodes if live.states.get(node, NOT_SWEPT) in states]


def _declared(inventory: Inventory, _: LiveState, name: str) -> Iterable[str] | None:
    return inventory.groups.get(name)


def _all(inventory: Inventory, _: LiveState, _name: str) -> Iterable[str]:
    return inventory.names()


def _active(inventory: Inventory, _: LiveState, _name: str) -> Iterable[str]:
    return inventory.names(NodeRole.ACTIVE)


def _standby(inventory: Inventory, _: LiveState, _name: str) -> Iterable[str]:
    return inventory.names(NodeRole.STANDBY)


def _labelled(inventory: Inventory, _: LiveState, name: str) -> Iterable[str] | None:
    label, colon, value = name.partition(":")
    found = [n.name for n in inventory.nodes.values() if colon and n.labels.get(label) == value]
    return found or None


_GROUP = Selector("@GROUP", _declared)
_LABEL = Selector("@LABEL:VALUE", _labelled)
_BUILT_IN = (
    Selector("@all", _all),
    Selector("@active", _active),
    Selector("@standby", _standby),
)
_OF_THE_MOMENT = (
    Selector("@job:NAME", _of_job, LiveFact.PLACEMENT),
    Selector("@cordoned", _cordoned, LiveFact.CORDONS),
    Selector("@by:OWNER", _cordoned_by, LiveFact.CORDONS),
    Selector("@state:STATE", _in_state, LiveFact.STATES),
)
SELECTORS = (*_BUILT_IN, _GROUP, _LABEL, *_OF_THE_MOMENT)
"""Every form there is; what each means stands in `SELECTOR_FORMS`."""

BUILT_IN_GROUPS = tuple(s.form[1:] for s in (*_BUILT_IN, *_OF_THE_MOMENT) if ":" not in s.form)
"""Names that a file of brctl's own may not declare as a group."""


def select(
    inventory: Inventory,
    include: str | None = None,
    exclude: str | None = None,
    live: LiveState = NOTHING_KNOWN,
) -> tuple[str, ...]:
    """Node names that `include` means without those `exclude` means; exclude wins.

    Args:
        inventory: Every name must be in it.
        include: Folded names and `@selectors`; None means all nodes.
        exclude: The same, taken away.
        live: What is known now; see `facts_asked`.

    Raises:
        UsageError: A name or group is unknown, or no node is left: a typing error must not become
            a green run on nothing.
        UnavailableError: A selector asks for what is not known now.
    """
    chosen = inventory.names() if include is None else names_in(inventory, include, live)
    without = frozenset(names_in(inventory, exclude, live)) if exclude else frozenset()
    for text, names in ((include, chosen), (exclude, without)):
        _refuse_unknown(inventory, text, names)
    left = tuple(name for name in chosen if name not in without)
    if not left:
        owner_name = f"{include or '@all'}" + (f" without {exclude}" if exclude else "")
        raise UsageError(f"{owner_name}: matched 0 of {len(inventory.nodes)} nodes")
    return left


def names_in(inventory: Inventory, text: str, live: LiveState) -> tuple[str, ...]:
    """What a text names, whether or not the inventory has it: a node of the past, or of a filter.

    Raises:
        UsageError: The text is malformed, or names no selector there is.
        UnavailableError: A selector asks for what is not known now.
    """
    return expand(text, partial(members_of, inventory, live), inventory.nodes)


def facts_asked(*texts: str | None) -> frozenset[LiveFact]:
    """What must be known to read these texts."""
    names = [name for text in texts if text for name in groups_in(text)]
    found = [s.fact for s in _OF_THE_MOMENT for name in names if s.fits(name)]
    return frozenset(fact for fact in found if fact is not None)


def jobs_asked(*texts: str | None) -> tuple[str, ...]:
    """Names of the jobs whose nodes these texts ask for."""
    names = [name for text in texts if text for name in groups_in(text)]
    return tuple(name.partition(":")[2] for name in names if name.startswith("job:"))


def members_of(inventory: Inventory, live: LiveState, name: str) -> Iterable[str]:
    """Members of a selector, its name without `@`.

    The live state comes first, then the inventory's groups, what is built in, labels.

    Raises:
        UsageError: No such selector; names the nearest.
        UnavailableError: What it asks for is not known now.
    """
    for selector in (s for s in _OF_THE_MOMENT if s.fits(name)):
        if selector.fact is not None and selector.fact in live.missing:
            raise UnavailableError(f"@{name}: {live.missing[selector.fact]}")
        found = selector.members(inventory, live, name)
        if found is not None:
            return found
    for selector in (_GROUP, *(s for s in _BUILT_IN if s.fits(name)), _LABEL):
        found = selector.members(inventory, live, name)
        if found is not None:
            return found
    known = known_groups(inventory, live.jobs)
    raise UsageError(f"@{name}: no such group; {did_you_mean(name, known)}")


def known_groups(inventory: Inventory, jobs: Iterable[str] = ()) -> tuple[str, ...]:
    """Every selector that can be spelled out here, without `@`, sorted."""
    labels = {f"{k}:{v}" for node in inventory.nodes.values() for k, v in node.labels.items()}
    states = {f"state:{state}" for state in STATES}
    placed = {f"job:{name}" for name in jobs}
    return tuple(sorted({*inventory.groups, *BUILT_IN_GROUPS, "by:me", *labels, *states, *placed}))


class DeclaredGroups:
    """Groups as a file writes them; they may name each other, each is worked out once."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts
        self._done: dict[str, tuple[str, ...]] = {}

    def members(self, name: str, through: tuple[str, ...] = ()) -> tuple[str, ...]:
        """Members of one group.

        Raises:
            UsageError: A group is unknown, or groups name each other in a circle or too deep.
        """
        if name in self._done:
            return self._done[name]
        if name in through or len(through) > NESTING_LIMIT:
            raise UsageError(f"groups name each other: @{' -> @'.join((*through[-5:], name))}")
        if name not in self._texts:
            raise UsageError(f"@{name}: no such group; {did_you_mean(name, self._texts)}")
        inner = partial(self.members, through=(*through, name))
        self._done[name] = expand(self._texts[name], inner)
        return self._done[name]


def _refuse_unknown(inventory: Inventory, text: str | None, names: Iterable[str]) -> None:
    unknown = [name for name in names if name not in inventory.nodes]
    if unknown:
        hint = did_you_mean(unknown[0], inventory.nodes) if len(unknown) == 1 else None
        folded = fold(unknown)
        which = "" if folded == text else f": {folded[:200]}"
        raise UsageError(f"{text}: not in the inventory{which}", hint=hint)
