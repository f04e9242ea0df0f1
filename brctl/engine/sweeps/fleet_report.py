"""What is known of the whole fleet, from sweeps on disk; no node is asked."""

from datetime import UTC, datetime, timedelta

from brctl.engine.controller.wiring import Controller
from brctl.engine.sweeps.history import SweepHistory
from brctl.engine.sweeps.survey import Survey
from brctl.model.command import Outcome
from brctl.model.inventory import Node
from brctl.model.sweeps.fleet import FleetFacts, SilentNode
from brctl.sweep.problems import TRANSPORT
from brctl.sweep.spread import hardware, versions

_NEVER = datetime.min.replace(tzinfo=UTC)


def fleet_facts(controller: Controller, known: Survey, back: timedelta) -> FleetFacts:
    """Facts of the surveyed nodes; flappers of the time back from now."""
    history = SweepHistory(controller.state_dir)
    tracked = history.tracked()
    since = {
        node: found.since
        for (node, check), found in tracked.items()
        if check == TRANSPORT and found.recovered_at is None
    }
    chosen = {node.name for node in known.nodes}
    reports = {name: health.report for name, health in known.health.items() if name in chosen}
    silent = [
        found for node in known.nodes if (found := _silent_node(node, known, since)) is not None
    ]
    return FleetFacts(
        hardware=hardware(known.nodes, reports),
        versions=versions(reports.values()),
        silent=tuple(sorted(silent, key=lambda found: found.since or _NEVER)),
        flappers=tuple(
            row for row in history.flappers(controller.now() - back) if row[0] in chosen
        ),
    )


def _silent_node(node: Node, known: Survey, since: dict[str, datetime]) -> SilentNode | None:
    health = known.health.get(node.name)
    if health is None:
        return SilentNode(node.name, "never swept", None)
    report = health.report
    if report.outcome is Outcome.ANSWERED:
        return None
    return SilentNode(node.name, report.why_silent, since.get(node.name))
