"""What a finished command shows: one document for programs and the same facts as text."""

from collections.abc import Mapping
from dataclasses import dataclass

from brctl.model.exit_codes import ExitCode

Json = object
"""A value `json.dumps` writes; the exact shapes stand in brctl.view.schema."""


@dataclass(frozen=True, slots=True)
class Page:
    """The answer of one command.

    Attributes:
        kind: Name of the document, `Sweep`, `Verdict`.
        body: The document's own keys; the envelope is added when it is written.
        text: The same for people, plain, without colour.
        names: What `-o name` prints, one a line.
        rows: What `-o csv` and `-o ndjson` print for lists.
        table: What `-o csv` prints where the document is no list but holds one.
        html: The same as one self-contained HTML page, where there is one.
        next: Commands that make sense now, best first.
    """

    kind: str
    body: Mapping[str, Json]
    text: str
    exit_code: ExitCode = ExitCode.OK
    names: tuple[str, ...] = ()
    rows: tuple[Mapping[str, Json], ...] = ()
    next: tuple[str, ...] = ()
    table: tuple[Mapping[str, Json], ...] = ()
    html: str = ""
