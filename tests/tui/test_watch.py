"""The watch screen follows a watcher's folder: it says who leads, and never that all is well."""

import json
from datetime import timedelta
from pathlib import Path

from brctl.engine.watch.folder import RECORD, STATUS, WatchFolder
from brctl.library.config import Settings
from brctl.model.fault import FaultClass
from brctl.model.units import rfc3339
from brctl.model.watch.state import MassEvent, Suspicion, WatchAct, WatchRecord, WatchState
from brctl.tui.address import Address
from brctl.tui.once import once_text
from tests.fakes.run_context import NOON
from tests.tui.conftest import engine_of, settled, shows
from tests.tui.screen_text import screen_text
from tests.tui.site import make_site, site_app, site_verdict

STATE = WatchState(
    NOON - timedelta(hours=2),
    suspicions={
        "gpu/n3": Suspicion(
            "gpu", "n3", NOON, 4, "GPU 5 is lost", 2, confirmed_at=NOON, verdicts=("V-1",)
        )
    },
    acts=(WatchAct(NOON, "V-9", FaultClass.GPU_LOST, ("n2",), "demo", 5, 7),),
    untold={"many-nic": MassEvent("many-nic", "4 of 6 nodes lose packets", ("n1", "n2"))},
)
RECORDS = (
    WatchRecord(1, NOON, "start", {"holder": "ctl1 pid 7", "nodes": 6, "mode": "observe"}),
    WatchRecord(
        2, NOON, "decision",
        {"verdict": "V-1", "mode": "observe", "held": "mode observe", "done": True, "said": ""},
    ),
)  # fmt: skip
STATUS_NOW: dict[str, object] = {
    "at": rfc3339(NOON + timedelta(seconds=10)), "holder": "ctl1 pid 7", "token": 3,
    "mode": "observe", "nodes": 6, "fleet": 6, "talking": 5, "silent": [],
    "reconnecting": {"n4": "connect-timed-out\x1b[2J"}, "policy": "/etc/brctl/watch.yaml",
    "limits": {"breakers": [{"within_s": 300.0, "share": 0.5, "least": 2}]}, "freeze": [],
}  # fmt: skip


def watched(folder: Path, **status: object) -> Settings:
    """A site with a watcher's folder as it is two seconds after the watcher told its status."""
    settings = make_site(folder, verdict=site_verdict())
    watch = WatchFolder(settings.state_dir, settings.context)
    watch.save_state(STATE)
    for record in RECORDS:
        watch.append(record)
    watch.tell_status({**STATUS_NOW, **status})
    return settings


def text_of(folder: Path, settings: Settings) -> str:
    facts = site_app(folder, settings).reader.read()
    return once_text(facts, Address("watch"), width=140, ascii_only=False)


def test_the_screen_shows_leader_nodes_suspicions_gates_and_decisions(tmp_path: Path) -> None:
    """Another machine leads, one node reconnects; its words control no terminal."""
    text = text_of(tmp_path, watched(tmp_path))
    for part in (
        "watcher    observe  leader ctl1 pid 7, another machine, up 2h00, /etc/brctl/watch.yaml",
        "nodes      6: 5 talking, 1 reconnecting",
        "n4: connect-timed-out\\x1b[2J",
        "untold     many-nic: no sink took the page yet: 4 of 6 nodes lose packets",
        "gpu        n3  ",
        "confirmed  V-1      GPU 5 is lost",
        "breaker   open  1 of 3 nodes in 5m00",
        "would fix  V-1  held: mode observe",
        "start  ctl1 pid 7, 6 nodes, observe",
    ):
        assert part in text, f"{part!r} is not in\n{text}"
    assert text.index("would fix") < text.index("start  ctl1"), "the newest comes first"
    assert "\x1b" not in text


def test_without_a_watcher_the_screen_says_how_to_start_one(tmp_path: Path) -> None:
    text = text_of(tmp_path, make_site(tmp_path))
    assert "none watches here; start one: brctl watch --mode observe --context site" in text
    assert "no watcher left its suspicions here" in text
    assert "nothing is suspected" not in text


def test_a_watcher_that_fell_silent_is_not_at_work(tmp_path: Path) -> None:
    text = text_of(tmp_path, watched(tmp_path, at=rfc3339(NOON - timedelta(minutes=2))))
    assert "NONE AT WORK: ctl1 pid 7 told something 2m12 ago, and since nothing" in text


def test_a_watcher_that_a_person_stopped_says_who_and_how_it_is_lifted(tmp_path: Path) -> None:
    settings = watched(tmp_path)
    WatchFolder(settings.state_dir, settings.context).stop("kim", "switch upgrade", NOON)
    assert "STOPPED: stopped by kim: switch upgrade; brctl watch stop --lift" in text_of(
        tmp_path, settings
    )


def test_an_unreadable_folder_is_unknown_and_in_the_bar_of_troubles(tmp_path: Path) -> None:
    settings = make_site(tmp_path)
    folder = WatchFolder(settings.state_dir, settings.context).path
    folder.parent.mkdir(parents=True)
    folder.write_text("a file where a folder should be")
    text = text_of(tmp_path, settings)
    assert "watcher    UNKNOWN: the watcher's folder cannot be read" in text
    assert "! cannot read watcher: " in text


def test_damaged_files_are_named_and_stay_where_they_are(tmp_path: Path) -> None:
    """Only the watcher sets its state aside; who looks changes nothing."""
    settings = watched(tmp_path)
    folder = WatchFolder(settings.state_dir, settings.context).path
    (folder / STATUS).write_text("{")
    before = sorted(path.name for path in folder.iterdir())
    assert "cannot be read" in text_of(tmp_path, settings)
    (folder / STATUS).write_text(json.dumps({**STATUS_NOW, "at": 5, "nodes": "many"}))
    assert "none watches here" in text_of(tmp_path, settings)
    with (folder / RECORD).open("ab") as stream:
        stream.write(b'{"seq": 3, "at": "2026-07-05T12:00:0')
    assert "would fix  V-1" in text_of(tmp_path, settings)
    assert sorted(path.name for path in folder.iterdir()) == before


async def test_the_screen_follows_the_folder_and_its_lines_lead_to_the_verdict(
    tmp_path: Path,
) -> None:
    """8 opens it; what the watcher writes appears; w shows why; leaving stops nothing."""
    settings = watched(tmp_path)
    app = site_app(tmp_path, settings, Address())
    async with app.run_test(size=(110, 40), notifications=True) as pilot:
        await settled(pilot)
        await pilot.press("8")
        await shows(app, "[8 Watch]")
        await shows(app, "WHAT HAPPENED   newest first")
        folder = WatchFolder(settings.state_dir, settings.context)
        folder.append(WatchRecord(3, NOON, "network", {"text": "30 nodes are silent at once"}))
        await shows(app, "network  30 nodes are silent at once")
        await pilot.press("G", "w")
        await shows(app, "EVIDENCE, in order")
        assert engine_of(app).did == []
        await pilot.press("8", "slash", *"n3", "enter")
        await shows(app, "filter n3")
        assert "GPU 5 is lost" in screen_text(app)
    assert not (folder.path / "stop.json").exists()
