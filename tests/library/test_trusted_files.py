"""Files that others may write are not obeyed: every kind of them, by mode, owner and folder."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from brctl.engine.application.runs import find_playbook
from brctl.inventory.own_yaml import load_own_yaml
from brctl.library.calendars import CalendarSource, load_calendar
from brctl.library.checks import load_check
from brctl.library.config import load_settings
from brctl.library.guards import load_guards
from brctl.library.jobs import load_job
from brctl.library.log_rules import load_log_rules
from brctl.library.new_check import write_new_check
from brctl.library.notify_settings import TicketProgram
from brctl.library.shipped import shipped_dir
from brctl.library.trusted_files import why_untrusted
from brctl.model.errors import ConfigError
from brctl.notify.http import DeliveryError
from brctl.notify.ledger import DeliveryLedger
from brctl.notify.tickets import Tickets
from tests.cli.test_play import CONFIG, INVENTORY, JOB

SOMEBODY = 65534
NEEDS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
RULES = """\
apiVersion: brctl.dev/v1
kind: LogRules
rules:
  - name: site.lustre
    contains: [LustreError]
    class: storage-checkpoint
    probability: 0.8
    why: our file system
    examples: ["LustreError: 11-0: operation failed"]
"""
CORDON = shipped_dir("playbooks") / "cordon.yaml"


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of file, how one is made and how it is read."""

    make: Callable[[Path], Path]
    read: Callable[[Path], object]


def written(name: str, text: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace("FOLDER", "/tmp").replace("PYTHON", "python3"))
        return path

    return make


def site_check(folder: Path) -> Path:
    return write_new_check("site.tmp", folder)


KINDS = {
    "config": Kind(written("config.yaml", CONFIG), lambda path: load_settings({}, config=path)),
    "inventory": Kind(written("inventory.yaml", INVENTORY), load_own_yaml),
    "job": Kind(written("job.yaml", JOB), load_job),
    "rules": Kind(
        written("rules.d/site.yaml", RULES), lambda path: load_log_rules([path.parent.parent])
    ),
    "check": Kind(lambda folder: site_check(folder) / "check.yaml", load_check),
    "probe": Kind(
        lambda folder: site_check(folder) / "probe.py",
        lambda path: load_check(path.parent / "check.yaml"),
    ),
    "playbook": Kind(
        written("playbooks/cordon.yaml", CORDON.read_text()),
        lambda path: find_playbook([path.parent.parent], "cordon"),
    ),
    "playbook by its path": Kind(
        written("mine.yaml", CORDON.read_text()), lambda path: find_playbook([], str(path))
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_of_ones_own_is_obeyed(kind: str, tmp_path: Path) -> None:
    path = KINDS[kind].make(tmp_path)
    path.chmod(0o644)
    assert KINDS[kind].read(path)


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_that_everybody_may_write_is_refused(kind: str, tmp_path: Path) -> None:
    """The error says which file, whose, with what mode, and what to do."""
    path = KINDS[kind].make(tmp_path)
    path.chmod(0o666)
    with pytest.raises(ConfigError, match=r"others may write it") as caught:
        KINDS[kind].read(path)
    for word in (str(path), path.owner(), "0666", f"chmod go-w {path}"):
        assert word in str(caught.value)


@NEEDS_ROOT
@pytest.mark.parametrize("kind", KINDS)
def test_a_file_of_somebody_else_is_refused(kind: str, tmp_path: Path) -> None:
    path = KINDS[kind].make(tmp_path)
    os.chown(path, SOMEBODY, SOMEBODY)
    with pytest.raises(ConfigError, match=f"belongs to user {SOMEBODY}, neither root nor you"):
        KINDS[kind].read(path)


@pytest.mark.parametrize("kind", KINDS)
def test_a_folder_that_everybody_may_write_makes_its_files_theirs(
    kind: str, tmp_path: Path
) -> None:
    """They can put another file there."""
    path = KINDS[kind].make(tmp_path)
    path.parent.chmod(0o777)
    with pytest.raises(ConfigError, match=f"its folder {path.parent} others may write it"):
        KINDS[kind].read(path)


@pytest.mark.parametrize("kind", KINDS)
def test_a_folder_further_up_that_everybody_may_write_makes_its_files_theirs(
    kind: str, tmp_path: Path
) -> None:
    """They can put another folder of the same name there."""
    path = KINDS[kind].make(tmp_path / "ops" / "brctl")
    tmp_path.chmod(0o777)
    with pytest.raises(ConfigError, match=f"its folder {tmp_path} others may write it"):
        KINDS[kind].read(path)
    tmp_path.chmod(0o1777)
    assert KINDS[kind].read(path)


@NEEDS_ROOT
def test_a_folder_of_somebody_else_further_up_is_theirs_even_when_sticky(tmp_path: Path) -> None:
    """The owner of a folder may rename what lies in it, sticky or not."""
    path = KINDS["config"].make(tmp_path / "theirs" / "ours")
    os.chown(tmp_path / "theirs", SOMEBODY, SOMEBODY)
    for mode in (0o755, 0o1777):
        (tmp_path / "theirs").chmod(mode)
        assert f"its folder {tmp_path / 'theirs'} belongs to user {SOMEBODY}" in why_untrusted(path)


def test_a_calendar_that_everybody_may_write_opens_no_window(tmp_path: Path) -> None:
    """It is read as one with a problem, for which every guard that asks it refuses."""
    path = tmp_path / "windows.ics"
    path.write_text("BEGIN:VCALENDAR\nVERSION:2.0\nEND:VCALENDAR\n")
    sources = {"windows": CalendarSource("windows", "config.yaml:9", file=path)}
    now = datetime(2026, 7, 5, tzinfo=UTC)
    assert load_calendar(sources, "windows", now).problem == ""
    path.chmod(0o666)
    problem = load_calendar(sources, "windows", now).problem
    assert f"{path}: refused: others may write it" in problem
    path.chmod(0o644)
    tmp_path.chmod(0o777)
    assert f"its folder {tmp_path}" in load_calendar(sources, "windows", now).problem


def test_a_file_in_a_folder_like_tmp_is_ones_own(tmp_path: Path) -> None:
    """Under the sticky bit nobody replaces it; a second name of it may be anybody's."""
    path = KINDS["config"].make(tmp_path)
    tmp_path.chmod(0o1777)
    assert why_untrusted(path) == ""
    (tmp_path / "second").hardlink_to(path)
    assert "others may write it" in why_untrusted(path)


@NEEDS_ROOT
def test_a_group_is_others_unless_it_is_the_owners_own(tmp_path: Path) -> None:
    """With umask 002 every file of a user is writable by a group that has nobody else in it."""
    path = KINDS["config"].make(tmp_path)
    path.chmod(0o664)
    os.chown(path, 0, 0)
    assert why_untrusted(path) == ""
    os.chown(path, 0, SOMEBODY)
    assert "mode 0664" in why_untrusted(path)


@NEEDS_ROOT
def test_a_link_is_as_good_as_both_of_its_ends(tmp_path: Path) -> None:
    """A folder of theirs that a link of ours leads into, and a link of theirs to our file."""
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    theirs.mkdir()
    ours.mkdir()
    os.chown(theirs, SOMEBODY, SOMEBODY)
    for folder in (ours, theirs):
        (folder / "config.yaml").write_text(CONFIG)
    (ours / "link").symlink_to(theirs / "config.yaml")
    (theirs / "link").symlink_to(ours / "config.yaml")
    assert why_untrusted(ours / "config.yaml") == ""
    assert f"its folder {theirs}" in why_untrusted(ours / "link")
    assert f"its folder {theirs}" in why_untrusted(theirs / "link")


def test_limits_that_others_may_write_are_warned_about(tmp_path: Path) -> None:
    """They only ever make things stricter, so they are kept."""
    path = tmp_path / "guards.yaml"
    path.write_text("apiVersion: brctl.dev/v1\nkind: Guards\nblast_radius: {max_nodes: 2}\n")
    path.chmod(0o666)
    site = load_guards([path])
    assert len(site.guards) == 1
    assert "its limits protect nobody" in site.warnings[0]


def test_a_ticket_program_that_others_may_write_is_not_started(tmp_path: Path) -> None:
    program = tmp_path / "ticket"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\necho T-1\n")
    program.chmod(0o777)
    at = datetime(2026, 7, 5, tzinfo=UTC)
    ledger = DeliveryLedger(tmp_path / "state")
    tickets = Tickets(TicketProgram(command=(str(program),)), ledger, 5.0, lambda: at)
    with pytest.raises(DeliveryError, match="others may write it"):
        tickets.open("key", "R-0001", {})
    assert not (tmp_path / "ran").exists()
    program.chmod(0o755)
    assert tickets.open("key", "R-0001", {}) == "T-1"


def test_a_broken_playbook_stops_nobody_who_asks_for_another(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """`cordon` is found and the file is said; whoever asks for the broken one is told why."""
    folder = tmp_path / "playbooks"
    folder.mkdir()
    (folder / "own.yaml").write_text("kind: [")
    (folder / "open.yaml").write_text(CORDON.read_text().replace("name: cordon", "name: theirs"))
    (folder / "open.yaml").chmod(0o666)
    assert find_playbook([tmp_path], "cordon").path == str(CORDON)
    assert [record.message.split(":")[0] for record in caplog.records] == ["left out", "left out"]
    for name in ("own", "theirs"):
        with pytest.raises(ConfigError):
            find_playbook([tmp_path], name)


def test_a_broken_playbook_of_the_wanted_name_is_never_replaced_by_the_shipped_one(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "playbooks"
    folder.mkdir()
    (folder / "a.yaml").write_text("kind: Playbook\nmetadata: {name: cordon}\nsteps: 3\n")
    with pytest.raises(ConfigError, match=r"a\.yaml"):
        find_playbook([tmp_path], "cordon")
