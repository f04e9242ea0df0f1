"""Documents are what `brctl schema` says: every kind is listed, and what is written fits."""

import ast
from pathlib import Path

import msgspec
import pytest

from brctl.cli.output import envelope
from brctl.evidence.logs.judge import judge
from brctl.model.log_verdict import LogClassification
from brctl.verdict.decide import DecisionContext, decide
from brctl.view.fleet.sweep import sweep_page
from brctl.view.logs.classification import classification_page
from brctl.view.notices.page import Page
from brctl.view.schema import Envelope
from brctl.view.schemas.kinds import DOCUMENTS
from brctl.view.verdict import diagnosis_page, why_page
from tests.fakes.documents import check_page
from tests.fakes.nodes import NOW, clear, health, seen, silent, sweep_of

PACKAGE = Path(__file__).resolve().parents[2] / "brctl"


def written_kinds() -> set[str]:
    """The kind of every `Page(...)` anywhere in brctl; one that is no literal fails here."""
    kinds = set()
    for path in PACKAGE.rglob("*.py"):
        for call in ast.walk(ast.parse(path.read_text())):
            if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "Page":
                kinds.add(_kind_of(call, path))
    return kinds


def _kind_of(call: ast.Call, path: Path) -> str:
    named = [each.value for each in call.keywords if each.arg == "kind"]
    (kind,) = named or call.args[:1]
    assert isinstance(kind, ast.Constant), f"{path}:{call.lineno}: its kind is no literal"
    return str(kind.value)


def test_every_kind_a_command_writes_has_a_schema() -> None:
    assert written_kinds() == set(DOCUMENTS)
    assert all(
        set(kind.__annotations__) > set(Envelope.__annotations__) for kind in DOCUMENTS.values()
    )


def test_a_document_without_a_schema_or_off_it_is_seen() -> None:
    """What holds every test that writes a document; see tests/conftest.py."""
    with pytest.raises(AssertionError, match=r"kind 'Nobody' .*has no schema"):
        check_page(Page("Nobody", {}, ""), "c")
    with pytest.raises(AssertionError, match=r"Sweep does not fit its schema: .*sweep"):
        check_page(Page("Sweep", {"sweep": 1, "summary": {}, "nodes": []}, ""), "c")
    with pytest.raises(AssertionError, match=r"Help lacks \['text'\]"):
        check_page(Page("Help", {"topic": "x"}, ""), "c")
    with pytest.raises(AssertionError, match=r"Help writes what .* not name: \['author'\]"):
        check_page(Page("Help", {"topic": "x", "text": "y", "author": "z"}, ""), "c")
    check_page(Page("Help", {"topic": "x", "text": "y"}, ""), "c")


def pages() -> list[Page]:
    """One page of each kind that can be made without a node."""
    (verdict,) = decide(
        [seen("n3")], (), DecisionContext(NOW, "llm", 7, stalled=True, ranks={"n3": (2,)})
    )
    empty = judge("", ())
    return [
        sweep_page(sweep_of(clear("n1"), silent("n2"), health("n3", [seen("n3")])), "c"),
        diagnosis_page([verdict], None, ["n3"], 1.0),
        why_page(verdict, "open", ""),
        classification_page(LogClassification((empty,), empty)),
    ]


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.kind)
def test_what_is_written_fits_its_schema(page: Page) -> None:
    """Types are checked strictly, so a key that changes its type fails here."""
    written = msgspec.json.decode(msgspec.json.encode(envelope(page, "c")))
    msgspec.convert(written, DOCUMENTS[page.kind])
    kind = DOCUMENTS[page.kind]
    assert kind.__required_keys__ <= set(written) <= set(kind.__annotations__)  # type: ignore[attr-defined]


@pytest.mark.parametrize("kind", DOCUMENTS)
def test_every_schema_can_be_exported(kind: str) -> None:
    assert msgspec.json.schema(DOCUMENTS[kind])["$defs"]
