"""A sweep for Nagios, for Prometheus and for cron's mail."""

import csv
import json
from datetime import timedelta

import pytest

from brctl.cli.output import render
from brctl.model.exit_codes import ExitCode
from brctl.model.sweeps.changes import Changes
from brctl.model.sweeps.sweep import Health
from brctl.view.fleet.changes import changes_text
from brctl.view.fleet.nagios import nagios_exit, nagios_failure, nagios_lines
from brctl.view.fleet.prometheus import prometheus_text
from brctl.view.fleet.sweep_lines import sweep_lines
from brctl.view.notices.page import Page
from tests.sweep.healths import START, node, sweep

SWEEP = sweep(
    0, {"n1": Health.OK, "n2": Health.CRITICAL, "n3": Health.UNKNOWN, "n4": Health.UNKNOWN}
)


def test_the_nagios_line_says_the_worst_first() -> None:
    """One sentence, performance data after the bar, nodes folded below."""
    assert nagios_lines(SWEEP, ExitCode.CRITICAL) == (
        "BRCTL CRITICAL - 1 of 4 nodes critical: n2 gpu.ecc | "
        "crit=1;;1;0;4 warn=0;1;;0;4 unknown=2;;;0;4 time=2.5s;;;0\n"
        "crit: n2\nunknown: n[3-4]\n"
    )


def test_a_plugin_that_could_not_work_is_unknown() -> None:
    """Whatever went wrong, there is a line and an exit below 4."""
    assert nagios_failure("no config | here\n") == "BRCTL UNKNOWN - no config / here\\n\n"
    assert nagios_exit(ExitCode.CONFIG) is ExitCode.UNKNOWN
    assert nagios_exit(ExitCode.CRITICAL) is ExitCode.CRITICAL


def test_every_prometheus_family_has_help_and_type() -> None:
    """Series of one family stand together, with what they are; an unknown sweep is no success."""
    totals = {'brctl_transport_errors_total{kind="refused"}': 3.0}
    text = prometheus_text(SWEEP, 'pr"od', "sweep", ExitCode.UNKNOWN, totals, None)
    families = [line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")]
    assert len(families) == len(set(families))
    for line in text.splitlines():
        if not line.startswith("#"):
            assert line.split("{")[0] in families
    assert 'brctl_nodes{context="pr\\"od",state="unknown"} 2' in text
    assert 'brctl_node_state{context="pr\\"od",node="n2"} 2' in text
    assert 'brctl_transport_errors_total{kind="refused"} 3' in text
    assert "last_success" not in text


@pytest.mark.parametrize(
    ("code", "earlier_min", "expected"),
    [(ExitCode.CRITICAL, None, 0), (ExitCode.UNKNOWN, -5, -300)],
)
def test_a_fault_found_is_a_successful_sweep(
    code: ExitCode, earlier_min: int | None, expected: int
) -> None:
    """Success means that it could tell; else the time of the last that could stays."""
    earlier = START + timedelta(minutes=earlier_min) if earlier_min else None
    text = prometheus_text(SWEEP, "prod", "sweep", code, {}, earlier)
    line = next(t for t in text.splitlines() if t.startswith("brctl_sweep_last_success"))
    assert float(line.split()[-1]) == START.timestamp() + expected


def test_a_quiet_night_prints_nothing() -> None:
    """Cron sends no mail."""
    assert changes_text(Changes(), START) == ""


def test_lines_name_each_node_and_what_speaks_against_it() -> None:
    """One line per node in the order asked."""
    assert sweep_lines(sweep(0, [node("n1"), node("n2", Health.CRITICAL)])) == (
        "OK    n1\nCRIT  n2  gpu.ecc: n2 is bad"
    )


def test_json_is_indented_as_python_indents_it() -> None:
    """The fast way writes the same bytes, and half a character of a file's name is no crash."""
    for name in ("n1", "\u00e9\x00\u2028", "\ud800"):
        page = Page(
            "Odd", {"empty": [], "none": {}, "rows": [{"n": name, "x": 1.5, "y": None}]}, ""
        )
        text = render(page, "json", "c")
        assert text == json.dumps(json.loads(text), indent=2) + "\n"
        assert json.loads(text)["rows"][0]["n"] == name


@pytest.mark.parametrize("text", ["=cmd|' /C calc'!A0", "+1+c", "-2+3", "@SUM(A1)", "\t=1", "  =1"])
def test_a_cell_of_csv_is_never_a_formula(text: str) -> None:
    """A spreadsheet shows what a node said instead of working it out."""
    rows = ({"node": "n1", "why": text},)
    line = render(Page("List", {}, "", rows=rows), "csv", "c").splitlines()[1]
    assert next(csv.reader([line]))[1][0] not in "=+-@\t "


def test_numbers_and_hidden_characters_of_csv() -> None:
    """A negative number stays one; an escape sequence is written out."""
    rows = ({"a": -1.5, "b": "-17", "c": "n\x1b[31m\u202e1", "d": "x" * 2000, "e": None},)
    found = render(Page("List", {}, "", rows=rows), "csv", "c").splitlines()[1]
    assert found == f"-1.5,-17,n\\x1b[31m\\u202e1,{'x' * 2000},"


@pytest.mark.parametrize(
    ("body", "rows", "expected"),
    [
        ({"verdicts": []}, (), ""),
        ({"x": 1, "y": {"a": "b", "c": ["n1", "n2"]}}, (), "x,y.a,y.c\n1,b,n1 n2\n"),
        ({"chain": [{"n": 1}], "gaps": [{"n": 2}]}, (), "chain,gaps\n1,1\n"),
        ({}, ({"node": "n1", "chain": [{"raw": "x" * 99}]}, {"node": "n2", "more": None}),
         "node,chain,more\nn1,1,\nn2,,\n"),
    ],
)  # fmt: skip
def test_csv_is_flat_for_every_document(
    body: dict[str, object], rows: tuple[dict[str, object], ...], expected: str
) -> None:
    """A cell was a Python literal of a whole chain, and an empty list an error."""
    text = render(Page("Verdict", body, "", rows=rows), "csv", "c")
    assert text.replace("\r\n", "\n") == expected
