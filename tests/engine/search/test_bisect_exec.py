"""`nccl bisect` with a site's own program: a real child process that behaves, or does not."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.timeouts import TIMEOUT_S

PROGRAM = f"exec:{sys.executable} {Path(__file__).parents[2] / 'fakes' / 'group_program.py'}"


def run(nodes: str, *program: str, flags: tuple[str, ...] = ()) -> tuple[int, dict[str, object]]:
    """The command, with the fake program's arguments; its exit code and its document."""
    runner = " ".join([PROGRAM, *program])
    command = [sys.executable, "-m", "brctl", "nccl", "bisect", "-w", nodes, "--runner", runner]
    done = subprocess.run(
        [*command, "-o", "json", *flags],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def named(document: dict[str, object]) -> list[tuple[str, list[str]]]:
    verdicts = document["verdicts"]
    assert isinstance(verdicts, list)
    return [(verdict["kind"], verdict["members"]) for verdict in verdicts]


def test_a_bad_node_is_named_in_two_rounds() -> None:
    """Exit 2, one verdict, its supporting tests in the document."""
    code, document = run("gpu[001-032]", "--bad gpu007=1", "--noise 0.01")
    assert code == 2
    assert named(document) == [("node", ["gpu007"])]
    assert document["rounds"] == 2
    assert document["node_tests"] == 64
    verdicts = document["verdicts"]
    assert isinstance(verdicts, list)
    assert all("gpu007" in test["group"] for test in verdicts[0]["tests"])


def test_a_clean_fleet_exits_zero() -> None:
    """Nothing fails: exit 0 and a bound on what can still be there."""
    code, document = run("n[1-16]")
    assert code == 0
    assert named(document) == [("none", [])]
    excluded = document["excluded"]
    assert isinstance(excluded, dict)
    assert 0 < excluded["failure_probability_at_least"] < 0.5


def test_two_nodes_cannot_be_told_apart() -> None:
    """Exit 3 and the sentence that says what is needed."""
    code, document = run("a,b", "--bad a=1")
    assert code == 3
    verdicts = document["verdicts"]
    assert isinstance(verdicts, list)
    assert verdicts[0]["kind"] == "undecidable"
    assert verdicts[0]["why"] == "one of two; need one more node"


def test_a_group_that_does_not_answer_counts_as_failing() -> None:
    """`failed: null` is silence of that group, and the hanging node is named."""
    code, document = run("n[1-12]", "--hang n5")
    assert (code, named(document)) == (2, [("node", ["n5"])])


def test_four_thousand_nodes_are_driven() -> None:
    """4,096 names without an inventory, a flaky and a slow one among them."""
    code, document = run("g[0001-4096]", "--bad g0777=0.7", "--slow g1000=0.5", "--noise 0.01")
    assert code == 2
    assert sorted(named(document)) == [("node", ["g0777"]), ("slow", ["g1000"])]


@pytest.mark.parametrize(
    "how",
    ["bad-json", "short", "die", "silence", "nan", "strings", "negative", "other-round", "array",
     "long"],
)  # fmt: skip
def test_a_program_that_talks_nonsense_clears_nobody(how: str) -> None:
    """Whatever is not an answer is unmeasured: exit 3, nobody named, nobody excluded."""
    code, document = run("n[1-8]", f"--do {how}", flags=("--round-deadline", "2s"))
    assert code == 3
    assert all(kind == "undecidable" for kind, _ in named(document))
    excluded = document["excluded"]
    assert isinstance(excluded, dict)
    assert excluded["clean_repetitions"] == 0


def test_what_was_known_before_the_program_died_is_kept() -> None:
    """Round 1 found a failing pair; round 2 broke: the pair is still said."""
    code, document = run("n[1-8]", "--bad n2=1", "--do die", "--at 2")
    assert code == 3
    kinds = [kind for kind, members in named(document) if "n2" in members]
    assert kinds == ["undecidable"]
    assert "status 7" in str(document["ended"])


def test_an_interrupt_keeps_what_is_known() -> None:
    """Ctrl-C ends the search, writes the document, exits 130 and leaves no child behind."""
    runner = f"{PROGRAM} --do silence --at 2 --bad n2=1"
    command = [sys.executable, "-m", "brctl", "nccl", "bisect", "-w", "n[1-8]", "-o", "ndjson"]
    lines = []
    with subprocess.Popen(
        [*command, "--runner", runner], stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as child:
        assert child.stdout is not None
        for line in child.stdout:
            lines.append(json.loads(line))
            if lines[-1]["type"] == "round":
                time.sleep(0.3)  # the second round has been asked for by then
                os.kill(child.pid, signal.SIGINT)
                break
        rest = [json.loads(line) for line in child.stdout]
        assert child.wait(TIMEOUT_S) == 130
    assert [line["seq"] for line in lines + rest] == list(range(1, len(lines + rest) + 1))
    assert rest[-1] == {"type": "end", "seq": rest[-1]["seq"], "exit_code": 130,
                        "result": "interrupted"}  # fmt: skip
    assert rest[-2]["verdicts"][0]["kind"] == "undecidable"


def test_leaves_come_from_a_file(tmp_path: Path) -> None:
    """Nodes and cabling from one CSV file; a dead uplink is a leaf verdict."""
    cabling = tmp_path / "leaf.csv"
    rows = [f"n{i},L{i // 8}" for i in range(32)]
    cabling.write_text("node,leaf\n" + "\n".join(rows) + "\n")
    pairs = [f"--pair n{a}+n{b}" for a in range(8) for b in range(8, 32)]
    code, document = run("n[0-31]", *pairs, flags=("--leaf", str(cabling)))
    assert code == 2
    assert named(document) == [("leaf", ["L0"])]


def test_a_readonly_search_starts_no_program_even_without_a_context(tmp_path: Path) -> None:
    """The flag alone says so: no configuration is needed for it to hold."""
    started = tmp_path / "started"
    words = ["nccl", "bisect", "-w", "a,b", "--runner", f"exec:/usr/bin/touch {started}"]
    done = subprocess.run(
        [sys.executable, "-m", "brctl", *words, "--readonly"],
        capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
    )  # fmt: skip
    assert (done.returncode, "refused" in done.stderr, started.exists()) == (5, True, False)
