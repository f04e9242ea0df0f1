"""The shipped alerts and the dashboard ask for metrics that brctl writes, by their labels."""

import json
import re
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

import yaml

import brctl
from brctl.engine.incidents.notify_verdicts import failure_series
from brctl.engine.standby.metrics import STATES, standby_series
from brctl.model.exit_codes import ExitCode
from brctl.model.jobs.job_look import JobLook, JobState
from brctl.model.units import rfc3339
from brctl.model.watch.state import WatchState
from brctl.view.fleet.prometheus import METRICS, cordon_totals, prometheus_text, verdict_totals
from brctl.view.job.ettr_metrics import ettr_totals
from brctl.view.job.looks import job_totals
from brctl.view.watch.metrics import watch_totals
from tests.engine.application.test_job_time import REPORT
from tests.sweep.healths import START
from tests.view.test_sweep_forms import SWEEP

DOCS = Path(brctl.__file__).parent / "docs"
RULES, DASHBOARD = DOCS / "prometheus-rules.yml", DOCS / "grafana-dashboard.json"


def queries() -> dict[str, list[str]]:
    """The queries of the dashboard, by the title of their panel."""
    panels = json.loads(DASHBOARD.read_text())["panels"]
    return {panel["title"]: [target["expr"] for target in panel["targets"]] for panel in panels}


def exported() -> Mapping[str, Mapping[str, set[str]]]:
    """The labels of each metric, with their values, as a sweep, a watcher and a report write them.

    A watcher serves over HTTP what it writes into its file.
    """
    look = JobLook("llm", START, JobState.PROGRESSING, 7, 1.0, 2.0)
    status = {"at": rfc3339(START), "nodes": 8, "talking": 7, "cpu_percent_a_node": 0.4}
    totals = {
        **verdict_totals((), "prod"),
        **cordon_totals(1, "prod"),
        **job_totals([look], "prod"),
        **standby_series(dict.fromkeys(STATES, 1), {"llm": 8}, "prod"),
        **failure_series({"mail": 0.0}),
        **watch_totals(status, WatchState(START), "", "prod", START),
        **ettr_totals(REPORT, "prod"),
    }
    text = prometheus_text(SWEEP, "prod", "sweep", ExitCode.OK, totals, None)
    found: dict[str, dict[str, set[str]]] = {}
    for name, labels in re.findall(r"^(brctl_\w+)(?:\{(.*)\})? \S+$", text, re.MULTILINE):
        known = found.setdefault(name, defaultdict(set))
        for label, value in re.findall(r'(\w+)="([^"]*)"', labels):
            known[label].add(value)
    return found


def asked() -> Iterator[tuple[str, str]]:
    """Every query with the texts that name labels of its answer."""
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        for target in panel["targets"]:
            yield target["expr"], target.get("legendFormat", "")
    for group in yaml.safe_load(RULES.read_text())["groups"]:
        for rule in group["rules"]:
            yield rule["expr"], rule["annotations"]["summary"]


def test_what_is_asked_for_is_exported_with_these_labels() -> None:
    """Selectors, groupings, and what a legend or a summary says; also each value by name."""
    written = exported()
    for expression, text in asked():
        named = set(re.findall(r"brctl_\w+", expression))
        assert named, expression
        assert named <= written.keys(), expression
        grouped = re.findall(r"by \(([^)]*)\)", expression)
        by = {label for row in grouped for label in row.split(", ")}
        told = set(re.findall(r"(?:\$labels\.|\{\{)(\w+)", text))
        assert not by or told <= by, expression
        assert all(by | told <= written[name].keys() for name in named), expression
        for name, matchers in re.findall(r"(brctl_\w+)\{([^}]*)\}", expression):
            for label, how, value in re.findall(r'(\w+)(=~|=)"([^"]*)"', matchers):
                assert label in written[name], expression
                assert how == "=~" or value in written[name][label], expression


def test_every_metric_that_is_described_is_written_by_somebody() -> None:
    """Counters of the history are written once they counted something."""
    counted = {"brctl_check_timeouts_total", "brctl_transport_errors_total"}
    assert set(METRICS) - set(exported()) == counted


def test_every_panel_asks_something() -> None:
    assert all(queries().values())


def test_every_metric_of_the_watcher_is_shown_or_alerted_on() -> None:
    shown = " ".join(text for found in queries().values() for text in found) + RULES.read_text()
    assert {name for name in METRICS if name.startswith("brctl_watch_") and name not in shown} == (
        set()
    )


def test_panels_lie_beside_each_other_and_have_numbers_of_their_own() -> None:
    panels = json.loads(DASHBOARD.read_text())["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for place in (panel["gridPos"] for panel in panels):
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken
        assert place["x"] + place["w"] <= 24
        taken |= cells


def test_promtool_where_it_is_installed_finds_no_fault(tmp_path: Path) -> None:
    """Each query of the dashboard is checked as a rule; its parentheses are, in any case."""
    found = [text for texts in queries().values() for text in texts]
    assert all(text.count("(") == text.count(")") for text in found)
    rules = [
        {"record": f"panel{number}", "expr": text.replace("$context", ".*")}
        for number, text in enumerate(found)
    ]
    asked = tmp_path / "dashboard.yml"
    asked.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}))
    promtool = shutil.which("promtool")
    if promtool is not None:
        done = subprocess.run(
            [promtool, "check", "rules", str(RULES), str(asked)], capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
