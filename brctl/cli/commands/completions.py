"""`brctl completions SHELL`: a small script that asks `brctl __complete`, which imports nothing."""

from typing import Annotated

import typer

from brctl.cli.invocation import Invocation, new_app
from brctl.library.shipped import shipped_dir
from brctl.model.errors import UsageError, did_you_mean
from brctl.view.notices.page import Page

app = new_app()
FILES = {"bash": "brctl.bash", "zsh": "_brctl", "fish": "brctl.fish"}


@app.command()
def completions(
    ctx: typer.Context, shell: Annotated[str, typer.Argument(help="bash, zsh or fish")]
) -> None:
    """Print the completion script; put it where your shell looks for such scripts."""
    invocation: Invocation = ctx.obj
    if shell not in FILES:
        raise UsageError(f"no completion for `{shell}`; {did_you_mean(shell, FILES)}")
    text = (shipped_dir("completions") / FILES[shell]).read_text(encoding="utf-8").rstrip("\n")
    invocation.finish(Page("Completions", {"shell": shell, "script": text}, text))
