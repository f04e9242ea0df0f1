"""`ansible.playbook` with the real ansible-core: against a real sshd, and on this machine.

In the tests of whole runs the nodes of the fake cluster are all this machine (`ssh.transport:
local`), so Ansible itself, its plugins and its processes are real and only the machines are not.
"""

import asyncio
import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from brctl.actions.ansible.playbook import AnsiblePlaybook
from brctl.actions.child import end_children
from brctl.actions.contract import ActionFailed, FailureKind, NothingDone
from brctl.engine.runs.context import JournalledRun, for_run
from brctl.engine.runs.plan import prepare
from brctl.engine.runs.read_run import read_run
from brctl.engine.runs.remediate import answer, create_run
from brctl.engine.runs.run_files import RunRequest
from brctl.journal.store import read_journal
from brctl.library.guards import SiteGuards
from brctl.library.playbooks import read_playbook
from brctl.model.errors import ConfigError
from brctl.model.exit_codes import ExitCode
from brctl.model.inventory import Inventory
from brctl.model.runs.event import EventType
from brctl.model.runs.playbook import GuardSpec, Json, Playbook
from tests.contract.transport_sites import open_site
from tests.fakes.ansible import use_ansible, use_fake
from tests.fakes.run_context import FakeContext, fake_context
from tests.fakes.run_here import carry
from tests.timeouts import TIMEOUT_S

LIMIT = SiteGuards((GuardSpec("blast_radius", {"max_nodes": 6}, "g.yaml:1"),))

TASKS = """\
- hosts: all
  gather_facts: false
  tasks:
"""
WRITE = (
    TASKS
    + """\
    - name: Write the word
      ansible.builtin.copy: {content: "{{ word }}", dest: "%s/{{ inventory_hostname }}"}
"""
)
HEAD = """\
apiVersion: brctl.dev/v1
kind: Playbook
metadata: {name: site, title: Run what the site has, risk: low}
inputs:
  nodes: {type: nodeset, default: "n[1-2]"}
  word: {type: string, default: hello}
approval: {gate_before: site, policy: [{need: none}]}
steps:
"""
STEP = """\
  - id: site
    uses: ansible.playbook
    with: {nodes: $(inputs.nodes), playbook: %s, vars: {word: $(inputs.word)}, %s}
    safety: %s
    on_failure: stop
"""


def site_file(folder: Path, text: str) -> Path:
    path = folder / "site.yml"
    path.write_text(text)
    path.chmod(0o644)
    return path


def playbook_of(path: Path, more: str = "check: never", safety: str = "disruptive") -> Playbook:
    return read_playbook((HEAD + STEP % (path, more, safety)).encode(), "site.yaml")


def start(context: FakeContext, playbook: Playbook, **values: Json) -> tuple[Path, ExitCode]:
    with context.world.change() as data:
        data["dead"] = []
    prepared = asyncio.run(prepare(context, playbook, None, values))
    run_dir = create_run(context, prepared, RunRequest("ann", yes=True))
    return run_dir, carry(context, run_dir)


def result_of(run_dir: Path) -> dict[str, Json]:
    events = read_journal(run_dir).events
    return dict(next(e.fields for e in reversed(events) if e.type is EventType.STEP_RESULT))


@pytest.fixture
def context(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeContext:
    use_ansible(monkeypatch)
    (tmp_path / "out").mkdir()
    return fake_context(tmp_path, guards=LIMIT)


def test_a_run_says_per_node_what_changed_and_the_second_time_nothing_did(
    context: FakeContext, tmp_path: Path
) -> None:
    """A value is data: what looks like a template reaches the node as it is."""
    word = "{{ lookup('pipe', 'touch PWNED') }} $(x) ; ü".replace("PWNED", str(tmp_path / "pwned"))
    playbook = playbook_of(site_file(tmp_path, WRITE % (tmp_path / "out")))
    run_dir, code = start(context, playbook, word=word)
    assert code is ExitCode.OK, result_of(run_dir)
    assert (tmp_path / "out" / "n2").read_text() == word
    assert not (tmp_path / "pwned").exists()
    out = {"ok": ["n1", "n2"], "changed": ["n1", "n2"], "failed": [], "unreachable": []}
    result = result_of(run_dir)
    assert (result["out"], result["changed"]) == (out, True)
    log = run_dir / "stdout" / "ansible-site.log"
    assert "PLAY RECAP" in log.read_text()
    assert log.stat().st_mode & 0o777 == 0o600
    run_dir, code = start(context, playbook, word=word)
    assert (code, result_of(run_dir)["changed"]) == (ExitCode.OK, False)


def test_planning_touches_nothing_unless_the_step_asks_for_check(
    context: FakeContext, tmp_path: Path
) -> None:
    """`check: plan` says task by task what would change; the default names the file's digest."""
    path = site_file(tmp_path, WRITE % (tmp_path / "out"))
    plan = asyncio.run(prepare(context, playbook_of(path, "check: plan"))).plan
    assert [(c.subject, c.what) for c in plan.changes] == [
        ("n1", "Write the word (--check)"), ("n2", "Write the word (--check)"),
    ]  # fmt: skip
    first = asyncio.run(prepare(context, playbook_of(path))).plan
    assert "(sha256 " in first.changes[0].what
    path.write_text(path.read_text() + "    - ansible.builtin.debug: {}\n")
    assert asyncio.run(prepare(context, playbook_of(path))).plan.digest != first.digest
    assert list((tmp_path / "out").iterdir()) == []


def test_a_look_runs_in_check_mode_and_changes_nothing(
    context: FakeContext, tmp_path: Path
) -> None:
    path = site_file(tmp_path, WRITE % (tmp_path / "out"))
    run_dir, code = start(context, playbook_of(path, "check: always", "read"))
    result = result_of(run_dir)
    assert (code, result["changed"], list((tmp_path / "out").iterdir())) == (ExitCode.OK, False, [])
    assert result["out"]["changed"] == ["n1", "n2"]  # type: ignore[index, call-overload]  # a mapping
    with pytest.raises(ConfigError, match="step site is read, so it needs `check: always`"):
        playbook_of(path, "check: plan", "read")
    with pytest.raises(ConfigError, match="`check`: unknown 'plans'; did you mean 'plan'"):
        playbook_of(path, "check: plans")


def test_a_failing_task_names_node_task_and_reason(context: FakeContext, tmp_path: Path) -> None:
    """One node fails: the step fails, unless it may, and then later steps know who did."""
    fail = TASKS + (
        "    - name: Look at the disk\n"
        "      ansible.builtin.fail: {msg: disk is full token=abc123}\n"
        "      when: inventory_hostname == 'n2'\n"
    )
    path = site_file(tmp_path, fail)
    run_dir, code = start(context, playbook_of(path))
    assert code is ExitCode.NEEDS_HUMAN
    actual = str(result_of(run_dir)["error"])
    assert actual.startswith(
        "1 ok, 0 changed; n2 failed: Look at the disk: disk is full token=[red"
    )
    run_dir, code = start(context, playbook_of(path, "may_fail: true"))
    assert code is ExitCode.OK
    assert read_run(run_dir).record.steps["site"].out["failed"] == ["n2"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            TASKS.replace("all", "dgx") + "    - ansible.builtin.debug: {}\n",
            "no play was for n[1-2]",
        ),
        (TASKS.replace("all", "n1") + "    - ansible.builtin.debug: {}\n", "no play was for n2"),
        ("- hosts: [all\n", "ended without a result"),
    ],
)
def test_nodes_nobody_speaks_of_are_never_counted_as_ok(
    text: str, expected: str, context: FakeContext, tmp_path: Path
) -> None:
    """Ansible exits 0 when no host matches; that is not success."""
    run_dir, code = start(context, playbook_of(site_file(tmp_path, text)))
    assert code is ExitCode.NEEDS_HUMAN
    assert expected in str(result_of(run_dir)["error"])


def _is_alive(pid: int) -> bool:
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False


@pytest.mark.parametrize("how", ["out of time", "second Ctrl-C"])
async def test_a_play_that_is_cut_off_leaves_no_process(
    how: str, context: FakeContext, tmp_path: Path
) -> None:
    """Nothing goes on changing nodes behind the step, although workers leave the group."""
    started = tmp_path / "started"
    sleep = TASKS + f"    - ansible.builtin.shell: echo $$ > {started}; exec sleep 3600\n"
    arguments: dict[str, Json] = {"nodes": ["n1"], "playbook": str(site_file(tmp_path, sleep))}
    task = asyncio.create_task(
        AnsiblePlaybook().apply(
            for_run(context, JournalledRun(context, tmp_path, "R-0001")), arguments
        )
    )
    until = time.monotonic() + TIMEOUT_S
    while not (started.exists() and started.read_text().strip()):
        assert time.monotonic() < until, "Ansible did not start"
        await asyncio.sleep(0.05)
    if how == "out of time":
        task.cancel()
    else:
        end_children()
    with pytest.raises((ActionFailed, asyncio.CancelledError)):
        await task
    while _is_alive(int(started.read_text())):
        assert time.monotonic() < until, "what Ansible started goes on"
        await asyncio.sleep(0.05)


def test_what_cannot_be_run_is_refused_before_anything_happens(
    context: FakeContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = site_file(tmp_path, WRITE % tmp_path)
    site, arguments = (
        for_run(context, JournalledRun(context, tmp_path, "R-0001")),
        {"nodes": ["n1"], "playbook": str(path)},
    )
    wrong: list[tuple[dict[str, Json], str]] = [
        ({"playbook": "site.yml"}, "must be an absolute path"),
        ({"playbook": str(tmp_path / "none.yml")}, "no such file"),
        ({"nodes": ["n9"]}, "n9 is not in the inventory"),
        ({"vars": {"a b": 1}}, "is no name of a variable"),
        ({"vars": {"ansible_host": "elsewhere"}}, "would lead to another machine"),
        ({"tags": ["-x"]}, "is no tag"),
        ({"check": "sometimes"}, "`check` is one of always, plan, never"),
    ]
    for more, expected in wrong:
        with pytest.raises(NothingDone, match=expected):
            asyncio.run(AnsiblePlaybook().apply(site, {**arguments, **more}))
    path.chmod(0o666)
    with pytest.raises(NothingDone, match="can be written by anybody; chmod o-w"):
        asyncio.run(AnsiblePlaybook().apply(site, arguments))
    path.chmod(0o644)
    monkeypatch.setenv("PATH", "/nowhere")
    expected = (
        "ansible-playbook is not installed; install it on this machine: pip install ansible-core"
    )
    with pytest.raises(NothingDone, match=expected):
        asyncio.run(AnsiblePlaybook().apply(site, arguments))
    plan = asyncio.run(prepare(context, playbook_of(path))).plan
    assert expected in plan.changes[0].what


def test_a_site_without_ansible_ends_as_if_nothing_was_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit 7 and the name of what to install: nothing was done, so nothing needs a human."""
    monkeypatch.setenv("PATH", "/nowhere")
    path = site_file(tmp_path, WRITE % tmp_path)
    run_dir, code = start(fake_context(tmp_path, guards=LIMIT), playbook_of(path))
    assert code is ExitCode.ROLLED_BACK
    assert str(result_of(run_dir)["error"]).endswith("apt install ansible-core; nothing was done")


def test_values_are_in_private_files_and_never_on_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stand-in for the program shows what it was given; afterwards the files are gone."""
    use_fake(tmp_path, monkeypatch)
    monkeypatch.setenv("WANDB_API_KEY", "s3cret")
    context = fake_context(tmp_path, guards=LIMIT)
    run_dir, _ = start(context, playbook_of(site_file(tmp_path, TASKS)), word="s3same")
    assert "ended without a result (exit status 7)" in str(result_of(run_dir)["error"])
    argv = (tmp_path / "argv").read_text().split()
    assert "s3same" not in " ".join(argv)
    assert not Path(argv[1]).exists()
    assert "s3cret" not in (tmp_path / "env").read_text()
    arguments = tmp_path / "given"
    assert '"word": !unsafe "s3same"' in (arguments / "variables.yaml").read_text().replace(
        "word:", '"word":'
    )
    assert (arguments / "variables.yaml").stat().st_mode & 0o777 == 0o600
    assert (arguments / "inventory.yaml").stat().st_mode & 0o777 == 0o600


def test_after_a_crash_a_person_says_whether_to_run_it_again(
    context: FakeContext, tmp_path: Path
) -> None:
    """A playbook leaves no mark to look at, so nobody can tell whether it was through."""
    playbook = playbook_of(site_file(tmp_path, WRITE % (tmp_path / "out")))
    run_dir, _ = start(context, playbook)
    events = run_dir / "events.ndjson"
    lines = events.read_text().splitlines(keepends=True)
    cut = next(i for i, line in enumerate(lines) if '"step.intent"' in line)
    events.write_text("".join(lines[: cut + 1]))
    assert carry(context, run_dir) is ExitCode.WAITING
    answer(context, run_dir, "ann", yes=True, typed="run site again")
    assert carry(context, run_dir) is ExitCode.OK


@pytest.mark.ssh
async def test_over_a_real_sshd_who_was_not_reached_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Known host keys, identity and port come from brctl; no connection outlives the step."""
    use_ansible(monkeypatch)
    word = tmp_path / "word"
    tasks = TASKS + f"    - ansible.builtin.copy: {{content: hello, dest: {word}}}\n"
    tasks += "    - ansible.builtin.command: printenv SSH_CONNECTION\n"
    async with open_site(tmp_path, real_sshd=True) as site:
        nodes = {node.name: node for node in (site.good, site.refusing, site.changed)}
        inventory = Inventory(nodes)
        context = replace(fake_context(tmp_path), ssh=site.ssh, inventory=inventory)
        arguments: dict[str, Json] = {
            "nodes": list(nodes), "playbook": str(site_file(tmp_path, tasks)), "may_fail": True,
        }  # fmt: skip
        bound = for_run(context, JournalledRun(context, tmp_path, "R-0001"))
        done = await AnsiblePlaybook().apply(bound, arguments)
        assert done.out == {
            "ok": ["good"], "changed": ["good"], "failed": [],
            "unreachable": ["refusing", "changed"],
        }  # fmt: skip
        assert word.read_text() == "hello"
        alone: dict[str, Json] = {**arguments, "nodes": ["refusing"], "may_fail": False}
        with pytest.raises(ActionFailed, match=r"refusing unreachable: .*refused") as caught:
            await AnsiblePlaybook().apply(bound, alone)
        assert caught.value.kind is FailureKind.TRANSPORT
        assert not [line for line in _processes() if str(tmp_path / "id") in line]


def _processes() -> list[str]:
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                found.append(Path(f"/proc/{name}/cmdline").read_bytes().decode("utf-8", "replace"))
            except OSError:
                continue
    return found
