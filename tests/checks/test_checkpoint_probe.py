"""A checkpoint is whole when every part its metadata names is there; metadata never runs code."""

import os
import pickle
import shutil
from importlib import import_module
from pathlib import Path
from typing import cast

import pytest

from brctl.model.jobs.checkpoint_layouts import CHECKPOINT_NAMES
from tests.checks.probes import Read, load_probe, read

torch = pytest.importorskip("torch")
SUBJECT = "ckpt:step-00000020"

pytestmark = [
    pytest.mark.torch,
    # One process saves here; torch says so as a warning.
    pytest.mark.filterwarnings("ignore:torch.distributed is disabled:UserWarning"),
]


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A real checkpoint written by torch itself."""
    import torch.distributed.checkpoint as dcp

    state = {
        "model": {"w": torch.arange(4096, dtype=torch.float32).reshape(64, 64), "b": torch.ones(7)},
        "optimizer": {"step": 20, "name": "adam"},
    }
    folder = tmp_path / "step-00000020"
    dcp.save(state, checkpoint_id=folder, no_dist=True)
    return folder


def look(folder: Path, **parameters: object) -> Read:
    names = CHECKPOINT_NAMES["torch-dcp"]
    told = {"checkpoint_dir": str(folder.parent), "layout": "torch-dcp", "names": names}
    return read("job.checkpoint", {**told, **parameters})


def value(found: Read, name: str) -> object:
    return found.values[f"job.checkpoint.{name}", SUBJECT]


def part(folder: Path) -> Path:
    return next(folder.glob("*.distcp"))


def test_what_torch_saved_is_whole(saved: Path) -> None:
    """Every part is found and every checksum holds."""
    found = look(saved, verify=True)
    assert value(found, "complete") is True
    assert value(found, "bad_items") == 0
    assert value(found, "bytes") == sum(f.stat().st_size for f in saved.glob("*.distcp"))


def test_one_made_of_wrong_numbers_is_not_whole(saved: Path) -> None:
    """The earliest finding of its ranks is the reason; one that cannot be read is no health."""
    marks = saved / "numbers"
    marks.mkdir()
    assert value(look(saved), "complete") is True
    (marks / "rank-00000.json").write_text('{"kind": "sum", "step": 19}')
    (marks / "rank-00003.json").write_text('{"kind": "product", "step": 17, "module": "head"}')
    found = look(saved)
    assert value(found, "complete") is False
    assert value(found, "problem") == (
        "numbers were wrong since step 17, before it was saved: head (product)"
    )
    (marks / "rank-00005.json").write_text("[]")
    assert str(value(look(saved), "problem")).startswith("numbers/rank-00005.json: TypeError")


@pytest.mark.parametrize(
    "junk",
    ['{"kind": "sum", "step": Infinity}', "[" * 65536, None],
    ids=["infinite", "deep", "folder"],
)
def test_a_mark_that_cannot_be_read_is_a_reason_and_hides_no_other_checkpoint(
    saved: Path, junk: str | None
) -> None:
    """One bad file of the newest must not take the older ones from a restart."""
    older = shutil.copytree(saved, saved.parent / "step-00000010")
    marks = saved / "numbers"
    marks.mkdir()
    if junk is None:
        (marks / "rank-00000.json").mkdir()
    else:
        (marks / "rank-00000.json").write_text(junk)
    found = look(saved)
    assert value(found, "complete") is False
    assert str(value(found, "problem")).startswith("numbers/rank-00000.json: ")
    assert found.values["job.checkpoint.complete", f"ckpt:{older.name}"] is True


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        ('{"position": 3, "of": 1, "samples": 8, "global_batch": []}', True),
        ("[" * 65536, False),
        (f'{{"position": 3, "of": 1, "state": "{"x" * 65536}"}}', False),
    ],
    ids=["list", "deep", "long"],
)
def test_a_loader_state_of_any_shape_is_read_or_is_a_reason(
    saved: Path, text: str, *, complete: bool
) -> None:
    """And the probe goes on."""
    (saved / "loader").mkdir()
    (saved / "loader" / "rank-00000.json").write_text(text)
    assert value(look(saved), "complete") is complete


@pytest.mark.parametrize("name", ["loader_positions", "wrong_numbers"])
def test_a_folder_that_cannot_be_listed_is_a_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """As one of another user; nothing of it is taken for healthy."""
    module = import_module(f"checks._checkpoints.{name}")

    def refuse(path: str) -> list[str]:
        raise PermissionError(13, "Permission denied", path)

    for folder in ("loader", "numbers"):
        (tmp_path / folder).mkdir()
    monkeypatch.setattr(module.os, "listdir", refuse)
    if name == "wrong_numbers":
        assert "PermissionError" in module.wrong_numbers_in(str(tmp_path))
    else:
        ranks, problem = module.positions_in(str(tmp_path))
        assert (ranks, "PermissionError" in problem) == ({}, True)


def test_a_truncated_part_is_found_though_metadata_is_there(saved: Path) -> None:
    """The metadata proves nothing about the data."""
    os.truncate(part(saved), part(saved).stat().st_size - 1)
    found = look(saved)
    assert (value(found, "complete"), value(found, "short_files")) == (False, 1)


def test_a_missing_part_is_found(saved: Path) -> None:
    """A part that was never written, or was removed, is named."""
    part(saved).unlink()
    found = look(saved)
    assert (value(found, "complete"), value(found, "missing_files")) == (False, 1)
    assert value(found, "problem") == "__0_0.distcp"


def test_a_directory_without_metadata_is_not_complete(saved: Path) -> None:
    """A kill leaves all parts and no metadata."""
    (saved / ".metadata").unlink()
    found = look(saved)
    assert value(found, "complete") is False


def test_a_flipped_bit_in_a_tensor_is_found_when_asked(saved: Path) -> None:
    """One bit of tensor data breaks the checksum of its item, and the item is named."""
    data = bytearray(part(saved).read_bytes())
    place = data.index(torch.tensor([100.0, 101.0]).numpy().tobytes())
    data[place] ^= 1
    part(saved).write_bytes(data)
    assert value(look(saved), "complete") is True
    found = look(saved, verify=True)
    assert (value(found, "complete"), value(found, "bad_items")) == (False, 1)
    assert value(found, "problem") == "model.w"


class Evil:
    """Pickles as a call of os.system."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, ("touch /tmp/brctl-metadata-ran-code",)


def test_metadata_that_wants_to_run_code_does_not(saved: Path) -> None:
    """A hostile pickle makes the checkpoint unusable and runs nothing."""
    (saved / ".metadata").write_bytes(pickle.dumps(Evil()))
    found = look(saved)
    assert value(found, "complete") is False
    assert "posix.system" in cast(str, value(found, "problem"))
    assert not Path("/tmp/brctl-metadata-ran-code").exists()


def laughs() -> object:
    """A list that would take 2**60 items to print."""
    value: list[object] = ["ha"]
    for _ in range(60):
        value = [value, value]
    return value


def test_metadata_that_would_expand_without_end_is_refused(saved: Path) -> None:
    """A name that is a bomb of nested lists is not turned into text."""
    from torch.distributed.checkpoint.filesystem import _StorageInfo
    from torch.distributed.checkpoint.metadata import Metadata, MetadataIndex

    hostile = Metadata({}, None, {MetadataIndex("w"): _StorageInfo(laughs(), 0, 1)})
    (saved / ".metadata").write_bytes(pickle.dumps(hostile))
    found = look(saved)
    assert value(found, "complete") is False
    assert "no name, file, offset or length" in str(value(found, "problem"))


@pytest.mark.parametrize(
    "junk", [b"", b"\x80", b"junk", pickle.dumps({"storage_data": {}}), b"\x80\x02]" + b"(" * 5000]
)
def test_junk_metadata_is_a_broken_checkpoint(saved: Path, junk: bytes) -> None:
    """Whatever stands in the file, the answer is `not complete`, never a crash."""
    (saved / ".metadata").write_bytes(junk)
    assert value(look(saved), "complete") is False


def test_a_part_outside_the_checkpoint_is_refused(saved: Path) -> None:
    """A path with a slash in the metadata is not followed."""
    raw = (saved / ".metadata").read_bytes()
    (saved / ".metadata").write_bytes(raw.replace(b"__0_0.distcp", b"/etc/passwd\0"))
    assert value(look(saved), "complete") is False


def test_only_the_newest_are_looked_at_where_one_is_whole(saved: Path) -> None:
    """A directory of thousands of checkpoints costs what the newest few cost."""
    for step in range(21, 25):
        shutil.copytree(saved, saved.with_name(f"step-{step:08}"))
    found = look(saved, newest=3)
    assert sum(name == "job.checkpoint.step" for name, _ in found.values) == 3
    assert found.values["job.checkpoint.count", ""] == 5


def test_no_more_than_64_are_looked_at_where_none_is_whole(saved: Path) -> None:
    shutil.rmtree(saved)
    for step in range(21, 121):
        (saved.parent / f"step-{step:08d}").mkdir()
    found = look(saved, newest=3)
    assert sum(name == "job.checkpoint.step" for name, _ in found.values) == 64
    assert found.values["job.checkpoint.count", ""] == 100


def test_older_ones_are_looked_at_until_one_is_whole(saved: Path) -> None:
    """Eight checkpoints made of wrong numbers must not hide the sound one before them."""
    for step in range(21, 25):
        later = shutil.copytree(saved, saved.with_name(f"step-{step:08}"))
        (later / "numbers").mkdir()
        (later / "numbers" / "rank-00000.json").write_text('{"kind": "sum", "step": 20}')
    found = look(saved, newest=2)
    assert value(found, "complete") is True


def test_nothing_of_torch_is_imported_by_the_probe() -> None:
    """The probe reads torch's files with the standard library alone."""
    assert "torch" not in load_probe("job.checkpoint").__dict__
