"""Stacks become one tree, and a search is followed line by line as it is written."""

import json
from pathlib import Path

from brctl.engine.job.stack_store import new_folder
from brctl.model.jobs.hang import StackAnalysis, StackGroup
from brctl.tui.address import Address
from brctl.tui.app import BrctlApp
from brctl.tui.rows.stack_rows import stack_rows
from tests.fakes.run_context import NOON, example_job
from tests.tui.conftest import engine_of, settled, shows

SIZE = (110, 30)
ANALYSIS = StackAnalysis(
    groups=(
        StackGroup(
            ("all_reduce dist.py:9", "step train.py:40", "main train.py:80"), (0, 1, 3), True
        ),
        StackGroup(("sleep loader.py:7", "step train.py:40", "main train.py:80"), (2,), False),
        StackGroup((), (4,), False),
    ),
    outliers=(2, 4),
    silent=(4,),
    group=None,
    candidates=(),
    suspect_ranks=(2,),
    suspect_nodes=("n3",),
    reason="rank 2 alone is in the loader",
)
ROUNDS = (
    {"type": "version", "events": "1.0"},
    {"type": "bisect.start", "nodes": ["n1", "n2", "n3", "n4"], "runner": "torch"},
    {
        "type": "round", "round": 1, "stage": "screen", "seconds": 12.5,
        "groups": [["n1", "n2"], ["n3", "n4"]],
        "results": [{"failed": 0, "busbw_gb_per_s": 371.0}, {"failed": 2, "busbw_gb_per_s": None}],
        "suspects": [{"node": "n3", "posterior": 0.5}, {"node": "n4", "posterior": 0.5}],
        "notes": [],
    },
)  # fmt: skip


def test_shared_frames_are_one_line_and_the_odd_branch_is_marked() -> None:
    """All ranks share main and step; the branch of rank 2 carries the mark."""
    lines = [line.text.rstrip() for line in stack_rows(ANALYSIS, 100)]
    assert "  4 [0-3]  main train.py:80 > step train.py:40" in lines
    assert "    3 [0-1,3]  all_reduce dist.py:9" in lines
    assert "!   1 [2]  sleep loader.py:7" in lines
    assert "? silent ranks [4] gave no stack" in lines


async def test_without_stacks_the_screen_says_how_to_take_them(app: BrctlApp) -> None:
    """Nothing on disk is a sentence with the command."""
    async with app.run_test(size=SIZE) as pilot:
        await settled(pilot)
        app.go(Address("stacks", "demo"))
        await shows(app, "brctl stacks dump --job demo")


async def test_after_a_swap_old_stacks_name_the_node_they_were_taken_on(app: BrctlApp) -> None:
    """The healthy standby that stands where the dead node stood is no suspect."""
    engine = engine_of(app)
    folder = new_folder(engine.settings.state_dir, "demo", NOON) / "round-1"
    folder.mkdir()
    for rank, node in enumerate(("n1", "n2", "n3", "n4")):
        name = "__next__" if node == "n3" else "all_reduce"
        frames = [{"name": name, "short_filename": "train.py", "line": 1}]
        threads = [{"thread_name": "MainThread", "frames": frames}]
        body = {"rank": rank, "node": node, "threads": threads, "state": "S", "note": ""}
        (folder / f"rank-{rank:05d}.json").write_text(json.dumps(body))
    await engine.context.backend.replace_nodes(example_job(), {"n3": "s1"})
    async with app.run_test(size=SIZE) as pilot:
        await settled(pilot)
        app.go(Address("stacks", "demo"))
        await shows(app, "suspect n3")
        await shows(app, "n3 (now s1)")


async def test_rounds_appear_while_the_search_writes_them(app: BrctlApp) -> None:
    """A half-written line is waited for; groups that fail stand out by a word."""
    folder: Path = engine_of(app).settings.state_dir / "bisects"
    folder.mkdir(parents=True)  # noqa: ASYNC240  # a test may wait for its disk
    path = folder / "B-20260705T120000.ndjson"
    written = "\n".join(json.dumps(line) for line in ROUNDS)
    path.write_text(written)
    async with app.run_test(size=SIZE) as pilot:
        await settled(pilot)
        await pilot.press("4")
        await shows(app, "running or cut off")
        await shows(app, "nobody yet")
        path.write_text(written + "\n")
        await shows(app, "ROUND 1  screen  12.5 s")
        await shows(app, "ok             371 GB/s  n[1-2]")
        await shows(app, "FAILED 2")
        with path.open("a") as stream:
            stream.write(json.dumps({"type": "end", "exit_code": 2, "result": "settled"}) + "\n")
        await shows(app, "settled")
