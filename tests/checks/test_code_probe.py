"""The digest of a release: equal for equal code, another one for anything that matters."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.checks.probes import load_probe

PROBE = load_probe("job.code")


def release(folder: Path) -> Path:
    folder.mkdir()
    (folder / "train.py").write_text("print(1)\n")
    (folder / "lib").mkdir()
    (folder / "lib" / "model.py").write_text("x = 2\n")
    (folder / "run.sh").write_text("#!/bin/sh\n")
    (folder / "run.sh").chmod(0o755)
    (folder / "data").symlink_to("/data")
    return folder


def digest(folder: Path) -> str:
    found: str = PROBE.digest_tree(str(folder), 100, 1 << 20)[0]
    return found


def test_two_copies_agree_whatever_python_and_git_left_beside_them(tmp_path: Path) -> None:
    one, two = release(tmp_path / "one"), release(tmp_path / "two")
    (two / "lib" / "__pycache__").mkdir()
    (two / "lib" / "__pycache__" / "model.pyc").write_bytes(b"x")
    (two / ".git").mkdir()
    (two / ".git" / "HEAD").write_text("ref")
    os.utime(two / "train.py", (1, 1))
    assert digest(one) == digest(two)


@pytest.mark.parametrize(
    "change",
    [
        lambda r: (r / "train.py").write_text("print(2)\n"),
        lambda r: (r / "train.py").rename(r / "main.py"),
        lambda r: (r / "run.sh").chmod(0o644),
        lambda r: (r / "lib" / "new.py").write_text(""),
        lambda r: ((r / "data").unlink(), (r / "data").symlink_to("/other")),
        lambda r: ((r / "data").unlink(), (r / "data").write_text("/data")),
    ],
    ids=["content", "name", "mode", "more", "link", "link-to-file"],
)
def test_anything_that_matters_gives_another_digest(
    change: Callable[[Path], object], tmp_path: Path
) -> None:
    one, two = release(tmp_path / "one"), release(tmp_path / "two")
    change(two)
    assert digest(one) != digest(two)


def test_what_is_no_release_is_said_and_not_digested(tmp_path: Path) -> None:
    """Nothing there, a device, or far too much: no digest at all."""
    with pytest.raises(ValueError, match="there is no directory"):
        digest(tmp_path / "nowhere")
    folder = release(tmp_path / "r")
    with pytest.raises(ValueError, match="more than 3 files"):
        PROBE.digest_tree(str(folder), 3, 1 << 20)
    os.mkfifo(folder / "pipe")
    with pytest.raises(ValueError, match="neither file nor link"):
        digest(folder)
