"""The file of the word model: read bounded and without pickles, and written by its training."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from brctl.evidence.logs.words.line_words import BUCKETS
from brctl.library.log_model import MODEL_FILE, SIZE_LIMIT, read_model, shipped_model
from brctl.model.fault import FaultClass
from tests.bench.log_model_training import examples_of, train
from tests.bench.log_tables import EXCERPT_WEIGHT, LINE_WEIGHT, Example, read_tables
from tests.bench.train_log_model import family_of, folds, model_of, write_model

LOGS = [
    Example("disk sda failed, filesystem shut down", FaultClass.STORAGE_CHECKPOINT),
    Example("disk sdb failed, journal aborted", FaultClass.STORAGE_CHECKPOINT),
    Example("loss is nan after the overflow", FaultClass.NUMERIC_NAN),
    Example("gradient overflow, nan in the loss", FaultClass.NUMERIC_NAN),
]


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
    write_model(path, model_of(*train(examples_of(LOGS)), surprise))
    model = read_model(path)
    assert model.surprise_of("one rare word of many more words here") == pytest.approx(5.0)
    shares = model.shares(["the disk failed and the filesystem is gone"])
    assert shares[FaultClass.STORAGE_CHECKPOINT] > shares[FaultClass.NUMERIC_NAN]


def test_training_has_no_chance_in_it() -> None:
    """The same logs give the same weights, to the last bit."""
    first, second = train(examples_of(LOGS)), train(examples_of(LOGS))
    assert (first[0] == second[0]).all()
    assert (first[1] == second[1]).all()


def test_the_composed_tables_are_read_and_say_each_thing_once() -> None:
    """Every row names a class we have; a text under two labels would teach neither."""
    rows = read_tables()
    assert {row.weight for row in rows} == {LINE_WEIGHT, EXCERPT_WEIGHT}
    assert {row.fault for row in rows} == set(FaultClass)
    assert len(rows) > 6000
    labels: dict[str, FaultClass] = {}
    assert [r.text for r in rows if labels.setdefault(r.text.strip(), r.fault) != r.fault] == []
    assert all(row.text.strip() and len(row.text) < 4000 for row in rows)


def test_training_learns_its_own_logs() -> None:
    """Every log is given its own class by the model trained on it."""
    examples = examples_of(LOGS)
    assert (examples.scores(*train(examples)).argmax(axis=1) == examples.labels).all()


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
