"""A pickle from a node is data or it is refused."""

import pickle
from collections import OrderedDict
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brctl.evidence.flight.plain_pickle import UnsafePickleError, load_plain_pickle

SCALARS = st.none() | st.booleans() | st.integers(-(2**62), 2**62) | st.text(max_size=8)
PLAIN = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=4), inner, max_size=4)
        | st.tuples(inner, inner)
    ),
    max_leaves=12,
)


class Calls:
    """What an attacker sends: unpickling it would run a function."""

    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return (Path.touch, (self.target,))


@given(PLAIN, st.sampled_from([2, 3, 4, 5]))
def test_plain_data_comes_back_as_it_was(value: object, protocol: int) -> None:
    """None, numbers, text, lists, tuples and dictionaries of any protocol since 2."""
    assert load_plain_pickle(pickle.dumps(value, protocol)) == value


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4, 5])
def test_nothing_a_pickle_names_is_ever_called(tmp_path: Path, protocol: int) -> None:
    """The file the attacker wanted does not appear."""
    target = tmp_path / "pwned"
    with pytest.raises(UnsafePickleError, match="not allowed"):
        load_plain_pickle(pickle.dumps(Calls(target), protocol))
    assert not target.exists()


def test_classes_are_refused_even_harmless_ones() -> None:
    """The allow-list holds no class at all."""
    with pytest.raises(UnsafePickleError, match="not allowed"):
        load_plain_pickle(pickle.dumps(OrderedDict(a=1)))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"junk",
        pickle.dumps([1, 2, 3])[:-2],
        b"\x80\x02r\xff\xff\xff\x7f.",
        b"\x80\x02]\x94h\x00a.",
        b"\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\x7fx.",
        b"\x80\x02u.",
    ],
)
def test_broken_pickles_are_refused(data: bytes) -> None:
    """Cut, empty, absurd lengths and memo tables of gigabytes: one error, no crash."""
    with pytest.raises(UnsafePickleError):
        load_plain_pickle(data)
