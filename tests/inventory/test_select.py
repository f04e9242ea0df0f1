"""-w and -x: names, groups, and nothing that is not there."""

import pytest

from brctl.inventory.select import LiveFact, LiveState, facts_asked, jobs_asked, select
from brctl.model.errors import UnavailableError, UsageError
from brctl.model.inventory import Inventory, Node, NodeRole
from brctl.model.sweeps.sweep import Health

NODES = {
    f"n{i}": Node(f"n{i}", "localhost", labels={"rack": f"r{i // 4}", "leaf": "L7"})
    for i in range(8)
} | {"s1": Node("s1", "localhost", role=NodeRole.STANDBY)}
FLEET = Inventory(NODES, {"golden": ("n1", "n2"), "job:48213": ("n4",)})
NOW = LiveState(
    jobs={"llm": ("n6", "n7")},
    owners={"n0": {"brctl", "R-1", "ann"}, "n5": {"root"}, "elsewhere": {"root"}},
    states={"n1": Health.CRITICAL, "n2": Health.UNKNOWN, "n3": Health.OK},
    me="ann",
)


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
        ("@job:48213", None, ("n4",)),
        ("@cordoned", None, ("n0", "n5")),
        ("@by:brctl", None, ("n0",)),
        ("@by:R-1,@by:root", None, ("n0", "n5")),
        ("@by:me", None, ("n0",)),
        ("@state:crit", None, ("n1",)),
        ("@state:unknown", None, ("n0", "n2", "n4", "n5", "n6", "n7", "s1")),
        ("@state:not-swept", "@active", ("s1",)),
    ],
)
def test_groups_and_names_combine(
    include: str | None, exclude: str | None, expected: tuple[str, ...]
) -> None:
    """Exclude wins; the caller's groups count too."""
    assert select(FLEET, include, exclude, NOW) == expected


@pytest.mark.parametrize(
    ("include", "exclude", "problem"),
    [
        ("n9", None, "n9: not in the inventory"),
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


@pytest.mark.parametrize("text", ["@job:llm", "@cordoned", "@by:me", "n1,@state:crit"])
def test_what_nobody_looked_up_is_an_error_and_no_empty_set(text: str) -> None:
    """Silence is not an answer: not about where a job runs, and not about who cordoned what."""
    with pytest.raises(UnavailableError):
        select(FLEET, text)


def test_a_state_that_does_not_exist_is_a_typing_error() -> None:
    """`@state:critical` would match nothing for ever."""
    with pytest.raises(UsageError, match="no such state"):
        select(FLEET, "@state:critical", None, NOW)


def test_a_text_asks_only_for_what_it_names() -> None:
    """`-w n[1-4]` must ask no scheduler."""
    assert facts_asked("n[1-4],@rack:r1", None) == frozenset()
    assert facts_asked("@job:llm!n6", "@by:me") == {LiveFact.PLACEMENT, LiveFact.CORDONS}
    assert jobs_asked("@job:llm!@job:b", None) == ("llm", "b")
