"""Read a fleet to simulate: a file of the site, or one that comes with brctl."""

from collections.abc import Collection
from pathlib import Path
from typing import TypeVar

from brctl.library.schema import Section, open_kind
from brctl.library.strict_yaml import load_document
from brctl.model.errors import UsageError, did_you_mean
from brctl.simulate.fleet import Fleet, PeopleTimes, Signals, StartTimes, Watch
from brctl.simulate.symptoms import SYMPTOMS, SymptomFamily, shares

N = TypeVar("N", int, float)
SHIPPED = Path(__file__).parent / "fleets"
OTHER_NAMES = {"paper-dense": "paper-observed"}
MOST_NODES = 1_000_000
MOST_DAYS = 3_650.0
_TOP = ("metadata", "job", "days", "faults", "times", "standbys", "people", "watch", "signals")
_FAULTS = ("per_1000_node_days", "counts", "families", "symptoms", "bad_nodes", "bursts",
           "restart_fails")  # fmt: skip
_TIMES = ("requeue", "reschedule", "warm", "oracle", "hot_update", "load_remote", "load_near",
          "unexplained")  # fmt: skip


def named_fleets() -> tuple[str, ...]:
    """The fleets that come with brctl."""
    return tuple(sorted(path.stem for path in SHIPPED.glob("*.yaml")))


def find_fleet(name: str) -> Fleet:
    """The fleet of a name or a file.

    Raises:
        UsageError: There is neither.
        ConfigError: The file is wrong, or its fleet cannot be.
    """
    shipped = OTHER_NAMES.get(name, name)
    if shipped in named_fleets():
        return load_fleet(SHIPPED / f"{shipped}.yaml")
    path = Path(name)
    if path.suffix in (".yaml", ".yml") or path.exists():
        return load_fleet(path)
    raise UsageError(f"no fleet {name!r}; {did_you_mean(name, named_fleets())}",
                     hint="name one of these, or a file: fleet.yaml")  # fmt: skip


def load_fleet(path: Path) -> Fleet:
    """The fleet of one file.

    Raises:
        ConfigError: A key is unknown, a unit is missing, or such a fleet cannot be.
    """
    top = open_kind(load_document(path), "SimulatedFleet", _TOP)
    meta, job, faults = top.section("metadata"), top.section("job"), top.section("faults")
    meta.allow(("name", "title"))
    job.allow(("nodes", "gpus_per_node", "group_nodes", "step"))
    faults.allow(_FAULTS)
    bad, bursts = faults.section("bad_nodes"), faults.section("bursts")
    bad.allow(("share", "times"))
    bursts.allow(("nodes", "share"))
    pool = top.section("standbys")
    pool.allow(("keep", "refill"))
    nodes = _whole(job, "nodes", 1, MOST_NODES)
    return Fleet(
        name=meta.value("name", str),
        title=meta.value("title", str),
        origin=str(path),
        nodes=nodes,
        days=_number(top, "days", 0.01, MOST_DAYS, 90.0),
        per_1000_node_days=_number(faults, "per_1000_node_days", 0.0, 100_000.0),
        counts=faults.value("counts", str),
        shares=_shares(faults),
        times=_times(top.section("times")),
        gpus_per_node=_whole(job, "gpus_per_node", 1, 1_024, 8),
        group_nodes=_whole(job, "group_nodes", 1, nodes, min(8, nodes)),
        step_s=_seconds(job, "step", "10s"),
        bad_share=_number(bad, "share", 0.0, 1.0, 0.0),
        bad_times=_number(bad, "times", 1.0, 10_000.0, 1.0),
        burst_nodes=_whole(bursts, "nodes", 0, nodes, 0),
        burst_share=_number(bursts, "share", 0.0, 1.0, 0.0),
        restart_fails=_number(faults, "restart_fails", 0.0, 0.95, 0.0),
        standbys=_whole(pool, "keep", 0, MOST_NODES) if "keep" in pool.data else None,
        refill_s=_seconds(pool, "refill", "1d"),
        people=_people(top.section("people")),
        watch=_watch(top.section("watch")),
        signals=_signals(top.section("signals")),
    )


def _times(section: Section) -> StartTimes:
    section.allow(_TIMES)
    return StartTimes(
        requeue_s=_seconds(section, "requeue"),
        reschedule_s=_seconds(section, "reschedule"),
        warm_s=_seconds(section, "warm"),
        oracle_s=_seconds(section, "oracle"),
        hot_update_s=_seconds(section, "hot_update"),
        load_remote_s=_seconds(section, "load_remote", "300s"),
        load_near_s=_seconds(section, "load_near", "30s"),
        unexplained_s=section.duration_s("unexplained", "0s"),
    )


def _people(section: Section) -> PeopleTimes:
    section.allow(("approval", "mend"))
    return PeopleTimes(section.duration_s("approval", "0s"), section.duration_s("mend", "30m"))


def _watch(section: Section) -> Watch:
    section.allow(("every", "stall_after"))
    return Watch(_seconds(section, "every", "30s"), section.duration_s("stall_after", "10m"))


def _signals(section: Section) -> Signals:
    section.allow(("delay", "unanswered", "noise", "traced"))
    usual = Signals()
    return Signals(
        section.duration_s("delay", "0s"),
        _number(section, "unanswered", 0.0, 1.0, usual.unanswered),
        _number(section, "noise", 0.0, 1.0, usual.noise),
        _number(section, "traced", 0.0, 1.0, usual.traced),
    )


def _shares(faults: Section) -> dict[str, float]:
    """How often each symptom comes: by its own number, or by the paper's within its family."""
    if ("symptoms" in faults.data) == ("families" in faults.data):
        raise faults.error("give either 'families' or 'symptoms', how often each came")
    if "families" in faults.data:
        counts = _counts(faults.section("families"), [str(f) for f in SymptomFamily])
        return shares({SymptomFamily(name): count for name, count in counts.items()})
    counts = _counts(faults.section("symptoms"), SYMPTOMS)
    whole = sum(counts.values())
    return {name: counts.get(name, 0.0) / whole for name in SYMPTOMS}


def _counts(section: Section, known: Collection[str]) -> dict[str, float]:
    section.allow(known)
    found = {key: _number(section, key, 0.0, 1e9) for key in section.data}
    if not sum(found.values()):
        raise section.error("all of these are 0: nothing can fail, and then nothing is simulated")
    return found


def _seconds(section: Section, key: str, default: str | None = None) -> float:
    """A duration above 0."""
    found = section.duration_s(key, default)
    if not found:
        raise section.error(f"{key!r} must be longer than 0", key)
    return found


def _whole(section: Section, key: str, least: int, most: int, default: int | None = None) -> int:
    return _within(section, key, section.value(key, int, default), least, most)


def _number(
    section: Section, key: str, least: float, most: float, default: float | None = None
) -> float:
    return _within(section, key, section.value(key, float, default), least, most)


def _within(section: Section, key: str, value: N, least: N, most: N) -> N:
    if not least <= value <= most:
        raise section.error(f"{key!r} is {value:g}; it can be {least:g} to {most:g}", key)
    return value
