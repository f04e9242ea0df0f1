"""`brctl nodes diff`: the reference first, then one line per thing that someone has differently."""

from collections.abc import Sequence

from brctl.model.exit_codes import ExitCode, worst
from brctl.model.nodeset import fold
from brctl.model.sweeps.difference import Comparison, Difference
from brctl.view.notices.page import Page
from brctl.view.text import columns, printable

_VALUE = 80


def differences_page(found: Comparison, never: Sequence[tuple[str, str]], age: str) -> Page:
    """The answer of `brctl nodes diff`; exit 1 when someone differs, 3 when someone is silent.

    Args:
        found: The nodes compared.
        never: Nodes that nothing is known of, and why.
        age: How old the readings are, in words.
    """
    silent = (*found.silent, *never)
    odd = tuple(dict.fromkeys(each.node for each in found.differences))
    codes = [ExitCode.OK if found.compared else ExitCode.UNKNOWN]
    codes += [ExitCode.WARNING] if found.differences or found.splits else []
    codes += [ExitCode.UNKNOWN] if silent else []
    rows = tuple(_row(each) for each in found.differences)
    body = {
        "reference": {"nodes": list(found.reference), "folded": fold(found.reference)},
        "differences": list(rows),
        "splits": [
            {"name": s.name, "parts": [{"value": v, "nodes": list(n)} for v, n in s.parts]}
            for s in found.splits
        ],
        "compared": list(found.compared),
        "not_compared": [{"node": node, "why": why} for node, why in silent],
    }
    text = "\n".join(part for part in (_head(found, age), _table(found, silent)) if part)
    next_ = (f"brctl nodes show {odd[0]}",) if odd else ()
    return Page("NodeDifferences", body, text, worst(codes), names=odd, rows=rows, next=next_)


def _head(found: Comparison, age: str) -> str:
    count = len(found.reference)
    who = f"{fold(found.reference)} ({count})" if count else "none is like the majority throughout"
    return f"reference {who}  {len(found.compared)} facts compared  {age}"


def _table(found: Comparison, unknown: Sequence[tuple[str, str]]) -> str:
    rows = [
        (fold(nodes), name, printable(value, _VALUE), f"(ref {printable(reference, _VALUE)})")
        for (name, value, reference), nodes in _gathered(found.differences).items()
    ]
    for split in found.splits:
        parts = "; ".join(f"{printable(v, _VALUE)} on {fold(n)}" for v, n in split.parts)
        rows.append(("NO MAJORITY", split.name, parts, ""))
    silent: dict[str, list[str]] = {}
    for node, why in unknown:
        silent.setdefault(printable(why, 120), []).append(node)
    rows += [(fold(nodes), "UNKNOWN", why, "") for why, nodes in silent.items()]
    return columns(rows)


def _gathered(differences: Sequence[Difference]) -> dict[tuple[str, str, str], list[str]]:
    """Nodes that differ in the same way share a line."""
    gathered: dict[tuple[str, str, str], list[str]] = {}
    for each in differences:
        gathered.setdefault((each.name, each.value, each.reference), []).append(each.node)
    return gathered


def _row(each: Difference) -> dict[str, str]:
    return {
        "node": each.node, "name": each.name, "value": each.value, "reference": each.reference,
    }  # fmt: skip
