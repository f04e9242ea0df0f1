"""Which nodes `-w` and `-x` mean: folded names and groups, checked against the inventory."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from types import MappingProxyType

from brctl.model.errors import UsageError, did_you_mean
from brctl.model.inventory import Inventory, NodeRole
from brctl.model.nodeset import expand, fold

_BUILT_IN: Mapping[str, Callable[[Inventory], Iterable[str]]] = {
    "all": lambda inventory: inventory.names(),
    "active": lambda inventory: inventory.names(NodeRole.ACTIVE),
    "standby": lambda inventory: inventory.names(NodeRole.STANDBY),
}
BUILT_IN_GROUPS = tuple(_BUILT_IN)
NESTING_LIMIT = 32
_NO_GROUPS: Mapping[str, Iterable[str]] = MappingProxyType({})


def select(
    inventory: Inventory,
    include: str | None = None,
    exclude: str | None = None,
    groups: Mapping[str, Iterable[str]] = _NO_GROUPS,
) -> tuple[str, ...]:
    """Node names that `include` means without those `exclude` means; exclude wins.

    Args:
        inventory: Every name must be in it.
        include: Folded names and `@groups`; None means all nodes.
        exclude: The same, taken away.
        groups: Groups that only the caller knows, by name without `@`, such as `job:llm`.

    Raises:
        UsageError: A name or group is unknown, or no node is left: a typing error must not become
            a green run on nothing.
    """
    lookup = partial(group_members, inventory, groups)
    chosen = inventory.names() if include is None else expand(include, lookup)
    without = frozenset(expand(exclude, lookup)) if exclude else frozenset()
    for text, names in ((include, chosen), (exclude, without)):
        _refuse_strangers(inventory, text, names)
    left = tuple(name for name in chosen if name not in without)
    if not left:
        asked = f"{include or '@all'}" + (f" without {exclude}" if exclude else "")
        raise UsageError(f"{asked}: matched 0 of {len(inventory.nodes)} nodes")
    return left


def group_members(
    inventory: Inventory, groups: Mapping[str, Iterable[str]], name: str
) -> Iterable[str]:
    """Members of a group: the caller's, declared, built in, or `label:value`."""
    for known in (groups, inventory.groups):
        if name in known:
            return known[name]
    if name in _BUILT_IN:
        return _BUILT_IN[name](inventory)
    label, colon, value = name.partition(":")
    members = [n.name for n in inventory.nodes.values() if colon and n.labels.get(label) == value]
    if members:
        return members
    known_names = sorted({*groups, *inventory.groups, *_BUILT_IN, *label_groups(inventory)})
    raise UsageError(f"@{name}: no such group; {did_you_mean(name, known_names)}")


def label_groups(inventory: Inventory) -> tuple[str, ...]:
    """Groups that labels make, `rack:r12`, sorted."""
    found = {f"{k}:{v}" for node in inventory.nodes.values() for k, v in node.labels.items()}
    return tuple(sorted(found))


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


def _refuse_strangers(inventory: Inventory, text: str | None, names: Iterable[str]) -> None:
    strangers = [name for name in names if name not in inventory.nodes]
    if strangers:
        hint = did_you_mean(strangers[0], inventory.nodes) if len(strangers) == 1 else None
        raise UsageError(f"{text}: not in the inventory: {fold(strangers)[:200]}", hint=hint)
