"""The one place through which every text of a notice goes on its way out of the site."""

from collections.abc import Mapping, Sequence

from brctl.view.notices.page import Json
from brctl.view.redact import redact
from brctl.view.text import printable

DEPTH = 12
TEXT = 2000
ITEMS = 5000


def clean(text: str, limit: int = TEXT) -> str:
    """A text without recognisable secrets and control characters, of bounded length.

    Secrets go first: a cut could leave half of one that no pattern knows any more.
    """
    return printable(redact(text), limit)


def clean_tree(value: Json, limit: int = TEXT, depth: int = DEPTH) -> Json:
    """A document with every text in it cleaned, and no deeper, longer or wider than its bounds."""
    if isinstance(value, str):
        return clean(value, limit)
    if value is None or isinstance(value, bool | int | float):
        return value
    if depth == 0:
        return "…"
    if isinstance(value, Mapping):
        rows = list(value.items())[:ITEMS]
        return {clean(str(key), 200): clean_tree(item, limit, depth - 1) for key, item in rows}
    if isinstance(value, Sequence):
        return [clean_tree(item, limit, depth - 1) for item in value[:ITEMS]]
    return clean(str(value), limit)
