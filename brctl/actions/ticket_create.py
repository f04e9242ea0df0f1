"""ticket.create: open a ticket where the site keeps them; the same key finds the first one."""

import asyncio
from collections.abc import Callable, Mapping, Sequence

from brctl.actions import arguments
from brctl.actions.contract import ActionFailed, ActionResult, FailureKind, Observation, Site
from brctl.model.nodeset import fold
from brctl.model.runs.plan import Change, Sign
from brctl.model.runs.playbook import Arguments
from brctl.notify.http import DeliveryError
from brctl.view.documents import verdict_document
from brctl.view.notices.page import Json
from brctl.view.notices.text import clean_tree

NOWHERE = "no ticket desk configured (`ticket:` in config.yaml)"


class TicketCreate:
    """Undo withdraws the ticket this key has opened, and no other."""

    async def observe(self, site: Site, args: Arguments) -> Observation:
        found = _find(site, _key(site, args))
        if found is None:
            return Observation(done=False, say="no ticket")
        return Observation(done=True, out={"ticket": found[0]}, say=f"ticket {found[0]}")

    async def plan(self, site: Site, args: Arguments) -> Sequence[Change]:
        queue = arguments.text(args, "queue")
        about = fold(_nodes(args)) if arguments.is_known(args, "node") else str(args["node"])
        return (Change(Sign.ADD, f"ticket in {queue}", f"about {about or site.run}"),)

    async def apply(self, site: Site, args: Arguments) -> ActionResult:
        desk = site.notifier.tickets
        if not desk.configured:
            raise ActionFailed(NOWHERE)
        key = _key(site, args)
        known = _find(site, key)
        if known is not None:
            return ActionResult(
                {"ticket": known[0]}, changed=False, say=f"ticket {known[0]} (already)"
            )
        body = clean_tree(_body(site, args))
        try:
            ticket = await asyncio.to_thread(desk.open, key, site.run, body)
        except DeliveryError as exc:
            raise ActionFailed(str(exc), FailureKind.TRANSPORT) from exc
        return ActionResult({"ticket": ticket}, say=f"ticket {ticket}")

    async def undo(self, site: Site, args: Arguments) -> ActionResult:
        key = _key(site, args)
        ticket, run = _find(site, key) or ("", "")
        if run != site.run:
            return ActionResult(changed=False, say="no ticket of this run to withdraw")
        try:
            await asyncio.to_thread(site.notifier.tickets.withdraw, key, ticket)
        except DeliveryError as exc:
            raise ActionFailed(f"ticket {ticket}: {exc}", FailureKind.TRANSPORT) from exc
        return ActionResult({"ticket": ticket}, say=f"ticket {ticket} withdrawn")

    async def confirm(self, site: Site, args: Arguments) -> Observation:
        return await self.observe(site, args)


def _find(site: Site, key: str) -> tuple[str, str] | None:
    """The ticket of a key and the run that opened it."""
    try:
        return site.notifier.tickets.find(key)
    except DeliveryError as exc:
        raise ActionFailed(str(exc)) from exc


def _key(site: Site, args: Arguments) -> str:
    """What makes two requests one; without a word about it, queue and nodes of this run."""
    named = arguments.text(args, "idempotency_key", "")
    return named or f"{site.run}/{arguments.text(args, 'queue')}/{fold(_nodes(args))}"


def _nodes(args: Arguments) -> tuple[str, ...]:
    return arguments.nodes(args, "node") if "node" in args else ()


def _body(site: Site, args: Arguments) -> Mapping[str, Json]:
    facts, nodes = site.facts(), _nodes(args)
    failed = facts.record.failed_step
    about = f"{fold(nodes) or site.run}: {facts.playbook.title}"
    wanted = arguments.texts(args, "attach")
    return {
        "queue": arguments.text(args, "queue"),
        "summary": arguments.text(args, "summary", about),
        "nodes": list(nodes),
        "run": site.run,
        "playbook": facts.playbook.name,
        "failed_step": failed or None,
        "error": facts.record.failed_error or None,
        "attached": {name: _attachment(site, name)(nodes) for name in wanted},
    }


def _attachment(site: Site, name: str) -> Callable[[Sequence[str]], Json]:
    known: dict[str, Callable[[Sequence[str]], Json]] = {
        "evidence": lambda _nodes: str(site.run_dir / "evidence"),
        "verdict": lambda _nodes: _verdict(site),
        "serials": lambda nodes: {n: _serial(site, n) for n in nodes},
    }
    if name not in known:
        raise ActionFailed(f"`attach`: {name!r} is none of {', '.join(known)}")
    return known[name]


def _verdict(site: Site) -> Json:
    verdict = site.facts().verdict
    return verdict_document(verdict) if verdict else None


def _serial(site: Site, node: str) -> str | None:
    known = site.inventory.nodes.get(node)
    return known.labels.get("serial") if known else None
