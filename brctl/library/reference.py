"""The pages of the reference, which are installed with the program."""

from pathlib import Path

_INDEX = "README"
_FOLDER = Path(__file__).resolve().parent.parent / "docs"


def page_names() -> tuple[str, ...]:
    """Pages that can be asked for, without the index."""
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.md") if path.stem != _INDEX))


def read_page(name: str) -> str:
    """The text of one page."""
    return (_FOLDER / f"{name}.md").read_text(encoding="utf-8")
