"""The documents say what the code says: tables are generated, links lead somewhere."""

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from brctl.cli.complete import flags_at
from brctl.cli.complete_words import Entry, tree
from brctl.cli.main import run
from brctl.cli.words import BRIDGE_WORDS, WORDS
from brctl.engine.watch.policy_file import load_watch_policy
from brctl.inventory.own_yaml import load_own_yaml
from brctl.library.config import load_settings
from brctl.library.guards import load_guards
from brctl.library.jobs import load_job
from brctl.library.log_rules import read_rule_file
from brctl.playbook.guards import GUARDS
from brctl.simulate.fleet_file import load_fleet
from tests.docs.keys import KEYS, checked_tables
from tests.docs.pages import MAN, PAGES, ROOT, generated, tables_in
from tests.docs.tables import TABLES
from tests.timeouts import TIMEOUT_S

REPAIR = "run `python -m tests.docs` and commit what it writes"
_FENCE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
_TYPED = re.compile(r"^(?:\$ |23 \* \* \* \*  )?brctl ([a-z].*)$", re.MULTILINE)
_PATH = re.compile(r"`((?:brctl|checks|playbooks|tests|completions)/[\w./*<>-]+)`")
_LINK = re.compile(r"\]\((?!https?://|#)([^)#\s]+)")


def documents() -> list[Path]:
    """Every page for people that is written by hand, wholly or in part."""
    top = [ROOT / name for name in ("README.md", "CHANGELOG.md", "brctl/ARCHITECTURE.md")]
    return [*top, *sorted((ROOT / ".github").glob("*.md")), *sorted(PAGES.glob("*.md"))]


def test_generated_parts_are_those_of_the_code() -> None:
    """A new verb, key, flag or right changes a page in the same commit."""
    stale = [
        str(path.relative_to(ROOT))
        for path, text in generated().items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
    assert stale == [], REPAIR


def test_every_man_page_belongs_to_a_command() -> None:
    """The page of a command that went would promise what is not there."""
    pages = {path.name for path in MAN.iterdir()}
    assert pages == {"brctl.1", *(f"brctl-{word}.1" for word in WORDS)}


def test_groff_renders_the_man_pages_without_a_warning() -> None:
    if not shutil.which("groff"):
        pytest.skip("not installed: groff")
    command = ["groff", "-man", "-ww", "-Tutf8", "-Kutf8", *map(str, sorted(MAN.iterdir()))]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=TIMEOUT_S)
    assert done.stderr == ""
    assert "brctl-dx - evidence to verdict" in done.stdout.replace("‐", "-")


def test_every_table_is_shown_once() -> None:
    shown = [name for path in documents() for name in tables_in(path.read_text(encoding="utf-8"))]
    assert sorted(shown) == sorted(TABLES)


@pytest.mark.parametrize("page", documents(), ids=lambda page: page.name)
def test_every_link_of_a_page_leads_to_a_file(page: Path) -> None:
    links = _LINK.findall(page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", documents(), ids=lambda page: page.name)
def test_every_path_a_page_names_exists(page: Path) -> None:
    """Changes of old in the changelog may name what went since; `<name>` stands for any."""
    named = set() if page.name == "CHANGELOG.md" else set(_PATH.findall(page.read_text("utf-8")))
    patterns = {path: re.sub(r"<\w+>", "*", path).rstrip("/") for path in named}
    assert sorted(path for path, glob in patterns.items() if not list(ROOT.glob(glob))) == []


def test_the_index_names_every_page() -> None:
    index = (PAGES / "README.md").read_text(encoding="utf-8")
    pages = {path.name for path in PAGES.glob("*.md")} - {"README.md"}
    assert set(_LINK.findall(index)) >= pages


def hand_tables() -> dict[str, set[str]]:
    """Every table that is written by hand and checked."""
    texts = [path.read_text(encoding="utf-8") for path in documents()]
    return {name: arguments for text in texts for name, arguments in checked_tables(text).items()}


@pytest.mark.parametrize("name", KEYS)
def test_a_table_by_hand_names_the_words_of_the_code(name: str) -> None:
    assert hand_tables()[name] == set(KEYS[name]())


def test_the_table_of_guards_names_every_parameter() -> None:
    text = (PAGES / "playbooks.md").read_text(encoding="utf-8")
    for kind, row in GUARDS.items():
        line = next(line for line in text.splitlines() if line.startswith(f"| `{kind}` |"))
        named = set(re.findall(r"`(\w+)`", line.split("|")[2]))
        assert named == set(row.parameters) - {"playbook"}, kind


def test_every_environment_variable_is_in_the_reference() -> None:
    """Those of the lab are its own business."""
    text = (PAGES / "environment.md").read_text(encoding="utf-8")
    used: set[str] = set()
    for folder in ("brctl", "checks"):
        for path in (ROOT / folder).rglob("*.py"):
            used |= set(re.findall(r'"(BRCTL_[A-Z_]+)"', path.read_text(encoding="utf-8")))
    own = {name for name in used if not name.startswith(("BRCTL_LAB_", "BRCTL_FAKE_"))}
    assert {name for name in own if name not in text} == set()


def command_lines(text: str) -> list[str]:
    """Every command line a document shows, without `brctl`: in code spans and in code blocks."""
    blocks = _FENCE.findall(text)
    spans = re.findall(r"`brctl ([a-z][^`|]*)", _FENCE.sub("", text))
    return [*spans, *(line for block in blocks for line in _TYPED.findall(block))]


def what_cannot_be_typed(line: str, paths: dict[str, Entry]) -> str | None:
    """The word or flags of a command line that do not exist; values are not looked at."""
    arguments = [word for word in re.split(r"#| \| ", line)[0].split() if word != "..."]
    name = next((n for n in (" ".join(arguments[:2]), arguments[0]) if n in paths), None)
    if name is None:
        return None if arguments[0] in BRIDGE_WORDS else arguments[0]
    if paths[name].get("words") and len(arguments) > 1 and not arguments[1].startswith("-"):
        return arguments[1]
    flags = {word.split("=")[0] for word in arguments if re.fullmatch(r"--?[a-z][\w=-]*", word)}
    return " ".join(sorted(flags - set(flags_at(paths, name)))) or None


def test_every_command_line_in_a_document_can_be_typed() -> None:
    """Words, sub-commands and flags exist."""
    paths, wrong = tree(), {}
    for page in documents():
        for line in command_lines(page.read_text(encoding="utf-8")):
            if problem := what_cannot_be_typed(line, paths):
                wrong[f"{page.name}: {line}"] = problem
    assert wrong == {}


def examples() -> list[tuple[str, str]]:
    """Every whole file of brctl that a document shows, with its kind.

    Those inside the watcher's manifest are read by tests/docs/test_watcher_manifest.py.
    """
    blocks = [block for page in documents() for block in _FENCE.findall(page.read_text("utf-8"))]
    found = [block.removeprefix("```yaml\n").removesuffix("```") for block in blocks]
    own = [text for text in found if re.search(r"^apiVersion: brctl.dev/", text, re.MULTILINE)]
    kinds = [(re.search(r"^kind: (\w+)$", text, re.MULTILINE), text) for text in own]
    return [(kind[1], text) for kind, text in kinds if kind]


def read_example(kind: str, path: Path) -> object:
    """What the reader of this kind makes of a file."""
    readers: dict[str, Callable[[Path], object]] = {
        "Config": lambda path: load_settings({"HOME": "/nowhere"}, config=path),
        "Guards": lambda path: load_guards([path]),
        "Inventory": load_own_yaml,
        "Job": load_job,
        "LogRules": read_rule_file,
        "SimulatedFleet": load_fleet,
        "WatchPolicy": load_watch_policy,
    }
    return readers[kind](path)


def test_every_file_that_a_page_shows_is_accepted(tmp_path: Path) -> None:
    assert {kind for kind, _ in examples()} >= {"Config", "Guards", "Inventory", "Job", "LogRules"}
    for number, (kind, text) in enumerate(examples()):
        path = tmp_path / f"{number}.yaml"
        path.write_text(text)
        assert read_example(kind, path)


def test_help_prints_a_page_of_the_reference(capsys: pytest.CaptureFixture[str]) -> None:
    """Also where there is no network and no source tree."""
    assert run(["help", "daily"]) == 0
    assert capsys.readouterr().out == (PAGES / "daily.md").read_text(encoding="utf-8")
