"""The documents as they should be: pages by hand with tables from the code."""

import re
from pathlib import Path

from tests.docs.man import man_pages
from tests.docs.tables import TABLES

ROOT = Path(__file__).resolve().parents[2]
PAGES = ROOT / "brctl" / "docs"
MAN = PAGES / "man"
_BLOCK = re.compile(
    r"(?P<open><!-- table: (?P<name>[\w-]+) -->\n).*?(?P<close><!-- end -->)", re.DOTALL
)
WITH_TABLES = (ROOT / "README.md", ROOT / "brctl" / "ARCHITECTURE.md")


def generated() -> dict[Path, str]:
    """The text of every document that holds something generated."""
    paths = [*sorted(PAGES.glob("*.md")), *WITH_TABLES]
    pages = {path: with_tables(path.read_text(encoding="utf-8")) for path in paths}
    return pages | {MAN / name: text for name, text in man_pages().items()}


def tables_in(text: str) -> list[str]:
    """Names of the tables a page asks for."""
    return [match["name"] for match in _BLOCK.finditer(text)]


def with_tables(text: str) -> str:
    """The text with each of its tables made anew."""
    return _BLOCK.sub(lambda m: f"{m['open']}\n{TABLES[m['name']]()}\n\n{m['close']}", text)
