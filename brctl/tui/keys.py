"""The key map as one table: bindings, footer, help and `keys.yaml` all read it."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from textual.binding import Binding

from brctl.tui.address import ROOTS
from brctl.tui.rows.row import Row


class KeyScope(StrEnum):
    """Where a key works."""

    EVERYWHERE = "everywhere"
    TARGET = "on a node, verdict or run"
    MOVE = "moving"


@dataclass(frozen=True, slots=True)
class Key:
    """One row of the key map.

    Attributes:
        id: Name in keys.yaml.
        keys: Textual's names, comma between alternatives.
        label: One or two words for the footer; "" keeps it out of the footer.
        help: What `?` says.
        priority: Handled before the focused pane, so that what is typed ahead of it goes where it
            was meant.
    """

    id: str
    keys: str
    action: str
    label: str
    help: str
    scope: KeyScope = KeyScope.EVERYWHERE
    priority: bool = False

    @property
    def shown(self) -> str:
        """The key as people write it."""
        return " ".join(_SHOWN.get(key, key) for key in self.keys.split(","))


_SHOWN = {
    "question_mark": "?", "colon": ":", "slash": "/", "escape": "esc",
    "left_square_bracket": "[", "right_square_bracket": "]", "minus": "-",
    "ctrl+@": "ctrl+space",
}  # fmt: skip

EVERYWHERE = (
    *(
        Key(f"screen.{n}", str(n), f"screen({n})", "", f"screen {n}: {name}")
        for n, name in enumerate(ROOTS, start=1)
    ),
    Key("help", "question_mark", "help", "help", "keys of this view"),
    Key(
        "command",
        "colon",
        "command",
        "command",
        "a command, the same words as brctl itself",
        priority=True,
    ),
    Key(
        "filter",
        "slash",
        "filter",
        "filter",
        "node set, @group or words; ! in front inverts",
        priority=True,
    ),
    Key("back", "escape", "back", "", "back; close; clear the filter"),
    Key("leave", "q", "leave", "", "back; at the top leave (runs go on)"),
    Key("next_bad", "n", "next_bad(1)", "next bad", "next thing that is not ok"),
    Key("previous_bad", "N", "next_bad(-1)", "", "previous thing that is not ok"),
    Key("mark", "space", "mark", "", "mark; a click with ctrl marks too"),
    Key(
        "mark_range",
        "ctrl+@",
        "mark_range",
        "",
        "mark from the last mark to here; a click with shift too",
    ),
    Key("freeze", "p", "freeze", "", "freeze the screen, to read or to copy"),
    Key("copy_line", "y", "copy_line", "", "copy this view's command line (OSC 52)"),
    Key("copy_nodes", "Y", "copy_nodes", "", "copy the nodes, folded (OSC 52)"),
    Key("history_back", "left_square_bracket", "history(-1)", "", "view before"),
    Key("history_on", "right_square_bracket", "history(1)", "", "view after"),
    Key("last", "minus", "last", "", "the last view"),
    Key("refresh", "r", "refresh", "", "sweep what is shown now, in the background"),
    Key("reread", "ctrl+r", "reread", "", "read the disk and the scheduler again"),
    Key("pane", "tab", "pane", "", "next pane"),
    Key("times", "z", "times", "", "times: UTC, local, since the fault"),
    Key("colour", "m", "colour", "", "colour by health, job, age, owner, temp, ecc, busbw"),
    Key("sort", "S", "sort", "", "sort by the next column; a click on a title sorts by it"),
    Key("sort_back", "R", "sort_back", "", "the other way round"),
)
"""Keys of every view."""

ALWAYS = (
    Key("interrupt", "ctrl+c", "interrupt", "", "twice: leave; no run stops", priority=True),
    Key("quit", "ctrl+q", "quit", "", "leave; no run stops", priority=True),
)
"""Keys that work even in a dialog."""

TARGET = (
    Key("detail", "enter,d", "detail", "open", "detail", KeyScope.TARGET),
    Key("why", "w", "why", "why", "why: the evidence chain", KeyScope.TARGET),
    Key("diagnose", "x", "diagnose", "diagnose", "diagnose now (changes nothing)", KeyScope.TARGET),
    Key("fix", "f", "fix", "fix", "open the plan of the fix (changes nothing)", KeyScope.TARGET),
    Key("actions", "a", "actions", "actions", "every action, its CLI line, or why not",
        KeyScope.TARGET),
    Key("approve", "A", "approve", "approve", "approve a run that waits (dialog)", KeyScope.TARGET),
    Key("deny", "D", "deny", "deny", "deny a run that waits (dialog)", KeyScope.TARGET),
    Key("rollback", "u", "rollback", "roll back", "roll back a run (dialog)", KeyScope.TARGET),
    Key("ssh", "s", "ssh", "ssh", "ssh in this terminal, back on exit", KeyScope.TARGET),
    Key("logs", "l", "logs", "logs", "logs, classified", KeyScope.TARGET),
    Key("stacks", "K", "stacks", "stacks", "stacks of all ranks", KeyScope.TARGET),
    Key("timeline", "t", "timeline", "", "timeline", KeyScope.TARGET),
    Key(
        "evidence", "e", "evidence", "raw", "raw evidence; export, in an incident", KeyScope.TARGET,
    ),
)  # fmt: skip
"""Keys that act on what the cursor stands on."""

MOVE = (
    Key("move", "up,down,h,j,k,l", "", "", "move (l moves in the heatmap only)", KeyScope.MOVE),
    Key("move.first", "g,G", "", "", "first, last", KeyScope.MOVE),
    Key("move.page", "pageup,pagedown", "", "", "a page", KeyScope.MOVE),
    Key("palette", "ctrl+p", "", "", "palette: nodes, jobs, verdicts, runs, themes", KeyScope.MOVE),
)
"""Keys that widgets bind themselves; listed for `?`."""

HINTED = tuple(key for key in (*TARGET, *EVERYWHERE) if key.label)
"""Keys of the footer, in its order."""


def key_at(hints: Row, column: int) -> Key | None:
    """The key whose hint covers a column of the footer."""
    start = 0
    for (name, _), (label, _) in zip(hints.spans[::2], hints.spans[1::2], strict=True):
        start += len(name) + len(label)
        if column < start:
            shown = name.strip() or label.strip("( ").partition(" ")[0]
            return next((key for key in HINTED if key.shown.split()[0] == shown), None)
    return None


def bindings(table: Iterable[Key]) -> list[Binding]:
    """The table as Textual wants it."""
    return [
        Binding(
            key.keys,
            key.action,
            key.label or key.help,
            show=bool(key.label),
            key_display=key.shown,
            priority=key.priority,
            id=key.id,
        )
        for key in table
    ]
