"""The standby screen says what is parked where, as far as it was seen and no longer."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from brctl.engine.standby.pool import Pool, Standby
from brctl.engine.standby.pool_file import save_pool
from brctl.model.units import rfc3339
from brctl.tui.address import Address
from brctl.tui.once import once_text
from tests.fakes.run_context import NOON
from tests.tui.site import make_site, site_app


def printed(folder: Path, pool: Pool) -> list[str]:
    settings = make_site(folder)
    save_pool(settings.state_dir, settings.context, pool)
    facts = replace(site_app(folder, settings).reader.read(), read_at=NOON)
    return once_text(facts, Address("standby"), width=140, ascii_only=True).splitlines()


def line_of(lines: list[str], node: str) -> str:
    return next(line for line in lines if f" {node} " in f" {line} ")


def parked(node: str, minutes_ago: float, **more: object) -> Standby:
    at = rfc3339(NOON - timedelta(minutes=minutes_ago))
    known = Standby(node, at, 20.0, at, "ok", parked_for="demo", parked_at=at, parked_ranks=8)
    return replace(known, **{"lease_s": 3600.0, **more})  # type: ignore[arg-type]  # its fields


def test_parked_processes_are_shown_with_the_age_of_that_knowledge(tmp_path: Path) -> None:
    """Of the pool, and beside the job's own ranks; after the lease nobody may count on them."""
    rows = [parked("s1", 12), parked("s2", 90), parked("n2", 3, beside=True)]
    lines = printed(tmp_path, Pool(known={row.node: row for row in rows}))
    assert "2 in the pool" in lines[0] or any("2 in the pool" in line for line in lines)
    assert "demo: 8, 12m00 ago" in line_of(lines, "s1")
    assert "demo: lease over" in line_of(lines, "s2")
    assert "demo: 8 beside, 3m00 ago" in line_of(lines, "n2")
    assert any("as last asked; now: brctl standby list" in line for line in lines)


def test_who_was_added_to_the_pool_is_in_it_and_who_was_removed_is_not(tmp_path: Path) -> None:
    """The screen and `standby list` speak of the same pool."""
    lines = printed(tmp_path, Pool(added=("n4",), removed=("s1",)))
    assert any("2 in the pool" in line for line in lines)
    assert line_of(lines, "n4")
    assert not any(" s1 " in f" {line} " for line in lines)


def test_a_damaged_pool_is_said_and_not_shown_as_empty(tmp_path: Path) -> None:
    settings = make_site(tmp_path)
    path = settings.state_dir / "static" / f"{settings.context}.standbys.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{")
    facts = site_app(tmp_path, settings).reader.read()
    assert any(trouble.startswith("standbys: ") for trouble in facts.troubles)
