"""Of 64 nodes somebody owns three: the others are seen as they are, and no command breaks."""

from pathlib import Path

import pytest

from brctl.cli.main import run
from tests.hostile.fleet import (
    COMMANDS,
    LOOKS,
    QUICK,
    SICK,
    Seen,
    innocents,
    may_end,
    run_command,
    seen,
    write_fleet,
    wronged,
)

OWNED = (
    ("ranks of others", "huge numbers", "control characters"),
    ("far behind, waiting for another", "without end", "deep JSON"),
)
"""Some shapes; `python -m tests.bench.hostile` tries each of them, over real SSH too."""


@pytest.fixture(scope="module")
def well(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    """The same fleet, owned by nobody: one node of it is sick."""
    config = write_fleet(tmp_path_factory.mktemp("well") / "fleet", ())
    for words in QUICK:
        assert may_end(run_command(config, words, run))
    found = seen(config.parent / "state")
    assert found.nodes[SICK][0] == "crit"
    assert {health for node, (health, _) in found.nodes.items() if node != SICK} == {"ok"}
    assert set(found.named) == {SICK}
    return found


@pytest.mark.parametrize("shapes", OWNED, ids=lambda shapes: shapes[0])
def test_owned_nodes_change_nothing_about_the_others(
    shapes: tuple[str, ...], well: Seen, tmp_path: Path
) -> None:
    """Every look ends with an answer, and the sick node is still the one that is named."""
    config = write_fleet(tmp_path / "fleet", shapes)
    for words in QUICK:
        code = run_command(config, words, run)
        assert may_end(code), (words, code)
    found = seen(config.parent / "state")
    assert wronged(well, found) == []
    assert innocents(found) == []
    assert SICK in found.named


def test_owned_nodes_stop_no_cordon_and_no_stop_of_a_job(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A node that says its rank lives on is named, so that a person looks there."""
    config = write_fleet(tmp_path / "fleet", ("control characters", "noise", "year 1"))
    for words in COMMANDS[len(LOOKS) :]:
        code = run_command(config, words, run)
        assert may_end(code), (words, code)
    captured = capsys.readouterr()
    assert "n010 does not answer, its ranks count as lost" in captured.err
    assert "ranks [4, 14] live on, says n[005,015]" in captured.err
    assert "n[005,010,015] does not show it" in captured.out
