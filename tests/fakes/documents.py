"""Holds every document that a command writes during a test to the schema of its kind."""

import json
from collections.abc import Mapping

import msgspec

from brctl.cli.output import envelope
from brctl.view.notices.page import Page
from brctl.view.schema import DOCUMENTS, ENVELOPE_ONLY, Envelope

SCHEMAS: Mapping[str, type] = {**dict.fromkeys(("Error", *ENVELOPE_ONLY), Envelope), **DOCUMENTS}


def check_page(page: Page, context: str) -> None:
    """Whatever form was asked for: the document would have been this one.

    Raises:
        AssertionError: Its kind has no schema, or it does not fit.
    """
    schema = SCHEMAS.get(page.kind)
    if schema is None:
        raise AssertionError(f"a document of kind {page.kind!r} is written and has no schema")
    written = json.loads(json.dumps(envelope(page, context), allow_nan=False))
    try:
        msgspec.convert(written, schema)
    except msgspec.ValidationError as exc:
        raise AssertionError(f"{page.kind} does not fit its schema: {exc}") from exc
    if missing := set(schema.__annotations__) - set(written):
        raise AssertionError(f"{page.kind} lacks {sorted(missing)}")
