"""Kill `brctl sweep` over one state directory again and again; the next look finds it whole."""

import fcntl
import os
import random
import sys
import time
from pathlib import Path

from brctl.cli.main import run
from brctl.engine.sweeps import sweep_store
from brctl.engine.sweeps.history_database import open_history
from tests.bench.kills.moments import Tally, draw, kill_after, parts, run_whole, unreadable

CONFIG = """\
apiVersion: brctl.dev/v1
kind: Config
context: here
state_dir: state
ssh: {transport: local}
contexts: {here: {inventory: [{file: own.yaml}]}}
"""
NODES = ("n1", "n2", "n3")
OWN = """\
apiVersion: brctl.dev/v1
kind: Inventory
defaults: {labels: {kernel_log: FOLDER/kmsg}, python: PYTHON}
nodes: {n1: {}, n2: {}, n3: {}}
"""
WHOLE_EVERY = 20
"""After so many kills a sweep is let through, to see that nothing holds it up."""

STARTS_WITHIN_S = 10.0


def _site(folder: Path) -> list[str]:
    """Three nodes that are this machine; the words of a sweep of them."""
    folder.mkdir()
    own = OWN.replace("FOLDER", str(folder)).replace("PYTHON", sys.executable)
    (folder / "own.yaml").write_text(own)
    (folder / "kmsg").write_text("6,1,1000,-;eth0: link becomes ready\n")
    (folder / "config.yaml").write_text(CONFIG)
    config = ("--config", str(folder / "config.yaml"))
    return ["sweep", "--checks", "host.kernel", "--prom", str(folder / "metrics"), *config]


def kill_sweeps(folder: Path, kills: int, seed: int) -> Tally:
    """Kill a sweep so often, always in the same state directory."""
    tally, random_, site = Tally(), random.Random(seed), folder / "sweep"
    words, log = _site(site), site / "log"
    code, length_s = run_whole(lambda: run(words), log)
    if code != 0:
        raise RuntimeError(f"a sweep that nobody killed ended with {code}: {log}")
    while tally.kills < kills:
        moment_s = draw(random_, length_s)
        if not kill_after(moment_s, lambda: run(words), log):
            tally.missed += 1
            continue
        tally.kills += 1
        problems = list(_after(site))
        if tally.kills % WHOLE_EVERY == 0 or tally.kills == kills:
            code, _ = run_whole(lambda: run(words), log)
            problems += [f"the next sweep ended with {code}"] if code else []
        tally.problems += [f"sweep, killed after {moment_s:.3f} s: {p}" for p in problems]
    tally.parts = parts(site)
    return tally


def _after(site: Path) -> list[str]:
    state_dir = site / "state"
    problems = list(unreadable(state_dir))
    newest = sweep_store.latest(state_dir)
    if newest is None or {node.node for node in newest.nodes} != set(NODES):
        problems.append("what is known of the nodes is not what the last whole sweep found")
    with open_history(state_dir) as database:
        database.execute("INSERT INTO totals VALUES ('a look', 1) ON CONFLICT DO NOTHING")
    if _stays_locked(state_dir / "locks" / "sweep-here.lock"):
        problems.append("its lock is held by nobody who lives")
    if "Traceback" in (site / "log").read_text():
        problems.append(f"a traceback in {site / 'log'}")
    return problems


def _stays_locked(path: Path) -> bool:
    """A process that was being started has the lock's descriptor until it is its program's."""
    end_s = time.monotonic() + STARTS_WITHIN_S
    while _is_locked(path):
        if time.monotonic() > end_s:
            return True
        time.sleep(0.05)
    return False


def _is_locked(path: Path) -> bool:
    descriptor = os.open(path, os.O_RDWR)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
