"""One sweep as a Prometheus text file for node_exporter's textfile collector."""

import platform
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from brctl import __version__
from brctl.model.exit_codes import ExitCode
from brctl.model.sweeps.sweep import Health, NodeHealth, Sweep
from brctl.model.verdict import Verdict

_STATE = {Health.OK: 0, Health.WARNING: 1, Health.CRITICAL: 2, Health.UNKNOWN: 3}
_SEVERITY = {"convicts": "crit", "hints": "warn"}
METRICS = {
    "brctl_build_info": ("gauge", "Always 1; the version that wrote this file."),
    "brctl_sweep_last_run_timestamp_seconds": ("gauge", "When the last sweep began."),
    "brctl_sweep_last_success_timestamp_seconds": ("gauge", "When a sweep last could tell."),
    "brctl_sweep_duration_seconds": ("gauge", "Wall time of the last sweep."),
    "brctl_nodes": ("gauge", "Nodes by state in the last sweep."),
    "brctl_node_state": ("gauge", "0 ok, 1 warn, 2 crit, 3 unknown."),
    "brctl_check_failing_nodes": ("gauge", "Nodes a check found fault with."),
    "brctl_check_duration_seconds_max": ("gauge", "Slowest node of each check, last sweep."),
    "brctl_check_timeouts_total": ("counter", "Probes killed at their deadline."),
    "brctl_job_step": ("gauge", "Newest step of a job, as cron last saw it."),
    "brctl_job_progress_age_seconds": ("gauge", "Since a job's newest sign of progress."),
    "brctl_job_step_seconds": ("gauge", "Time of a job's newest steps."),
    "brctl_job_stalled": ("gauge", "1 while a job that should run takes no steps."),
    "brctl_job_ettr_ratio": ("gauge", "Productive by wall time: of all, and of the last hour."),
    "brctl_job_records_unread": ("gauge", "1 while a job's step file is not read: no ratio then."),
    "brctl_job_time_seconds": ("gauge", "A job's wall time by where it went; the sum of all."),
    "brctl_job_lost_seconds": ("gauge", "What a job's incidents cost, by cause."),
    "brctl_job_incidents": ("gauge", "Incidents of a job in the time that is accounted."),
    "brctl_job_incident_seconds": ("gauge", "What each phase of an incident takes, the median."),
    "brctl_job_mttf_seconds": ("gauge", "Wall time for each incident of a job."),
    "brctl_open_verdicts": ("gauge", "Verdicts nobody has acted on, by fault class."),
    "brctl_cordoned_nodes": ("gauge", "Nodes of the inventory that are out of service."),
    "brctl_standby_nodes": ("gauge", "Standbys by state, as they were last asked or tested."),
    "brctl_standby_parked_ranks": ("gauge", "Processes parked for a job's ranks, as last asked."),
    "brctl_watch_up": ("gauge", "1 while a watcher looks, by its own word of the last 30 s."),
    "brctl_watch_last_told_timestamp_seconds": ("gauge", "When the watcher last told its state."),
    "brctl_watch_trouble": ("gauge", "1 while it only observes: its policy or disk is at fault."),
    "brctl_watch_nodes": ("gauge", "Nodes that are looked at, by whether they talk."),
    "brctl_watch_suspicions": ("gauge", "What is suspected now, by rule."),
    "brctl_watch_decisions": ("gauge", "Decisions on the newest verdicts (1,000), by mode."),
    "brctl_watch_breaker_open": ("gauge", "1 until a person closes the watcher's breaker."),
    "brctl_watch_nodes_acted_on": ("gauge", "Nodes the watcher acted on in 24 hours."),
    "brctl_watch_network_trouble": ("gauge", "1 while too many nodes are silent at once."),
    "brctl_watch_scheduler_trouble": ("gauge", "1 while nobody says where jobs run now."),
    "brctl_watch_crowds": ("gauge", "Rules that suspect too many nodes at once."),
    "brctl_watch_quiet_nodes": ("gauge", "Nodes left alone after a person's hand in them."),
    "brctl_watch_node_cpu_ratio": (
        "gauge",
        "CPU of looks on the busiest node, of one core.",
    ),
    "brctl_notify_failures_total": ("counter", "Notices a sink could not be told."),
    "brctl_transport_errors_total": ("counter", "Nodes that could not be asked, by kind."),
}

Sample = tuple[str, Mapping[str, str], float]


def prometheus_text(
    sweep: Sweep, context: str, profile: str, code: ExitCode, totals: Mapping[str, float],
    last_success_at: datetime | None,
) -> str:  # fmt: skip
    """All series of one sweep, sorted, each with its HELP and TYPE.

    Args:
        sweep: The sweep.
        context: Value of the label `context`.
        profile: Value of the label `profile`.
        code: What the sweep exits with; below UNKNOWN it is a success.
        totals: Counters since the history began, by whole series name.
        last_success_at: When a sweep before this one last succeeded.
    """
    here = {"context": context, "profile": profile}
    began = sweep.started_at.timestamp()
    success_at = began if code < ExitCode.UNKNOWN else _timestamp(last_success_at)
    samples: list[Sample] = [
        ("brctl_build_info", {"version": __version__, "python": platform.python_version()}, 1),
        ("brctl_sweep_last_run_timestamp_seconds", here, began),
        ("brctl_sweep_duration_seconds", here, round(sweep.seconds, 3)),
        *_nodes(sweep, context),
        *_checks(sweep.nodes, context),
    ]
    if success_at is not None:
        samples.append(("brctl_sweep_last_success_timestamp_seconds", here, success_at))
    lines = {name: [_line(*s) for s in samples if s[0] == name] for name in METRICS}
    return _families(lines, totals)


def totals_text(totals: Mapping[str, float]) -> str:
    """Series without a sweep, as a text file of their own."""
    return _families({name: [] for name in METRICS}, totals)


def _families(lines: dict[str, list[str]], totals: Mapping[str, float]) -> str:
    for series, value in totals.items():
        lines.setdefault(series.partition("{")[0], []).append(f"{series} {_number(value)}")
    return "".join(_family(name, found) for name, found in lines.items() if found)


def verdict_totals(verdicts: Iterable[Verdict], context: str) -> Mapping[str, float]:
    """Open verdicts by class; 0 of no class when none is open, so that an alert can end."""
    counts = Counter(verdict.fault.value for verdict in verdicts) or Counter({"": 0})
    return {
        f'brctl_open_verdicts{{context="{context}",class="{fault}"}}': float(count)
        for fault, count in sorted(counts.items())
    }


def cordon_totals(cordoned: int | None, context: str) -> Mapping[str, float]:
    """Nodes out of service; nothing where the scheduler did not say."""
    if cordoned is None:
        return {}
    return {f'brctl_cordoned_nodes{{context="{context}"}}': float(cordoned)}


def _timestamp(moment: datetime | None) -> float | None:
    return moment.timestamp() if moment else None


def _nodes(sweep: Sweep, context: str) -> Iterator[Sample]:
    for health in Health:
        labels = {"context": context, "state": health.value}
        yield "brctl_nodes", labels, len(sweep.of(health))
    for node in sweep.nodes:
        yield "brctl_node_state", {"context": context, "node": node.node}, _STATE[node.health]


def _checks(nodes: Iterable[NodeHealth], context: str) -> Iterator[Sample]:
    failing: dict[tuple[str, str], set[str]] = {}
    slowest: dict[str, float] = {}
    for node in nodes:
        for item in node.evidence:
            if item.weight in _SEVERITY:
                failing.setdefault((item.source, _SEVERITY[item.weight]), set()).add(node.node)
        for result in node.report.results:
            slowest[result.check] = max(slowest.get(result.check, 0.0), result.seconds)
    for (check, severity), names in sorted(failing.items()):
        labels = {"context": context, "check": check, "severity": severity}
        yield "brctl_check_failing_nodes", labels, len(names)
    for check, seconds in sorted(slowest.items()):
        yield "brctl_check_duration_seconds_max", {"check": check}, round(seconds, 4)


def _line(name: str, labels: Mapping[str, str], value: float) -> str:
    return f"{series_of(name, labels)} {_number(value)}"


def series_of(name: str, labels: Mapping[str, str]) -> str:
    """A series' whole name."""
    label_text = ",".join(f'{key}="{_escape(text)}"' for key, text in labels.items())
    return f"{name}{{{label_text}}}"


def _number(value: float) -> str:
    return f"{value:.3f}" if value > 1e6 else f"{value:g}"


def _escape(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _family(name: str, lines: list[str]) -> str:
    kind, text = METRICS.get(name, ("untyped", ""))
    return "\n".join([f"# HELP {name} {text}", f"# TYPE {name} {kind}", *sorted(lines)]) + "\n"
