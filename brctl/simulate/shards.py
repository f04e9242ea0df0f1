"""Parts of a simulation, made on other machines: what a part holds, and all parts as one.

A part says which runs it holds and has a digest of all that decides them, so that parts of another
fleet, other policies, other rules or the same runs twice are refused instead of being averaged.
"""

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from math import isfinite
from pathlib import Path
from shlex import join
from typing import Any, TypeVar

from brctl.library.trusted_files import read_whole
from brctl.model import API_VERSION
from brctl.model.errors import ConfigError, UsageError
from brctl.model.simulation import (
    SIMULATED_BOOKS,
    PolicyComparison,
    SimulatedFleet,
    SimulatedRun,
)
from brctl.simulate.compare import Request
from brctl.simulate.score import score

KIND = "SimulationShard"
SIZE_LIMIT_BYTES = 64 << 20
MOST = 1 << 62
"""No count or microsecond of a simulation is larger; what is would not fit a float."""

Json = Mapping[str, object]
R = TypeVar("R", SimulatedFleet, SimulatedRun)


@dataclass(frozen=True, slots=True)
class SimulationPart:
    """A part: its fleet, all seeds of the whole, the policies with their titles, its runs.

    Attributes:
        conditions_sha256: Digest of all that decides a run but its seed.
    """

    origin: str
    fleet: SimulatedFleet
    seed: int
    runs_wanted: int
    policies: Mapping[str, str]
    runs: tuple[SimulatedRun, ...]
    conditions_sha256: str


def part_of(request: Request, runs: Sequence[SimulatedRun]) -> SimulationPart:
    """These runs as a part of all that were asked for."""
    return SimulationPart(
        "", request.fleet.facts(), request.seed, request.runs, request.titles, tuple(runs),
        conditions_sha256(request),
    )  # fmt: skip


def conditions_sha256(request: Request) -> str:
    """Digest of the fleet, recorded faults, the policies and the rules, wherever they lie."""
    rules = request.rules
    conditions = {
        "fleet": asdict(replace(request.fleet, origin="")),
        "recorded": request.recorded.sha256 if request.recorded else "",
        "policies": {policy.name: asdict(policy) for policy in request.policies},
        "playbooks": {name: one.sha256 for name, one in rules.playbooks.items()} if rules else {},
        "guards": [asdict(replace(g, origin="")) for g in rules.guards.guards] if rules else [],
        "watch": asdict(replace(rules.watch, origin="")) if rules else {},
        "approval": [[asdict(replace(row, origin="")) for row in rows]
                     for rows in rules.guards.approval] if rules else [],
    }  # fmt: skip
    return hashlib.sha256(json.dumps(conditions, sort_keys=True).encode()).hexdigest()


def parse_shard(text: str) -> tuple[int, int]:
    """Part and parts of `I/N`.

    Raises:
        ValueError: It is something else.

    Examples:
        >>> parse_shard("2/8")
        (2, 8)
    """
    part, _, parts = text.partition("/")
    if not (part.isdecimal() and parts.isdecimal() and 1 <= int(part) <= int(parts) <= 100_000):
        raise ValueError(f"{text!r}: write 1/8 for the first of eight parts")
    return int(part), int(parts)


def shard_document(shard: SimulationPart) -> dict[str, object]:
    """What `merge` reads again."""
    return {
        "fleet": asdict(shard.fleet),
        "conditions_sha256": shard.conditions_sha256,
        "seed": shard.seed,
        "runs_wanted": shard.runs_wanted,
        "policies": dict(shard.policies),
        "runs": [
            {**asdict(run), "books_us": {b.value: us for b, us in run.books_us.items()}}
            for run in shard.runs
        ],
    }


def read_shard(path: Path) -> SimulationPart:
    """One part.

    Raises:
        ConfigError: The file is no part of a simulation.
    """
    raw = read_whole(path, SIZE_LIMIT_BYTES)
    try:
        return _shard(str(path), json.loads(raw))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as exc:
        hint = "make it with `brctl simulate fleet FLEET --shard I/N -o json --out FILE`"
        raise ConfigError(f"{path}: not a part of a simulation: {exc}", hint=hint) from exc


def _shard(origin: str, data: Any) -> SimulationPart:
    """What the parsed text says; any other shape raises what `read_shard` catches."""
    if (data["apiVersion"], data["kind"]) != (API_VERSION, KIND):
        raise ValueError(f"kind {data['kind']!r}")
    facts = _typed(SimulatedFleet, data["fleet"])
    policies = {name: _exact("a title", str, title) for name, title in data["policies"].items()}
    digest = _exact("conditions_sha256", str, data["conditions_sha256"])
    seed, wanted = (_exact(key, int, data[key]) for key in ("seed", "runs_wanted"))
    runs = tuple(_run(run) for run in data["runs"])
    if not runs or not policies:
        raise ValueError("it holds no run")
    if any(r.policy not in policies or not seed <= r.seed < seed + wanted for r in runs):
        raise ValueError("a run is none of its policies and seeds")
    return SimulationPart(origin, facts, seed, wanted, policies, runs, digest)


def _run(data: Mapping[str, Any]) -> SimulatedRun:
    books = {
        book: _exact(book.value, int, data["books_us"][book.value]) for book in SIMULATED_BOOKS
    }
    run = _typed(SimulatedRun, {**data, "books_us": books})
    if len(data["books_us"]) != len(books) or not sum(books.values()) == run.wall_us > 0:
        raise ValueError(f"the books of run {run.seed} do not sum to its time")
    return run


def _typed(kind: type[R], data: Mapping[str, Any]) -> R:
    """A row of the document, with exactly its keys, each of its type."""
    if set(data) != {field.name for field in fields(kind)}:
        raise ValueError(f"a {kind.__name__} has other keys")
    for field in fields(kind):
        if field.type in (str, int, float):
            _exact(field.name, field.type, data[field.name])
    return kind(**data)


def _exact(name: str, kind: object, value: Any) -> Any:
    """A text, a count or a finite number that nobody has to convert."""
    good = type(value) is kind or (kind is float and type(value) is int)
    if not good or (kind is not str and not (0 <= value < MOST and isfinite(value))):
        raise TypeError(f"{name!r} is of another type, or cannot be so large")
    return value


def merged(shards: Sequence[SimulationPart]) -> PolicyComparison:
    """All parts as one simulation.

    Raises:
        UsageError: They are parts of different simulations, or hold a run twice.
    """
    first = shards[0]
    runs: dict[tuple[int, str], SimulatedRun] = {}
    for shard in shards:
        if _whole(shard) != _whole(first):
            raise UsageError(
                f"{shard.origin} and {first.origin} are parts of different simulations",
                hint="make all parts from the same fleet, --policy, --days, --runs, --seed,"
                " playbooks and guards.yaml",
            )
        for run in shard.runs:
            if (run.seed, run.policy) in runs:
                raise UsageError(f"{shard.origin}: run {run.seed} of {run.policy!r} is there twice")
            runs[run.seed, run.policy] = run
    had = len({seed for seed, _ in runs})
    missing = [] if had == first.runs_wanted else [
        f"{first.runs_wanted - had} of {first.runs_wanted} runs are in none of these files"
    ]  # fmt: skip
    missing += [run.unfinished for run in runs.values() if run.unfinished]
    missing += _lacking(runs, first.policies)
    whole = [run for run in runs.values() if not run.unfinished]
    return PolicyComparison(
        first.fleet, first.seed, score(whole, first.policies), tuple(dict.fromkeys(missing))
    )


def _lacking(runs: Collection[tuple[int, str]], policies: Collection[str]) -> list[str]:
    """Seeds that some policies have no run of: their means are over fewer runs than the others'."""
    lacking: dict[str, list[int]] = {name: [] for name in policies}
    for seed in sorted({seed for seed, _ in runs}):
        for name in policies:
            if (seed, name) not in runs:
                lacking[name].append(seed)
    return [f"{name!r} has no run of seed {', '.join(map(str, seeds[:5]))}"
            f"{' and others' if len(seeds) > 5 else ''}"
            for name, seeds in lacking.items() if seeds]  # fmt: skip


def _whole(part: SimulationPart) -> SimulationPart:
    """What all parts of a simulation have in common; where its files lie is not of that."""
    return replace(part, origin="", runs=(), fleet=replace(part.fleet, origin=""))


def slurm_array(command: Sequence[str], parts: int) -> str:
    """A Slurm job array that makes all parts, and the line that joins them."""
    return "\n".join(
        (
            "#!/bin/bash",
            f"#SBATCH --job-name=brctl-simulate --array=1-{parts}",
            "#SBATCH --cpus-per-task=1 --time=01:00:00",
            f'{join(command)} --shard "$SLURM_ARRAY_TASK_ID/{parts}" -o json'
            ' --out "part-$SLURM_ARRAY_TASK_ID.json"',
            "# when all are done: brctl simulate merge part-*.json",
        )
    )
