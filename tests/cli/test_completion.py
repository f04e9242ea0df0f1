"""TAB offers what may stand there, each with its meaning, and nothing a shell would run."""

import json
from pathlib import Path

import pytest

from brctl.cli.complete import cache_path, candidates, complete
from brctl.engine.controller.name_cache import forget_names

CACHE = {
    "contexts": {"prod": "context", "lab": "context"},
    "nodes": {"n1": "active rack r1", "n2": "standby rack r2"},
    "groups": {"@standby": "1 nodes", "@rack:r1": "1 nodes", "@x:$(reboot)": "1 nodes"},
    "jobs": {"llm": "job"},
    "verdicts": {"V-AAAA": "pcie n1 open"},
    "runs": {"R-0001": "run"},
    "incidents": {"V-AAAA": "pcie n1 open", "V-BBBB": "pcie n2 acted-on"},
    "checks": {"gpu.ecc": "GPU memory errors"},
    "playbooks": {"cordon": "shipped"},
}


@pytest.fixture
def cache() -> Path:
    path = Path(cache_path())
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(CACHE))
    return path


@pytest.mark.parametrize(
    ("line", "typed", "offered", "meaning"),
    [
        ("", "sw", "sweep", "health sweep of many nodes (cron's verb)"),
        ("--context", "p", "prod", "context"),
        ("sweep --profile", "pre", "preflight", "before a job starts"),
        ("ls --sort", "de", "detail", "column of the list"),
        ("nodes show", "n2", "n2", "standby rack r2"),
        ("ls -w", "@rack", "@rack:r1", "1 nodes"),
        ("ls -w", "n1,@st", "n1,@standby", "1 nodes"),
        ("ls", "--state=ok,cr", "--state=ok,crit", "as the newest sweeps saw it"),
        ("fix", "V-", "V-AAAA", "pcie n1 open"),
        ("verdict dismiss", "V-", "V-AAAA", "pcie n1 open"),
        ("incident show", "V-B", "V-BBBB", "pcie n2 acted-on"),
        ("verdict", "dis", "dismiss", None),
        ("job show", "l", "llm", "job"),
        ("play run", "co", "cordon", "shipped"),
        ("-w n1 check run", "gpu", "gpu.ecc", "GPU memory errors"),
        ("completions", "z", "zsh", "completion script"),
        ("lab break", "gpu-l", "gpu-lost", None),
        ("ls", "--so", "--sort", "column to order by"),
    ],
)
def test_a_tab_offers_what_may_stand_there_and_says_what_it_is(
    cache: Path, line: str, typed: str, offered: str, meaning: str | None
) -> None:
    found = dict(candidates(line.split(), typed))
    assert offered in found
    assert found[offered] == meaning if meaning is not None else found[offered]


def test_only_open_verdicts_can_be_acted_on(cache: Path) -> None:
    """The cache holds those; a closed one is offered where incidents are read."""
    assert [name for name, _ in candidates(["fix"], "")] == ["V-AAAA"]


def test_the_node_of_a_fault_is_the_second_word_of_lab_break(cache: Path) -> None:
    """The fault stands, so its name is offered no more."""
    cache.with_name("completion-lab.json").write_text(json.dumps({"nodes": {"lab1": "active"}}))
    assert candidates(["lab", "break", "gpu-lost"], "") == [("lab1", "active")]


def test_each_context_has_names_of_its_own(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At three in the morning a TAB must not offer the node of another cluster."""
    cache.with_name("completion-dev.json").write_text(json.dumps({"nodes": {"d1": "active"}}))
    assert [name for name, _ in candidates(["--context", "dev", "cordon"], "")] == ["d1"]
    monkeypatch.setenv("BRCTL_CONTEXT", "dev")
    assert [name for name, _ in candidates(["cordon"], "")] == ["d1"]


def test_a_name_that_a_shell_would_run_is_never_offered(cache: Path) -> None:
    """Labels come from the scheduler, and a candidate is put into the line as it is."""
    assert not [name for name, _ in candidates(["ls", "-w"], "@x")]


def test_every_word_and_flag_has_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    for line in ([""], ["verdict", ""], ["sweep", "-"], ["lab", "break", ""], ["help", ""]):
        assert complete([str(len(line)), "brctl", *line]) == 0
        rows = capsys.readouterr().out.splitlines()
        assert rows
        assert all(row.partition("\t")[2] for row in rows), line


def test_names_of_a_lab_that_went_down_are_offered_no_more(cache: Path) -> None:
    """Only its own: what another context wrote since stays."""
    own = cache.with_name("completion-lab.json")
    own.write_text(json.dumps({"nodes": {"lab1": "active"}}))
    forget_names("lab")
    assert (own.exists(), cache.exists()) == (False, True)
    own.write_bytes(cache.read_bytes())
    forget_names("lab")
    assert (own.exists(), cache.exists()) == (False, False)
    forget_names("lab")
