"""What `?` shows: the key map, where it works, and what the letters mean; pure."""

from brctl.tui.keys import ALWAYS, EVERYWHERE, MOVE, TARGET
from brctl.tui.rows.row import Row, Tone, blank, heading, row
from brctl.tui.rows.state_letters import APPEARANCES

FIRST_HELP = (
    "n goes to the worst thing, w says why, f shows the plan of the fix. Nothing changes without a"
    " dialog and typed words. Jobs are looked at every few seconds: 7 shows them, 8 the watcher.",
    "/ filters (gpu[001-008], @rack:r1, @state:crit, words), : takes brctl's own commands, ? lists"
    " all keys.",
    "q goes back and at the top leaves; runs go on without you.",
)
"""Three lines, shown the first time and by `?`."""

_ABOUT = {
    "fleet": "one character is one node; the list on the right is what needs a person, worst first",
    "verdicts": "what is believed broken, and the evidence in order; e shows the raw line",
    "runs": "every run of a playbook; e shows its journal, A and D answer one that waits",
    "bisect": "rounds of tests that narrow a fault down to a node",
    "incidents": "a verdict, the runs it led to and the notes, on one time line; e exports it",
    "standby": "backup nodes and checkpoints: what a swap would use",
    "jobs": "where every job stands and how its steps and losses went; r looks now",
    "watch": "who watches, what is suspected, how far the gates are used, what was decided and why",
    "node": "one node; tab changes the tab, [ and ] the node",
    "stacks": "where all ranks stand; the branch with few ranks is the suspect",
}


def help_rows(view_name: str) -> list[Row]:
    """The help of one view."""
    rows = [row((f"{view_name}: ", Tone.HEAD), _ABOUT.get(view_name, "")), blank()]
    rows += [row(line) for line in FIRST_HELP]
    for title, table in (
        ("on a node, verdict or run", TARGET),
        ("everywhere", (*EVERYWHERE, *ALWAYS)),
        ("moving", MOVE),
    ):
        rows += [blank(), heading(title)]
        rows += [row((f"  {key.shown:22}", Tone.HEAD), key.help) for key in table]
    rows += [blank(), heading("letters")]
    rows += [
        row((f"  {appearance.letter}  ", appearance.tone), state.value)
        for state, appearance in APPEARANCES.items()
    ]
    return rows
