"""`brctl job update|updates` from the command line, on nodes that are all this machine."""

import json
from pathlib import Path

import pytest

from tests.cli.test_play import Brctl, brctl, document

__all__ = ["brctl"]


@pytest.fixture
def releases(brctl: Brctl, tmp_path: Path) -> Path:
    """The job's code lies in two releases."""
    folder = tmp_path / "code"
    for name in ("r1", "r2"):
        (folder / name).mkdir(parents=True)
        (folder / name / "train.py").write_text(f"{name}\n")
    path = tmp_path / "job.yaml"
    path.write_text(path.read_text() + f"code: {{releases: {folder}, start: r1}}\n")
    return folder


def test_a_change_is_recorded_with_why_and_digest_and_waits(
    brctl: Brctl, releases: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing runs otherwise yet; the next restart would take it."""
    assert brctl("job", "update", "--code", "r2", "-m", "fix the loss", "--json") == 0
    found = document(capsys)
    (change,) = found["changes"]  # type: ignore[misc]  # a list of one
    assert change["state"] == "pending"  # type: ignore[has-type]
    assert change["why"] == "fix the loss"  # type: ignore[has-type]
    assert len(change["digest"]) == 64  # type: ignore[has-type]
    assert found["code"] == {
        "version": "r1", "directory": str(releases / "r1"), "digest": None, "change": None,
        "pending": "C-0001",
    }  # fmt: skip
    assert brctl("job", "updates") == 0
    output = capsys.readouterr().out
    assert "forced in 23h" in output or "forced in 1d" in output or "forced in 24h" in output, (
        output
    )


def test_cron_says_nothing_when_nothing_is_due(
    brctl: Brctl, releases: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither without a change nor with one that may still wait."""
    assert brctl("job", "update", "--due") == 0
    assert brctl("job", "update", "--code", str(releases / "r2"), "-m", "x", "-q") == 0
    capsys.readouterr()
    assert brctl("job", "update", "--due") == 0
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("arguments", "code", "output"),
    [
        (("--code", "r2"), 64, "--code needs -m"),
        ((), 64, "name the code"),
        (("--code", "../r2", "-m", "x"), 64, "not a release of this job"),
        (("--code", "/etc", "-m", "x"), 64, "not a release of this job"),
        (("--code", "r9", "-m", "x"), 5, "n[1-2]: there is no directory"),
        (("--code", "r2", "-m", "x", "--readonly"), 5, "read-only"),
    ],
)
def test_what_makes_no_sense_is_not_recorded(
    brctl: Brctl, releases: Path, capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...], code: int, output: str,
) -> None:  # fmt: skip
    assert brctl("job", "update", *arguments) == code
    assert output in capsys.readouterr().err
    assert brctl("job", "updates", "--json") == 0
    assert document(capsys)["changes"] == []


def test_a_job_without_code_says_what_to_write(
    brctl: Brctl, capsys: pytest.CaptureFixture[str]
) -> None:
    assert brctl("job", "update", "--code", "r2", "-m", "x") == 64
    assert "job.yaml: code: {releases:" in capsys.readouterr().err


def test_ranks_find_their_release_and_an_edited_one_is_not_started(
    brctl: Brctl, releases: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first start notes what ran; afterwards other content under that name is refused."""
    job = tmp_path / "job.yaml"
    script = 'echo $PWD $BRCTL_CODE_DIR $BRCTL_CODE_VERSION > \\"$PWD/../out.$RANK\\"; exit 0'
    lines = [
        f'launch: [/bin/sh, -c, "{script}"]' if line.startswith("launch") else line
        for line in job.read_text().splitlines()
    ]
    job.write_text("\n".join(lines) + "\n")
    brctl("job", "start")
    for rank in (0, 1):
        output = (releases / f"out.{rank}").read_text().split()
        assert output == [str(releases / "r1"), str(releases / "r1"), "r1"]
    (releases / "r1" / "train.py").write_text("edited\n")
    capsys.readouterr()
    assert brctl("job", "start", "--json") == 8
    (step,) = json.loads(capsys.readouterr().out)["run"]["steps"]
    assert "code r1: n[1-2] has " in step["error"]
    assert "(recorded)" in step["error"]
