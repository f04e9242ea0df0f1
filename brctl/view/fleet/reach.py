"""Most nodes were not reached: one line for people, one object for documents."""

from brctl.model.nodeset import fold
from brctl.model.sweeps.reach import UnreachedTogether
from brctl.view.schema import UnreachedDocument
from brctl.view.text import printable


def reach_lines(unreached: UnreachedTogether | None) -> list[str]:
    """What the silence of most nodes says, why, and what to type; none while most are reached."""
    if unreached is None:
        return []
    asks = [f"ask     {printable(command, 140)}" for command in unreached.settle]
    return [f"reach   {printable(unreached.title, 160)}", f"        {unreached.why}", *asks]


def unreached_document(unreached: UnreachedTogether | None) -> UnreachedDocument | None:
    """The same for programs."""
    if unreached is None:
        return None
    return {
        "nodes": list(unreached.nodes),
        "folded": fold(unreached.nodes),
        "asked": unreached.asked,
        "reasons": dict(unreached.reasons),
        "shared": unreached.shared or None,
        "settle": list(unreached.settle),
    }
