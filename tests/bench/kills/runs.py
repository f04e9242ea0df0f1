"""Kill `fix` and `play` over the cluster in a file, then resume: every change is made once."""

import asyncio
import os
import random
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from brctl.engine.application.fix import choose_fix, plan_fix
from brctl.engine.incidents import verdict_store
from brctl.engine.incidents.verdict_store import StoredVerdict, VerdictState
from brctl.engine.runs.plan import Prepared, prepare
from brctl.engine.runs.read_run import read_run, read_runs
from brctl.engine.runs.remediate import create_run, resume_direction
from brctl.engine.runs.run_files import REQUEST as REQUEST_FILE
from brctl.engine.runs.run_files import RunRequest, save_request
from brctl.journal.locks import Leases
from brctl.library.config import Settings, load_settings
from brctl.library.playbooks import read_playbook
from brctl.model.runs.result import RunState
from brctl.playbook.run import Run
from tests.bench.kills.moments import Tally, draw, kill_after, parts, run_whole, unreadable
from tests.fakes import run_fake_world
from tests.fakes.run_context import ACTIVE, STANDBYS, FakeContext, example_verdict, fake_context

CONFIG = """\
apiVersion: brctl.dev/v1
kind: Config
context: fake
state_dir: state
contexts: {fake: {inventory: [{file: own.yaml}]}}
"""
ROLLING = b"""\
apiVersion: brctl.dev/v1
kind: Playbook
metadata: {name: rolling, title: Mark nodes and look at them, risk: low}
inputs: {nodes: {type: nodeset, required: true}}
for_each: {node: $(inputs.nodes), batch: 2}
guards: [{lock: {keys: [nodes]}}]
approval: {gate_before: checks, policy: [{need: one}]}
steps:
  - id: mark
    uses: node.label
    with: {nodes: $(node), set: {seen: yes}}
    safety: reversible
    undo: auto
  - id: checks
    uses: check.run
    with: {nodes: $(node)}
    safety: disruptive
  - id: tell
    uses: node.label
    with: {nodes: $(steps.checks.out.passed), set: {passed: yes}}
    safety: reversible
    undo: auto
"""
OWNED = len("brctl:R-")
"""Of an owner's name, what does not depend on how many runs there were before."""
LIVES = 6
"""Times that a run may have to be resumed before it must have ended."""
REQUEST = RunRequest("cron", yes=True)


@dataclass(frozen=True, slots=True)
class Kind:
    """One command that makes a run: what it finds, and what it plans."""

    prepare_site: Callable[[FakeContext], None]
    plan: Callable[[FakeContext, Settings], Prepared]


def _with_verdict(context: FakeContext) -> None:
    verdict = example_verdict(context.clock.now())
    verdict_store.save(context.state_dir, StoredVerdict(verdict, VerdictState.OPEN, ""))


def _fix(context: FakeContext, settings: Settings) -> Prepared:
    stored = verdict_store.load(context.state_dir, "V-1")
    fix = choose_fix(settings, stored, context.clock.now())
    return asyncio.run(plan_fix(context, fix)).prepared


def _with_sound_nodes(context: FakeContext) -> None:
    with context.world.change() as data:
        data["dead"] = []


def _play(context: FakeContext, _settings: Settings) -> Prepared:
    playbook = read_playbook(ROLLING, "rolling.yaml")
    return asyncio.run(prepare(context, playbook, None, {"nodes": "n[1-2],s1"}))


KINDS: Mapping[str, Kind] = {
    "fix": Kind(_with_verdict, _fix),
    "play": Kind(_with_sound_nodes, _play),
}


def _new_site(folder: Path, kind: Kind) -> Settings:
    folder.mkdir()
    (folder / "config.yaml").write_text(CONFIG)
    (folder / "log").touch()
    kind.prepare_site(fake_context(folder))
    return load_settings({"HOME": str(folder)}, config=folder / "config.yaml")


def _command(folder: Path, kind: Kind, settings: Settings) -> int:
    """Plan, make the run's folder and carry it out: command and run in one process."""
    context = fake_context(folder)
    run_dir = create_run(context, kind.plan(context, settings), REQUEST)
    return run_fake_world.main(run_dir)


def world_of(folder: Path) -> dict[str, object]:
    """The cluster without what depends on how long it took, or on a run's number."""
    data = fake_context(folder).world.read()
    for key in ("seconds", "step"):
        del data[key]
    for table in ("cordons", "reservations"):
        data[table] = {node: row["owner"][:OWNED] for node, row in data[table].items()}
    data["ranks"] = sorted(data["ranks"])
    data["labels"] = {
        node: {key: [value, owner[:OWNED], before] for key, (value, owner, before) in rows.items()}
        for node, rows in data["labels"].items()
    }
    # Two nodes of a batch have their turn in any order.
    data["effects"] = sorted(data["effects"])
    return data


def kill_runs(name: str, folder: Path, kills: int, seed: int) -> Tally:
    """Kill a command of this kind so often, each time on a cluster of its own."""
    kind, tally, random_ = KINDS[name], Tally(), random.Random(seed)
    whole = folder / "whole"
    settings = _new_site(whole, kind)
    code, length_s = run_whole(lambda: _command(whole, kind, settings), whole / "log")
    if code != 0:
        raise RuntimeError(f"{name}, which nobody killed, ended with {code}: {whole / 'log'}")
    expected = world_of(whole)
    while tally.kills < kills:
        site = folder / f"{name}-{tally.kills + tally.missed}"
        settings = _new_site(site, kind)
        moment_s = draw(random_, length_s)
        if not kill_after(moment_s, partial(_command, site, kind, settings), site / "log"):
            tally.missed += 1
        else:
            tally.kills += 1
            problems = list(_after(site, kind, settings, expected))
            tally.problems += [f"{name}, killed after {moment_s:.3f} s: {p}" for p in problems]
            tally.parts += parts(site / "state")
        if not tally.problems:
            shutil.rmtree(site)
    return tally


def _after(
    site: Path, kind: Kind, settings: Settings, expected: Mapping[str, object]
) -> "list[str]":
    """What is wrong right after the kill, after resuming, and at the end."""
    state_dir = site / "state"
    problems = [*unreadable(state_dir), *_blocked(site)]
    for _ in range(LIVES):
        runs = read_runs(state_dir)
        problems += [f"{r.why}" for r in runs if not isinstance(r, Run)]
        run = next((r for r in reversed(runs) if isinstance(r, Run)), None)
        if run is None:
            run_whole(lambda: _command(site, kind, settings), site / "log")
        elif run.state in (RunState.LOST, RunState.STARTING, RunState.INTERRUPTED):
            problems += _never_ending_start(run)
            _resume(run, site)
        else:
            break
    return problems + _end(site, expected)


def _never_ending_start(run: Run) -> list[str]:
    """A run without a line is starting for a moment, and lost after it."""
    if run.events:
        return []
    request = run.run_dir / REQUEST_FILE
    os.utime(request, (0, 0))
    state = read_run(run.run_dir).state
    return [] if state is RunState.LOST else [f"{run.name} never began and is said to be {state}"]


def _resume(run: Run, site: Path) -> None:
    save_request(run.run_dir, RunRequest("cron", yes=True, forward=resume_direction(run).forward))
    run_whole(lambda: run_fake_world.main(run.run_dir), site / "log")


def _blocked(site: Path) -> list[str]:
    """Leases that a dead process keeps from others."""
    context = fake_context(site)
    keys = [f"node:{node}" for node in (*ACTIVE, *STANDBYS)] + ["job:demo", "nodes"]
    held = Leases(context.state_dir).held_by_others(keys, "R-9999", context.clock.now())
    return [f"{key} is held by {holder}, which is dead" for key, holder in held.items()]


def _end(site: Path, expected: Mapping[str, object]) -> list[str]:
    state_dir = site / "state"
    problems = list(unreadable(state_dir))
    runs = [run for run in read_runs(state_dir) if isinstance(run, Run)]
    if [str(run.state) for run in runs] != ["ok"]:
        problems.append(f"runs ended as {[f'{run.name} {run.state}' for run in runs]}")
    problems += [f"{run.name}: {damage}" for run in runs for damage in run.damage]
    found = world_of(site)
    problems += [
        f"{key} is {found[key]}, and would be {expected[key]}"
        for key in expected
        if found[key] != expected[key]
    ]
    if "Traceback" in (site / "log").read_text():
        problems.append(f"a traceback in {site / 'log'}")
    return problems
