"""`brctl help TOPIC`: the tables a person needs at hand."""

from typing import Annotated

import typer

from brctl.cli.invocation import COMMON_HELP, Invocation, new_app
from brctl.cli.main import top_help
from brctl.cli.words import WORDS
from brctl.library.reference import page_names, read_page
from brctl.model.errors import UsageError, did_you_mean
from brctl.model.exit_codes import ExitCode
from brctl.view.fault_classes import CLASSES, classes_page
from brctl.view.help import TOPICS
from brctl.view.notices.page import Page

app = new_app()


@app.command()
def show(
    ctx: typer.Context,
    topic: Annotated[str, typer.Argument(help="a topic, or a page of the reference")] = "",
) -> None:
    """Show one topic, or the overview."""
    invocation: Invocation = ctx.obj
    if topic == CLASSES:
        invocation.finish(classes_page())
    if not topic:
        text = "\n".join([top_help(), "", COMMON_HELP, *_where_more()])
    elif topic in TOPICS:
        text = TOPICS[topic]
    elif topic in page_names():
        text = read_page(topic).rstrip("\n")
    elif topic in WORDS:
        text = _help_of(topic)
    else:
        known = (*TOPICS, CLASSES, *page_names(), *WORDS)
        raise UsageError(f"no topic `{topic}`; {did_you_mean(topic, known)}")
    invocation.finish(Page("Help", {"topic": topic, "text": text}, text, ExitCode.OK))


def _help_of(word: str) -> str:
    """What `brctl WORD --help` prints."""
    with WORDS[word].command().make_context(f"brctl {word}", [], resilient_parsing=True) as ctx:
        return ctx.get_help()


def _where_more() -> list[str]:
    pages = [name for name in page_names() if name not in TOPICS]
    return ["topics: " + " ".join((*TOPICS, CLASSES)), "pages:  " + " ".join(pages)]
