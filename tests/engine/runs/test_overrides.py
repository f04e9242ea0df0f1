"""A person may pass a guard by name, if every guards file trusts one of their unix groups."""

import asyncio
import os
import pwd
import subprocess
import sys
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from brctl.engine.controller.people import groups_of, person
from brctl.engine.runs.plan import prepare, refuse_guarded
from brctl.engine.runs.read_run import read_run
from brctl.engine.runs.remediate import answer, create_run
from brctl.engine.runs.run_files import RunRequest, load_request
from brctl.journal.store import read_journal
from brctl.library.guards import SiteGuards, load_guards
from brctl.library.playbooks import load_playbook
from brctl.library.shipped import shipped_dir
from brctl.model.errors import GuardError
from brctl.model.exit_codes import ExitCode
from brctl.model.runs.calendar import Calendar, Span
from brctl.model.runs.event import EventType
from brctl.model.runs.playbook import GuardSpec, Json, Need, Policy
from brctl.playbook.overrides import Override
from tests.fakes.run_context import NOON, FakeContext, FakePeople, example_verdict, fake_context
from tests.fakes.run_here import carry

SWAP = load_playbook(shipped_dir("playbooks") / "swap-and-resume.yaml")
CORDON = load_playbook(shipped_dir("playbooks") / "cordon.yaml")
ANN = Override("blast_radius", "ann", "rack is on fire", NOON)
BY_HAND: dict[str, Json] = {"suspects": "n3", "job": "demo"}


def strict_context(folder: Path, *groups: str) -> FakeContext:
    """One node was taken already, and one is the limit."""
    limit = GuardSpec("blast_radius", {"max_nodes": 1}, "g.yaml:3")
    context = fake_context(
        folder, guards=SiteGuards((limit,), override_groups=frozenset(groups)),
        groups={"ann": ("lead",), "bob": ("sre",)},
    )  # fmt: skip
    asyncio.run(context.backend.cordon(["n1"], "dcops", "fan", NOON))
    return context


def test_an_override_is_recorded_with_who_why_and_group(tmp_path: Path) -> None:
    """The journal and the plan both say it; the numbers stay readable."""
    context = strict_context(tmp_path, "lead")
    prepared = asyncio.run(prepare(context, CORDON, None, {"nodes": "n2"}, ANN))
    run_dir = create_run(context, prepared, RunRequest("ann", override=ANN))
    assert load_request(run_dir).override == ANN
    assert carry(context, run_dir) is ExitCode.OK
    checked = [e for e in read_journal(run_dir).events if e.type is EventType.GUARDS_CHECKED]
    (row,) = [r for r in checked[0].fields["guards"] if r["overridden_by"]]  # type: ignore[union-attr,index,call-overload]  # rows
    assert row["overridden_by"] == "ann (group lead): rack is on fire"  # type: ignore[index,call-overload]  # a row
    assert "= 2 > 1" in str(row["says"])  # type: ignore[index,call-overload]  # a row


@pytest.mark.parametrize(
    ("groups", "override", "expected"),
    [
        (("lead",), None, "or (group lead) --override blast_radius -m TEXT"),
        (("lead",), replace(ANN, by="bob"), "bob is not in group lead"),
        ((), ANN, "no group may override guards here"),
        (("lead",), replace(ANN, why=" "), "needs a reason"),
        (("lead",), replace(ANN, at=NOON - timedelta(hours=2)), "more than an hour old"),
        (("lead",), replace(ANN, guard="standby"), "fewer nodes"),
    ],
)
def test_an_override_that_does_not_count_refuses_with_the_reason(
    groups: tuple[str, ...], override: Override | None, expected: str, tmp_path: Path
) -> None:
    """Neither somebody else's group, nor silence, nor yesterday's decision."""
    context = strict_context(tmp_path, *groups)
    prepared = asyncio.run(prepare(context, CORDON, None, {"nodes": "n2"}, override))
    with pytest.raises(GuardError) as caught:
        refuse_guarded(prepared)
    assert expected in str(caught.value.hint)
    assert context.world.read()["effects"] == ["cordon n1"]


def test_the_run_itself_asks_again_whether_the_override_counts(tmp_path: Path) -> None:
    """A request written by hand into the run's folder gains nothing."""
    context = strict_context(tmp_path, "lead")
    prepared = asyncio.run(prepare(context, CORDON, None, {"nodes": "n2"}, ANN))
    run_dir = create_run(context, prepared, RunRequest("ann", override=ANN))
    context = replace(context, people=FakePeople())
    assert carry(context, run_dir) is ExitCode.REFUSED


def test_nobody_overrides_the_lock(tmp_path: Path) -> None:
    """Two runs on one node corrupt each other, whoever allowed it."""
    context = strict_context(tmp_path, "lead")
    from brctl.journal.locks import Leases

    Leases(context.state_dir).acquire(["job:demo"], "R-0099", context.clock.now())
    override = replace(ANN, guard="lock")
    plan = asyncio.run(prepare(context, SWAP, example_verdict(), {}, override)).plan
    (lock,) = [g for g in plan.guards if g.kind == "lock"]
    assert not lock.ok
    assert "cannot be overridden" in lock.way_out


def test_every_guards_file_must_trust_the_group(tmp_path: Path) -> None:
    """A user's own file cannot open what /etc closes."""
    files = []
    for name, line in (("etc", "override: {allow_groups: [lead, sre]}"), ("own", "")):
        files.append(tmp_path / name)
        files[-1].write_text(f"apiVersion: brctl.dev/v1\nkind: Guards\n{line}\n")
    assert load_guards(files[:1]).override_groups == {"lead", "sre"}
    assert load_guards(files).override_groups == set()
    assert load_guards([]).override_groups == set()


def test_a_freeze_that_began_since_the_plan_asks_a_person_at_the_gate(tmp_path: Path) -> None:
    """What needed nobody needs one now, and one suffices."""
    freeze = GuardSpec("freeze", {"calendar": "c", "action": "require_approval"}, "g.yaml:1")
    context = fake_context(tmp_path, guards=SiteGuards((freeze,)), calendars={"c": Calendar("c")})
    prepared = asyncio.run(prepare(context, SWAP, example_verdict()))
    assert prepared.plan.people is Need.NONE
    run_dir = create_run(context, prepared, RunRequest("cron"))
    hour = timedelta(hours=1)
    context.calendars.known["c"] = Calendar("c", (Span(NOON - hour, NOON + hour),))
    assert asyncio.run(prepare(context, SWAP, example_verdict())).plan.people is Need.ONE
    assert carry(context, run_dir) is ExitCode.WAITING
    answer(context, run_dir, "ann", yes=True, typed="swap 1")
    assert carry(context, run_dir) is ExitCode.OK


def test_a_yes_from_outside_the_role_is_refused_when_it_is_given(tmp_path: Path) -> None:
    """The person learns at once, and the run keeps waiting for the right one."""
    context = fake_context(
        tmp_path, guards=SiteGuards((), ((Policy(Need.ONE, role="lead"),),)),
        groups={"ann": ("lead",)},
    )  # fmt: skip
    prepared = asyncio.run(prepare(context, SWAP, None, BY_HAND))
    assert prepared.plan.roles == ("lead",)
    run_dir = create_run(context, prepared, RunRequest("oncall"))
    assert carry(context, run_dir) is ExitCode.WAITING
    with pytest.raises(GuardError, match="bob is not in group lead"):
        answer(context, run_dir, "bob", yes=True, typed="swap 1")
    assert carry(context, run_dir) is ExitCode.WAITING
    answer(context, run_dir, "ann", yes=True, typed="swap 1")
    assert carry(context, run_dir) is ExitCode.OK
    assert read_run(run_dir).record.started_by == "oncall"


def test_nobody_becomes_two_people_by_setting_a_variable(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The kernel's account decides; sudo's word counts only where sudo made us root."""
    account = pwd.getpwuid(os.getuid()).pw_name
    for name in ("USER", "LOGNAME"):
        monkeypatch.setenv(name, "somebody-else")
    assert person({}) == account
    daemon, nowhere = {"SUDO_USER": "daemon"}, tmp_path / "loginuid"
    assert person(daemon, nowhere) == ("daemon" if os.getuid() == 0 else account)
    assert person({"SUDO_USER": "no-such-account"}, nowhere) == account


@pytest.mark.skipif(os.getuid() != 0, reason="only root is asked who it was before")
@pytest.mark.parametrize("claim", ["daemon", "root", "bin", ""])
def test_root_is_who_logged_in_whatever_sudo_user_says(claim: str, tmp_path: Path) -> None:
    """The kernel's login uid outlives sudo, su and every variable."""
    login = tmp_path / "loginuid"
    login.write_text(str(pwd.getpwnam("games").pw_uid))
    assert person({"SUDO_USER": claim}, login) == "games"
    login.write_text("0")
    assert person({"SUDO_USER": claim}, login) == "root"
    login.write_text("4294967295")
    assert person({"SUDO_USER": claim}, login) == (claim or "root")


@pytest.mark.skipif(os.getuid() != 0, reason="needs CAP_AUDIT_CONTROL")
def test_the_kernels_own_login_uid_is_read() -> None:
    """In a process that logged in as somebody, with SUDO_USER of somebody else."""
    script = "from brctl.engine.controller.people import person; print(person())"
    setting = 'echo 1 > /proc/self/loginuid || exit 77; exec "$@"'
    done = subprocess.run(
        ["sh", "-c", setting, "sh", sys.executable, "-c", script],
        env={**os.environ, "SUDO_USER": "games"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode == 77:
        pytest.skip("this kernel lets nobody set a login uid")
    assert done.stdout.strip() == pwd.getpwuid(1).pw_name, done.stderr


def test_root_alone_is_in_no_group() -> None:
    """Whoever shares the root password has no name to be trusted by."""
    assert groups_of("root") == set()
    assert groups_of("no-such-account") == set()
    assert "daemon" in groups_of("daemon")
