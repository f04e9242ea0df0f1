"""Options and arguments that several commands share, each declared once."""

from typing import Annotated

import typer

from brctl.cli.stdin_names import nodes_text

Nodes = Annotated[
    str, typer.Argument(help="nodes; - reads stdin", metavar="NODES", callback=nodes_text)
]
OneNode = Annotated[str, typer.Argument(help="one node", metavar="NODE")]
JobArgument = Annotated[str | None, typer.Argument(help="default the only one")]
JobOption = Annotated[str | None, typer.Option("--job", help="default the only one")]
DryRun = Annotated[bool, typer.Option("--dry-run", "-n", help="plan only")]
LowRiskYes = Annotated[bool, typer.Option("--yes", "-y", help="agree; low risk only")]
ConfirmSwap = Annotated[str | None, typer.Option("--confirm", help='what to type, e.g. "swap 1"')]
OpenOnly = Annotated[bool, typer.Option("--open", help="only open ones")]
BesideJob = Annotated[bool, typer.Option("--beside-job", help="load nodes with ranks")]
NodeDeadline = Annotated[str, typer.Option("--deadline", help="per node")]
RoundDeadline = Annotated[str, typer.Option("--round-deadline", help="for one round")]
SearchBudget = Annotated[str, typer.Option("--budget", help="for the whole search")]
Repetitions = Annotated[int, typer.Option("--reps", min=1, max=256, help="in one set-up")]
