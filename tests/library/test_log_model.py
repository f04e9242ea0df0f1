"""The file of the word model: read bounded and without pickles, and written by its training."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from brctl.evidence.logs.words.line_words import BUCKETS
from brctl.evidence.logs.words.marked_lines import marked_lines
from brctl.evidence.logs.words.word_model import hear
from brctl.library.log_model import MODEL_FILE, SIZE_LIMIT, read_model, shipped_model
from brctl.model.fault import FaultClass
from tests.bench.log_model_training import HeardLog, examples_of, heard_example, train
from tests.bench.log_tables import EXCERPT_WEIGHT, LINE_WEIGHT, LOG_WEIGHT, Example, read_tables
from tests.bench.train_log_model import family_of, folds, model_of, write_model

LOGS = [
    Example("disk sda failed, filesystem shut down", FaultClass.STORAGE_CHECKPOINT),
    Example("disk sdb failed, journal aborted", FaultClass.STORAGE_CHECKPOINT),
    Example("loss is nan after the overflow", FaultClass.NUMERIC_NAN),
    Example("gradient overflow, nan in the loss", FaultClass.NUMERIC_NAN),
]


def heard() -> list[HeardLog]:
    return [heard_example(log) for log in LOGS]


def test_the_shipped_model_is_small_and_knows_every_class() -> None:
    """A few hundred KiB at most; a class it does not know could never be a lead."""
    assert MODEL_FILE.stat().st_size < 300 << 10
    assert set(shipped_model().classes) == set(FaultClass)


def test_classifying_an_explained_log_does_not_load_numpy(tmp_path: Path) -> None:
    """The model costs its start-up only where no rule found the cause."""
    path = tmp_path / "dmesg"
    path.write_text("[ 5.000001] NVRM: Xid (PCI:0000:9b:00): 79, GPU has fallen off the bus.\n")
    code = (
        "import sys; from pathlib import Path; from brctl.engine.logs.classify import Classifier;"
        f"print(Classifier().classify_paths([Path({str(path)!r})]).overall.fault.value,"
        " 'numpy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["gpu-lost", "False"]


def test_what_training_writes_is_what_is_read(tmp_path: Path) -> None:
    """The tables survive the file, and tell the classes they were trained on apart."""
    path = tmp_path / "model.npz"
    surprise = bytes([80]) * BUCKETS
    write_model(path, model_of(train(examples_of(heard())), surprise))
    model = read_model(path)
    assert model.surprise_of("one rare word of many more words here") == pytest.approx(5.0)
    shares = hear(model, {1: "the disk failed and the filesystem is gone"}, ()).shares
    assert shares[FaultClass.STORAGE_CHECKPOINT] > shares[FaultClass.NUMERIC_NAN]


def test_training_has_no_chance_in_it() -> None:
    """The same logs give the same weights, to the last bit."""
    first, second = train(examples_of(heard())), train(examples_of(heard()))
    for one, other in zip(first.parts(), second.parts(), strict=True):
        assert (one == other).all()


def test_the_composed_tables_are_read_and_say_each_thing_once() -> None:
    """Every row names a class we have; a text under two labels would teach neither."""
    rows = read_tables()
    assert {row.weight for row in rows} == {LINE_WEIGHT, EXCERPT_WEIGHT, LOG_WEIGHT}
    assert {row.fault for row in rows} == set(FaultClass)
    assert len(rows) > 6000
    labels: dict[str, FaultClass] = {}
    assert [r.text for r in rows if labels.setdefault(r.text.strip(), r.fault) != r.fault] == []
    assert all(row.text.strip() and len(row.text) < 4000 for row in rows)


def test_training_learns_its_own_logs() -> None:
    """Every log is given its own class by the model trained on it."""
    model = model_of(train(examples_of(heard())))
    for log in LOGS:
        shares = hear(model, {1: log.text}, ()).shares
        assert max(shares, key=lambda fault: shares[fault]) is log.fault


def test_one_line_of_many_is_enough_to_learn_from() -> None:
    """Which line tells the cause is nowhere said: it is the one that logs of one class share."""
    steps = [f"step done by rank {name}" for name in ("a", "b", "c")]
    pages = [log.text for log in LOGS]
    logs = [
        HeardLog(marked_lines(dict(enumerate([*steps, text, *steps], 1)), ()), frozenset({fault}))
        for text, fault in ((text, log.fault) for text, log in zip(pages, LOGS, strict=True))
    ]
    model = model_of(train(examples_of(logs)))
    told = hear(model, dict(enumerate([*steps, "journal aborted, disk sdq failed"], 1)), ())
    assert told.shares[FaultClass.STORAGE_CHECKPOINT] > 0.8
    spoken = told.speaking(FaultClass.STORAGE_CHECKPOINT)
    assert spoken[0].number == len(steps) + 1


def test_a_family_is_never_split_between_training_and_trial() -> None:
    """Logs of one repository print alike: trying on them what was trained on them flatters."""
    rows = [
        {"id": "1", "source_url": "https://github.com/a/b/issues/1"},
        {"id": "2", "source_url": "https://github.com/a/b/pull/7"},
        {"id": "3", "source_url": "https://github.com/a/c/issues/1"},
        {"id": "4", "facts_from": "x-9"},
    ]
    names = np.array([family_of(row) for row in rows])
    assert list(names) == ["github.com/a/b", "github.com/a/b", "github.com/a/c", "x-9"]
    tried = np.stack(list(folds(names)))
    assert (tried.sum(axis=0) == 1).all()
    assert (tried[:, 0] == tried[:, 1]).all()


def test_a_model_file_that_holds_objects_is_refused(tmp_path: Path) -> None:
    """A pickle in an array would run code of whoever wrote it."""
    path = tmp_path / "model.npz"
    np.savez(path, classes=np.array([object()], dtype=object))
    with pytest.raises(ValueError, match="allow_pickle"):
        read_model(path)


def test_a_model_file_beyond_its_bounds_is_refused(tmp_path: Path) -> None:
    """Neither a large file nor a small one that unpacks to a large one is loaded."""
    large = tmp_path / "large.npz"
    large.write_bytes(b"\0" * (SIZE_LIMIT + 1))
    with pytest.raises(ValueError, match="larger than"):
        read_model(large)
    bomb = tmp_path / "bomb.npz"
    np.savez_compressed(bomb, weights=np.zeros(4 * SIZE_LIMIT, dtype=np.int8))
    with pytest.raises(ValueError, match="unpacks to more"):
        read_model(bomb)


@pytest.mark.parametrize("content", [b"not a zip", b""])
def test_a_file_that_is_no_model_is_refused(tmp_path: Path, content: bytes) -> None:
    """It says which file, and that it is none."""
    path = tmp_path / "model.npz"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="not a word model"):
        read_model(path)
