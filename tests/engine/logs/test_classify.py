"""Files in, one verdict out: real files of every awkward kind."""

import gzip
from collections.abc import Iterator
from pathlib import Path

import pytest

from brctl.engine.logs import classify
from brctl.engine.logs.anchor_scan import ReEngine
from brctl.engine.logs.classify import Blocks, Classifier
from brctl.evidence.logs.catalogue import SHIPPED, anchors_of
from brctl.model.evidence import Role
from brctl.model.fault import FaultClass
from tests.evidence.logs.examples import EXAMPLES

OFF_THE_BUS = (
    b"Jul  5 03:01:47 g7 kernel: NVRM: Xid (PCI:0000:9b:00): 79, GPU has fallen off the bus.\n"
)
PEER_LOST = (
    b"2026-07-05 03:01:52 g%d:1:2 [0] NCCL WARN socketProgress:"
    b" Connection closed by remote peer g7<1>\n"
)
QUIET = b"2026-07-05 03:00:00 step 5 | loss: 2.5 |\n" * 50


@pytest.fixture(scope="module")
def classifier() -> Classifier:
    return Classifier()


def test_a_folder_of_ranks_is_one_story(classifier: Classifier, tmp_path: Path) -> None:
    """Each file has its own verdict, and together they name the first cause."""
    for rank in range(4):
        (tmp_path / f"rank-{rank:05d}.log").write_bytes(QUIET + PEER_LOST % rank)
    (tmp_path / "dmesg.g7.gz").write_bytes(gzip.compress(OFF_THE_BUS))
    (tmp_path / "latest").symlink_to("rank-00000.log")
    found = classifier.classify_paths([tmp_path])
    assert len(found.items) == 5
    assert found.overall.fault is FaultClass.GPU_LOST
    assert found.overall.culprit == "GPU 0000:9b:00 on g7"
    assert [i.fault for i in found.items if i.name.endswith(".log")] == [FaultClass.UNKNOWN] * 4
    assert f"{tmp_path}/latest: not a regular file, left out" in found.overall.notes


@pytest.mark.parametrize(
    ("data", "note"),
    [
        (b"\x00" * 100_000 + OFF_THE_BUS, "NUL"),
        (b"\xff\xfe\x80 junk \x1b[31m\n" + OFF_THE_BUS, ""),
        (b"x" * (3 << 20) + b"\n" + OFF_THE_BUS, "longer than 1 MiB"),
        (b"\x1b]0;title\x07\x1b[2J" + OFF_THE_BUS, ""),
        (OFF_THE_BUS.replace(b"\n", b"\r\n"), ""),
        (OFF_THE_BUS.decode().encode("utf-16"), ""),
    ],
    ids=["nul", "not utf-8", "one long line", "escapes", "windows line ends", "utf-16"],
)
def test_bad_input_is_read_and_said(
    classifier: Classifier, tmp_path: Path, data: bytes, note: str
) -> None:
    """Junk around a line does not hide it, and what was odd is noted."""
    path = tmp_path / "x.log"
    path.write_bytes(data)
    found = classifier.classify_paths([path]).overall
    assert found.fault is FaultClass.GPU_LOST
    assert any(note in actual for actual in found.notes) if note else not found.notes
    assert "\x1b" not in found.evidence[0].text


@pytest.mark.parametrize(
    "data",
    [b"", b"\x00" * 5000, gzip.compress(b"", mtime=0), bytes(range(256)) * 40],
    ids=["empty", "zeros", "empty gzip", "binary"],
)
def test_what_could_not_be_read_is_unknown(
    classifier: Classifier, tmp_path: Path, data: bytes
) -> None:
    """Silence is not health: an empty or all-NUL file proves nothing."""
    path = tmp_path / "x.log"
    path.write_bytes(data)
    assert classifier.classify_paths([path]).overall.fault is FaultClass.UNKNOWN


def test_an_unreadable_input_keeps_the_whole_from_being_clean(classifier: Classifier) -> None:
    """One log that did not come back means that nobody may say no-fault."""
    missing = ["n3: no log of rank 7"]
    found = classifier.classify_inputs([("a", Blocks([QUIET]))], missing, complete=False)
    assert found.items[0].fault is FaultClass.NO_FAULT
    assert found.overall.fault is FaultClass.UNKNOWN

    def breaks_off() -> Iterator[bytes]:
        yield QUIET
        raise OSError(5, "Input/output error")

    both = classifier.classify_inputs([("a", Blocks([QUIET])), ("b", Blocks(breaks_off()))])
    assert both.overall.fault is FaultClass.UNKNOWN


def test_quiet_ranks_do_not_hide_a_healthy_job(classifier: Classifier) -> None:
    """Most ranks print nothing; their empty logs beside one that speaks are no reason for doubt."""
    inputs = [("rank-0", Blocks([QUIET])), ("rank-1", Blocks([]))]
    found = classifier.classify_inputs(inputs)
    assert found.overall.fault is FaultClass.NO_FAULT
    assert found.items[1].fault is FaultClass.UNKNOWN


def test_both_engines_give_the_same_events(classifier: Classifier) -> None:
    """Without Hyperscan the answer is slower, not another."""
    plain = Classifier()
    plain.engine = ReEngine(anchors_of(SHIPPED))
    lines = [line for lines in EXAMPLES.values() for line in lines]
    data = "\n".join(lines).encode()
    fast, _, _ = classifier.read_events("x", Blocks([data]))
    slow, _, _ = plain.read_events("x", Blocks([data]))
    assert fast == slow
    assert len(fast) > len(EXAMPLES)


def test_unread_lines_of_a_component_are_claimed_and_one_is_a_lead(
    classifier: Classifier, tmp_path: Path
) -> None:
    """No rule knows them; what speaks and that it failed is plain. Once it may be in passing."""
    path = tmp_path / "messages"
    line = "Jul  5 03:01:4%d g7 kernel: mpt9sas_cm1: event queue is stuck, host blocked\n"
    path.write_text(line % 7)
    once = classifier.classify_paths([path]).overall
    assert once.fault is FaultClass.UNKNOWN
    assert once.leads[0].fault is FaultClass.STORAGE_CHECKPOINT
    other = "Jul  5 03:01:49 g7 kernel: mpt9sas_cm1: reply queue %s is dead, port offline\n"
    path.write_text(line % 7 + line % 8 + other % "two" + other % "three")
    often = classifier.classify_paths([path]).overall
    assert often.fault is FaultClass.STORAGE_CHECKPOINT
    assert 0.5 < often.probability < 0.9


def test_an_unread_line_speaks_against_a_weak_proof_of_health_when_it_comes_thrice(
    classifier: Classifier, tmp_path: Path
) -> None:
    """Three links of a table that are missing are not made well by one that is fast."""
    path = tmp_path / "smi"
    table = b"\tnvlink port %d: 25.781 GB/s\n" % 0
    path.write_bytes(
        table + b"\tnvlink port 1 missing\n\tnvlink port 2 missing\n\tnvlink port 3 missing\n"
    )
    assert classifier.classify_paths([path]).overall.fault is FaultClass.NVLINK


def test_a_traceback_in_one_long_record_is_found(classifier: Classifier, tmp_path: Path) -> None:
    """The record is longer than a line is usually read."""
    frames = "".join(f'  File "/job/step_{n}.py", line 3, in f\\n' for n in range(90)).replace(
        '"', '\\"'
    )
    path = tmp_path / "rank.json"
    path.write_text(
        '{"log":"Traceback (most recent call last):\\n' + frames + 'TypeError: f() got x\\n"}\n'
    )
    assert classifier.classify_paths([path]).overall.fault is FaultClass.USER_CODE


def test_an_unread_line_beside_a_corrected_error_accuses_nobody(
    classifier: Classifier, tmp_path: Path
) -> None:
    """What announces one corrected error tells of the same; below its rate it is no warning."""
    path = tmp_path / "dmesg"
    path.write_bytes(
        b"Feb 23 03:28:16 g7 kernel: EDAC sbridge MC1: HANDLING MCE MEMORY ERROR\n"
        b"Feb 23 03:28:16 g7 kernel: EDAC MC1: 1 CE memory scrubbing error on DIMM_A1"
        b" (channel:0 slot:0 page:0xee30a0 offset:0x0 grain:32 syndrome:0x0)\n"
    )
    found = classifier.classify_paths([path]).overall.fault
    assert found in (FaultClass.NO_FAULT, FaultClass.UNKNOWN)


def test_a_paste_that_a_terminal_broke_is_read_whole(
    classifier: Classifier, tmp_path: Path
) -> None:
    """The words of the line stand on two rows of the paste, in the middle of a word."""
    line = OFF_THE_BUS.decode().strip().replace("NVRM", " " * 26 + "NVRM")
    filler = ["padding " * 30] * 3
    pieces = [row[at : at + 80] for row in (line, *filler) for at in range(0, len(row), 80)]
    path = tmp_path / "paste"
    path.write_text("\n".join(pieces) + "\n")
    assert classifier.classify_paths([path]).overall.fault is FaultClass.GPU_LOST


def test_words_of_other_logs_doubt_no_cause_that_they_do_not_hold(classifier: Classifier) -> None:
    """The cause stands in a log stated so surely that the model was not asked about it."""
    events = b"Warning OOMKilling node/g3 Out of memory: Killed process 812 (python) total-vm:9kB\n"
    ranks = [(f"rank-{rank}", Blocks([QUIET + PEER_LOST % rank])) for rank in range(3)]
    found = classifier.classify_inputs([("events.log", Blocks([events])), *ranks])
    alone = next(item for item in found.items if item.name == "events.log")
    assert alone.fault is FaultClass.CPU_OOM
    assert found.overall.fault is FaultClass.CPU_OOM
    assert found.overall.probability >= alone.probability


ODD = b"hbmd: hbm stack 3 page failed, row spare used up, uncorrectable\n"
"""No rule knows it; its words speak for a fault."""


@pytest.mark.parametrize(
    "line",
    [
        b"GPU temperature 45 C, power 300 W\n",
        b"Saving checkpoint to /lustre/ckpt/step_1000\n",
        b"Checking disk space on /scratch\n",
        b"temperature: 44\n",
    ],
)
def test_a_line_that_only_names_a_thing_is_no_fault_of_it(
    classifier: Classifier, tmp_path: Path, line: bytes
) -> None:
    """Words speak for what a line is about; that something failed it has to say as well."""
    path = tmp_path / "agent.log"
    path.write_bytes(b"Starting node agent\nReading configuration\nListening on port 8080\n" + line)
    assert classifier.classify_paths([path]).overall.fault is FaultClass.UNKNOWN


def test_a_fault_by_words_alone_shows_the_line_and_its_share(
    classifier: Classifier, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """`why` has to have something to show: the line that speaks, and how much."""
    monkeypatch.setattr(classify, "component_event", lambda *_: None)
    path = tmp_path / "a.log"
    path.write_bytes(ODD)
    found = classifier.classify_paths([path]).overall
    assert found.fault not in (FaultClass.UNKNOWN, FaultClass.NO_FAULT)
    (line,) = [line for line in found.evidence if line.signature == "words"]
    assert line.role is Role.ROOT
    assert line.text.startswith(f"{found.fault} 0.")
    assert line.text.endswith(f"by words alone: {ODD.decode().strip()}")


def test_no_answer_over_all_inputs_hides_a_fault_by_words_in_one(
    classifier: Classifier, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A rank's log that ended well does not make another one well."""
    monkeypatch.setattr(classify, "component_event", lambda *_: None)
    (tmp_path / "a.log").write_bytes(ODD)
    for rank in range(3):
        (tmp_path / f"rank-{rank}.log").write_bytes(b"Training completed. Exiting normally.\n")
    found = classifier.classify_paths([tmp_path])
    claimed = next(item.fault for item in found.items if item.name.endswith("a.log"))
    assert found.overall.fault is claimed
    assert [line.signature for line in found.overall.evidence if line.role is Role.ROOT] == [
        "words"
    ]
