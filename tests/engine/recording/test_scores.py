"""A folder of recorded incidents beside what they really were."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from brctl.engine.application.incident_files import confirm_in, score
from brctl.engine.application.incident_redaction import redact
from brctl.engine.incidents.verdict_store import VerdictState, load, save
from brctl.engine.recording.contents import looks_in, truth_in
from brctl.engine.recording.export import Wanted, export
from brctl.model.errors import ConfigError, UsageError
from brctl.model.exit_codes import ExitCode
from brctl.view.notices.page import Page
from brctl.view.recorded.pseudonyms import Profile
from brctl.view.recorded.scores import Truth
from tests.fakes.recorded_site import RecordedSite


def confirmed(folder: Path, name: str, cause: str | None) -> None:
    """A file of a lost GPU, with a confirmed cause or with none."""
    state = folder / "states" / name
    verdict = RecordedSite(state, "gpu-lost").diagnose().verdicts[0]
    if cause is not None:
        stored = replace(load(state, verdict.id), state=VerdictState.CONFIRMED, note=cause)
        save(state, stored)
    (folder / f"{name}.brctl.tar.zst").write_bytes(export(state, Wanted(), {}))


def scores(page: Page) -> dict[str, float]:
    found = page.body["scores"]
    assert isinstance(found, dict)
    return found


def test_each_confirmed_cause_is_compared_and_the_rest_is_named(tmp_path: Path) -> None:
    """Words confirm the verdict's own class; the name of a class says that it was another one."""
    confirmed(tmp_path, "a", "riser replaced")
    confirmed(tmp_path, "b", "host-kernel")
    confirmed(tmp_path, "c", None)
    page = score(tmp_path, None)
    assert scores(page)["cases"] == 2
    assert scores(page)["class_right_ratio"] == 0.5
    assert scores(page)["wrong_accused"] == 1
    assert page.body["unconfirmed"] == ["c.brctl.tar.zst"]
    assert page.exit_code is ExitCode.WARNING


def test_a_cause_on_other_nodes_is_written_into_a_file_that_exists(tmp_path: Path) -> None:
    """`verdict confirm --file`: who said it, when, and where it really was."""
    confirmed(tmp_path, "c", None)
    path, state = tmp_path / "c.brctl.tar.zst", tmp_path / "states" / "c"
    (verdict,) = looks_in(path)[1][0].look.verdicts
    at = datetime(2026, 7, 6, tzinfo=UTC)
    stored = replace(
        load(state, verdict.id), state=VerdictState.CONFIRMED, note="host-kernel", nodes=("n4",),
        by="ann", at=at,
    )  # fmt: skip
    confirm_in(path, stored)
    file, (one,) = looks_in(path)
    assert truth_in(path, file, one.look.id) == Truth(
        "host-kernel", ("n4",), "host-kernel", "ann", at
    )
    assert scores(score(tmp_path, None))["wrong_accused"] == 1
    other = replace(stored, verdict=replace(verdict, id="V-0000"))
    for_others = tmp_path / "copy.brctl.tar.zst"
    redact(path, tmp_path / "home", Profile.VENDOR, for_others)
    for_one = tmp_path / "c.age"
    for_one.write_bytes(b"age-encryption.org/v1\n...")
    for copy, said in ((for_others, r"redacted \(vendor\)"), (for_one, "encrypted")):
        before = copy.read_bytes()
        with pytest.raises(UsageError, match=f"{said}, nothing was written"):
            confirm_in(copy, stored)
        assert copy.read_bytes() == before
    with pytest.raises(UsageError, match="no look in it told V-0000"):
        confirm_in(path, other)


def test_nothing_confirmed_is_no_good_result(tmp_path: Path) -> None:
    confirmed(tmp_path, "c", None)
    assert score(tmp_path, None).exit_code is ExitCode.UNKNOWN


def test_a_folder_without_incidents_and_a_damaged_one_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no \*\.brctl"):
        score(tmp_path, None)
    (tmp_path / "x.brctl.tar.zst").write_bytes(b"no")
    with pytest.raises(ConfigError, match="not an incident"):
        score(tmp_path, None)
