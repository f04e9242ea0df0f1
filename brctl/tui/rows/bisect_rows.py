"""Bisections as rows: the list, and the rounds of one with its pool bar; pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from brctl.model.nodeset import fold
from brctl.model.runs.playbook import Json
from brctl.model.units import describe_duration
from brctl.tui.rows.row import Row, Tone, blank, heading, paragraph, row, safe, table

BAR = 40


@dataclass(frozen=True, slots=True)
class BisectFact:
    """One search as `nccl bisect -o ndjson` wrote it, line by line.

    Attributes:
        ended: How it ended; "" while it runs or when it was cut off.
    """

    id: str
    lines: tuple[Mapping[str, Json], ...]

    def of(self, kind: str) -> list[Mapping[str, Json]]:
        """The lines of one type."""
        return [line for line in self.lines if line.get("type") == kind]

    @property
    def nodes(self) -> tuple[str, ...]:
        first = self.of("bisect.start")
        return _names(first[0].get("nodes")) if first else ()

    @property
    def ended(self) -> str:
        last = self.of("end")
        return str(last[-1].get("result", "")) if last else ""


def bisect_list(found: Sequence[BisectFact]) -> list[Row]:
    """One line a search, newest first."""
    if not found:
        text = "no bisection is recorded; start one with  :nccl bisect -w NODES"
        return [row((text, Tone.DIM))]
    body = [
        (
            (
                safe(one.id, 40),
                (one.ended or "running or cut off", Tone.PLAIN if one.ended else Tone.WARN),
                str(len(one.of("round"))),
                safe(fold(one.nodes) or "-", 200),
            ),
            f"bisect:{one.id}",
        )
        for one in found
    ]
    return table(("BISECTION", "STATE", "ROUNDS", "NODES"), body)


def bisect_rows(one: BisectFact, width: int) -> list[Row]:
    """Every round, who is still suspected, and the result."""
    rows = [
        row((safe(one.id, 40), Tone.HEAD), f"  {len(one.nodes)} nodes  {one.ended or 'running'}")
    ]
    for line in one.of("round"):
        rows += _round(line, width)
    rows += [blank(), *_pool(one)]
    for line in one.of("result"):
        rows += _result(line, width)
    return rows


def _round(line: Mapping[str, Json], width: int) -> list[Row]:
    groups, results = _list(line.get("groups")), _list(line.get("results"))
    seconds = line.get("seconds")
    took = describe_duration(seconds) if isinstance(seconds, int | float) else "?"
    rows = [heading(f"ROUND {line.get('round')}  {safe(str(line.get('stage')), 20)}  {took}")]
    for group, result in zip(groups, results, strict=False):
        word, tone = _says(result if isinstance(result, Mapping) else {})
        speed = result.get("busbw_gb_per_s") if isinstance(result, Mapping) else None
        shown = f"{speed:6.3g} GB/s  " if isinstance(speed, int | float) else "   -         "
        rows.append(row((f"  {word:12}", tone), shown, safe(fold(_names(group)), width)))
    return rows


def _says(result: Mapping[str, Json]) -> tuple[str, Tone]:
    failed = result.get("failed")
    if result.get("silent") is True:
        return "NO ANSWER", Tone.UNKNOWN
    if not isinstance(failed, int):
        return "NOT MEASURED", Tone.UNKNOWN
    return (f"FAILED {failed}", Tone.CRIT) if failed else ("ok", Tone.OK)


def _pool(one: BisectFact) -> list[Row]:
    """The suspects after the last round, each with a bar as long as it is likely."""
    rounds = one.of("round")
    suspects = _list(rounds[-1].get("suspects")) if rounds else ()
    rows = [heading("suspects after the last round")]
    for suspect in suspects:
        if isinstance(suspect, Mapping):
            chance = suspect.get("posterior")
            known = chance if isinstance(chance, int | float) else 0.0
            bar = "=" * round(BAR * min(max(known, 0.0), 1.0))
            name = f"  {safe(str(suspect.get('node')), 30):30} "
            rows.append(row(name, (f"{bar:{BAR}}", Tone.WARN), f" {known:.3f}"))
    return rows if len(rows) > 1 else [*rows, row(("  nobody yet", Tone.DIM))]


def _result(line: Mapping[str, Json], width: int) -> list[Row]:
    rows = [heading("result")]
    for verdict in _list(line.get("verdicts")):
        if isinstance(verdict, Mapping):
            text = "  ".join(
                f"{k} {v}" for k, v in verdict.items() if k in ("kind", "folded", "why")
            )
            rows += paragraph("  ", safe(text, 400), width, Tone.WARN)
    return rows


def _list(value: Json) -> Sequence[Json]:
    return value if isinstance(value, Sequence) and not isinstance(value, str) else ()


def _names(value: Json) -> tuple[str, ...]:
    return tuple(str(name) for name in _list(value))
