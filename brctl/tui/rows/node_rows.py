"""One node, tab by tab, from its newest answers; pure."""

from collections.abc import Callable, Mapping, Sequence

from brctl.engine.sweeps.node_states import PastState
from brctl.model.evidence import Evidence, Weight
from brctl.model.sweeps.report import CheckResult, ProbeStatus, Value
from brctl.model.sweeps.sweep import NodeHealth
from brctl.tui.rows.row import Row, Span, Tone, blank, heading, paragraph, row, safe, table
from brctl.tui.rows.run_rows import playbook_of
from brctl.tui.rows.state_letters import APPEARANCES, HEALTH_TONES
from brctl.tui.rows.times import Times
from brctl.tui.rows.verdict_rows import SIGNS
from brctl.tui.session.facts import Facts, NodeFact

NOT_ASKED = "this node was never asked; r asks it now"
_SAYS_TONE = {ProbeStatus.MEASURED: Tone.OK}


def title_rows(fact: NodeFact, facts: Facts) -> list[Row]:
    """Name, place, job and state."""
    appearance = APPEARANCES[fact.state]
    labels = "  ".join(f"{k} {safe(v, 30)}" for k, v in sorted(fact.node.labels.items())[:6])
    job = next((j for j in facts.jobs if fact.name in j.nodes), None)
    ranks = job.ranks_on(fact.name) if job else ()
    carried = (
        f"job {safe(job.name, 40)} ranks {ranks[0]}-{ranks[-1]}" if job and ranks else "no job"
    )
    rows = [
        row((safe(fact.name, 80), Tone.HEAD), f"  {fact.node.role.value}  {labels}  {carried}  ",
            (f"{appearance.letter} {fact.state.value.upper()}", appearance.tone))
    ]  # fmt: skip
    if fact.cordon:
        rows.append(row(("cordoned by ", Tone.CORDON), safe(": ".join(fact.cordon), 300)))
    return rows


def health_rows(fact: NodeFact, health: NodeHealth | None, times: Times, width: int) -> list[Row]:
    """What is wrong, what is missing, and each check in a line."""
    if health is None:
        return [row((NOT_ASKED, Tone.UNKNOWN))]
    rows = [row(("state ", Tone.HEAD), (health.health.value.upper(), HEALTH_TONES[health.health]),
                f"  answered: {health.report.outcome.value} in {health.report.seconds:.1f} s"
                f" at {times.of(health.report.received_at)}")]  # fmt: skip
    if health.report.detail:
        rows += paragraph("", safe(health.report.detail, 400), width)
    rows += [blank(), *_judged(health, (Weight.CONVICTS, Weight.HINTS))]
    for gap in health.gaps:
        rows += paragraph("? not seen  ", f"{gap.what}: {safe(gap.why, 300)}", width, Tone.UNKNOWN)
    return [*rows, blank(), *_checks(health.report.results)]


def _judged(health: NodeHealth, weights: Sequence[Weight]) -> list[Row]:
    found = [item for item in health.evidence if item.weight in weights]
    return [_evidence_row(item) for item in found] or [
        row(("no check says that something is wrong", Tone.OK))
    ]


def _evidence_row(item: Evidence) -> Row:
    sign, says, tone = SIGNS[item.weight]
    called = item.subject.called
    device = f" ({safe(called, 60)})" if called and called not in item.text else ""
    return row(
        (f"{sign} {says:8}", tone), f" {safe(item.source, 24)}  {safe(item.text, 300)}{device}"
    )


def _checks(results: Sequence[CheckResult]) -> list[Row]:
    body = [
        (
            (
                safe(result.check, 30),
                (result.status.value, _SAYS_TONE.get(result.status, Tone.UNKNOWN)),
                f"{result.seconds:.2f} s",
                str(len(result.measurements)),
                safe("; ".join(result.notes), 200),
            ),
            "",
        )
        for result in results
    ]
    return table(("CHECK", "STATUS", "TIME", "VALUES", "NOTES"), body)


Columns = Mapping[str, str]
_GPU: Columns = {
    "idx": "gpu.device.index", "pci": "gpu.device.pci", "temp C": "gpu.clocks.temperature_c",
    "power W": "gpu.clocks.power_w", "SM MHz": "gpu.clocks.sm_mhz",
    "ECC CE": "gpu.ecc.aggregate_corrected", "ECC UE": "gpu.ecc.volatile_uncorrected",
    "remap": "gpu.remap.pending", "links": "gpu.nvlink.active_count", "gen": "gpu.pcie.generation",
    "width": "gpu.pcie.width", "lost": "gpu.device.lost",
}  # fmt: skip


def gpu_rows(health: NodeHealth | None) -> list[Row]:
    """One line a GPU; `-` is not measured, never zero."""
    values = _by_subject(health, "gpu:")
    if not values:
        return [row(("no GPU was measured", Tone.UNKNOWN))]
    bad = _subjects(health, (Weight.CONVICTS,))
    body: list[tuple[tuple[Span | str, ...], str]] = []
    for subject in sorted(values, key=lambda s: _order(values[s])):
        cells = [_shown(values[subject].get(name)) for name in _GPU.values()]
        state = ("X CRIT", Tone.CRIT) if subject in bad else (". ok", Tone.OK)
        body.append(((*cells, state, safe(subject[4:], 44)), ""))
    return table((*_GPU, "state", "uuid"), body)


def _order(values: Mapping[str, Value]) -> float:
    index = values.get("gpu.device.index")
    return float(index) if isinstance(index, int | float) else 1e9


def link_rows(health: NodeHealth | None) -> list[Row]:
    """Every link and NIC that was measured."""
    return _plain(health, ("link:", "nic:"), "no link was measured")


def host_rows(health: NodeHealth | None) -> list[Row]:
    """What is measured of the node itself, its disks and its ranks."""
    return _plain(health, ("", "disk:", "rank:"), "nothing of the host was measured")


def _plain(health: NodeHealth | None, kinds: Sequence[str], nothing: str) -> list[Row]:
    body = [
        ((safe(m.subject or "node", 60), m.name, safe(_shown(m.value), 300)), "")
        for m in (health.report.measurements if health else ())
        if (not m.subject and "" in kinds) or m.subject.startswith(tuple(k for k in kinds if k))
    ]
    return (
        table(("SUBJECT", "MEASUREMENT", "VALUE"), body) if body else [row((nothing, Tone.UNKNOWN))]
    )


def event_rows(health: NodeHealth | None, times: Times) -> list[Row]:
    """Everything judged about this node that has a moment, newest first."""
    dated = [item for item in (health.evidence if health else ()) if item.at is not None]
    dated.sort(key=lambda item: item.at.timestamp() if item.at else 0.0, reverse=True)
    if not dated:
        return [row(("no event with a time is known", Tone.DIM))]
    return [
        row((f"{times.of(item.at):>16}  ", Tone.DIM), *_evidence_row(item).spans) for item in dated
    ]


def history_rows(
    fact: NodeFact, facts: Facts, past: Sequence[PastState], times: Times
) -> list[Row]:
    """Verdicts and runs that named this node, then how its state changed."""
    body = [
        ((times.of(s.verdict.decided_at), "verdict", safe(s.verdict.id, 20),
          f"{s.verdict.fault.value} {s.state.value}"), f"verdict:{s.verdict.id}")
        for s in facts.verdicts if fact.name in s.verdict.nodes
    ]  # fmt: skip
    body += [
        ((times.of(run.began_at), "run", run.name,
          f"{playbook_of(run)} {run.state}"), f"run:{run.name}")
        for run in facts.runs if fact.name in run.nodes
    ]  # fmt: skip
    body += [
        ((times.of(state.at), "sweep", state.health.value.upper(),
          safe(f"{state.check} {state.detail}", 300)), "")
        for state in past
    ]  # fmt: skip
    if not body:
        return [row(("no verdict, run or sweep named this node", Tone.DIM))]
    return table(("AT", "WHAT", "ID", "SAYS"), body)


def raw_node_rows(health: NodeHealth | None, width: int) -> list[Row]:
    """Every measurement and every word on stderr, as it came but harmless."""
    if health is None:
        return [row((NOT_ASKED, Tone.UNKNOWN))]
    rows: list[Row] = []
    for result in health.report.results:
        rows.append(heading(f"{safe(result.check, 60)}  {result.status.value}"))
        rows += [
            row(f"  {safe(m.name, 60)}  {safe(m.subject, 60)}  {safe(_shown(m.value), 2000)}")
            for m in result.measurements
        ]
        if result.stderr:
            rows += paragraph("  stderr  ", safe(result.stderr, 4000), width, Tone.WARN)
    return rows


TABS: Mapping[str, Callable[..., list[Row]]] = {
    "Health": lambda f, s, p, a, t, w: health_rows(f, s, t, w),
    "GPUs": lambda f, s, p, a, t, w: gpu_rows(s),
    "Links": lambda f, s, p, a, t, w: link_rows(s),
    "Host": lambda f, s, p, a, t, w: host_rows(s),
    "Events": lambda f, s, p, a, t, w: event_rows(s, t),
    "History": lambda f, s, p, a, t, w: history_rows(f, a, p, t),
    "Raw": lambda f, s, p, a, t, w: raw_node_rows(s, w),
}
"""What each tab draws, from the fact, the health, the past, all facts, times and width."""


def _by_subject(health: NodeHealth | None, prefix: str) -> dict[str, dict[str, Value]]:
    found: dict[str, dict[str, Value]] = {}
    for m in health.report.measurements if health else ():
        if m.subject.startswith(prefix):
            found.setdefault(m.subject, {})[m.name] = m.value
    return found


def _subjects(health: NodeHealth | None, weights: Sequence[Weight]) -> set[str]:
    return {e.subject.device for e in (health.evidence if health else ()) if e.weight in weights}


def _shown(value: Value | None) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:g}"
    return safe(str(value), 2000)
