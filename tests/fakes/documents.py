"""Holds every document that a command writes during a test to the schema of its kind."""

import json
from collections.abc import Iterator

import msgspec

from brctl.cli.output import envelope
from brctl.view.notices.page import Page
from brctl.view.schemas.kinds import DOCUMENTS


def check_page(page: Page, context: str) -> None:
    """Whatever form was asked for: the document would have been this one.

    Raises:
        AssertionError: Its kind has no schema, or it does not fit, or it holds more.
    """
    schema = DOCUMENTS.get(page.kind)
    if schema is None:
        raise AssertionError(f"a document of kind {page.kind!r} is written and has no schema")
    written = json.loads(json.dumps(envelope(page, context), allow_nan=False))
    if missing := schema.__required_keys__ - set(written):  # type: ignore[attr-defined]
        raise AssertionError(f"{page.kind} lacks {sorted(missing)}")
    try:
        known: object = msgspec.convert(written, schema)
    except msgspec.ValidationError as exc:
        raise AssertionError(f"{page.kind} does not fit its schema: {exc}") from exc
    if unnamed := list(_left_out(written, known)):
        raise AssertionError(f"{page.kind} writes what its schema does not name: {unnamed}")


def _left_out(written: object, known: object, place: str = "") -> Iterator[str]:
    """Where a document holds keys that its types do not: converting leaves those out."""
    if isinstance(written, dict) and isinstance(known, dict):
        for key, value in written.items():
            if key in known:
                yield from _left_out(value, known[key], f"{place}{key}.")
            else:
                yield f"{place}{key}"
    elif isinstance(written, list) and isinstance(known, list):
        for each, kept in zip(written, known, strict=True):
            yield from _left_out(each, kept, place)
