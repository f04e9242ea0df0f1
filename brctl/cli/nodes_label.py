"""`brctl nodes label NODES k=v k-`: labels a person sets by hand, as a run with a journal."""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Annotated

import typer

from brctl.cli.invocation import Invocation
from brctl.cli.options import DryRun, Nodes
from brctl.library.config import Settings
from brctl.model.errors import GuardError, UsageError
from brctl.model.nodeset import fold
from brctl.model.runs.playbook import Json


def label(
    ctx: typer.Context,
    nodes: Nodes,
    labels: Annotated[list[str], typer.Argument(help="k=v sets, k- takes back")],
    dry_run: DryRun = False,
) -> None:
    """Label nodes where the scheduler keeps labels; `k-` takes back what people set."""
    from brctl.cli.running import Consent, finish_run, run_playbook
    from brctl.engine.application.runs import find_playbook

    invocation: Invocation = ctx.obj
    settings = invocation.settings()
    wanted, removed = read_labels(labels)
    names = asyncio.run(_check(settings, nodes, [*wanted, *removed]))
    values: dict[str, Json] = {
        "nodes": list(names),
        "set": ",".join(f"{key}={value}" for key, value in wanted.items()),
        "remove": ",".join(removed),
    }
    playbook = find_playbook(settings.library_dirs, "label")
    consent = Consent(yes=True, dry_run=dry_run)
    run = asyncio.run(run_playbook(invocation, settings, playbook, values, None, consent))
    finish_run(invocation, settings, run)


def read_labels(words: Iterable[str]) -> tuple[dict[str, str], list[str]]:
    """What to set and what to take back.

    Raises:
        UsageError: A word is neither `k=v` nor `k-`, cannot be a label, or comes twice.
    """
    from brctl.actions.contract import ActionFailed
    from brctl.actions.node.label import PREFIX, check_label

    wanted: dict[str, str] = {}
    removed: list[str] = []
    for word in words:
        key, equals, value = word.removeprefix(PREFIX).partition("=")
        if not equals and not key.endswith("-"):
            raise UsageError(
                f"{word!r}: neither k=v nor k-", hint="brctl nodes label n1 burnin=due"
            )
        key = key if equals else key[:-1]
        if key in wanted or key in removed:
            raise UsageError(f"{word!r}: {key} is named twice")
        try:
            check_label(key, value if equals else "x")
        except ActionFailed as exc:
            raise UsageError(str(exc)) from exc
        if equals:
            wanted[key] = value
        else:
            removed.append(key)
    return wanted, removed


async def _check(settings: Settings, nodes: str, keys: Sequence[str]) -> tuple[str, ...]:
    """The nodes meant, once it is sure that nobody else's label is among those keys."""
    from brctl.actions.node.label import PEOPLE
    from brctl.engine.controller.selection import select_nodes
    from brctl.engine.controller.wiring import open_controller

    async with open_controller(settings) as controller:
        names = await select_nodes(controller, nodes)
        for key in keys:
            found = await controller.backend.labels(names, key)
            set_by_others = {node: label for node, label in found.items() if label.owner != PEOPLE}
            for owner in sorted({label.owner for label in set_by_others.values()}):
                _refuse(
                    key, owner, [n for n, label in set_by_others.items() if label.owner == owner]
                )
    return names


def _refuse(key: str, owner: str, nodes: Sequence[str]) -> None:
    run = owner.removeprefix("brctl:")
    who = f"run {run}" if run else "somebody else, not through brctl"
    hint = f"brctl play rollback {run}" if run else "change it where it was set"
    raise GuardError(f"{fold(nodes)}: label {key} was set by {who}", hint=hint)
