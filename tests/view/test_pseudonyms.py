"""Pseudonyms: one a name, the same everywhere, known by its look, and translated back at home."""

from enum import Enum

import msgspec
import pytest

from brctl.engine.recording.look import Look
from brctl.view.recorded.originals import names_left
from brctl.view.recorded.pseudonyms import FORMS, NameKind, Profile, Pseudonyms

NODES = ("n1", "n10", "gpu-rack1-n04", "Worker7")


def known(profile: Profile = Profile.VENDOR) -> Pseudonyms:
    names = Pseudonyms(b"k" * 32, profile)
    names.learn(NameKind.NODE, NODES)
    names.learn(NameKind.JOB, ["train"])
    return names


@pytest.mark.parametrize(
    ("text", "renamed"),
    [
        ("n1 and n10, N1", "node-x0001 and node-x0002, node-x0001"),
        ("n1.site:22 n1-ib0 n1_rank0", "node-x0001.site:22 node-x0001-ib0 node-x0001_rank0"),
        ("gpu-rack1-n04.log", "node-x0003.log"),
        ("gpu-rack1-n040 n1x xn1 nn10", "gpu-rack1-n040 n1x xn1 nn10"),
        ("worker7: job train, train_loss 2", "node-x0004: job job-x001, train_loss 2"),
        ("127.0.0.1 255.255.255.0", "127.0.0.1 255.255.255.0"),
        ("at 12:34:56 in c10::Error", "at 12:34:56 in c10::Error"),
    ],
)  # fmt: skip
def test_a_name_is_renamed_where_it_stands_as_a_word(text: str, renamed: str) -> None:
    """Beside points, hyphens and underscores too; a longer name is never cut."""
    assert known().rename(text) == renamed


def test_addresses_of_one_subnet_stay_in_one() -> None:
    names = known()
    near, beside, far = names.rename("10.7.1.4 10.7.1.5 10.200.1.4").split()
    assert near.split(".")[:3] == beside.split(".")[:3] != far.split(".")[:3]
    assert near.split(".")[0] == far.split(".")[0]
    assert "10.7.1.4" not in near
    assert names.rename("ip-10-7-1-4") == f"ip-{near.replace('.', '-')}"


@pytest.mark.parametrize(
    "text",
    [
        "10.7.1.4",
        "aa:bb:cc:dd:ee:0f",
        "fe80::a8bb:ccff:fedd:ee0f",
        "GPU-43a7ff34-cfcf-5d56-88b7-83ce64ca26ca",
        "n1",
    ],
)
def test_what_is_renamed_twice_is_renamed_once_and_found_again_at_home(text: str) -> None:
    names = known(Profile.PUBLIC)
    once = names.rename(f"at {text}, {text}").split(", ")[1]
    assert once != text
    assert names.rename(once) == once
    assert (names.original(once) or ("", ""))[1] in (
        text,
        "fe80:0000:0000:0000:a8bb:ccff:fedd:ee0f",
    )
    assert names.original("node-x0099") is None


def test_a_vendor_gets_the_ids_of_devices() -> None:
    uuid = "GPU-43a7ff34-cfcf-5d56-88b7-83ce64ca26ca"
    assert known().rename(uuid) == uuid


def test_no_pseudonym_is_the_name_of_another_node() -> None:
    names = Pseudonyms(b"k" * 32)
    names.learn(NameKind.NODE, ["node-x0001", "node-x0002", "n3"])
    given = names.names[NameKind.NODE]
    assert not set(given) & set(given.values())
    assert len(set(given.values())) == len(given)


def test_users_are_known_by_their_homes() -> None:
    names = known()
    names.learn_users("no such file: /home/alice/train.py; /home/ubuntu/x")
    said = names.rename("alice at /home/alice, /home/ubuntu")
    assert said == "user-x001 at /home/user-x001, /home/ubuntu"


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("at n10 only", {"n10"}),
        ("file gpu-rack1-n04.log", {"gpu-rack1-n04"}),
        ("bjEgaXMgZG93biBoYXJk", {"n1"}),
        ("q=at%20n1%20", {"n1"}),
        ("train_loss 1.0", set()),
        ("n100 xn1", set()),
    ],
)
def test_a_name_that_is_left_is_found_plain_and_packed(text: str, left: set[str]) -> None:
    """The proof shares nothing with the renaming it checks."""
    assert names_left(text, [*NODES, "train"]) == left


def _enumerations(read: object) -> set[type[Enum]]:
    """The enumerations a reader of this type knows."""
    found: set[type[Enum]] = set()
    seen, left = set(), [msgspec.inspect.type_info(read)]
    while left:
        one = left.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, msgspec.inspect.EnumType):
            found.add(one.cls)
        for part in (
            "types",
            "fields",
            "item_type",
            "item_types",
            "key_type",
            "value_type",
            "type",
        ):
            inner = getattr(one, part, ())
            left += inner if isinstance(inner, (tuple, list)) else [inner]
    return found


def test_a_word_by_which_a_look_is_read_names_nobody() -> None:
    words = {str(word.value) for kind in _enumerations(Look) for word in kind}
    assert {"root", "context", "progressing"} <= words
    names = Pseudonyms(b"k" * 32)
    for kind in NameKind:
        if kind in FORMS:
            names.learn(kind, words)
    assert {word: names.rename(word) for word in words} == {word: word for word in words}
