"""The action sheet: every action, its CLI line, and whether it is allowed or why not; pure."""

from collections.abc import Callable, Mapping

from brctl.tui.permits import reason_against
from brctl.tui.rows.row import Row, Tone, row, safe
from brctl.tui.session.facts import Facts
from brctl.tui.target import Target

_LINES: Mapping[str, tuple[str, Callable[[Target], str]]] = {
    "why": ("w", lambda t: f"brctl why {t.verdict or 'VERDICT'}"),
    "diagnose": ("x", lambda t: f"brctl dx {t.job}" if t.job else f"brctl dx -w '{t.folded}'"),
    "fix": ("f", lambda t: f"brctl fix {t.verdict or 'VERDICT'}"),
    "approve": ("A", lambda t: f"brctl play approve {t.run or 'RUN'}"),
    "deny": ("D", lambda t: f"brctl play deny {t.run or 'RUN'}"),
    "rollback": ("u", lambda t: f"brctl play rollback {t.run or 'RUN'}"),
    "ssh": ("s", lambda t: f"brctl ssh {t.folded or 'NODE'}"),
    "logs": ("l", lambda t: f"brctl logs classify --job {t.job or 'JOB'}"),
    "stacks": ("K", lambda t: f"brctl stacks show --job {t.job or 'JOB'}"),
    "refresh": ("r", lambda t: f"brctl sweep -w '{t.folded}'" if t.nodes else "brctl sweep"),
}

_TYPED: Mapping[str, Callable[[Target], str]] = {
    "cordon": lambda t: f"cordon '{t.folded}' -m REASON",
    "uncordon": lambda t: f"uncordon '{t.folded}'",
    "swap": lambda t: f"swap '{t.folded}' -m REASON",
    "burn in": lambda t: f"check run 'gpu.*' -w '{t.folded}'",
    "dismiss": lambda t: f"verdict dismiss {t.verdict or 'VERDICT'} -m REASON",
    "confirm": lambda t: f"verdict confirm {t.verdict or 'VERDICT'} --cause CAUSE",
}
"""Done with `:`; the sheet puts the line there, nobody has to remember it."""

_CHANGES = ("cordon", "uncordon", "swap", "dismiss", "confirm")


def sheet_rows(target: Target, facts: Facts) -> list[Row]:
    """One line an action."""
    about = target.folded or target.verdict or target.run or target.job or "nothing"
    rows = [row(("on ", Tone.DIM), (safe(about, 200), Tone.HEAD))]
    for action, (key, line) in _LINES.items():
        against = reason_against(action, target, facts)
        rows.append(_entry(key, action, line(target), against, f"do:{action}"))
    for action, line in _TYPED.items():
        needs = target.verdict if action in ("dismiss", "confirm") else target.nodes
        against = "" if needs else "nothing of that kind is chosen"
        if facts.readonly and action in _CHANGES:
            against = "this is read-only mode"
        text = f"brctl {line(target)}"
        rows.append(_entry(":", action, text, against, f"type:{line(target)}"))
    return rows


def _entry(key: str, action: str, line: str, against: str, row_key: str) -> Row:
    if against:
        return row(
            (f"({key} {action})".ljust(16), Tone.DIM),
            (f"{safe(line, 120)}   no: {against}", Tone.DIM),
        )
    return row((f" {key} {action}".ljust(16), Tone.HEAD), safe(line, 200), key=row_key)
