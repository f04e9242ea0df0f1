"""`brctl lab`: a cluster up, broken, healed and down by typed commands."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from brctl.cli.main import run
from brctl.lab.cluster import take_down
from brctl.lab.faults import FAULTS
from brctl.lab.spec import LabPaths

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def lab_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Command]:
    """`brctl lab ...` on a lab of this test's own."""
    monkeypatch.setenv("BRCTL_LAB_DIR", str(tmp_path / "lab"))

    def call(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = run(["lab", *arguments])
        return code, *capsys.readouterr()

    yield call
    take_down(LabPaths(tmp_path / "lab"))


def test_a_newcomer_can_break_and_heal_a_cluster(lab_command: Command) -> None:
    """Every command says what it did and what to type next; what is broken shows everywhere."""
    code, text, hints = lab_command("up", "--nodes", "2", "--standbys", "1", "--isolation", "none")
    assert code == 0
    assert text.splitlines()[1].split()[:3] == ["NODE", "ROLE", "ADDRESS"]
    assert "job start" in hints

    code, text, hints = lab_command("break", "gpu-lost", "n2", "--gpu", "3")
    assert (code, text) == (0, "a GPU of n2 has fallen off the bus; its rank died of it\n")
    assert "dx" in hints

    code, text, _ = lab_command("status", "-o", "json")
    document = json.loads(text)
    assert (code, document["exit_code"], document["kind"]) == (1, 1, "LabStatus")
    assert [node["faults"] for node in document["nodes"]] == [[], ["gpu-lost"], []]

    assert lab_command("heal")[:2] == (0, "healed n2\n")
    assert lab_command("status")[0] == 0
    assert lab_command("down")[0] == 0
    assert lab_command("down")[0] == 0
    assert lab_command("status")[0] == 64


def test_selectors_name_the_nodes_to_break_and_to_heal(lab_command: Command) -> None:
    """They mean the lab's nodes, whatever context the person works in; a fault is for one."""
    assert lab_command("up", "--nodes", "3", "--standbys", "1", "--isolation", "none")[0] == 0
    assert lab_command("break", "gpu-lost", "@standby")[:2] == (
        0, "a GPU of n4 has fallen off the bus; its rank died of it\n",
    )  # fmt: skip
    assert lab_command("break", "gpu-lost", "n[1-3]!n[2-3]")[0] == 0
    assert lab_command("break", "gpu-ecc", "@job:lab-train!n[1-2]")[0] == 0

    code, text, errors = lab_command("break", "gpu-lost", "@all")
    assert (code, text) == (64, "")
    assert "@all: means 4 nodes; name one" in errors
    code, _, errors = lab_command("break", "gpu-lost", "n9")
    assert code == 64
    assert "n9" in errors

    assert lab_command("heal", "@job:lab-train")[:2] == (0, "healed n[1,3]\n")
    assert lab_command("heal", "n[1-3]")[:2] == (0, "nothing was broken\n")
    assert lab_command("heal", "@standby")[:2] == (0, "healed n4\n")


@pytest.mark.parametrize(
    ("arguments", "output"),
    [
        (("up", "--isolation", "netn"), "did you mean 'netns'"),
        (("up", "--nodes", "0"), "a lab has 1 to 64 nodes"),
        (("break", "gpu-lost", "n1"), "no lab is up"),
        (("explode",), "No such command"),
    ],
)
def test_what_makes_no_sense_is_one_error(
    lab_command: Command, arguments: tuple[str, ...], output: str
) -> None:
    """Exit 64, one sentence, no traceback."""
    code, text, errors = lab_command(*arguments)
    assert (code, text) == (64, "")
    assert output in errors
    assert "Traceback" not in errors


def test_every_fault_says_what_it_takes(lab_command: Command) -> None:
    """The list names all faults once, and which need nodes with namespaces."""
    code, text, _ = lab_command("faults", "--json")
    faults = {row["fault"]: row["needs"] for row in json.loads(text)["faults"]}
    assert code == 0
    assert set(faults) == set(FAULTS)
    assert {name for name, needs in faults.items() if needs == "netns"} == {
        "link-slow", "link-cut", "disk-full",
    }  # fmt: skip


def test_a_lab_is_built_only_in_a_folder_of_ones_own(lab_command: Command, tmp_path: Path) -> None:
    """Somebody's link, or a folder others may write, would have files written where they like."""
    elsewhere, place = tmp_path / "elsewhere", tmp_path / "lab"
    elsewhere.mkdir()
    place.symlink_to(elsewhere)
    code, _, errors = lab_command("up", "--nodes", "1", "--isolation", "none")
    assert code == 64
    assert "this is a link" in errors
    place.unlink()
    place.mkdir()
    place.chmod(0o777)
    code, _, errors = lab_command("up", "--nodes", "1", "--isolation", "none")
    assert code == 64
    assert "mode 0777" in errors
    assert list(elsewhere.iterdir()) == list(place.iterdir()) == []
    place.rmdir()
