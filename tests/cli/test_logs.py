"""`brctl logs`, `stacks` and `flight-recorder` from the command line: documents and exit codes."""

import json
from pathlib import Path

import pytest

from brctl.cli.main import run

XID = "Jul  5 03:01:47 g7 kernel: NVRM: Xid (PCI:0000:9b:00): 79, GPU has fallen off the bus.\n"


def test_the_document_has_the_agreed_keys(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Items and overall, each with class, origin, culprit, probability, action and evidence."""
    log = tmp_path / "dmesg"
    log.write_text("boot\n" + XID)
    assert run(["logs", "classify", str(log), "-o", "json"]) == 2
    document = json.loads(capsys.readouterr().out)
    assert document["kind"] == "LogClassification"
    for verdict in (document["overall"], *document["items"]):
        assert verdict["class"] == "gpu-lost"
        assert verdict["origin"] == "infra"
        assert verdict["culprit"] == "GPU 0000:9b:00 on g7"
        assert 0 < verdict["probability"] < 1
        assert verdict["action"] == "swap"
    line = document["overall"]["evidence"][0]
    assert (line["role"], line["file"], line["line"]) == ("root", str(log), 2)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (XID, 2),
        ("".join(f"step {n} | loss: 2.5\n" for n in range(3, 6)), 0),
        ("step 5 | loss: 2.5\n", 3),
        ("RuntimeError: CUDA error: unspecified launch failure\n", 3),
        ("", 3),
    ],
    ids=["fault", "clean", "quiet", "unknown", "empty"],
)
def test_the_exit_code_is_the_answer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, code: int
) -> None:
    """0 clean, 2 a fault, 3 cannot tell."""
    log = tmp_path / "log"
    log.write_text(text)
    assert run(["logs", "classify", str(log)]) == code
    assert capsys.readouterr().out.strip()


def test_hostile_text_cannot_reach_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Escapes in a log, and in its file name, are shown, not obeyed."""
    log = tmp_path / "x\x1b[2Jy.log"
    log.write_bytes(b"\x1b]0;owned\x07" + XID.encode())
    run(["logs", "classify", str(log)])
    assert "\x1b" not in capsys.readouterr().out


def test_asking_for_nothing_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    """Neither a file nor a job."""
    assert run(["logs", "classify"]) == 64
    assert "give files" in capsys.readouterr().err


def test_rules_are_listed_with_their_source(capsys: pytest.CaptureFixture[str]) -> None:
    """Every rule says what it speaks for and where that comes from."""
    assert run(["logs", "rules", "list", "-o", "json"]) == 0
    rules = json.loads(capsys.readouterr().out)["rules"]
    assert len(rules) > 100
    assert all(rule["source"] for rule in rules)


def test_a_line_can_be_tried(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`rules test` shows which rules speak."""
    log = tmp_path / "lines"
    log.write_text(XID)
    assert run(["logs", "rules", "test", str(log)]) == 0
    assert "nvrm.off-bus" in capsys.readouterr().out


JOB = """\
apiVersion: brctl.dev/v1
kind: Job
name: j
nodes: n[1-4]
ranks_per_node: 1
parallel: {tp: 2, dp: 2}
launch: [python, train.py]
checkpoint: {directory: /ckpt}
logs: /logs
progress: /progress
"""


def test_stacks_of_a_folder_name_the_node(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Three ranks in a collective, one in the data loader."""
    job = tmp_path / "job.yaml"
    job.write_text(JOB)
    folder = tmp_path / "stacks"
    folder.mkdir()
    for rank in range(4):
        name, file = ("__next__", "dataloader.py") if rank == 2 else ("all_reduce", "c10d.py")
        threads = [
            {"thread_name": "MainThread", "frames": [{"name": name, "short_filename": file}]}
        ]
        (folder / f"rank-{rank:05d}.json").write_text(json.dumps(threads))
    arguments = ["stacks", "analyse", str(folder), "--job", str(job), "-o", "json"]
    assert run(arguments) == 2
    document = json.loads(capsys.readouterr().out)
    assert document["kind"] == "StackAnalysis"
    assert document["suspect_ranks"] == [2]
    assert document["suspect_nodes"] == {"nodes": ["n3"], "folded": "n3"}


def test_dumps_of_a_folder_name_the_rank(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Key `suspect_ranks` with the reason for each."""
    row = {"pg_id": 0, "process_group": ["0", "d"], "profiling_name": "gloo:all_reduce"}
    row |= {"collective_seq_id": 7, "record_id": 7, "is_p2p": False, "state": "scheduled"}
    for rank in range(4):
        entries = [] if rank == 1 else [row]
        body = {"pg_config": {}, "pg_status": {}, "entries": entries}
        (tmp_path / f"fr_{rank}.json").write_text(json.dumps(body))
    assert run(["flight-recorder", "analyse", str(tmp_path), "-o", "json"]) == 2
    document = json.loads(capsys.readouterr().out)
    assert document["kind"] == "FlightRecorderAnalysis"
    (suspect,) = document["suspect_ranks"]
    assert (suspect["rank"], suspect["reason"]) == (1, "never-joined")
    assert suspect["detail"]


def test_teach_and_explain_write_their_documents(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is taught on the command line is used by the next `logs classify`."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    log = tmp_path / "job.log"
    log.write_text("burst buffer zorn7: drain lease withdrawn by arbiter 12\n")
    assert run(["logs", "explain", str(log), "-o", "json"]) == 0
    explained = json.loads(capsys.readouterr().out)
    assert explained["kind"] == "LogExplanation"
    assert explained["lines"][0]["line"] == 1
    assert run(["logs", "teach", str(log), "--class", "storage-checkpoint", "-o", "json"]) == 0
    lesson = json.loads(capsys.readouterr().out)
    assert (lesson["kind"], lesson["after"]) == ("LogLesson", "storage-checkpoint")
    assert lesson["path"].startswith(str(tmp_path / "config" / "brctl" / "rules.d" / "taught-"))
    assert run(["logs", "classify", str(log), "-o", "json"]) == 2
    overall = json.loads(capsys.readouterr().out)["overall"]
    assert overall["class"] == "storage-checkpoint"
    assert overall["evidence"][0]["signature"] == lesson["lesson"]["rule"]


@pytest.mark.parametrize("name", ["no-such-class", "unknown", "no-fault"])
def test_only_a_cause_can_be_taught(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    """Neither ignorance nor health is a cause, and a typing error is said to be one."""
    log = tmp_path / "job.log"
    log.write_text("x\n")
    assert run(["logs", "teach", str(log), "--class", name]) == 64
    assert name in capsys.readouterr().err
