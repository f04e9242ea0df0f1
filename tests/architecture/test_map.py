"""The map is the territory: paths in documents exist, rows match files, files stay readable."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from brctl.cli.complete import CACHE_FILE as COMPLETE_CACHE_FILE
from brctl.cli.complete import cache_path
from brctl.cli.complete_words import tree
from brctl.cli.words import ALIASES, GROUPS, WORDS
from brctl.engine.controller.name_cache import CACHE_FILE
from brctl.library.config import user_cache_dir
from brctl.model.exit_codes import ExitCode
from brctl.view.help import TOPICS
from tests.bench.structure import modules_a_folder, sources

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "brctl"
LINE_LIMIT = 500
FOLDER_LIMIT = 25


def test_every_path_in_the_architecture_page_exists() -> None:
    text = (PACKAGE / "ARCHITECTURE.md").read_text()
    named = set(re.findall(r"`((?:brctl|checks|playbooks|tests|completions)/[\w./*-]*)`", text))
    assert named, "the index names no path"
    missing = sorted(path for path in named if not list(ROOT.glob(path.rstrip("/"))))
    assert missing == []


def test_every_command_is_a_row_a_module_and_a_line_of_help() -> None:
    listed = {word for arguments in GROUPS.values() for word in arguments}
    assert listed == set(WORDS)
    assert set(ALIASES.values()) <= set(WORDS)
    for word, entry in WORDS.items():
        assert entry.load() is not None, word


def test_every_command_is_named_in_the_readme() -> None:
    text = (ROOT / "README.md").read_text()
    missing = [word for word in WORDS if f"brctl {word}" not in text and f"`{word}`" not in text]
    assert missing == []


def test_completion_words_are_those_of_the_commands() -> None:
    """After a change: `python -m brctl.cli.complete_words > completions/words.json`."""
    assert json.loads((ROOT / "completions" / "words.json").read_text()) == tree()


def test_the_completer_reads_the_file_that_the_engine_writes(clean_environment: Path) -> None:
    import os

    assert COMPLETE_CACHE_FILE == CACHE_FILE
    assert Path(cache_path()) == user_cache_dir(os.environ) / CACHE_FILE


def test_every_exit_code_is_explained() -> None:
    text = TOPICS["exit-codes"]
    assert all(re.search(rf"^ *{int(code)} ", text, re.MULTILINE) for code in ExitCode)


def test_decisions_are_numbered_once_and_have_their_headings() -> None:
    pages = sorted((PACKAGE / "decisions").glob("*.md"))
    numbers = [page.name[:4] for page in pages]
    assert len(set(numbers)) == len(numbers)
    for page in pages:
        text = page.read_text()
        for heading in ("Context", "Decision", "Rejected", "Consequence", "Revisit when"):
            assert re.search(rf"^(\*\*|## ){heading}", text, re.MULTILINE), (page.name, heading)


@pytest.mark.parametrize("folder", ["brctl", "checks", "tests"])
def test_no_source_file_grows_beyond_reading(folder: str) -> None:
    long = {
        str(path.relative_to(ROOT)): lines
        for path in (ROOT / folder).rglob("*.py")
        if (lines := len(path.read_text().splitlines())) > LINE_LIMIT
    }
    assert long == {}


def test_no_folder_holds_more_modules_than_a_look_takes_in() -> None:
    """A stranger finds a feature from `ls`; the commands are found by their word."""
    counts = modules_a_folder(ROOT, sources(PACKAGE))
    full = {name: count for name, count in counts.items() if count > FOLDER_LIMIT}
    assert set(full) <= {"cli/commands"}, full


def test_layers_import_only_downwards() -> None:
    """The contracts of pyproject.toml hold; plain `pytest` is enough to see it."""
    command = [str(Path(sys.executable).parent / "lint-imports"), "--no-logo"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:]


def test_the_top_level_holds_what_the_customer_fixed_and_nothing_else() -> None:
    """Dotfiles beside it; everything else belongs into one of these."""
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    tops = {name.partition("/")[0] for name in listed}
    assert {name for name in tops if not name.startswith(".")} == {
        "brctl", "checks", "completions", "playbooks", "tests",
        "CHANGELOG.md", "LICENSE", "README.md", "pyproject.toml",
    }  # fmt: skip
