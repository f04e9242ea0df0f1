"""Node sets: folding and expanding are inverse, hostile input is refused with its faulty part."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brctl.model.errors import UsageError
from brctl.model.nodeset import expand, fold

NAMES = st.from_regex(
    r"[a-z]{1,3}(-?[0-9]{1,4}){0,3}[a-z]{0,2}(\.[a-z0-9]{1,3}){0,2}", fullmatch=True
)


@given(st.sets(NAMES, min_size=1, max_size=40))
def test_expanding_what_was_folded_gives_the_same_names(names: set[str]) -> None:
    """No padding, order or irregular name is lost in a folded set."""
    assert set(expand(fold(names))) == names


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("gpu[001-003,017]", "gpu[001-003,017]"),
        ("n[1-10/3]", "n[1,4,7,10]"),
        ("n[1-5]!n[2-3]", "n[1,4-5]"),
        ("n[1-5]&n[4-9]", "n[4-5]"),
        ("n[1-3]^n[3-4]", "n[1-2,4]"),
        ("a,b,a", "a,b"),
        ("r[1-2]n[01-02]", "r1n[01-02],r2n[01-02]"),
    ],
)
def test_operators_are_read_from_left_to_right(text: str, folded: str) -> None:
    assert fold(expand(text)) == folded


def test_groups_take_part_in_arithmetic() -> None:
    groups = {"standby": ["n9", "n10"]}
    assert expand("n[8-9]&@standby", lambda name: groups[name]) == ("n9",)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("n[3-1]", "runs backwards"),
        ("n[1-", "brackets"),
        ("", "names no node"),
        ("n]1[", "brackets"),
        ("n[a-b]", "'a-b' is not a number"),
        ("n[1-99999999]", "too large"),
        ("n[1-999]x[1-999]", "more than"),
        ("n1,,n2", "nothing stands before"),
        ("n1;rm -rf", "';'"),
        ("$(reboot)", "'$'"),
        ("@nobody", "no group"),
    ],
)
def test_a_set_that_makes_no_sense_is_refused_with_its_faulty_part(text: str, part: str) -> None:
    with pytest.raises(UsageError, match=part.replace("$", r"\$").replace("(", r"\(")):
        expand(text)


@pytest.mark.parametrize(
    ("names", "folded"),
    [
        (["n1.dc2.example.com", "n2.dc2.example.com"], "n[1-2].dc2.example.com"),
        (["ip-10-0-0-1.ec2.internal", "ip-10-0-0-2.ec2.internal"], "ip-10-0-0-[1-2].ec2.internal"),
        (["10.0.0.1", "10.0.0.2"], "10.0.0.[1-2]"),
        (["gpu.r1.example.com", "gpu.r2.example.com"], "gpu.r[1-2].example.com"),
    ],
)
def test_domain_names_fold_where_machines_are_counted(names: list[str], folded: str) -> None:
    """A number of the domain must not keep the machines apart."""
    assert fold(names) == folded
    assert set(expand(folded)) == set(names)


def test_wildcards_mean_names_that_are_known() -> None:
    known = ("gpu1", "gpu2", "gpu12", "login")
    assert expand("gpu?", known=known) == ("gpu1", "gpu2")
    assert expand("*!gpu*", known=known) == ("login",)
    assert expand("g*[1-2]", known=known) == ("gpu1", "gpu2", "gpu12")
    with pytest.raises(UsageError, match="matched 0"):
        expand("cpu*", known=known)
    with pytest.raises(UsageError, match="'\\*' cannot stand"):
        expand("gpu*")
