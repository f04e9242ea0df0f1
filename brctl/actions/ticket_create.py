"""ticket.create: open a ticket where the site keeps them; the same key finds the first one."""

import asyncio
from collections.abc import Callable, Mapping, Sequence

from brctl.actions import arguments
from brctl.actions.context import RunContext
from brctl.actions.contract import (
    ActionFailed,
    ActionResult,
    FailureKind,
    Observation,
    VerbImplementation,
)
from brctl.model.nodeset import fold
from brctl.model.runs.plan import Change, Sign
from brctl.model.runs.playbook import Arguments
from brctl.notify.http import DeliveryError
from brctl.view.documents import verdict_document
from brctl.view.notices.page import Json
from brctl.view.notices.text import clean_tree

NOWHERE = "no ticket system configured (`ticket:` in config.yaml)"


class TicketCreate(VerbImplementation):
    """Undo withdraws the ticket this key has opened, and no other."""

    async def observe(self, context: RunContext, args: Arguments) -> Observation:
        found = _find(context, _key(context, args))
        if found is None:
            return Observation(done=False, say="no ticket")
        return Observation(done=True, out={"ticket": found[0]}, say=f"ticket {found[0]}")

    async def plan(self, context: RunContext, args: Arguments) -> Sequence[Change]:
        queue = arguments.text(args, "queue")
        about = fold(_nodes(args)) if arguments.is_known(args, "node") else str(args["node"])
        return (Change(Sign.ADD, f"ticket in {queue}", f"about {about or context.run.name}"),)

    async def apply(self, context: RunContext, args: Arguments) -> ActionResult:
        tickets = context.notifier.tickets
        if not tickets.configured:
            raise ActionFailed(NOWHERE)
        key = _key(context, args)
        known = _find(context, key)
        if known is not None:
            return ActionResult(
                {"ticket": known[0]}, changed=False, say=f"ticket {known[0]} (already)"
            )
        body = clean_tree(_body(context, args))
        try:
            ticket = await asyncio.to_thread(tickets.open, key, context.run.name, body)
        except DeliveryError as exc:
            raise ActionFailed(str(exc), FailureKind.TRANSPORT) from exc
        return ActionResult({"ticket": ticket}, say=f"ticket {ticket}")

    async def undo(self, context: RunContext, args: Arguments) -> ActionResult:
        key = _key(context, args)
        ticket, run = _find(context, key) or ("", "")
        if run != context.run.name:
            return ActionResult(changed=False, say="no ticket of this run to withdraw")
        try:
            await asyncio.to_thread(context.notifier.tickets.withdraw, key, ticket)
        except DeliveryError as exc:
            raise ActionFailed(f"ticket {ticket}: {exc}", FailureKind.TRANSPORT) from exc
        return ActionResult({"ticket": ticket}, say=f"ticket {ticket} withdrawn")


def _find(context: RunContext, key: str) -> tuple[str, str] | None:
    """The ticket of a key and the run that opened it."""
    try:
        return context.notifier.tickets.find(key)
    except DeliveryError as exc:
        raise ActionFailed(str(exc)) from exc


def _key(context: RunContext, args: Arguments) -> str:
    """What makes two requests one; without a word about it, queue and nodes of this run."""
    named = arguments.text(args, "idempotency_key", "")
    return named or f"{context.run.name}/{arguments.text(args, 'queue')}/{fold(_nodes(args))}"


def _nodes(args: Arguments) -> tuple[str, ...]:
    return arguments.nodes(args, "node") if "node" in args else ()


def _body(context: RunContext, args: Arguments) -> Mapping[str, Json]:
    facts, nodes = context.run.facts(), _nodes(args)
    failed = facts.run.record.failed_step
    about = f"{fold(nodes) or context.run.name}: {facts.run.playbook.title}"
    wanted = arguments.texts(args, "attach")
    return {
        "queue": arguments.text(args, "queue"),
        "summary": arguments.text(args, "summary", about),
        "nodes": list(nodes),
        "run": context.run.name,
        "playbook": facts.run.playbook.name,
        "failed_step": failed or None,
        "error": facts.run.record.failed_error or None,
        "attached": {name: _attachment(context, name)(nodes) for name in wanted},
    }


def _attachment(context: RunContext, name: str) -> Callable[[Sequence[str]], Json]:
    known: dict[str, Callable[[Sequence[str]], Json]] = {
        "evidence": lambda _nodes: str(context.run.folder / "evidence"),
        "verdict": lambda _nodes: _verdict(context),
        "serials": lambda nodes: {n: _serial(context, n) for n in nodes},
    }
    if name not in known:
        raise ActionFailed(f"`attach`: {name!r} is none of {', '.join(known)}")
    return known[name]


def _verdict(context: RunContext) -> Json:
    verdict = context.run.facts().verdict
    return verdict_document(verdict) if verdict else None


def _serial(context: RunContext, node: str) -> str | None:
    known = context.inventory.nodes.get(node)
    return known.labels.get("serial") if known else None
