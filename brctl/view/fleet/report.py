"""`brctl report fleet`: one page about all nodes."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from brctl.model.exit_codes import ExitCode
from brctl.model.inventory import NodeRole
from brctl.model.nodeset import fold
from brctl.model.sweeps.fleet import FleetFacts, SilentNode, Spread
from brctl.model.units import describe_duration, rfc3339
from brctl.view.alike import fold_alike
from brctl.view.documents import node_set
from brctl.view.fleet.nodes import NOT_SWEPT, NodeLine, age_text
from brctl.view.fleet.sweep import WORDS
from brctl.view.notices.page import Json, Page
from brctl.view.text import columns, printable

SHOWN = 10
"""Lines of each table of people's text; the document holds all."""


def fleet_page(
    lines: Sequence[NodeLine], facts: FleetFacts, age_s: float | None, now: datetime, since: str
) -> Page:
    """The answer of `brctl report fleet`; `since` is how far back flappers go, as it was typed."""
    states = _states(lines)
    cordoned = tuple(line.node.name for line in lines if line.cordon is not None)
    standbys = tuple(n.node.name for n in lines if n.node.role is NodeRole.STANDBY)
    body: dict[str, Json] = {
        "count": len(lines),
        "states": {state: node_set(names) for state, names in states.items()},
        "cordoned": node_set(cordoned),
        "standbys": node_set(standbys),
        "hardware": _spread_document(facts.hardware),
        "versions": {name: _spread_document(found) for name, found in facts.versions.items()},
        "silent": [_silent_node_document(found) for found in facts.silent],
        "flappers": [{"node": n, "check": c, "times": times} for n, c, times in facts.flappers],
        "since": since,
        "data_age_seconds": age_s,
    }
    named = {**states, "cordoned": cordoned, "standby": standbys}
    text = "\n\n".join(
        [f"{len(lines)} nodes  {age_text(age_s)}", *_tables(named, facts, now, printable(since))]
    )
    names = tuple(found.node for found in facts.silent)
    code = ExitCode.OK if any(line.health for line in lines) else ExitCode.UNKNOWN
    return Page("Fleet", body, text, code, names=names, next=_next(facts, age_s))


def _states(lines: Sequence[NodeLine]) -> dict[str, tuple[str, ...]]:
    order = [*(state.value for state in WORDS), NOT_SWEPT]
    of = {line.node.name: line.health.health.value if line.health else NOT_SWEPT for line in lines}
    found = {state: tuple(name for name, own in of.items() if own == state) for state in order}
    return {state: names for state, names in found.items() if names}


def _tables(
    named: Mapping[str, Sequence[str]], facts: FleetFacts, now: datetime, since: str
) -> Iterator[str]:
    labels = {state.value: word for state, word in WORDS.items()}
    rows = [(labels.get(name, name), str(len(nodes)), _folded(nodes)) for name, nodes in
            named.items() if nodes]  # fmt: skip
    yield _table(("STATE", "COUNT", "NODES"), rows)
    yield _table(("HARDWARE", "COUNT", "NODES"), list(_spread_rows(facts.hardware)))
    versions = [
        ("" if number else name, *row)
        for name, found in facts.versions.items()
        for number, row in enumerate(_spread_rows(found))
    ]
    yield _table(("VERSION OF", "IS", "COUNT", "NODES"), versions) or "no versions were read"
    said = ((_ago(s, now), s.node, s.why) for s in facts.silent)
    silent = [(fold(e.nodes), e.key, printable(e.text, 160)) for e in fold_alike(said)]
    yield _table(("SILENT", "SINCE", "WHY"), silent) or "every node answered when it was asked last"
    flappers = [(node, printable(check, 60), str(times)) for node, check, times in facts.flappers]
    head = (f"FLAPPING IN {since}", "CHECK", "TIMES")
    yield _table(head, flappers) or f"nothing came and went in the last {since}"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """At most SHOWN lines; "" without any."""
    if not rows:
        return ""
    left = len(rows) - SHOWN
    text = columns([head, *rows[:SHOWN]])
    return f"{text}\n... and {left} more: -o json" if left > 0 else text


def _spread_rows(found: Spread) -> Iterator[tuple[str, str, str]]:
    for value, nodes in found.items():
        yield printable(value, 60), str(len(nodes)), _folded(nodes)


def _folded(nodes: Sequence[str]) -> str:
    return printable(fold(nodes), 80)


def _ago(found: SilentNode, now: datetime) -> str:
    return describe_duration((now - found.since).total_seconds()) if found.since else "-"


def _spread_document(found: Spread) -> list[Json]:
    return [{"is": value, "count": len(nodes), **node_set(nodes)} for value, nodes in found.items()]


def _silent_node_document(found: SilentNode) -> Json:
    since = rfc3339(found.since) if found.since else None
    return {"node": found.node, "since": since, "why": found.why}


def _next(facts: FleetFacts, age_s: float | None) -> tuple[str, ...]:
    if age_s is None:
        return ("brctl sweep",)
    silent_nodes = [found.node for found in facts.silent]
    return (f"brctl dx -w {fold(silent_nodes)}",) if silent_nodes else ()
