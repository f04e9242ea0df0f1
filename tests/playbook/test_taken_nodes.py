"""What a watcher may know of the nodes that a playbook takes, before it runs."""

import pytest

from brctl.library.playbooks import load_playbook
from brctl.library.shipped import shipped_dir
from brctl.playbook.taken_nodes import TakenNodes, taken_nodes


@pytest.mark.parametrize(
    ("name", "taken"),
    [
        ("restart-in-place", TakenNodes.NONE),
        ("code-rollback", TakenNodes.NONE),
        ("cordon", TakenNodes.NAMED),
        ("swap-and-resume", TakenNodes.NAMED),
        ("group-evict", TakenNodes.NAMED),
        ("stop-time-checks", TakenNodes.FOUND),
        ("replay", TakenNodes.FOUND),
        ("locate-corruption", TakenNodes.FOUND),
        ("bisect-then-swap", TakenNodes.FOUND),
    ],
)
def test_the_verbs_of_a_playbook_say_whether_it_takes_nodes(name: str, taken: TakenNodes) -> None:
    assert taken_nodes(load_playbook(shipped_dir("playbooks") / f"{name}.yaml")) is taken
