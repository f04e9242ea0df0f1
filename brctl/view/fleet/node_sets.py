"""Pages of `brctl nodes fold|expand|count`; the document is one, whichever was asked."""

from collections.abc import Sequence

from brctl.model.nodeset import fold
from brctl.view.documents import node_set
from brctl.view.notices.page import Page


def folded_page(names: Sequence[str]) -> Page:
    """One folded set on one line."""
    return _page(names, fold(names))


def expanded_page(names: Sequence[str], separator: str) -> Page:
    """Every name, in natural order."""
    return _page(names, separator.join(names))


def counted_page(names: Sequence[str]) -> Page:
    """Their number alone."""
    return _page(names, str(len(names)))


def _page(names: Sequence[str], text: str) -> Page:
    rows = tuple({"node": name} for name in names)
    body = {**node_set(names), "count": len(names)}
    return Page("NodeSet", body, text, names=tuple(names), rows=rows)
