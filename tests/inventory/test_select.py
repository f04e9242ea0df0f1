"""-w and -x: names, groups, and nothing that is not there."""

import pytest

from brctl.inventory.select import select
from brctl.model.errors import UsageError
from brctl.model.inventory import Inventory, Node, NodeRole

NODES = {
    f"n{i}": Node(f"n{i}", "localhost", labels={"rack": f"r{i // 4}", "leaf": "L7"})
    for i in range(8)
} | {"s1": Node("s1", "localhost", role=NodeRole.STANDBY)}
FLEET = Inventory(NODES, {"golden": ("n1", "n2")})


@pytest.mark.parametrize(
    ("include", "exclude", "expected"),
    [
        (None, None, tuple(NODES)),
        ("n[1-3]", None, ("n1", "n2", "n3")),
        ("n[1-3]", "n2", ("n1", "n3")),
        ("@standby", None, ("s1",)),
        ("@all!@active", None, ("s1",)),
        ("@golden", None, ("n1", "n2")),
        ("@rack:r1", "@golden", ("n4", "n5", "n6", "n7")),
        ("@rack:r0&@golden", None, ("n1", "n2")),
        ("@job:llm", None, ("n6", "n7")),
        ("@all", "@leaf:L7", ("s1",)),
    ],
)
def test_groups_and_names_combine(
    include: str | None, exclude: str | None, expected: tuple[str, ...]
) -> None:
    """Exclude wins; the caller's groups count too."""
    assert select(FLEET, include, exclude, {"job:llm": ("n6", "n7")}) == expected


@pytest.mark.parametrize(
    ("include", "exclude", "problem"),
    [
        ("n9", None, "not in the inventory: n9"),
        ("n[1-99]", None, "not in the inventory: n[8-99]"),
        ("n1", "x7", "x7: not in the inventory"),
        ("@golde", None, "did you mean 'golden'?"),
        ("@rack:r9", None, "@rack:r9: no such group"),
        ("@golden!@golden", None, "matched 0 of 9 nodes"),
        ("n1", "@all", "n1 without @all: matched 0 of 9 nodes"),
        ("n[1-", None, "brackets do not match"),
    ],
)
def test_what_matches_nothing_is_an_error(include: str, exclude: str | None, problem: str) -> None:
    """A typing error must not become a green run on nothing."""
    with pytest.raises(UsageError) as error:
        select(FLEET, include, exclude)
    assert problem in str(error.value)
