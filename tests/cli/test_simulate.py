"""`brctl simulate`: policies side by side, sweeps, parts on other machines."""

import json
import math
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from brctl.cli.main import run
from brctl.engine.incidents.verdict_store import StoredVerdict, VerdictState, save
from brctl.simulate import world
from brctl.simulate.fleet_file import SHIPPED
from tests.fakes.run_context import example_verdict
from tests.fakes.site_files import local_config, write_site

Document = dict[str, object]
Part = dict[str, Any]
WALL_US = 2 * 86_400 * 1_000_000
JOB = """\
apiVersion: brctl.dev/v1
kind: Job
name: llm
nodes: n1,n3
ranks_per_node: 8
parallel: {tp: 8, pp: 2}
launch: [train]
checkpoint: {directory: FOLDER/ckpt}
logs: FOLDER/logs
progress: FOLDER/progress
"""
SMALL = ("--runs", "3", "--days", "20", "--workers", "1")


def said(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = run(["simulate", *words])
    found = capsys.readouterr()
    return code, found.out, found.err


def test_policies_are_compared_on_the_same_faults(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = said(capsys, "--policy", "requeue,standby", *SMALL, "-o", "json")
    document = json.loads(out)
    first, second = document["policies"]
    assert (code, document["kind"]) == (0, "Simulation")
    assert first["gained_ratio"] is None
    gained = second["ettr_ratio"]["mean"] - first["ettr_ratio"]["mean"]
    assert second["gained_ratio"]["mean"] == pytest.approx(gained, abs=2e-6)
    lost_h = sum(second["lost_hours"].values())
    assert lost_h == pytest.approx(20 * 24 * (1 - second["ettr_ratio"]["mean"]), abs=1e-2)


def test_a_policy_more_changes_no_other_line(capsys: pytest.CaptureFixture[str]) -> None:
    one = json.loads(said(capsys, "--policy", "standby", *SMALL, "-o", "json")[1])
    two = json.loads(said(capsys, "--policy", "standby,oracle", *SMALL, "-o", "json")[1])
    assert two["policies"][0] == one["policies"][0]


def test_a_sweep_is_a_table_with_bars_and_a_page_with_a_plot(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ("--policy", "standby", "--sweep", "standbys=0..2", *SMALL)
    _, text, _ = said(capsys, *words)
    rows = [line.split() for line in text.splitlines() if line[:1].isdigit() and "+-" in line]
    assert [row[0] for row in rows[-3:]] == ["0", "1", "2"]
    assert len(rows[-1][-1]) == 20
    _, page, _ = said(capsys, *words, "-o", "html")
    assert page.startswith("<!DOCTYPE html>")
    assert "<polyline" in page
    assert "<script" not in page


def test_parts_made_apart_are_the_whole(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    words = ("--policy", "requeue,standby", *SMALL)
    parts = [tmp_path / f"part-{i}.json" for i in (1, 2)]
    for i, part in enumerate(parts, start=1):
        assert said(capsys, *words, "--shard", f"{i}/2", "-o", "json", "--out", str(part))[0] == 0
    code, out, _ = said(capsys, "merge", *map(str, parts), "-o", "json")
    whole = json.loads(said(capsys, *words, "-o", "json")[1])
    assert code == 0
    assert json.loads(out)["policies"] == whole["policies"]
    code, out, _ = said(capsys, "merge", str(parts[0]))
    assert code == 3
    assert "missing: 1 of 3 runs are in none of these files" in out
    assert said(capsys, "merge", str(parts[0]), str(parts[0]))[0] == 64


def of_books(data: Part, **books_us: float) -> Part:
    """The first run of a part with other books."""
    run: Part = data["runs"][0]
    return run | {"books_us": run["books_us"] | books_us}


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data | {"kind": "Sweep"},
        lambda data: data | {"runs": []},
        lambda data: data | {"runs": [data["runs"][0] | {"wall_us": 1}]},
        lambda data: data | {"runs": [{"seed": 1}]},
        lambda data: data | {"fleet": {"name": "x"}},
        lambda data: {},
        lambda data: data | {"seed": []},
        lambda data: data | {"seed": 8},
        lambda data: data | {"runs_wanted": True},
        lambda data: data | {"policies": {"oracle": 1}},
        lambda data: data | {"policies": {"requeue": "another"}},
        lambda data: data | {"fleet": data["fleet"] | {"days": math.nan}},
        lambda data: data | {"fleet": data["fleet"] | {"nodes": 10**400}},
        lambda data: data | {"runs": [data["runs"][0] | {"stops": "7"}]},
        lambda data: data | {"runs": [data["runs"][0] | {"pages": -1}]},
        lambda data: data | {"runs": [of_books(data, productive=math.inf)]},
        lambda data: data | {"runs": [data["runs"][0] | {"books_us": {"productive": WALL_US}}]},
        lambda data: data | {"runs": [of_books(data, lunch=0)]},
    ],
)
def test_a_file_that_is_no_part_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, change: Callable[[Part], Part]
) -> None:
    code, _, err = said(capsys, "merge", str(changed_part(capsys, tmp_path, change)))
    assert code == 78
    assert "not a part of a simulation" in err


def test_a_name_from_a_part_writes_nothing_but_text_to_the_terminal(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    name = "a\x1b]0;owned\x07"

    def named(data: Part) -> Part:
        runs = [{**run, "policy": name} for run in data["runs"]]
        return data | {"policies": {"oracle": "", name: ""}, "runs": data["runs"] + runs}

    part = changed_part(capsys, tmp_path, named)
    for form in ("table", "name"):
        code, out, _ = said(capsys, "merge", str(part), "-o", form)
        assert code == 0
        assert "a\\x1b]0;owned" in out
        assert "\x1b" not in out


def changed_part(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, change: Callable[[Part], Part]
) -> Path:
    """A small part of a simulation, changed by somebody."""
    part = tmp_path / "part.json"
    words = ("--policy", "oracle", "--runs", "1", "--days", "2", "--shard", "1/1")
    said(capsys, *words, "-o", "json", "--out", str(part))
    part.write_text(json.dumps(change(json.loads(part.read_text()))), encoding="utf-8")
    return part


def test_a_policy_without_end_is_said_and_nothing_of_what_it_lost(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(world, "STOPS_LIMIT", 2)
    code, out, _ = said(capsys, "--policy", "requeue,standby", *SMALL)
    assert code == 3
    assert "missing: standby: 2 stops by" in out
    assert "no hour was lost" not in out
    assert said(capsys, "--policy", "requeue", *SMALL, "-o", "html")[0] == 3


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (("paper-mean",), "did you mean 'paper-means'"),
        (("--policy", "requeu"), "did you mean 'requeue'"),
        (("--sweep", "standby=0..3"), "did you mean 'standbys'"),
        (("--sweep", "standbys=3..0"), "values are standbys=0..12"),
        (("--sweep", "standbys=0..1000000"), "at most 200"),
        (("--sweep", "standbys=-1,2"), "cannot be"),
        (("--sweep", "standbys=0..12/1e-320"), "values are standbys=0..12"),
        (("--policy", ""), "--policy names none"),
        (("--policy", ",", "--sweep", "standbys=0..1"), "--policy names none"),
        (
            ("--days", "1500", "--sweep", "rate=1,5000"),
            "1200 nodes with 5000 failures per 1,000 node-days have 9,000,000 in 1500 days",
        ),
        (("--shard", "3/2"), "write 1/8"),
        (("--runs", "2", "--shard", "5/8"), "do not fill it"),
        (("--shard", "1/2", "--sweep", "standbys=0..3"), "give one of"),
    ],
)
def test_a_slip_is_said_in_a_sentence(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], wanted: str
) -> None:
    code, _, err = said(capsys, *words)
    assert code == 64
    assert wanted in err


def test_the_slurm_array_makes_every_part_with_the_same_words(
    capsys: pytest.CaptureFixture[str],
) -> None:
    _, out, _ = said(capsys, "llama3", "--runs", "40", "--slurm-array", "8", "--policy", "oracle")
    assert "--array=1-8" in out
    assert "simulate fleet llama3 --policy oracle --runs 40 --days 54 --seed 7" in out
    assert '--shard "$SLURM_ARRAY_TASK_ID/8"' in out


def test_the_slurm_array_decides_by_the_same_configuration(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ("--policy", "oracle", "--slurm-array", "8")
    _, out, _ = said(capsys, *words, "--config", "my site.yaml", "--context", "east")
    assert "--workers 1 --config 'my site.yaml' --context east --shard" in out


def test_the_answer_fits_a_terminal_of_80_columns(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (SMALL, ("--sweep", "standbys=0,5", "--policy", "standby", *SMALL)):
        _, out, _ = said(capsys, *words)
        assert max(map(len, out.splitlines())) <= 80


def test_parts_join_by_what_decides_them_and_not_by_where_their_files_lie(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    words = ("--policy", "standby", "--runs", "2", "--days", "2", "--workers", "1")
    kept = "standbys: {keep: "
    text = (SHIPPED / "paper-means.yaml").read_text(encoding="utf-8") + kept + "3}\n"
    parts = []
    for shard, name, fleet in (
        ("1/2", "here", text), ("2/2", "there", text), ("2/2", "other", text.replace("3}", "12}")),
    ):  # fmt: skip
        path, part = tmp_path / f"{name}.yaml", tmp_path / f"{name}.json"
        path.write_text(fleet, encoding="utf-8")
        said(capsys, str(path), *words, "--shard", shard, "-o", "json", "--out", str(part))
        parts.append(str(part))
    here, there, other = parts
    assert said(capsys, "merge", here, there)[0] == 0
    code, _, err = said(capsys, "merge", here, other)
    assert code == 64
    assert "parts of different simulations" in err


def test_a_sites_own_incidents_become_a_trace_and_a_fleet(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Both files that it prints are read again; with nothing acted on there is nothing to print."""
    config = write_site(
        tmp_path, local_config("job"),
        "apiVersion: brctl.dev/v1\nkind: Inventory\nnodes:\n  n1: {}\n  n3: {}\n", job=JOB,
    )  # fmt: skip
    at = ("--config", str(config))
    code, _, err = said(capsys, *at, "history")
    assert (code, "no incident of llm was acted on within 90d" in err) == (64, True)
    past = replace(example_verdict(datetime.now(UTC) - timedelta(days=20)), job="llm")
    save(tmp_path / "state", StoredVerdict(past, VerdictState.CONFIRMED))
    trace, fleet = tmp_path / "mine.csv", tmp_path / "mine.yaml"
    assert said(capsys, *at, "history", "--out", str(trace))[0] == 0
    assert said(capsys, *at, "fit", "llm", "--out", str(fleet))[0] == 0
    words = (str(fleet), "--trace", str(trace), "--policy", "oracle", "--runs", "1")
    code, out, _ = said(capsys, *words, "-o", "json")
    assert (code, json.loads(out)["policies"][0]["per_run"]["stops"]) == (0, 1)
    assert "1 of 1 recorded faults come after" not in said(capsys, *words)[2]
    assert f"--trace {trace}" in said(capsys, *words, "--slurm-array", "2")[1]


def test_a_watchers_policy_is_read_for_those_that_watch(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """One that only observes leaves every fault to people; without a watcher it is refused."""
    policy = tmp_path / "watch.yaml"
    policy.write_text("apiVersion: brctl.dev/v1\nkind: WatchPolicy\nmode: observe\n")
    policy.chmod(0o600)
    words = ("--watch-policy", str(policy), "--runs", "1", "--days", "10", "-o", "json")
    code, out, _ = said(capsys, "--policy", "watch-act", *words)
    assert (code, json.loads(out)["policies"][0]["per_run"]["actions"]) == (0, 0)
    code, _, err = said(capsys, "--policy", "oracle", *words[:2])
    assert (code, "--watch-policy goes with" in err) == (64, True)
