"""`run:` a site's own script. Its text is never expanded: values reach it as environment only.

A script leaves no mark that brctl knows, so nobody can tell later whether it was done.
"""

import asyncio
import json
import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from brctl.actions import arguments
from brctl.actions.child import (
    LAST_LINE_LIMIT,
    OUTPUT_LIMIT_BYTES,
    kept_environment,
    last_line,
    run_child,
)
from brctl.actions.context import RunContext
from brctl.actions.contract import ActionFailed, ActionResult, FailureKind, Observation
from brctl.library.shipped import node_program
from brctl.model.command import Command, CommandResult, Outcome
from brctl.model.nodeset import fold
from brctl.model.runs.plan import Change, Sign
from brctl.model.runs.playbook import Arguments, Step


class Script:
    """One `run:` step; see `contract.Action`."""

    def __init__(self, step: Step, name: str) -> None:
        self._step = step
        self._name = name

    async def observe(self, context: RunContext, args: Arguments) -> Observation:
        return Observation(None, say="a script leaves no mark to look at", markless=True)

    async def plan(self, context: RunContext, args: Arguments) -> Sequence[Change]:
        where = fold(arguments.nodes(args, "nodes")) if "nodes" in args else "controller"
        first = self._step.run.strip().splitlines()[0]
        return (Change(Sign.ALTER, where, f"runs `{first[:LAST_LINE_LIMIT]}`"),)

    async def apply(self, context: RunContext, args: Arguments) -> ActionResult:
        env = {**_texts(args), "BRCTL_RUN": context.run.name, "BRCTL_STEP": self._name}
        log = context.run.folder / "stdout" / f"{self._name}.log"
        if "nodes" in args:
            statuses = await self._on_nodes(context, arguments.nodes(args, "nodes"), env, log)
        else:
            statuses = {"": await self._here(env, log)}
        message = last_line(log)
        wrong = {node: s for node, s in statuses.items() if s not in self._step.expect_exit}
        if wrong:
            where = f" on {fold(wrong)}" if "nodes" in args else ""
            codes = ", ".join(str(s) for s in sorted(set(wrong.values())))
            raise ActionFailed(f"exit status {codes}{where}: {message} (stdout/{log.name})")
        say = f"{message or 'no output'} (stdout/{log.name})"
        return ActionResult({"exit_status": max(statuses.values(), default=0)}, say=say)

    async def undo(self, context: RunContext, args: Arguments) -> ActionResult:
        raise ActionFailed("a script cannot be undone; `undo` needs a verb")

    async def confirm(self, context: RunContext, args: Arguments) -> Observation:
        return Observation(None)

    async def _here(self, env: Mapping[str, str], log: Path) -> int:
        return await run_child(
            ("/bin/sh", "-c", self._step.run), {**kept_environment(), **env}, log
        )

    async def _on_nodes(
        self, context: RunContext, nodes: Sequence[str], env: Mapping[str, str], log: Path
    ) -> dict[str, int]:
        unknown = [node for node in nodes if node not in context.inventory.nodes]
        if unknown:
            raise ActionFailed(f"{fold(unknown)} is not in the inventory")
        deadline_s = self._step.timeout_s
        limit = OUTPUT_LIMIT_BYTES - 1
        question = {
            "run": self._step.run, "env": dict(env), "deadline_s": deadline_s, "limit": limit,
        }  # fmt: skip
        answers = await asyncio.gather(
            *(
                context.nodes.command(
                    node,
                    Command(
                        (
                            context.inventory.nodes[node].python, "-I", "-c",
                            node_program("_script.py"),
                        ),
                        json.dumps(question).encode(), deadline_s, OUTPUT_LIMIT_BYTES,
                    ),
                )
                for node in nodes
            )
        )  # fmt: skip
        _keep(log, answers)
        lost = [a for a in answers if a.outcome is not Outcome.ANSWERED or a.exit_status is None]
        if lost:
            why = f"{fold(a.node for a in lost)}: {lost[0].detail or lost[0].outcome}"
            raise ActionFailed(f"no exit status from {why}", FailureKind.TRANSPORT)
        return {a.node: a.exit_status or 0 for a in answers}


def _texts(args: Arguments) -> dict[str, str]:
    """Values as a process can take them."""
    env = args.get("env")
    texts = {}
    for name, value in env.items() if isinstance(env, Mapping) else ():
        if isinstance(value, bool):
            texts[name] = "true" if value else "false"
        elif isinstance(value, Collection) and not isinstance(value, str):
            texts[name] = fold(str(item) for item in value)
        else:
            texts[name] = str(value)
        if "\0" in texts[name]:
            raise ActionFailed(f"env {name}: a value cannot hold a NUL character")
    return texts


def _keep(log: Path, answers: Sequence[CommandResult]) -> None:
    """The nodes' output, one after the other under their names."""
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    with os.fdopen(descriptor, "ab") as stream:
        for answer in answers:
            head = f"--- {answer.node}: {answer.outcome}, exit status {answer.exit_status}\n"
            stream.write(head.encode() + answer.stdout + answer.stderr)
