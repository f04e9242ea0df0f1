"""The standby pool as people read it."""

from collections.abc import Mapping, Sequence

from brctl.model.exit_codes import ExitCode
from brctl.model.nodeset import fold
from brctl.model.units import describe_duration
from brctl.playbook.placement.pool import PoolPlace
from brctl.playbook.spares import PoolSize
from brctl.view.notices.page import Json, Page
from brctl.view.text import age_text, columns, printable


def standby_list_page(rows: Sequence[Mapping[str, Json]]) -> Page:
    """The answer of `standby list`."""
    shown = [
        [str(r["node"]), str(r["state"]), _ready(r), age_text(_prepared(r)),
         str(r["health"] or "-"),
         age_text(r["tested_age_seconds"]), printable(str(r["note"] or ""))]
        for r in rows
    ]  # fmt: skip
    head = [["NODE", "STATE", "READY", "AGE", "CHECKS", "TESTED", "NOTE"]]
    text = columns([*head, *shown]) if rows else "no standby; add one: brctl standby add NODE"
    names = tuple(str(row["node"]) for row in rows)
    return Page("StandbyList", {"standbys": list(rows)}, text, ExitCode.OK, names, tuple(rows))


def _ready(row: Mapping[str, Json]) -> str:
    """How much of a start is done already, as somebody saw it just now."""
    job, waiting, wanted = row["parked_for"], row["parked_ranks"], row["wanted_ranks"]
    if job is None:
        return "cold" if row["warmed_age_seconds"] is None else _warm(row["warm_seconds"])
    if waiting is None:
        return f"parked for {job}? no answer"
    if waiting == wanted:
        return f"parked for {job}"
    return f"parked for {job}: {waiting} of {wanted}" if waiting else f"cold, was parked for {job}"


def _warm(seconds: Json) -> str:
    """With what loading took, which a start there no longer waits for."""
    if not isinstance(seconds, int | float):
        return "warm"
    return f"warm, saves {describe_duration(seconds)}"


def _prepared(row: Mapping[str, Json]) -> Json:
    parked = row["parked_age_seconds"]
    return row["warmed_age_seconds"] if parked is None else parked


def standby_size_page(
    job: str, size: PoolSize, source: str, have: int, ready: int, place: PoolPlace | None
) -> Page:
    """The answer of `standby size`: exit 1 when fewer are free than needed."""
    enough = ready >= size.needed
    group = (
        f"the largest {size.group_axis} group spans {size.group} nodes"
        if size.group_axis
        else ("every group that is evicted whole fits on one node")
    )
    lines = [
        f"P{size.risk * 100:g} of losses{_when(size)}: {size.losses} ({size.machines} nodes,"
        f" {size.daily_rate * 100:.2f} % per node and day; {source})",
        group,
        f"needed: {size.needed}, ruled by {size.rules}",
        f"you keep {have}, {ready} free now: {'ok' if enough else f'{size.needed - ready} short'}",
        *(_place_lines(place, size) if place else ()),
    ]
    body: dict[str, Json] = {
        "job": job,
        "machines": size.machines,
        "daily_rate_ratio": size.daily_rate,
        "rate_source": source,
        "risk_ratio": size.risk,
        "losses_at_once": size.losses,
        "refill_days": size.refill_days,
        "largest_group_nodes": size.group,
        "largest_group_axis": size.group_axis or None,
        "needed": size.needed,
        "ruled_by": size.rules,
        "kept": have,
        "free": ready,
        "place": _place_document(place) if place else None,
    }
    code = ExitCode.OK if enough else ExitCode.WARNING
    return Page("StandbySize", body, "\n".join(lines), code)


def _when(size: PoolSize) -> str:
    """Over what time losses are counted."""
    if size.refill_days is None:
        return " at once"
    return f" in {describe_duration(size.refill_days * 86_400)}, until a lost one is replaced"


def _place_lines(place: PoolPlace, size: PoolSize) -> list[str]:
    """Where the pool stands, and what a swap would split for it."""
    where = ", ".join(f"{count} in {printable(d, 20)}" for d, count in place.standing.items())
    lines = [f"they stand: {where or 'nowhere known'} (label {place.level})"]
    if place.unlabelled:
        lines.append(f"UNKNOWN: no {place.level} for {fold(place.unlabelled)}")
    if place.without:
        best = " ".join(printable(domain, 20) for domain in place.wanted)
        lines.append(
            f"no standby stands beside {place.without} of {place.groups} {place.axis} groups;"
            f" best one each in: {best}"
        )
    if size.group_axis and place.block < size.group:
        lines.append(
            f"a {size.group_axis} group evicted whole needs {size.group} in one domain;"
            f" the most are {place.block}"
        )
    return lines


def _place_document(place: PoolPlace) -> dict[str, Json]:
    return {
        "level": place.level,
        "axis": place.axis,
        "standing": dict(place.standing),
        "unlabelled": list(place.unlabelled),
        "groups": place.groups,
        "groups_without": place.without,
        "wanted": list(place.wanted),
        "largest_block": place.block,
    }
