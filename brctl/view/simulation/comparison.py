"""Policies side by side on the same faults: scores, and where the hours went."""

from collections.abc import Mapping, Sequence
from textwrap import wrap

from brctl.model.exit_codes import ExitCode
from brctl.model.simulation import Book, Interval, PolicyComparison, PolicyScore, SimulatedFleet
from brctl.view.notices.page import Json, Page
from brctl.view.simulation.html import comparison_html
from brctl.view.text import columns, printable

WIDTH = 80
_HEAD = ("POLICY", "ETTR %", "WORST", "STOPS", "BAD", "GOOD", "AGAIN", "SHORT", "PAGES",
         "GUARD")  # fmt: skip
_SHOWN = ("stops", "culprits_evicted", "healthy_evicted", "came_back", "shortfalls", "pages",
          "refused")  # fmt: skip


def comparison_page(found: PolicyComparison) -> Page:
    """The answer of `brctl simulate`; exit 3 when runs are missing."""
    runs = max((score.runs for score in found.scores), default=0)
    head = (
        *fleet_lines(found.fleet),
        f"{runs} runs of {found.fleet.days:g} days from seed {found.seed}, all on the same faults;"
        " +- is 95 % of a mean",
    )
    parts = ["\n".join(head), *(_tables(found.scores) if found.scores else ())]
    parts.append("\n".join(f"missing: {printable(why)}" for why in found.unfinished))
    return Page(
        "Simulation",
        comparison_document(found),
        "\n\n".join(part for part in parts if part),
        ExitCode.UNKNOWN if found.unfinished else ExitCode.OK,
        names=tuple(printable(score.policy) for score in found.scores),
        table=tuple(score_document(score) for score in found.scores),
        html=comparison_html(found),
    )


def _tables(scores: Sequence[PolicyScore]) -> tuple[str, ...]:
    """What the policies came to; without a whole run there is nothing to say of them."""
    rows = [_HEAD, *(_row(score) for score in scores)]
    return columns(rows), "\n".join(_gains(scores)), _hours(scores)


def fleet_lines(fleet: SimulatedFleet) -> tuple[str, ...]:
    """What is simulated."""
    return (
        *wrap(f"{printable(fleet.name)}: {printable(fleet.title)}", WIDTH),
        f"{fleet.nodes} nodes, {fleet.nodes * fleet.gpus_per_node} GPUs,"
        f" {fleet.per_1000_node_days:g} failures per 1,000 node-days",
        *wrap(f"counted as failures: {printable(fleet.counts)}", WIDTH),
    )


def percent(value: Interval) -> str:
    """A share as `97.02 +-0.05`."""
    return f"{100 * value.mean:.2f} +-{100 * value.half_width:.2f}"


def _row(score: PolicyScore) -> tuple[str, ...]:
    counts = (f"{score.per_run[name]:.1f}" for name in _SHOWN)
    return (printable(score.policy), percent(score.ettr), f"{100 * score.worst_run:.2f}", *counts)


def _gains(scores: Sequence[PolicyScore]) -> list[str]:
    """What each gains over the first, in points, run by run on the same faults."""
    names = [printable(score.policy) for score in scores]
    width = max(map(len, names))
    lines = []
    for name, score in zip(names[1:], scores[1:], strict=True):
        if score.gained is not None:
            mean, half = 100 * score.gained.mean, 100 * score.gained.half_width
            lines.append(
                f"{name:{width}} - {names[0]}  {mean:+.2f} points"
                f" (paired 95 %: {mean - half:+.2f} to {mean + half:+.2f})"
            )
    return lines


def _hours(scores: Sequence[PolicyScore]) -> str:
    """Hours of a run that were not productive, in the books anything is in."""
    books = [book for book in Book if any(score.lost_h.get(book, 0.0) for score in scores)]
    if not books:
        return "no hour was lost"
    head = ("HOURS LOST", *(book.value.removeprefix("idle-") for book in books))
    rows = [
        (printable(s.policy), *(f"{s.lost_h.get(book, 0.0):.1f}" for book in books)) for s in scores
    ]
    return columns([head, *rows])


def score_document(score: PolicyScore) -> dict[str, Json]:
    """One policy's score as keys."""
    return {
        "policy": score.policy,
        "title": score.title,
        "runs": score.runs,
        "ettr_ratio": interval_document(score.ettr),
        "worst_run_ettr_ratio": round(score.worst_run, 6),
        "gained_ratio": interval_document(score.gained) if score.gained else None,
        "lost_hours": {book.value: round(hours, 4) for book, hours in score.lost_h.items()},
        "per_run": {name: round(count, 4) for name, count in score.per_run.items()},
        "short_ratio": round(score.short_share, 6),
        "ran_dry_ratio": round(score.ran_dry_share, 6),
        "first_short_day": None
        if score.first_short_day is None
        else round(score.first_short_day, 4),
    }


def interval_document(value: Interval) -> dict[str, float]:
    """A mean, the half width of its 95 % interval, the deviation of single runs."""
    return {
        "mean": round(value.mean, 6),
        "half_width_95": round(value.half_width, 6),
        "deviation": round(value.deviation, 6),
    }


def fleet_document(fleet: SimulatedFleet) -> Mapping[str, Json]:
    """What was simulated."""
    return {
        "name": fleet.name,
        "title": fleet.title,
        "origin": fleet.origin,
        "nodes": fleet.nodes,
        "gpus_per_node": fleet.gpus_per_node,
        "days": fleet.days,
        "failures_per_1000_node_days": fleet.per_1000_node_days,
        "failures_counted": fleet.counts,
    }


def comparison_document(found: PolicyComparison) -> dict[str, Json]:
    """The keys of a Simulation document."""
    return {
        "fleet": fleet_document(found.fleet),
        "seed": found.seed,
        "policies": [score_document(score) for score in found.scores],
        "unfinished": list(found.unfinished),
    }


def shard_page(body: Mapping[str, Json], made: int, wanted: int) -> Page:
    """A part of a simulation; exit 3 when some of its runs are missing."""
    text = f"{made} of {wanted} runs of this part made; its numbers are in -o json, for `merge`"
    code = ExitCode.OK if made == wanted else ExitCode.UNKNOWN
    return Page("SimulationShard", body, text, code)
