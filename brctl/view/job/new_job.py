"""What `job init` wrote, guessed and could not know."""

from collections.abc import Sequence
from dataclasses import dataclass

from brctl.model.exit_codes import ExitCode
from brctl.model.nodeset import fold
from brctl.view.documents import node_set
from brctl.view.notices.page import Json, Page
from brctl.view.text import printable


@dataclass(frozen=True, slots=True)
class WrittenJob:
    """A new job.yaml.

    Attributes:
        guessed: What was concluded, a sentence each.
        unknown: What a person has to say.
    """

    name: str
    file: str
    nodes: tuple[str, ...]
    guessed: Sequence[str]
    unknown: Sequence[str]


def job_init_page(written: WrittenJob) -> Page:
    """Exit 1 while something has to be filled in."""
    body: dict[str, Json] = {
        "job": written.name,
        "file": written.file,
        **node_set(written.nodes),
        "guessed": list(written.guessed),
        "unknown": list(written.unknown),
    }
    lines = [
        f"wrote {written.file}: job {written.name} on {fold(written.nodes)}",
        *(f"guessed    {line}" for line in written.guessed),
        *(f"NOT KNOWN  {line}" for line in written.unknown),
        "list it under jobs: in config.yaml",
    ]
    code = ExitCode.WARNING if written.unknown else ExitCode.OK
    text = "\n".join(map(printable, lines))
    steps = ("brctl job show", "brctl ckpt latest")
    return Page("JobInit", body, text, code, (written.file,), next=steps)
