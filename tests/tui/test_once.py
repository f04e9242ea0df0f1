"""`--once` prints the view and leaves; the same rows as the screen."""

import subprocess
import sys
from pathlib import Path

import pytest

from brctl.model.errors import ConfigError, UsageError
from brctl.tui.address import Address
from brctl.tui.once import once_text
from brctl.tui.start import ViewRequest, print_once, read_keymap
from tests.timeouts import TIMEOUT_S
from tests.tui.site import make_site, site_app, site_verdict


def test_the_fleet_is_printed_with_what_needs_a_person(tmp_path: Path) -> None:
    """Heatmap letters and the attention list, without a terminal."""
    settings = make_site(tmp_path, verdict=site_verdict())
    text = print_once(settings, ViewRequest())
    assert ".wX?ss" in text
    assert "X n3 a GPU fell off the bus" in text
    assert "data" in text


def test_a_filter_narrows_what_is_printed(tmp_path: Path) -> None:
    """The filter of the address holds for the print as well."""
    facts = site_app(tmp_path, make_site(tmp_path)).reader.read()
    text = once_text(facts, Address("fleet", filter="@rack:r2"), width=80, ascii_only=True)
    assert ".wX?ss" not in text
    assert "ss" in text


@pytest.mark.parametrize(
    ("view", "sort", "said"),
    [
        ("verdicts", "nope", "--sort nope: no such column; "),
        ("verdicts", "-cnof", r"--sort -cnof: no such column; did you mean 'CONF'\?"),
        (None, "NODE", "--sort NODE: the fleet has no columns"),
    ],
)
def test_a_column_that_no_list_has_is_refused(
    tmp_path: Path, view: str | None, sort: str, said: str
) -> None:
    settings = make_site(tmp_path, verdict=site_verdict())
    with pytest.raises(UsageError, match=said):
        print_once(settings, ViewRequest(view, sort=sort))


def test_a_list_may_be_sorted_by_each_of_its_columns_and_what_it_opens_by_none(
    tmp_path: Path,
) -> None:
    """The line that `y` copies names the order of the list behind the item."""
    settings = make_site(tmp_path, verdict=site_verdict())
    assert "V-1" in print_once(settings, ViewRequest("verdicts", sort="-conf"))
    one = print_once(settings, ViewRequest("verdicts", "V-1"))
    assert print_once(settings, ViewRequest("verdicts", "V-1", sort="-id")) == one
    assert print_once(settings, ViewRequest("bisect", sort="nope"))


def test_the_command_prints_and_exits_zero(tmp_path: Path) -> None:
    """`brctl tui --once` is a command line like any other."""
    make_site(tmp_path, verdict=site_verdict())
    done = subprocess.run(
        [sys.executable, "-m", "brctl", "tui", "--once", "--ascii",
         "--config", str(tmp_path / "config.yaml")],
        capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.isascii()
    assert ".wX?ss" in done.stdout


def test_an_unknown_key_name_in_keys_yaml_is_an_error_with_its_neighbour(tmp_path: Path) -> None:
    """A typing error must not silently leave the old key."""
    path = tmp_path / "keys.yaml"
    path.write_text("apiVersion: brctl.dev/v1\nkind: Keys\nkeys: {fixx: f5}\n")
    with pytest.raises(ConfigError, match="did you mean 'fix'"):
        read_keymap(path)
    path.write_text("apiVersion: brctl.dev/v1\nkind: Keys\nkeys: {fix: f5}\n")
    assert read_keymap(path) == {"fix": "f5"}
