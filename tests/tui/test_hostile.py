"""What nodes and people write never controls the screen, breaks it, or is hidden by it."""

from dataclasses import replace
from pathlib import Path

import pytest
from rich.cells import cell_len

from brctl.engine.incidents import verdict_store
from brctl.engine.incidents.verdict_store import StoredVerdict, VerdictState
from brctl.engine.sweeps import sweep_store
from brctl.model.evidence import Subject
from brctl.model.sweeps.report import CheckResult, Measurement, ProbeStatus
from brctl.tui.address import Address
from brctl.tui.app import BrctlApp
from brctl.tui.once import once_text
from brctl.tui.session.facts import Facts
from tests.tui.conftest import settled, shows
from tests.tui.screen_text import screen_text
from tests.tui.site import make_site, site_app, site_sweep, site_verdict, xid

NASTY = [
    "\x1b[2J\x1b]0;owned\x07 escape",
    "[bold red]markup[/] [link=http://evil]x[/link] [/]",
    "全角文字は二つの幅を取る",
    "cafe\u0301 combining \u0310\u0311\u0312",
    "\u202e right to left \u2066",
    "a\x00b\rc\nd\te",
    "x" * 10_000,
    "",
]


def nasty_app(folder: Path, text: str) -> BrctlApp:
    """A site whose node, verdict and measurements say something nasty."""
    settings = make_site(folder)
    evidence = replace(xid(site_sweep().started_at), text=text, raw=text, source=text[:50])
    sweep = site_sweep()
    node = next(n for n in sweep.nodes if n.node == "n3")
    result = CheckResult(
        "gpu.devices", ProbeStatus.MEASURED, (Measurement("gpu.x", f"gpu:{text[:80]}", text),),
        (text,), stderr=text,
    )  # fmt: skip
    bad = replace(node, evidence=(evidence,), report=replace(node.report, results=(result,)))
    nodes = tuple(bad if n.node == "n3" else n for n in sweep.nodes)
    sweep_store.save(settings.state_dir, replace(sweep, nodes=nodes))
    verdict = replace(
        site_verdict(), title=text, evidence=(evidence,), cost_if_wrong=text,
        job=text[:40], not_checked=(),
    )  # fmt: skip
    stored = StoredVerdict(verdict, VerdictState.OPEN, text)
    verdict_store.save(settings.state_dir, stored)
    return site_app(folder, settings, Address())


def assert_harmless(app: BrctlApp) -> None:
    """Only printable text, and no line wider than the screen."""
    for line in screen_text(app).splitlines():
        assert line.isprintable(), repr(line)
        assert cell_len(line) <= app.size.width
        assert "\u202e" not in line


@pytest.mark.parametrize("text", NASTY, ids=lambda text: repr(text)[:16])
async def test_no_text_controls_or_breaks_a_screen(tmp_path: Path, text: str) -> None:
    """Every screen draws it, escaped and cut, and none fails."""
    app = nasty_app(tmp_path, text)
    async with app.run_test(size=(90, 30), notifications=True) as pilot:
        await settled(pilot)
        assert_harmless(app)
        for address in (
            Address("verdicts", "V-1"), Address("incidents", "V-1"), Address("standby"),
            Address("runs"), Address("node", "n3"),
        ):  # fmt: skip
            app.go(address)
            await pilot.pause()
            assert_harmless(app)
        for _ in range(7):
            await pilot.press("tab")
            assert_harmless(app)
        await pilot.press("2", "e")
        assert_harmless(app)


async def test_markup_is_text(tmp_path: Path) -> None:
    """Square brackets are shown as they came."""
    app = nasty_app(tmp_path, "[bold]not bold[/]")
    async with app.run_test(size=(110, 30)) as pilot:
        await settled(pilot)
        await pilot.press("2")
        await shows(app, "[bold]not bold[/]")


async def test_ascii_mode_lets_nothing_else_pass(tmp_path: Path) -> None:
    """--ascii: every character on every screen is ASCII, and columns stay where they are."""
    settings = make_site(tmp_path, verdict=replace(site_verdict(), title="全角 …"))
    app = site_app(tmp_path, settings, Address(), ascii_only=True)
    async with app.run_test(size=(90, 30)) as pilot:
        await settled(pilot)
        for key in ("1", "2", "3", "4", "5", "6", "a", "escape", "question_mark"):
            await pilot.press(key)
            assert screen_text(app).isascii(), key
        await pilot.press("escape", "2")
        await shows(app, "???? ~")


def test_once_prints_nothing_that_controls_a_terminal(tmp_path: Path) -> None:
    """The plain print is as harmless as the screen."""
    app = nasty_app(tmp_path, NASTY[0])
    facts = app.reader.read()
    for view_name in ("fleet", "verdicts", "incidents", "standby", "runs"):
        text = once_text(facts, Address(view_name), width=100, ascii_only=False)
        assert "\x1b" not in text
        assert all(line.isprintable() for line in text.splitlines())


def test_a_subject_that_is_no_device_is_still_a_subject(tmp_path: Path) -> None:
    """A verdict about a node with an impossible name is shown, not refused."""
    settings = make_site(tmp_path)
    odd = replace(xid(site_sweep().started_at), subject=Subject("n\x1b3", "x"))
    verdict = replace(site_verdict(), evidence=(odd,))
    verdict_store.save(settings.state_dir, StoredVerdict(verdict, VerdictState.OPEN))
    facts: Facts = site_app(tmp_path, settings).reader.read()
    text = once_text(facts, Address("verdicts", "V-1"), width=100, ascii_only=False)
    assert "n\\x1b3" in text
