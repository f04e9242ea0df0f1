"""`brctl ls --sort COL --columns a,b`: the list in the order and with the columns asked for."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from brctl.model.errors import UsageError
from brctl.model.nodeset import fold, natural_key
from brctl.view.alike import fold_alike
from brctl.view.fleet.sweep import WORDS
from brctl.view.schema import NodeRow
from brctl.view.text import columns, printable

OWN_COLUMNS = tuple(NodeRow.__annotations__)
DEFAULT = ("state", "node", "role", "cordoned_by", "job", "check", "detail")
_STATE_WORDS = {state.value: word for state, word in WORDS.items()}
_RANK = {state: rank for rank, state in enumerate(_STATE_WORDS)}
_CELL_LIMIT = 160

Labels = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class NodesTable:
    """What was asked for; columns are those of `NodeRow` and labels of the inventory.

    Attributes:
        sort: Column the lines are ordered by; "" keeps the order of the inventory.
    """

    columns: tuple[str, ...]
    sort: str = ""


def read_table(columns_text: str, sort: str, labels: Iterable[str]) -> NodesTable | None:
    """The table meant by `--columns` and `--sort`; None when neither was given.

    Raises:
        UsageError: A column does not exist; names those that do.
    """
    if not columns_text and not sort:
        return None
    known = [*OWN_COLUMNS, *sorted(set(labels) - set(OWN_COLUMNS))]
    chosen = tuple(name for name in columns_text.split(",") if name)
    for flag, name in [("--columns", name) for name in chosen] + [("--sort", sort)] * bool(sort):
        if name not in known:
            raise UsageError(f"{flag} {name}: no such column; known: {', '.join(known)}")
    return NodesTable(chosen or DEFAULT, sort)


def shown_rows(
    table: NodesTable, rows: Sequence[tuple[NodeRow, Labels]]
) -> tuple[Mapping[str, str | None], ...]:
    """The chosen columns of each node, in order; what is not known comes last."""
    ordered = sorted(rows, key=lambda pair: _key(table.sort, *pair)) if table.sort else rows
    return tuple({name: _value(name, *pair) for name in table.columns} for pair in ordered)


def table_text(rows: Sequence[Mapping[str, str | None]], table: NodesTable) -> str:
    """As a table; nodes whose other columns are equal share one line."""
    lines = [tuple("NODES" if name == "node" else name.upper() for name in table.columns)]
    said = ((_cells(row, table), row.get("node") or "", row.get("detail") or "-") for row in rows)
    for each in fold_alike(said):
        own = {"node": fold(each.nodes), "detail": printable(each.text, _CELL_LIMIT)}
        pairs = zip(table.columns, each.key, strict=True)
        lines.append(tuple(own.get(name, cell) for name, cell in pairs))
    return columns(lines)


def _cells(row: Mapping[str, str | None], table: NodesTable) -> tuple[str, ...]:
    """What nodes on one line share; what is said of each is folded beside it."""
    return tuple(
        "" if name in ("node", "detail") else _cell(name, row[name]) for name in table.columns
    )


def _cell(name: str, value: str | None) -> str:
    if name == "state":
        return _STATE_WORDS.get(str(value), str(value))
    return printable(value or "-", _CELL_LIMIT)


def _value(name: str, row: NodeRow, labels: Labels) -> str | None:
    own: Mapping[str, object] = {**row}
    found = own[name] if name in OWN_COLUMNS else labels.get(name)
    return None if found is None else str(found)


def _key(name: str, row: NodeRow, labels: Labels) -> tuple[object, ...]:
    value = _value(name, row, labels)
    if name == "state":
        return (_RANK.get(str(value), len(_RANK)),)
    return (value is None, natural_key(value or ""))
