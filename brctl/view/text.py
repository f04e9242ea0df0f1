"""Plain text for terminals: hostile characters made visible, columns aligned."""

import re
from collections.abc import Sequence

from brctl.model.units import describe_duration

# Controls; what turns the direction of writing (061C, 200E-200F, 202A-202E, 2066-2069); what nobody
# sees (00AD, 200B-200D, 2060-206F, FEFF, interlinear marks, tags); halves of a character.
_UNSAFE = re.compile(
    r"[^\S ]|[\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    r"\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)


def printable(text: str, limit: int = 400) -> str:
    r"""Text from a node, made harmless: control and direction characters shown as escapes.

    Examples:
        >>> printable("a\x1b[31mb")
        'a\\x1b[31mb'
    """
    safe = _UNSAFE.sub(lambda match: match[0].encode("unicode_escape").decode(), text)
    return safe if len(safe) <= limit else safe[: limit - 1] + "…"


def age_text(seconds: object) -> str:
    """How old something is, from a document; `-` where nobody knows."""
    return describe_duration(seconds) if isinstance(seconds, int | float) else "-"


def columns(rows: Sequence[Sequence[str]], indent: str = "") -> str:
    """Rows as left-aligned columns two spaces apart; the last column is never padded.

    Examples:
        >>> print(columns([["a", "bb", "c"], ["aaa", "b", "c"]]))
        a    bb  c
        aaa  b   c
    """
    if not rows:
        return ""
    widths = [max(len(row[i]) for row in rows if i < len(row)) for i in range(max(map(len, rows)))]
    lines = (
        indent + "  ".join(cell.ljust(widths[i]) for i, cell in enumerate(row)).rstrip()
        for row in rows
    )
    return "\n".join(lines)
