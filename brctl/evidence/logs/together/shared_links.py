"""Links that went down together: one cable or port is no cause that they could share.

Ports of several hosts that lose their link at once hang on one switch. Several ports of one host
whose bonding driver alone calls them down, while no adapter reports a lost link, have no bad cable
either: that host's Ethernet side fails (its driver, its bonding set-up).
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from brctl.evidence.logs.event import LogEvent
from brctl.evidence.logs.order import seconds_between
from brctl.evidence.logs.signature import Signature, root
from brctl.model.fault import FaultClass

TOGETHER_S = 30.0
"""A switch that goes down is seen by all its ports within seconds; watchdogs of drivers differ."""

_LINES = 40
"""Lines between the first and the last where no clock tells how far apart they are."""

_HOSTS, _PORTS = 3, 3

_SOURCE = "ports that lose their link together"
MANY_HOSTS = root(
    FaultClass.NETWORK_SWITCH, "links.of-many-hosts", "link", 0.86, _SOURCE, physical=True
)
MANY_PORTS = root(FaultClass.NETWORK_ETH, "links.of-one-host", "link", 0.8, _SOURCE, physical=True)
"""Neither is matched by text: they are made from lines of several ports."""

_LOSSES = frozenset({"net.link-down", "link.down", "nccl.ib.async-event"})
_BY_BONDING = re.compile(r"link status (?:definitely )?down")
_PARALLEL_SHELL = re.compile(r"^(?P<host>[A-Za-z][\w-]*\d): ")


def read_together(standing: Sequence[LogEvent]) -> list[LogEvent]:
    """The events, losses of links that have a cause in common read as that cause's lines."""
    losses = [event for event in standing if event.signature.name in _LOSSES]
    row = _row_of(losses)
    if row is None:
        return list(standing)
    return [_reread(event, row) if event in losses else event for event in standing]


def _row_of(losses: Sequence[LogEvent]) -> Signature | None:
    if not losses or not _are_together(losses):
        return None
    if len({_host_of(event) for event in losses} - {""}) >= _HOSTS:
        return MANY_HOSTS
    ports = {event.fields.get("sensor", "") for event in losses} - {""}
    by_bonding = all(_BY_BONDING.search(event.text) for event in losses)
    return MANY_PORTS if by_bonding and len(ports) >= _PORTS else None


def _are_together(losses: Sequence[LogEvent]) -> bool:
    """Whether they lie close in time, or on the page where a clock is missing."""
    first = losses[0]
    gaps = [seconds_between(first, event) for event in losses]
    if None not in gaps:
        known = [gap for gap in gaps if gap is not None]
        return max(known) - min(known) <= TOGETHER_S
    if any(event.source != first.source for event in losses):
        return False
    lines = [event.line for event in losses]
    return max(lines) - min(lines) <= _LINES


def _host_of(event: LogEvent) -> str:
    shell = _PARALLEL_SHELL.match(event.text)
    return event.fields.get("host", "") or (shell["host"] if shell else "")


def _reread(event: LogEvent, row: Signature) -> LogEvent:
    """A line under the shared row; of many hosts' links no host is the culprit."""
    fields = {} if row is MANY_HOSTS else event.fields
    return replace(event, signature=row, family=row.name, fields=fields)
