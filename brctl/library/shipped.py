"""Where the checks, playbooks and completions that come with brctl are."""

from pathlib import Path

KINDS = ("checks", "playbooks", "completions")


def shipped_dir(name: str) -> Path:
    """The folder of one kind of shipped file: inside the installed package, or the source tree.

    Raises:
        ValueError: The kind does not exist.
        FileNotFoundError: The installation lacks the folder.
    """
    if name not in KINDS:
        raise ValueError(f"{name!r}: not a kind of shipped file; known: {', '.join(KINDS)}")
    package = Path(__file__).resolve().parent.parent
    for candidate in (package / "_shipped" / name, package.parent / name):
        if candidate.is_dir():
            return candidate
    raise FileNotFoundError(f"this installation of brctl lacks its {name} folder")
