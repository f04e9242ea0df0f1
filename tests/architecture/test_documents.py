"""Documents are what `brctl schema` says: every kind is listed, and what is written fits."""

import re
from pathlib import Path

import msgspec
import pytest

from brctl.cli.output import envelope
from brctl.evidence.logs.judge import judge
from brctl.model.log_verdict import LogClassification
from brctl.verdict.decide import Scene, decide
from brctl.view.fleet.sweep import sweep_page
from brctl.view.logs import classification_page
from brctl.view.notices.page import Page
from brctl.view.schema import DOCUMENTS, ENVELOPE_ONLY
from brctl.view.verdict import diagnosis_page, why_page
from tests.fakes.nodes import NOW, clear, health, seen, silent, sweep_of

PACKAGE = Path(__file__).resolve().parents[2] / "brctl"
_KIND = re.compile(r"""Page\(\s*(?:kind=)?"(\w+)"|^\s*kind="([A-Z]\w+)",$""", re.MULTILINE)


def test_every_kind_a_command_writes_is_listed_once() -> None:
    written = set()
    for folder in ("cli", "view"):
        for path in (PACKAGE / folder).rglob("*.py"):
            written |= {a or b for a, b in _KIND.findall(path.read_text())}
    listed = [*DOCUMENTS, *ENVELOPE_ONLY]
    assert len(set(listed)) == len(listed)
    assert written - set(listed) == set()
    assert set(listed) - written == set()


def pages() -> list[Page]:
    """One page of each kind that can be made without a node."""
    (verdict,) = decide([seen("n3")], (), Scene(NOW, "llm", 7, stalled=True, ranks={"n3": (2,)}))
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
    promised = set(DOCUMENTS[page.kind].__annotations__)
    assert set(written) == promised


@pytest.mark.parametrize("kind", DOCUMENTS)
def test_every_schema_can_be_exported(kind: str) -> None:
    assert msgspec.json.schema(DOCUMENTS[kind])["$defs"]
