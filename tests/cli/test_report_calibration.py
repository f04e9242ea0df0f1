"""`report calibration` counts what people judged, and says when nobody judged anything."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from brctl.cli.main import run
from brctl.engine.incidents.verdict_store import StoredVerdict, VerdictState, load, save
from brctl.library.config import load_settings
from tests.cli.test_play import CONFIG
from tests.fakes.run_context import example_verdict


def asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, object]]:
    config = tmp_path / "config.yaml"
    config.write_text(CONFIG)
    code = run(["report", "calibration", "-o", "json", "--config", str(config)])
    document: dict[str, object] = json.loads(capsys.readouterr().out)
    return code, document


def test_confirmed_and_dismissed_verdicts_are_counted_by_confidence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Open and superseded ones were judged by nobody."""
    code, nothing = asked(tmp_path, capsys)
    assert (code, nothing["calibration"]) == (3, [])
    settings = load_settings({"HOME": str(tmp_path)}, config=tmp_path / "config.yaml")
    states = [VerdictState.CONFIRMED] * 3 + [VerdictState.DISMISSED, VerdictState.OPEN]
    for number, state in enumerate(states):
        verdict = replace(example_verdict(), id=f"V-{number}", probability=0.95)
        save(settings.state_dir, StoredVerdict(verdict, state))
    code, document = asked(tmp_path, capsys)
    assert code == 0
    assert document["verdicts"] == 5
    assert document["calibration"] == [
        {"confidence": "high", "judged": 4, "right": 3, "stated": 0.95}
    ]


def test_a_confirmed_cause_keeps_the_nodes_it_was_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`-w` was refused as choosing no nodes, although the help names it."""
    config = tmp_path / "config.yaml"
    config.write_text(CONFIG)
    settings = load_settings({"HOME": str(tmp_path)}, config=config)
    save(settings.state_dir, StoredVerdict(example_verdict(), VerdictState.OPEN))
    words = ["verdict", "confirm", "V-1", "--cause", "gpu-lost", "-w", "n2"]
    assert run([*words, "--config", str(config)]) == 0, capsys.readouterr().err
    assert load(settings.state_dir, "V-1").nodes == ("n2",)


def test_a_verdict_confirmed_without_a_cause_says_what_was_confirmed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(CONFIG)
    settings = load_settings({"HOME": str(tmp_path)}, config=config)
    save(settings.state_dir, StoredVerdict(example_verdict(), VerdictState.OPEN))
    assert run(["verdict", "confirm", "V-1", "--config", str(config)]) == 0
    assert capsys.readouterr().out == "V-1 confirmed: as it was told\n"
