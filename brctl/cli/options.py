"""Options and arguments that several commands share, each declared once."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from brctl.cli.stdin_names import nodes_text
from brctl.model.errors import UsageError

if TYPE_CHECKING:
    from brctl.cli.invocation import Invocation


def _nodes_or_flag(ctx: typer.Context, text: str) -> str:
    """The argument, or -w in its place: who swept with -w goes on with -w."""
    invocation: Invocation = ctx.obj
    named = nodes_text(text) if text else ""
    if named and invocation.nodes is not None:
        raise UsageError("name the nodes once: as an argument or with -w")
    if not named and invocation.nodes is None:
        raise UsageError("which nodes? NODES or -w names them", hint=f"{ctx.command_path} --help")
    return named or str(invocation.nodes)


Nodes = Annotated[
    str,
    typer.Argument(
        help="nodes; - reads stdin; default -w",
        metavar="NODES",
        default_factory=str,
        show_default=False,
        callback=_nodes_or_flag,
    ),
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
Identity = Annotated[
    Path | None, typer.Option("--identity", help="key that opens what age encrypted")
]


def read_address(text: str, default_host: str = "") -> tuple[str, int]:
    """Address and port; the host may be left out where there is a default.

    A name is looked up here, once: whoever listens again later must not wait for a name server.

    Raises:
        UsageError: It is no address, or a name that nobody knows.
    """
    import socket

    host, _, port = text.rpartition(":")
    host = host.strip("[]") or default_host
    if not host or not port.isdecimal() or int(port) > 65535:
        raise UsageError(f"--listen {text}: write HOST:PORT, 127.0.0.1:9095")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        found = socket.getaddrinfo(host, int(port), family, socket.SOCK_STREAM)
    except (OSError, UnicodeError) as exc:
        raise UsageError(f"--listen {text}: {host} has no address here: {exc}") from None
    return str(found[0][4][0]), int(port)
