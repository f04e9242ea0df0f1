"""What needs a person now, worst first; nodes that say the same share one entry."""

import textwrap
from collections.abc import Iterable, Mapping, Sequence

from brctl.model.jobs.job_look import JobState
from brctl.model.nodeset import fold, natural_key
from brctl.tui.rows.job_rows import JOB_TONES
from brctl.tui.rows.row import Row, Tone, blank, fitted, row, safe
from brctl.tui.rows.state_letters import APPEARANCES, BAD, CONFIDENCE_TONES
from brctl.tui.session.facts import Facts, NodeFact, NodeState
from brctl.view.job.looks import job_sentence

_LETTERS: Mapping[JobState, str] = {JobState.STALLED: "X", JobState.UNKNOWN: "?"}


def attention_rows(facts: Facts, shown: Sequence[NodeFact], width: int) -> list[Row]:
    """The list beside the heatmap: open verdicts, bad nodes, then what is out of service."""
    rows = [row(("needs attention", Tone.HEAD))]
    for run in facts.waiting_runs:
        text = f"{run.name} WAITS: A approves, D denies; {safe(run.playbook.name, 40)}"
        rows += _entry("!", Tone.WARN, text, f"run:{run.name}", width)
    for look in facts.troubled_jobs:
        text = f"job {safe(look.job, 40)} {job_sentence(look)}"
        rows += _entry(_LETTERS[look.state], JOB_TONES[look.state], text, f"job:{look.job}", width)
    rows += _verdict_rows(facts, shown, width)
    named = {name for stored in facts.open_verdicts for name in stored.verdict.nodes}
    for state in (*BAD, NodeState.UNSWEPT):
        rows += _state_rows(state, [f for f in shown if f.name not in named], width)
    if len(rows) == 1:
        rows.append(_nothing(facts))
    return [*rows, blank(), *_out_of_service(shown), *_legend()]


def _nothing(facts: Facts) -> Row:
    """Only said when jobs and nodes were looked at."""
    unseen = [job.name for job in facts.jobs if job.name not in facts.looks]
    if unseen:
        text = f"every node shown is ok; {len(unseen)} of {len(facts.jobs)} jobs not looked at yet"
        return row((text, Tone.UNKNOWN))
    return row(("nothing: every node shown is ok", Tone.OK))


def _entry(letter: str, tone: Tone, text: str, key: str, width: int) -> list[Row]:
    """A sentence under its letter, over as many lines as it takes."""
    first, *rest = textwrap.wrap(text, max(width - 2, 20)) or [""]
    return [row((f"{letter} ", tone), (first, tone), key=key), *(row(f"  {line}") for line in rest)]


def _verdict_rows(facts: Facts, shown: Sequence[NodeFact], width: int) -> Iterable[Row]:
    names = {fact.name for fact in shown}
    whole = len(names) == len(facts.nodes)
    for stored in facts.open_verdicts:
        verdict = stored.verdict
        if not whole and names.isdisjoint(verdict.nodes):
            continue
        key = f"verdict:{verdict.id}"
        tone = CONFIDENCE_TONES[verdict.confidence]
        where = fold(verdict.nodes) or "job"
        yield row(
            ("X ", Tone.CRIT), (fitted(safe(f"{where} {verdict.title}"), width - 4), tone), key=key
        )
        job = f" job {safe(verdict.job, 40)}" if verdict.job else ""
        yield row(f"  {safe(verdict.id, 20)} {verdict.confidence.value.upper()}{job}")


def _state_rows(state: NodeState, shown: Sequence[NodeFact], width: int) -> Iterable[Row]:
    appearance = APPEARANCES[state]
    gathered: dict[str, list[str]] = {}
    for fact in shown:
        if fact.state is state:
            # The node's own name would keep equal reasons apart.
            reason = f"{fact.check} {fact.detail}".replace(fact.name, "it").strip()
            gathered.setdefault(reason or state.value, []).append(fact.name)
    for reason, names in sorted(gathered.items(), key=lambda item: natural_key(item[1][0])):
        key = "nodes:" + "\n".join(names)
        folded = fitted(safe(fold(names), 2000), width - 4).rstrip()
        yield row((f"{appearance.letter} ", appearance.tone), (folded, Tone.PLAIN), key=key)
        yield row(("  " + fitted(safe(reason), width - 4).rstrip(), Tone.DIM))


def _out_of_service(shown: Sequence[NodeFact]) -> Iterable[Row]:
    counts = {state: sum(f.state is state for f in shown) for state in NodeState}
    yield row(
        ("c ", APPEARANCES[NodeState.CORDONED].tone), f"{counts[NodeState.CORDONED]} cordoned  ",
        ("s ", APPEARANCES[NodeState.STANDBY].tone), f"{counts[NodeState.STANDBY]} standby",
    )  # fmt: skip


def _legend() -> Iterable[Row]:
    yield row((". ok  w warn  X crit", Tone.DIM))
    yield row(("? unknown  - not swept", Tone.DIM))


def worst_first(shown: Sequence[NodeFact]) -> list[NodeFact]:
    """The bad nodes, worst first, in natural order within a state."""
    order = {state: index for index, state in enumerate(BAD)}
    bad = [fact for fact in shown if fact.state in order]
    return sorted(bad, key=lambda f: (order[f.state], natural_key(f.name)))
