"""Every key of the table does what the table says, and none of them changes the cluster."""

from dataclasses import replace
from pathlib import Path

import pytest
from textual.command import Command, CommandList
from textual.events import Key
from textual.widgets import Input

from brctl.engine.incidents import verdict_store
from brctl.engine.incidents.verdict_store import StoredVerdict, VerdictState, load_all
from brctl.model.verdict import Suspect
from brctl.tui.address import ROOTS, Address
from brctl.tui.app import BrctlApp
from brctl.tui.commands import TypedCommand, read_command
from brctl.tui.keys import ALWAYS, EVERYWHERE, TARGET
from brctl.tui.rows.row import table
from brctl.tui.rows.sorting import sorted_rows
from brctl.tui.rows.times import TimeStyle
from brctl.tui.screens.dialogs import ConfirmDialog, ListDialog
from brctl.tui.screens.fleet import FleetScreen
from tests.tui.conftest import engine_of, settled, shows, until
from tests.tui.screen_text import screen_text
from tests.tui.site import make_site, site_app, site_verdict

SIZE = (110, 32)


def fleet(app: BrctlApp) -> FleetScreen:
    assert isinstance(app.screen, FleetScreen)
    return app.screen


async def test_digits_open_the_eight_screens(app: BrctlApp) -> None:
    """1 to 8 open the screens of the first line."""
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await settled(pilot)
        for number, view_name in enumerate(ROOTS, start=1):
            await pilot.press(str(number))
            assert app.view is not None
            assert app.view.address.view_name == view_name


async def test_two_keys_lead_to_the_worst_and_one_to_why_and_one_to_the_plan(app: BrctlApp) -> None:
    """N stands on the node of the open verdict, w shows the chain, f the plan; nothing is done."""
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await settled(pilot)
        await pilot.press("n")
        assert fleet(app).heatmap.name_here == "n3"
        await pilot.press("w")
        await shows(app, "EVIDENCE, in order")
        await pilot.press("f")
        await until(lambda: isinstance(app.screen, ConfirmDialog), "the fix dialog")
        await shows(app, "the same as  brctl fix V-1 --confirm 'swap 1'")
        assert engine_of(app).did == ["propose V-1"]


async def test_next_and_previous_bad_go_round(app: BrctlApp) -> None:
    """N visits what is not ok, worst first; N goes back."""
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await settled(pilot)
        visited = []
        for key in ("n", "n", "n", "n", "N"):
            await pilot.press(key)
            visited.append(fleet(app).heatmap.name_here)
        assert visited == ["n3", "n4", "n2", "n3", "n2"]


async def test_enter_opens_the_node_and_brackets_walk_along(app: BrctlApp) -> None:
    """Enter opens the node, tab its tabs, ] and [ its neighbours."""
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await settled(pilot)
        await pilot.press("n", "enter")
        await shows(app, "[Health] GPUs")
        await pilot.press("tab")
        await shows(app, "[GPUs]")
        await pilot.press("right_square_bracket")
        assert app.view is not None
        assert app.view.address == Address("node", "n4")
        await pilot.press("left_square_bracket", "left_square_bracket")
        assert app.view.address == Address("node", "n2")


@pytest.mark.parametrize("key", ["enter", "d"])
async def test_both_detail_keys_open_the_node(app: BrctlApp, key: str) -> None:
    """Enter and d are the same."""
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await settled(pilot)
        await pilot.press("n", key)
        assert app.view is not None
        assert app.view.address == Address("node", "n3")


async def test_raw_events_and_history_of_a_node(app: BrctlApp) -> None:
    """E shows the raw answers, t the events."""
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await settled(pilot)
        await pilot.press("n", "enter", "e")
        await shows(app, "gpu.clocks.temperature_c")
        await pilot.press("t")
        await shows(app, "[Events]")


async def test_escape_goes_back_and_q_leaves_only_at_the_top(app: BrctlApp) -> None:
    """Esc and q close one thing after the other; at the top q leaves."""
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await settled(pilot)
        await pilot.press("n", "enter", "escape")
        assert isinstance(app.screen, FleetScreen)
        await pilot.press("3", "q")
        assert isinstance(app.screen, FleetScreen)
        assert app.is_running
        await pilot.press("q")
        await until(lambda: not app.is_running, "the app to leave")


@pytest.mark.parametrize("keys", [("ctrl+c", "ctrl+c"), ("ctrl+q",), ("colon", "q", "enter")])
async def test_three_more_ways_out(app: BrctlApp, keys: tuple[str, ...]) -> None:
    """ctrl+c twice, ctrl+q and :q leave."""
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await settled(pilot)
        await pilot.press(*keys)
        await until(lambda: not app.is_running, "the app to leave")


async def test_one_interrupt_does_not_leave(app: BrctlApp) -> None:
    """Hands expect ctrl+c to copy; once only says how to leave."""
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await settled(pilot)
        await pilot.press("ctrl+c")
        await shows(app, "ctrl+c again leaves")
        assert app.is_running


async def test_a_filter_takes_selectors_words_and_their_inverse(app: BrctlApp) -> None:
    """/ takes node sets, groups of the moment and words; esc clears it."""
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await settled(pilot)
        for typed, expected in (
            ("n[2-3]", {"n2", "n3"}),
            ("@state:crit", {"n3"}),
            ("@rack:r2", {"s1", "s2"}),
            ("!@rack:r2", {"n1", "n2", "n3", "n4"}),
            ("xid", {"n3"}),
            ("@job:demo", {"n1", "n2", "n3", "n4"}),
        ):
            await pilot.press("slash")
            app.screen.query_one("#prompt").value = typed  # type: ignore[attr-defined]  # an Input
            await pilot.press("enter")
            assert app.facts is not None
            assert {fact.name for fact in fleet(app).shown(app.facts)} == expected, typed
        await pilot.press("escape")
        assert fleet(app).address == Address()


async def test_a_filter_that_means_nothing_says_so(app: BrctlApp) -> None:
    """An unknown group is an error on screen, never an empty fleet."""
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await settled(pilot)
        await pilot.press("slash", *"@nosuch", "enter")
        await shows(app, "no such group")
        assert app.facts is not None
        assert len(fleet(app).shown(app.facts)) == 6


async def test_commands_use_the_words_of_the_command_line(app: BrctlApp) -> None:
    """:ls, :why, :play and :standby are views; :dx and :fix act; the rest is the terminal's."""
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await settled(pilot)
        for text, address in (
            ("ls @rack:r2", Address("fleet", filter="@rack:r2")),
            ("why V-1", Address("verdicts", "V-1")),
            ("play history", Address("runs")),
            ("standby", Address("standby")),
            ("job show demo", Address("jobs", "demo")),
            ("nodes show n2", Address("node", "n2")),
            ("runs --sort=-state", Address("runs", sort="-state")),
            ("node n2", Address("node", "n2")),
            ("brctl tui fleet --filter xid", Address("fleet", filter="xid")),
        ):
            app.run_command(text)
            await pilot.pause()
            assert app.view is not None
            assert app.view.address == address, text
        app.run_command("dx demo")
        await until(lambda: "diagnose demo" in engine_of(app).did, "a diagnosis")
        app.run_command("'")
        await shows(app, "No closing quotation")


@pytest.mark.parametrize(
    "line",
    ["nodes diff", "nodes diff n1", "ls --state crit", "stacks dump --job demo", "sweep -w n3",
     "standby warm --job demo", "dx -w n3", "fix V-1 --dry-run", "job start demo", "help selectors",
     "ckpt verify demo"],
)  # fmt: skip
def test_what_no_view_shows_is_run_in_the_terminal_as_it_was_typed(line: str) -> None:
    """A word or flag the views do not know is never dropped: `sweep -w n3` swept every node."""
    assert read_command(line) == TypedCommand("terminal", words=tuple(line.split()))


async def test_help_lists_every_key_of_the_view(app: BrctlApp) -> None:
    """? names each key of the table."""
    async with app.run_test(size=(120, 90)) as pilot:
        await settled(pilot)
        await pilot.press("question_mark")
        assert isinstance(app.screen, ListDialog)
        text = screen_text(app)
        for key in (*EVERYWHERE, *TARGET, *ALWAYS):
            assert key.help[:40] in text
        await pilot.press("escape")
        assert isinstance(app.screen, FleetScreen)


async def test_marks_are_what_a_sweep_and_a_copy_are_about(app: BrctlApp) -> None:
    """Space marks, ctrl+space marks a range, Y copies the folded set, r sweeps it."""
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await settled(pilot)
        await pilot.press("space", "right", "right", "ctrl+@")
        assert fleet(app).heatmap.marks == {"n1", "n2", "n3"}
        await pilot.press("Y")
        assert app.clipboard == "n[1-3]"
        await pilot.press("r")
        await until(lambda: engine_of(app).did == ["sweep 3"], "a sweep")
        await pilot.press("escape")
        assert fleet(app).heatmap.marks == set()


async def test_the_copied_line_opens_the_same_view(app: BrctlApp) -> None:
    """Y copies a brctl tui command whose words are the address."""
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await settled(pilot)
        app.go(Address("fleet", filter="@rack:r2"))
        await pilot.press("y")
        assert app.clipboard == "brctl tui fleet --filter @rack:r2 --context site"


async def test_history_and_last_go_where_we_were(app: BrctlApp) -> None:
    """[ and ] walk the views that were open, - goes to the last one and back."""
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await settled(pilot)
        await pilot.press("2", "3", "left_square_bracket")
        assert app.view is not None
        assert app.view.address.view_name == "verdicts"
        await pilot.press("right_square_bracket")
        assert app.view.address.view_name == "runs"
        await pilot.press("minus")
        assert app.view.address.view_name == "verdicts"
        await pilot.press("minus")
        assert app.view.address.view_name == "runs"


async def test_a_frozen_screen_stays_and_a_thawed_one_goes_on(
    app: BrctlApp, tmp_path: Path
) -> None:
    """P holds the screen although the disk changes."""
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await settled(pilot)
        await pilot.press("p")
        await shows(app, "FROZEN")
        (tmp_path / "state" / "verdicts" / "V-1.json").unlink()
        await pilot.pause(0.6)
        assert "verdicts 1 open" in screen_text(app)
        await pilot.press("p")
        await shows(app, "verdicts 0 open")


async def test_times_turn_through_three_styles(app: BrctlApp) -> None:
    """Z shows UTC, local, and seconds since the fault."""
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await settled(pilot)
        await pilot.press("2", "z", "z")
        assert app.times.style is TimeStyle.SINCE
        await shows(app, "+4.0 s")


async def test_the_heatmap_turns_through_its_colours(app: BrctlApp) -> None:
    """M shows health, job, age, owner and measurements; what was not measured is ?, never 0."""
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await settled(pilot)
        for expected in ("aaaa..", "000000", "......"):
            await pilot.press("m")
            await shows(app, expected)
        await pilot.press("m")
        await shows(app, "111?11")


async def test_diagnosis_ends_on_its_verdict(app: BrctlApp) -> None:
    """X looks at the job of the node under the cursor and opens what it concludes."""
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await settled(pilot)
        await pilot.press("n", "x")
        await until(lambda: app.view is not None and app.view.address.view_name == "verdicts")
        assert engine_of(app).did == ["diagnose demo"]
        stored = {s.verdict.id for s in load_all(engine_of(app).settings.state_dir)}
        assert app.view is not None
        assert app.view.address.item in stored - {"V-1"}


async def test_terminal_keys_lend_the_terminal_or_say_the_line(app: BrctlApp) -> None:
    """S and l need a real terminal; without one the line to type is shown."""
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await settled(pilot)
        await pilot.press("n", "s")
        await shows(app, "ssh n3")


async def test_timeline_stacks_and_actions_open(app: BrctlApp) -> None:
    """t, K and a open the time line, the stacks and the action sheet."""
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await settled(pilot)
        await pilot.press("n", "a")
        await shows(app, "brctl cordon")
        await pilot.press("escape", "t")
        assert app.view is not None
        assert app.view.address == Address("incidents", "V-1")
        await pilot.press("1", "n", "K")
        assert app.view.address.view_name == "stacks"


async def test_a_line_of_the_action_sheet_lands_in_the_prompt(app: BrctlApp) -> None:
    """Typed actions are put after `:` for a person to finish."""
    async with app.run_test(size=(110, 40)) as pilot:
        await settled(pilot)
        await pilot.press("n", "a")
        dialog = app.screen
        assert isinstance(dialog, ListDialog)
        dialog.dismiss("type:cordon 'n3' -m REASON")
        await pilot.pause()
        assert app.screen.query_one("#prompt").value == "cordon 'n3' -m REASON"  # type: ignore[attr-defined]  # an Input


async def test_a_key_that_is_not_allowed_is_in_brackets(app: BrctlApp) -> None:
    """On a healthy node there is nothing to fix: the footer says (f fix), the key does nothing."""
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await settled(pilot)
        assert "(f fix)" in screen_text(app)
        await pilot.press("f")
        assert isinstance(app.screen, FleetScreen)
        await pilot.press("n")
        await shows(app, " f fix ")


async def test_keys_can_be_remapped(tmp_path: Path) -> None:
    """keys.yaml moves an action to another key."""
    settings = make_site(tmp_path, verdict=site_verdict())
    app = site_app(tmp_path, settings, Address(), keymap={"help": "f1"})
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await settled(pilot)
        await pilot.press("f1")
        assert isinstance(app.screen, ListDialog)


def is_offered(app: BrctlApp, text: str) -> bool:
    """Whether enter would take it: the palette's first find stands highlighted."""
    found = app.screen.query_one(CommandList)
    taken = found.highlighted_option
    return isinstance(taken, Command) and text in str(taken.hit.text)


async def test_the_palette_finds_nodes_and_verdicts(app: BrctlApp) -> None:
    """ctrl+p finds anything with an address."""
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await settled(pilot)
        await pilot.press("ctrl+p")
        await pilot.press(*"node n2")
        await until(lambda: is_offered(app, "node n2"), "node n2 among what is found")
        await pilot.press("enter")
        await until(lambda: app.view is not None and app.view.address == Address("node", "n2"))


def test_a_table_sorts_by_any_column_and_keeps_its_head() -> None:
    """Numbers in names sort as numbers."""
    rows = table(("RUN", "NODES"), [(("R-2", "n10"), "run:R-2"), (("R-1", "n9"), "run:R-1")])
    assert [line.key for line in sorted_rows(rows, 0)] == ["", "run:R-1", "run:R-2"]
    assert [line.key for line in sorted_rows(rows, 1)] == ["", "run:R-1", "run:R-2"]
    assert sorted_rows(rows, -1) == rows


async def test_s_turns_through_the_columns(app: BrctlApp) -> None:
    """S names the column it sorts by."""
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await settled(pilot)
        await pilot.press("2", "S")
        await shows(app, "sorted by ID")


async def test_a_column_sorts_both_ways_and_is_part_of_the_address(app: BrctlApp) -> None:
    """S and R, and the line that `y` copies opens the list in the same order."""
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await settled(pilot)
        await pilot.press("2", "S", "R")
        await shows(app, "sorted by ID, last first")
        await pilot.press("y")
        assert app.clipboard == "brctl tui verdicts V-1 --sort=-ID --context site"


async def test_marked_rows_of_a_list_are_one_target(tmp_path: Path) -> None:
    """Y copies the nodes of all marked verdicts, folded; esc takes the marks away."""
    settings = make_site(tmp_path, verdict=site_verdict())
    other = replace(site_verdict(), id="V-2", suspects=(Suspect("n4"),))
    verdict_store.save(settings.state_dir, StoredVerdict(other, VerdictState.OPEN))
    app = site_app(tmp_path, settings, Address("verdicts"))
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await settled(pilot)
        await pilot.press("space", "down", "space", "Y")
        assert app.clipboard == "n[3-4]"
        await pilot.press("escape", "Y")
        assert app.clipboard in ("n3", "n4")


async def test_what_is_typed_ahead_goes_where_it_was_meant(app: BrctlApp) -> None:
    """Keys that arrive together with `:` are words of the command, never keys of the view."""
    async with app.run_test(size=SIZE) as pilot:
        await settled(pilot)
        for key, character in (("colon", ":"), ("d", "d"), ("x", "x")):
            app.post_message(Key(key, character))
        await until(lambda: "dx" in [p.value for p in app.screen.query(Input)], "what was typed")
        assert engine_of(app).did == []
