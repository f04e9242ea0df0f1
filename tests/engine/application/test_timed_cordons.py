"""Cordons with an end: who gives nodes back then, and what keeps them."""

import asyncio
from contextlib import closing
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from time import monotonic

import pytest

from brctl.backends.contract import Cordon
from brctl.backends.static.state import change_state, read_state
from brctl.cli.commands import sweep as sweep_module
from brctl.engine.application.timed_cordons import ended_cordons
from brctl.engine.controller.clock import now
from brctl.engine.runs.run_files import PLAYBOOK, RunInputs, RunRequest, save_inputs, save_request
from brctl.journal.follow import follow
from brctl.journal.store import keyed_journal, new_run, run_dirs
from brctl.library.playbooks import load_playbook
from brctl.library.shipped import shipped_dir
from brctl.model.runs.event import EventType
from brctl.model.runs.playbook import Json
from brctl.model.runs.result import RunState
from brctl.model.units import rfc3339
from brctl.playbook.plan import read_input
from tests.cli.test_run import call
from tests.fakes.site_files import local_config, write_site

OWN = """\
apiVersion: brctl.dev/v1
kind: Inventory
defaults: {labels: {kernel_log: FOLDER/kmsg}}
nodes: {n1: {}, n2: {}}
"""
CRON = ("--checks", "gpu.xid", "--cron")
XID = "4,2,{boot_us},-;NVRM: Xid (PCI:0000:17:00): 79, pid=1, GPU has fallen off the bus.\n"
OVER = now() - timedelta(minutes=1)


def a_run(state_dir: Path, nodes: list[Json], until: str = "", playbook: str = "cordon") -> str:
    """A run about these nodes, as its folder tells it; what it calls itself on them."""
    run_dir = new_run(state_dir)
    (run_dir / PLAYBOOK).write_text((shipped_dir("playbooks") / f"{playbook}.yaml").read_text())
    save_inputs(run_dir, RunInputs({"nodes": nodes, "until": until}, {}, "", {}))
    save_request(run_dir, RunRequest(by="ann"))
    return f"brctl:{run_dir.name}"


def ended(state_dir: Path, owner: str, at: datetime | None = None) -> list[str]:
    cordons = {"n1": Cordon("n1", owner, "fan", None)}
    over = ended_cordons(cordons, run_dirs(state_dir), at or now())
    return [node for node, cordon in over.items() if not cordon.held_by]


def end_run(state_dir: Path, owner: str, result: RunState) -> None:
    """The run's process came to an end of its own."""
    run_dir = state_dir / "runs" / owner.removeprefix("brctl:")
    with closing(keyed_journal(run_dir)) as journal:
        journal.append(EventType.RUN_STARTED, OVER, {"by": "ann"})
        journal.append(EventType.END, OVER, {"result": result.value, "exit_code": 0})


def test_a_cordon_is_over_when_the_run_that_made_it_says_so(tmp_path: Path) -> None:
    """Not before, and not without a word about it."""
    owner = a_run(tmp_path, ["n1"], rfc3339(OVER))
    assert ended(tmp_path, owner) == ["n1"]
    assert ended(tmp_path, owner, OVER - timedelta(seconds=1)) == []
    assert ended(tmp_path, a_run(tmp_path, ["n1"])) == []


@pytest.mark.parametrize("owner", ["ann", "brctl:ann", "brctl:R-9999", "brctl:R-0001/../x", ""])
def test_what_others_wrote_into_the_scheduler_ends_no_cordon(tmp_path: Path, owner: str) -> None:
    """An owner names one of our own runs, or nothing."""
    a_run(tmp_path, ["n1"], rfc3339(OVER))
    assert ended(tmp_path, owner) == []


@pytest.mark.parametrize("until", ["soon", "2026-01-01T00:00:00", "9" * 5000])
def test_an_end_that_cannot_be_read_is_none(tmp_path: Path, until: str) -> None:
    """The cordon stays."""
    assert ended(tmp_path, a_run(tmp_path, ["n1"], until)) == []


@pytest.mark.parametrize("name", ["cordon", "drain"])
@pytest.mark.parametrize("until", ["2h", "2026-07-05T12:00:00", "9999-12-31T23:59:59-05:00"])
def test_an_end_that_is_no_moment_is_refused_before_anything_is_cordoned(
    name: str, until: str
) -> None:
    """Cron would never lift the cordon, and never say so."""
    spec = load_playbook(shipped_dir("playbooks") / f"{name}.yaml").inputs["until"]
    with pytest.raises(ValueError, match="is not a moment such as"):
        read_input(spec, until)
    assert read_input(spec, "2026-07-05T14:00:00+02:00") == "2026-07-05T12:00:00.000Z"


def test_a_later_run_on_the_node_has_the_last_word(tmp_path: Path) -> None:
    """Somebody cordoned it again, or it was swapped out; one about another node says nothing."""
    owner = a_run(tmp_path, ["n1"], rfc3339(OVER))
    a_run(tmp_path, ["n2"])
    assert ended(tmp_path, owner) == ["n1"]
    a_run(tmp_path, ["n[1-2]", "n1"])
    assert ended(tmp_path, owner) == []


def test_a_later_run_that_cannot_be_read_keeps_the_cordon(tmp_path: Path) -> None:
    """It may be about this node."""
    owner = a_run(tmp_path, ["n1"], rfc3339(OVER))
    new_run(tmp_path)
    assert ended(tmp_path, owner) == []


@pytest.mark.parametrize(
    ("result", "lifted"),
    [(RunState.LOCKED, ["n1"]), (RunState.OK, []), (RunState.NEEDS_HUMAN, [])],
)
def test_a_lift_that_found_the_node_locked_is_tried_again(
    tmp_path: Path, result: RunState, lifted: list[str]
) -> None:
    """It did nothing; one that did something, or failed at it, is for people to look at."""
    owner = a_run(tmp_path, ["n1"], rfc3339(OVER))
    end_run(tmp_path, a_run(tmp_path, ["n1"], playbook="uncordon"), result)
    assert ended(tmp_path, owner) == lifted


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Two nodes that are this machine; the cordon of n1 is over."""
    (tmp_path / "kmsg").write_text("6,1,1000,-;eth0: link becomes ready\n")
    owner = a_run(tmp_path / "state", ["n1"], rfc3339(OVER))
    cordons = {"n1": Cordon("n1", owner, "fan", OVER)}
    change_state(static_file(tmp_path), lambda state: replace(state, cordons=cordons))
    return write_site(tmp_path, local_config(), OWN)


def static_file(folder: Path) -> Path:
    return folder / "state" / "static" / "here.json"


async def _end_of(run_dir: Path) -> None:
    async for _ in follow(run_dir):
        pass


def test_cron_gives_a_well_node_back_with_a_run(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the journal as any other change, and said once."""
    folder = config.parent
    assert call(sweep_module, config, *CRON)[0] == 0
    assert (
        "R-0002 starts to give back n1: the time of its cordon is over" in capsys.readouterr().err
    )
    asyncio.run(_end_of(folder / "state" / "runs" / "R-0002"))
    assert read_state(static_file(folder)).cordons == {}
    call(sweep_module, config, *CRON)
    assert capsys.readouterr().err == ""


def test_cron_keeps_a_broken_node_out_and_says_so_once(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever set the time did not know of the fault; no run begins."""
    folder = config.parent
    (folder / "kmsg").write_text(XID.format(boot_us=int(monotonic() * 1e6)))
    assert call(sweep_module, config, *CRON)[0] == 2
    said = capsys.readouterr().err
    assert f"the cordon of n1 was to end at {rfc3339(OVER)} and stays: n1 crit gpu.xid" in said
    call(sweep_module, config, *CRON)
    assert capsys.readouterr().err == ""
    assert list(read_state(static_file(folder)).cordons) == ["n1"]
    assert [path.name for path in run_dirs(folder / "state")] == ["R-0001"]


def test_cron_says_once_which_run_keeps_a_node_out(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Somebody cordoned it again, and cron lifts it no more."""
    a_run(config.parent / "state", ["n1"])
    call(sweep_module, config, *CRON)
    said = capsys.readouterr().err
    assert "stays: R-0002 (cordon, starting) has to do with it since; then: brctl uncordon" in said
    call(sweep_module, config, *CRON)
    assert capsys.readouterr().err == ""


def test_cron_says_once_that_a_node_it_gave_back_is_still_out(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its run ended after the sweep that began it, which could not know."""
    call(sweep_module, config, *CRON)
    asyncio.run(_end_of(config.parent / "state" / "runs" / "R-0002"))
    cordons = {"n1": Cordon("n1", "brctl:R-0001", "fan", OVER)}
    change_state(static_file(config.parent), lambda state: replace(state, cordons=cordons))
    capsys.readouterr()
    call(sweep_module, config, *CRON)
    assert "and stays: R-0002 (uncordon, ok) has to do with it" in capsys.readouterr().err
    call(sweep_module, config, *CRON)
    assert capsys.readouterr().err == ""


def test_a_sweep_by_hand_and_a_readonly_one_give_nothing_back(config: Path) -> None:
    """Only cron does, and only where something may be changed."""
    call(sweep_module, config, "--checks", "gpu.xid")
    call(sweep_module, config, *CRON, "--readonly")
    assert [path.name for path in run_dirs(config.parent / "state")] == ["R-0001"]
