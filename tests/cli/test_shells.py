"""TAB in the real bash, zsh and fish: the word is finished, a list has meanings."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.test_completion import CACHE
from tests.fakes.shell_terminal import ShellTerminal

SCRIPTS = Path(__file__).parents[2] / "completions"


@pytest.fixture
def environ(clean_environment: Path) -> dict[str, str]:
    """A `brctl` on PATH that is this checkout's, and a cache of names."""
    folder = clean_environment / "bin"
    folder.mkdir()
    program = folder / "brctl"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m brctl "$@"\n')
    program.chmod(0o755)
    cache = clean_environment / "cache" / "brctl"
    cache.mkdir(parents=True)
    (cache / "completion.json").write_text(json.dumps(CACHE))
    return {
        **os.environ,
        "PATH": f"{folder}:{os.environ['PATH']}",
        "PYTHONPATH": str(SCRIPTS.parent),
        "TERM": "dumb",
        "PS1": "> ",
    }


@pytest.fixture
def terminals() -> Iterator[list[ShellTerminal]]:
    opened: list[ShellTerminal] = []
    yield opened
    for terminal in opened:
        terminal.close()


def _needs(shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} here")


def test_bash_finishes_words_sets_and_flags(
    environ: dict[str, str], terminals: list[ShellTerminal]
) -> None:
    """Its word breaks cut at @, : and =, and the candidate still lands where it belongs."""
    _needs("bash")
    bash = ShellTerminal(["bash", "--norc", "--noprofile", "-i"], environ)
    terminals.append(bash)
    bash.press(f"bind 'set bell-style none'; source {SCRIPTS}/brctl.bash; echo rea''dy\r")
    bash.wait_for("ready")
    for typed, finished in (
        ("brctl fix V-", "brctl fix V-AAAA"),
        ("brctl ls -w @rac", "brctl ls -w @rack:r1"),
        ("brctl ls -w n1,@st", "brctl ls -w n1,@standby"),
        ("brctl ls -w 'n1,@st", "brctl ls -w 'n1,@standby"),
        ("brctl ls --sort=deta", "brctl ls --sort=detail"),
        ("brctl lab break gpu-los", "brctl lab break gpu-lost"),
        ("brctl --context pr", "brctl --context prod"),
        ("brctl sweep --profile pre", "brctl sweep --profile preflight"),
    ):
        bash.press(f"\x15{typed}\t")
        bash.wait_for(finished)
    bash.press("\x15brctl nodes show n\t\t")
    assert "active rack r1" in bash.wait_for("standby rack r2")


def test_zsh_finishes_words_and_lists_them_with_meanings(
    environ: dict[str, str], terminals: list[ShellTerminal]
) -> None:
    _needs("zsh")
    zsh = ShellTerminal(["zsh", "-f", "-i"], environ)
    terminals.append(zsh)
    zsh.press(f"fpath=({SCRIPTS} $fpath); autoload -U compinit; compinit -u -D; echo rea''dy\r")
    zsh.wait_for("ready")
    for typed, finished in (
        ("brctl fix V-", "V-AAAA"),
        ("brctl ls -w @rac", "@rack:r1"),
        ("brctl ls --sort=deta", "--sort=detail"),
        ("brctl lab break gpu-los", "gpu-lost"),
        ("brctl --context pr", "prod"),
        ("brctl sweep --profile pre", "preflight"),
    ):
        zsh.press(f"\x15{typed}\t")
        zsh.wait_for(finished)
    zsh.press("\x15brctl nodes show n\t\t")
    assert "active rack r1" in zsh.wait_for("standby rack r2")


FISH = {
    "brctl fix V-": "V-AAAA\tpcie n1 open",
    "brctl ls -w @rac": "@rack:r1\t1 nodes",
    "brctl lab break gpu-los": "gpu-lost\ta GPU of the node has fallen off the bus",
    "brctl ls --sort deta": "detail\tcolumn of the list",
    "brctl sweep --profile pre": "preflight\tbefore a job starts",
    "brctl nodes show n2": "n2\tstandby rack r2",
    "brctl --context p": "prod\tcontext",
}


def test_fish_offers_candidates_with_meanings(environ: dict[str, str]) -> None:
    """`complete -C` asks fish itself what TAB would offer."""
    _needs("fish")
    asked = "; ".join(f"complete -C '{typed}'" for typed in FISH)
    script = f"source {SCRIPTS}/brctl.fish; {asked}"
    done = subprocess.run(["fish", "-N", "-c", script], env=environ, capture_output=True, text=True)
    assert all(offered in done.stdout for offered in FISH.values()), done
