"""`brctl help TOPIC`: the tables a person needs at hand."""

from typing import Annotated

import typer

from brctl.cli.invocation import COMMON_HELP, Invocation, new_app
from brctl.cli.main import top_help
from brctl.model.errors import UsageError, did_you_mean
from brctl.model.exit_codes import ExitCode
from brctl.view.help import TOPICS
from brctl.view.notices.page import Page

app = new_app()


@app.command()
def show(
    ctx: typer.Context,
    topic: Annotated[str, typer.Argument(help="exit-codes, selectors, output, environment")] = "",
) -> None:
    """Show one topic, or the overview."""
    invocation: Invocation = ctx.obj
    if not topic:
        text = top_help() + "\n\n" + COMMON_HELP + "\ntopics: " + " ".join(TOPICS)
    elif topic in TOPICS:
        text = TOPICS[topic]
    else:
        raise UsageError(f"no topic `{topic}`; {did_you_mean(topic, TOPICS)}")
    invocation.finish(Page("Help", {"topic": topic, "text": text}, text, ExitCode.OK))
