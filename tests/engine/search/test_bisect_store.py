"""From a search to a stored verdict that `why` explains and `fix` acts on."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from brctl.engine.incidents import verdict_store
from brctl.engine.search.bisect_store import KEPT, conclude_verdicts, load_all, save
from brctl.model.fault import FaultClass
from brctl.model.localisation import (
    Bisection,
    Conclusion,
    Exclusion,
    FaultKind,
    Finding,
    GroupResult,
    RoundReport,
    Stage,
)
from brctl.view.job.bisect import bisection_document, bisection_page

AT = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


def search_with(finding: Finding, result: GroupResult) -> Bisection:
    groups = (("n1", "n2"), ("n3", "n4"))
    report = RoundReport(1, Stage.SCREEN, groups, (result, GroupResult(8, 0, 370.0)), 1.5)
    conclusion = Conclusion((finding,), Exclusion(0.4, 0.99, 8), 1, 4, complete=True)
    return Bisection(
        "B-1", AT, 2.0, ("n1", "n2", "n3", "n4"), "all_reduce", 1 << 20, 8, 600.0, 0, "torch",
        (report,), conclusion, "settled", unexplained=False,
    )  # fmt: skip


WRONG, SILENT = GroupResult(8, 8, 300.0), GroupResult(8, 8, None, silent=True)
NAMED = Finding(FaultKind.NODE, ("n1",), 0.999, ((1, 0),))


@pytest.mark.parametrize(
    ("finding", "result", "fault", "nodes"),
    [
        (NAMED, WRONG, FaultClass.SILENT_CORRUPTION, ("n1",)),
        (NAMED, SILENT, FaultClass.NETWORK_LINK, ("n1",)),
        (
            Finding(FaultKind.SLOW, ("n1",), 0.99, ((1, 0),)),
            WRONG,
            FaultClass.NETWORK_LINK,
            ("n1",),
        ),
        (Finding(FaultKind.LEAF, ("l0",), 0.99, ((1, 0),)), WRONG, FaultClass.NETWORK_SWITCH, ()),
    ],
)
def test_a_finding_becomes_an_open_verdict(
    tmp_path: Path, finding: Finding, result: GroupResult, fault: FaultClass, nodes: tuple[str, ...]
) -> None:
    """The class follows from how groups failed; a leaf names no node."""
    verdicts = conclude_verdicts(tmp_path, "here", search_with(finding, result), "job", AT)
    assert [(v.fault, v.nodes) for v in verdicts] == [(fault, nodes)]
    stored = verdict_store.load(tmp_path, verdicts[0].id)
    assert stored.state is verdict_store.VerdictState.OPEN
    assert "round 1: n1 n2" in stored.verdict.evidence[0].raw


@pytest.mark.parametrize("kind", [FaultKind.NONE, FaultKind.UNDECIDABLE])
def test_what_is_not_known_is_no_verdict(tmp_path: Path, kind: FaultKind) -> None:
    """Nothing found and nothing decidable store nothing: nobody must be swapped for it."""
    finding = Finding(kind, ("n1", "n2") if kind is FaultKind.UNDECIDABLE else (), 0.5)
    assert conclude_verdicts(tmp_path, "here", search_with(finding, WRONG), "", AT) == ()
    assert verdict_store.load_all(tmp_path) == ()


def test_documents_are_kept_newest_first_and_bounded(tmp_path: Path) -> None:
    """The last fifty searches stay, a broken file is left out."""
    for number in range(KEPT + 3):
        document = bisection_document(search_with(NAMED, WRONG))
        path = save(tmp_path, f"B-{number:04}", {**document, "id": f"B-{number:04}"})
        assert path.stat().st_mode & 0o077 == 0
    (tmp_path / "bisections" / "B-9999.json").write_text("{")
    found = load_all(tmp_path)
    assert len(found) == KEPT
    assert found[0]["id"] == f"B-{KEPT + 2:04}"


def test_the_page_says_who_and_how_sure() -> None:
    """The word SUSPECT starts a line, and the tests behind it are in the document."""
    page = bisection_page(search_with(NAMED, WRONG), with_rounds=True)
    assert int(page.exit_code) == 2
    assert page.names == ("n1",)
    assert any(line.startswith("SUSPECT n1 ") for line in page.text.splitlines())
    assert "FAILED 8 of 8" in page.text
