"""A playbook's search leaves what `brctl nccl bisect` leaves, and the terminal lists it."""

import json
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import pytest

from brctl.actions.nccl_bisect import NcclBisect
from brctl.cli.commands import nccl
from brctl.engine.controller.clock import now
from brctl.engine.controller.wiring import open_controller
from brctl.engine.incidents import verdict_store
from brctl.engine.runs.context import run_context
from brctl.engine.search.bisect_store import load_all
from brctl.engine.search.recorded import OnRound, SearchRecord, record_search
from brctl.library.config import load_settings
from brctl.model.localisation import Bisection
from brctl.model.runs.playbook import Arguments
from brctl.tui.session.state_reader import DiskStateReader
from tests.cli.test_run import call
from tests.engine.search.test_bisect_store import NAMED, SILENT, search_with

PROGRAM = Path(__file__).parents[2] / "fakes" / "group_program.py"
CONFIG = """\
apiVersion: brctl.dev/v1
kind: Config
context: prod
state_dir: state
ssh: {transport: local}
contexts: {prod: {inventory: [{file: own.yaml}]}}
"""
OWN = """\
apiVersion: brctl.dev/v1
kind: Inventory
nodes: {n1: {rack: r1}, n2: {rack: r1}, n3: {rack: r1}, n4: {rack: r1}, n5: {}}
groups: {golden: n5}
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "own.yaml").write_text(OWN.replace("{rack", "{python: /bin/false, rack"))
    (tmp_path / "config.yaml").write_text(CONFIG)
    return tmp_path / "config.yaml"


async def test_the_search_of_a_playbook_is_listed_with_all_others(config: Path) -> None:
    """Its nodes, its end and its document; no verdict, because the run itself acts on it."""
    settings = load_settings({}, config=config)
    args: Arguments = {"nodes": ["n1", "n2"], "reps": 1, "budget": "20s"}
    async with open_controller(settings) as controller:
        await NcclBisect().apply(run_context(controller), args)
    (fact,) = DiskStateReader(settings, now).read().bisects
    (document,) = load_all(settings.state_dir)
    assert fact.ended == document["ended"]
    assert [line["type"] for line in fact.lines][:2] == ["version", "bisect.start"]
    assert [line["type"] for line in fact.lines][-2:] == ["result", "end"]
    assert verdict_store.load_all(settings.state_dir) == ()


async def test_a_search_that_is_cut_off_leaves_its_rounds(tmp_path: Path) -> None:
    """The event stream has no end then, and no document says what was never concluded."""

    async def cut_off(tell: OnRound) -> Bisection:
        tell(search_with(NAMED, SILENT).rounds[0])
        raise ConnectionError("the controller's network is gone")

    with suppress(ConnectionError):
        await record_search(("n1", "n2"), "torch", cut_off, SearchRecord(tmp_path))
    (stream,) = (tmp_path / "bisects").glob("B-*.ndjson")
    types = [json.loads(line)["type"] for line in stream.read_text().splitlines()]
    assert types == ["version", "bisect.start", "round"]
    assert load_all(tmp_path) == ()


async def test_verdicts_are_stored_for_a_person_and_named_in_the_trail(tmp_path: Path) -> None:
    async def named(tell: OnRound) -> Bisection:
        return search_with(NAMED, SILENT)

    record = SearchRecord(tmp_path, verdicts_for=("prod", "demo"))
    found = await record_search(("n1", "n2"), "torch", named, record)
    assert [s.verdict.id for s in verdict_store.load_all(tmp_path)] == list(found.verdict_ids)
    (stream,) = (tmp_path / "bisects").glob("B-*.ndjson")
    lines = [json.loads(line) for line in stream.read_text().splitlines()]
    assert lines[-2]["stored_verdicts"] == list(found.verdict_ids)


def test_a_sites_program_gets_nodes_and_references_by_selector(config: Path) -> None:
    """`exec:` needs no inventory for names, and reads it for `@rack:r1` and `@golden`."""
    runner = f"exec:{sys.executable} {PROGRAM} --bad n3=1"
    chosen = ("-w", "@rack:r1", "-x", "n1")
    code, text = call(
        nccl, config, *chosen, "-o", "json", "bisect", "--runner", runner, "--golden", "@golden"
    )
    document: Mapping[str, Mapping[str, object]] = json.loads(text)
    assert document["tested"]["nodes"] == ["n2", "n3", "n4", "n5"]
    assert code == 2
